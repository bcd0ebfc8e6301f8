"""The servers of lock providers with one interface for tests, which stop for a while, and take a lock from its
holder."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyarrow import fs

from jobs.format.lock_providers import PREFIX
from tests.integration import tables
from tests.integration.doomed import Surroundings
from tests.support import aws_locks, hive_metastore, zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from jobs.contract import TableLock
    from jobs.hudi.lock import TableLock as Held

SERVERS = ["zookeeper", "hive metastore", "storage", "dynamodb"]


class LockServer(Protocol):
    kind: str
    # Seconds after which a silent holder loses its lock.
    holds_seconds: float
    # Factor by which jobs on the tables' storage take longer than on a disk.
    slowness: float

    def lock(self, name: str) -> TableLock: ...
    def writer_options(self, name: str) -> dict[str, str]: ...
    def away(self) -> AbstractContextManager[None]: ...

    def base(self, folder: Path) -> Path | str:
        """Returns a base path for a table with this lock."""

    def left_behind(self, base: Path | str) -> list[str]:
        """Returns the same as `tables.left_behind`, for any storage."""

    @property
    def surroundings(self) -> Surroundings:
        """Returns the options that another process needs to take the lock."""

    def take_away(self, held: Held) -> None:
        """Removes the lock as the server does after too long a silence of its holder."""


class OnDisk:
    """A lock whose tables lie on a local disk."""

    surroundings = Surroundings()
    slowness = 1.0

    def base(self, folder: Path) -> Path | str:
        return folder / "trips"

    def left_behind(self, base: Path | str) -> list[str]:
        return tables.left_behind(Path(base))


class Zookeeper(OnDisk, zookeeper.Server):
    kind = SERVERS[0]
    holds_seconds = zookeeper.SESSION_MILLISECONDS / 1000

    def take_away(self, held: Held) -> None:
        proof: Any = held._proof
        self.delete(proof._path)


class HiveMetastore(OnDisk, hive_metastore.Server):
    kind = SERVERS[1]
    holds_seconds = float(hive_metastore.LOCK_SECONDS)

    def take_away(self, held: Held) -> None:
        proof: Any = held._proof
        client = proof._connect(proof._conf)
        client.unlock(proof._number)
        client.close()


class OnAws:
    """A lock whose end is determined by its last renewal, not by the connection of its holder."""

    def __init__(self, server: aws_locks.Server) -> None:
        self._server = server

    @property
    def surroundings(self) -> Surroundings:
        return Surroundings(self._server.java_options, self._server.s3.options)

    def away(self) -> AbstractContextManager[None]:
        return self._server.gate.shut()


class Dynamodb(OnAws, OnDisk):
    kind = SERVERS[3]
    holds_seconds = float(aws_locks.LEASE_SECONDS)

    def lock(self, name: str) -> TableLock:
        return self._server.in_dynamodb(name)

    def writer_options(self, name: str) -> dict[str, str]:
        lock = self.lock(name)
        return {**lock.options, f"{PREFIX}provider": lock.provider}

    def take_away(self, held: Held) -> None:
        """Takes and releases the lock as another holder does after the end of the lease."""
        key = held._table.declared.lock.options[f"{PREFIX}dynamodb.partition_key"]
        self._server.dynamodb.delete_item(TableName="locks", Key={"key": {"S": key}})


class OfStorage(OnAws):
    kind = SERVERS[2]
    holds_seconds = float(aws_locks.VALIDITY_SECONDS)
    slowness = 4.0

    def lock(self, name: str) -> TableLock:
        return self._server.in_storage()

    def writer_options(self, name: str) -> dict[str, str]:
        lock = self.lock(name)
        # Hudi leaks connections with a metadata table on S3, and the test's writer is never restarted.
        return {**lock.options, f"{PREFIX}provider": lock.provider, "hoodie.metadata.enable": "false"}

    def base(self, folder: Path) -> Path | str:
        return f"s3a://lake/{folder.name}/trips"

    def left_behind(self, base: Path | str) -> list[str]:
        with tempfile.TemporaryDirectory() as copied:
            fs.copy_files(str(base).removeprefix("s3a://"), copied, source_filesystem=self._server.s3.files)
            return tables.left_behind(Path(copied))

    def take_away(self, held: Held) -> None:
        root = held._table.base_path.removeprefix("s3a://")
        self._server.s3.files.delete_file(f"{root}/{aws_locks.LOCK_FILE}")


@contextmanager
def started(name: str, spark: SparkSession) -> Iterator[LockServer]:
    if name == Zookeeper.kind:
        with zookeeper.running() as zoo:
            yield Zookeeper(zoo.process)
    elif name == HiveMetastore.kind:
        with hive_metastore.running(spark) as metastore:
            yield HiveMetastore(metastore.process)
    elif name == OfStorage.kind:
        with aws_locks.running(spark, aws_locks.IN_BUCKET) as bucket:
            yield OfStorage(bucket)
    else:
        with aws_locks.running(spark, aws_locks.IN_DYNAMODB) as dynamodb:
            yield Dynamodb(dynamodb)
