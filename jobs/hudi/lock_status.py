"""Reads the state of a lock without taking it: whether it is held, and by whom, as far as Hudi's provider (1.2.0)
shows."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobs.contract import Problem
from jobs.errors import JobError
from jobs.format import lock_providers
from jobs.hudi.jvm import Jvm, translated
from jobs.hudi.lock_proof import field_of

_OF_PATH = ("zkBasePath", "lockKey")


@dataclass(frozen=True)
class LockStatus:
    """The state of a lock. `problems` are reasons why the lock cannot be taken at all; another holder is no such
    reason. `is_held` is None if unknown. `holder` says since when and by whom it is held, such as `held for 3 h by
    ...`."""

    problems: tuple[Problem, ...] = ()
    is_held: bool | None = None
    holder: str | None = None


def on_server(jvm: Jvm, kind: str, provider: Any) -> LockStatus:
    """Reads the state of a lock that is not a file; `provider` was loaded for it, and can be reached."""
    # An unreadable state counts as unknown, and does not make the dry run fail.
    with suppress(JobError):
        if kind in lock_providers.ZOOKEEPER:
            return _of_zookeeper(jvm, provider)
        if kind == lock_providers.IN_STORAGE:
            return _in_storage(provider)
    return LockStatus()


def _of_zookeeper(jvm: Jvm, provider: Any) -> LockStatus:
    """Reads the lock's nodes. The first one belongs to the holder, the others wait; a node ends with the session that
    made it."""
    with translated("reading the lock's ZooKeeper nodes"):
        base = provider.getClass().getSuperclass()
        curator, folder, key = (field_of(provider, name, base) for name in ("curatorFrameworkClient", *_OF_PATH))
        recipes = jvm.hudi.org.apache.curator.framework.recipes.locks
        nodes = jvm.read(recipes.InterProcessMutex(curator, f"{folder}/{key}").getParticipantNodes())
        if not nodes:
            return LockStatus(is_held=False)
        client = curator.getZookeeperClient().getZooKeeper()
        stat = client.exists(nodes[0], False)
        if stat is None:
            # The lock was released meanwhile, so the next waiting client has it.
            return LockStatus(is_held=len(nodes) > 1)
        age = time.time() - int(stat.getCtime()) / 1000
        session = int(stat.getEphemeralOwner()) & (2**64 - 1)
    return LockStatus(is_held=True, holder=f"held for {duration(age)} by the ZooKeeper session 0x{session:x}")


def _in_storage(provider: Any) -> LockStatus:
    with translated("reading the lock file"):
        found = field_of(provider, "storageLockClient").readCurrentLockFile()
        state, file = str(found.getLeft().toString()), found.getRight()
        if state == "NOT_EXISTS":
            return LockStatus(is_held=False)
        if state != "SUCCESS":
            return LockStatus()
        left = int(file.get().getValidUntilMs()) / 1000 - time.time()
        if file.get().isExpired() or left <= 0:
            return LockStatus(is_held=False)
        return LockStatus(
            is_held=True, holder=f"held by {str(file.get().getOwner())[:100]}, valid for {duration(left)}"
        )


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
