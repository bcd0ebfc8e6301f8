"""The servers of lock providers, all of one kind for tests: away for a while, and taking a lock from its holder."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from tests import hive_metastore, zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from jobs.contract import TableLock
    from jobs.hudi.lock import TableLock as Held

SERVERS = ["zookeeper", "hive metastore"]


class LockServer(Protocol):
    kind: str
    # How long a holder that is not heard of keeps its lock.
    holds_seconds: float

    def lock(self, name: str) -> TableLock: ...
    def writer_options(self, name: str) -> dict[str, str]: ...
    def away(self) -> AbstractContextManager[None]: ...

    def take_away(self, held: Held) -> None:
        """Does what the server does when the holder was not heard of for too long."""


class Zookeeper(zookeeper.Server):
    kind = SERVERS[0]
    holds_seconds = zookeeper.SESSION_MILLISECONDS / 1000

    def take_away(self, held: Held) -> None:
        proof: Any = held._proof
        self.delete(proof._path)


class HiveMetastore(hive_metastore.Server):
    kind = SERVERS[1]
    holds_seconds = float(hive_metastore.LOCK_SECONDS)

    def take_away(self, held: Held) -> None:
        proof: Any = held._proof
        client = proof._connect(proof._conf)
        client.unlock(proof._number)
        client.close()


@contextmanager
def started(name: str, spark: SparkSession) -> Iterator[LockServer]:
    if name == Zookeeper.kind:
        with zookeeper.running() as server:
            yield Zookeeper(server.process)
    else:
        with hive_metastore.running(spark) as metastore:
            yield HiveMetastore(metastore.process)
