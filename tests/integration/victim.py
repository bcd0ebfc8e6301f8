"""A worker for kill tests: it runs one plan as the real worker does, and sends itself SIGKILL at the plan's point.

The program (`python -m tests.integration.victim <jars> <more>`, see `doomed.Surroundings`) has its own process group.
The program prints `ready` when its Spark session is warm, reads one line of JSON (`plan`, `point`), and then prints a
line for each report that the service would get (`step`, `stored`), until it dies. A job that reaches its end is killed
as well, so its report is lost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.contract import Heartbeat, HeartbeatAnswer, WorkOrder
from jobs.errors import LeaseLostError
from jobs.hudi import hashing_config, hashing_metadata, upgrade_backup
from jobs.hudi.archiver import Archiver
from jobs.hudi.cleaner import Cleaner
from jobs.hudi.client import WriteClient
from jobs.hudi.indexer import Indexer
from jobs.hudi.keyed_writes import KeyedWrites
from jobs.hudi.metadata_table import MetadataTable
from jobs.hudi.savepoints import Savepoints
from jobs.hudi.session import start_session
from jobs.hudi.upgrader import Upgrader
from jobs.storage.permissions import Permissions
from jobs.worker.attempt import HEARTBEAT_SECONDS, Attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs.job_context import JobContext

LEASE_SECONDS = 600.0

# Functions between two steps; a kill may be `before` or `after` a call of them.
CALLS: dict[str, tuple[Any, str]] = {
    "the instant": (WriteClient, "start_replacement"),
    "inflight": (WriteClient, "begin_replacement"),
    "the hashing config": (hashing_config, "write"),
    "the hashing metadata": (hashing_metadata, "save"),
    "the commit": (WriteClient, "commit_replacement"),
    "the compaction": (WriteClient, "begin_compaction"),
    "the taking over": (WriteClient, "take_compacted"),
    "the commit of the compaction": (WriteClient, "commit_compaction"),
    "the rollback": (WriteClient, "rollback"),
    "the archival": (Archiver, "archive"),
    "the savepoint": (Savepoints, "create"),
    "the deletion": (Savepoints, "delete"),
    "the restore": (Savepoints, "restore"),
    "the given rollback": (WriteClient, "roll_back"),
    "the building": (MetadataTable, "_build"),
    "the metadata compaction": (MetadataTable, "compact"),
    "the backup": (upgrade_backup, "keep"),
    "the upgrade": (Upgrader, "run"),
    "the taking back": (upgrade_backup, "restore"),
    "the end": (upgrade_backup, "forget"),
    "the removal": (upgrade_backup, "remove"),
    "the index": (Indexer, "build"),
    "the dropping": (Indexer, "drop"),
    "the clean": (Cleaner, "execute"),
    "the mark": (KeyedWrites, "mark"),
}


def tell(what: str, value: str = "") -> None:
    os.write(1, f"{what} {value}".strip().encode() + b"\n")


class Death:
    """The point at which this process ends.

    `at` is the kind of point: `step` (with this prefix), `before` or `after` (a call), `file` (a file that matches the
    glob pattern exists), `unheard` (an instant was made, and the report to the service has begun), `start` or `end` of
    the job. The process dies `delay` seconds after it has reached the point for the `nth` time; `only` first kills only
    JVM or Python. If `freeze` is set, the process and its JVM do not die, but are suspended until they get SIGCONT. If
    `overtaken` is also set, the service has meanwhile given the job to another attempt.
    """

    def __init__(self, point: dict[str, Any], base: Path, jvm: int) -> None:
        self._at, self._name = point["at"], point.get("name", "")
        self._left, self._delay = point.get("nth", 1), point.get("delay", 0.0)
        self._only = point.get("only")
        self._freezes, self._is_overtaken = "freeze" in point, point.get("overtaken", False)
        self._frozen_since: float | None = None
        self._lock = base / ".hoodie" / "lock"
        self._jvm = jvm
        if self._at in {"before", "after"}:
            self._wrap(*CALLS[self._name])
        if self._at == "file":
            threading.Thread(target=self._watch, args=(base,), daemon=True).start()

    def arrive(self, at: str, name: str = "") -> None:
        if at != self._at or not name.startswith(self._name):
            return
        self._left -= 1
        if self._left == 0:
            self._die_later() if self._delay else self.now()

    def now(self) -> None:
        """Waits while the lock file is not signed, because nobody could find out its owner, and a person would have to
        remove it."""
        if self._freezes:
            tell("frozen")
            self._frozen_since = time.monotonic()
            os.killpg(os.getpgrp(), signal.SIGSTOP)
            return
        while self._lock.exists() and not self._lock.stat().st_size:
            time.sleep(0.0005)
        if self._only == "jvm":
            os.kill(self._jvm, signal.SIGKILL)
            return
        if self._only == "python":
            os.kill(os.getpid(), signal.SIGKILL)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    def lease_is_lost(self) -> bool:
        since = self._frozen_since
        return self._is_overtaken and since is not None and time.monotonic() - since > HEARTBEAT_SECONDS

    def _die_later(self) -> None:
        threading.Timer(self._delay, self.now).start()

    def _watch(self, base: Path) -> None:
        seen = self._matching(base)
        while len(self._matching(base) - seen) < self._left:
            time.sleep(0.0002)
        time.sleep(self._delay)
        self.now()

    def _matching(self, base: Path) -> set[Path]:
        while True:
            # A folder may be deleted meanwhile.
            with suppress(FileNotFoundError):
                return set(base.glob(self._name))

    def _wrap(self, owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.arrive("before", self._name)
            result = real(*args, **kwargs)
            self.arrive("after", self._name)
            return result

        setattr(owner, name, wrapped)


def telling_its_steps(context: JobContext, death: Death, jvm: int, hold: str | None) -> None:
    """Makes the context print each step; at the step `hold` it waits once for a line of input."""
    begin, held = context.step, [hold]

    def step(name: str, *, bytes_total: int = 0) -> None:
        begin(name, bytes_total=bytes_total)
        tell("step", name)
        tell_memory(jvm)
        if held[0] and name.startswith(held[0]):
            held[0] = None
            tell("held")
            sys.stdin.readline()
        death.arrive("step", name)

    context.step = step


def tell_memory(jvm: int) -> None:
    tell("memory", f"{most_memory(os.getpid())} {most_memory(jvm)}")


def most_memory(process: int) -> int:
    """Returns the most MiB that a process has had in memory, by /proc."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def main(jars: str, *, java_options: str, heap: str, storage: dict[str, str]) -> None:
    spark = start_session(
        driver_memory=heap,
        # The session has no Ivy and no optimizing compiler, because a process that lives for seconds should start fast.
        conf={
            "spark.jars.packages": "",
            "spark.jars": jars,
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC " + java_options,
        },
        storage_options=storage,
    )
    spark.sparkContext.parallelize(range(2), 2).map(lambda number: number).collect()
    tell("ready")
    order = json.loads(sys.stdin.readline())
    plan = WorkOrder.from_json(order["plan"])
    gateway: Any = spark.sparkContext._gateway
    death = Death(order["point"], Path(plan.table.base_path), gateway.proc.pid)
    stored: set[str] = set()

    def beat(heartbeat: Heartbeat) -> HeartbeatAnswer:
        if death.lease_is_lost():
            return HeartbeatAnswer.LOST
        for instant in heartbeat.instants:
            if instant not in stored:
                death.arrive("unheard")
                stored.add(instant)
                tell("stored", instant)
        return HeartbeatAnswer.CONTINUE

    attempt = Attempt(spark, plan, LEASE_SECONDS, beat, permissions=Permissions.of_environment(os.environ))
    telling_its_steps(attempt.context, death, gateway.proc.pid, order.get("hold"))
    death.arrive("start")
    try:
        result = attempt.run()
    except LeaseLostError:
        tell("lost")
    else:
        tell_memory(gateway.proc.pid)
        tell("ended", json.dumps(result.to_json()))
    death.arrive("end")
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], **json.loads(sys.argv[2]))
