"""A registered table, with declarations by its owner about facts that the table itself does not record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from jobs.contract import BucketIndex, JsonMapped, Table, TableLock, WriterEngine
from jobs.spec import Spec
from service.catalog.table_secrets import opened
from service.lake.table import BucketIndexKind
from service.model.flink_restart import FlinkRestart
from service.model.record import Record

if TYPE_CHECKING:
    from service.access.secret_cipher import SecretCipher
    from service.lake.engine_sighting import Sighting, Sightings


@dataclass(frozen=True)
class FlinkWriter:
    """The Flink job that writes a table. The service can stop it for a while."""

    rest_url: str  # The cluster's REST API.
    job: str  # Name or id.
    savepoint_folder: str | None = None  # None means the folder that the cluster is configured with.
    restart: FlinkRestart = FlinkRestart.FROM_SAVEPOINT  # The way to start the job again after each stop.


@dataclass(frozen=True)
class Writers(JsonMapped):
    """The owner's declarations about the table's writers."""

    hudi_version: str | None = None
    stopped: Annotated[bool, Spec("Declared: no writer is running", examples=(False,))] = False
    retry_conflicts: Annotated[
        bool, Spec("Declared: all writers write a batch again when it conflicts", examples=(False,))
    ] = False
    query_pruning_off: Annotated[
        bool, Spec("Declared: Hudi's pruning by buckets is off wherever SQL reads the table", examples=(False,))
    ] = False
    engines: Annotated[tuple[WriterEngine, ...] | None, Spec("The declared engines; null if not declared")] = None
    flink: FlinkWriter | None = None
    kafka_connect_ended: Annotated[
        str | None, Spec("Declared: the last commit of a sink for Kafka Connect that is gone; null if not declared")
    ] = None
    declared_at: datetime | None = None  # None if an earlier version of the service stored the declaration.
    engines_at: datetime | None = None  # When engines were last declared *again*. Earlier sightings no longer count.

    def detected(self, sightings: Sightings) -> dict[WriterEngine, Sighting]:
        """Returns the sightings that count, which are those after the owner last declared the engines again."""
        return {
            engine: sighting
            for engine, sighting in sightings.items()
            if self.engines_at is None or sighting.last_seen > self.engines_at
        }

    def known_engines(self, sightings: Sightings) -> tuple[WriterEngine, ...]:
        """Returns the declared and the detected engines; empty if nothing is known."""
        known = {*(self.engines or ()), *self.detected(sightings)} | ({WriterEngine.FLINK} if self.flink else set())
        return tuple(engine for engine in WriterEngine if engine in known)

    def are_stopped(self, sightings: Sightings) -> bool:
        """Returns whether the owner declared the writers stopped, and no Flink job was seen since then. Flink jobs
        matter because they continue by themselves."""
        flink = sightings.get(WriterEngine.FLINK)
        is_contradicted = flink is not None and self.declared_at is not None and flink.last_seen > self.declared_at
        return self.stopped and not is_contradicted


_BUCKETED = {BucketIndexKind.SIMPLE.value, BucketIndexKind.CONSISTENT_HASHING.value}


@dataclass(frozen=True)
class Readers(JsonMapped):
    """The owner's declarations about the programs that read the table. `hudi_version` is the oldest version among
    them."""

    hudi_version: str | None = None
    reads_per_day: float | None = None  # If None, the observed reads count (`service.outcome.reads`).


@dataclass(frozen=True)
class Registration(Record):
    """One registered table. The secrets among its options are encrypted (`service.catalog.table_secrets`)."""

    id: str
    base_path: str  # Canonical, so that no table can be registered twice under two spellings.
    name: str
    created_at: datetime
    updated_at: datetime
    index: BucketIndex | None = None
    lock: TableLock = field(default_factory=TableLock)
    writers: Writers = field(default_factory=Writers)
    readers: Readers = field(default_factory=Readers)
    hudi_options: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None  # Who is responsible for the table: a team, a person, an address.
    tags: Mapping[str, str] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)  # The last `service.lake.table.TableProfile`, as JSON.

    @property
    def flink_restart(self) -> FlinkRestart:
        """How Flink must be started after file groups were replaced. Hudi does not store which index its writers use,
        so a bucket index is assumed only if the owner has declared one or the file ids show one."""
        return FlinkRestart.FROM_SAVEPOINT if self.has_buckets else FlinkRestart.WITHOUT_STATE

    @property
    def has_buckets(self) -> bool:
        """Returns whether the owner has declared a bucket index, or the file ids show one."""
        layout = self.profile.get("bucket_layout") or {}
        return self.index is not None or layout.get("kind") in _BUCKETED

    def check_readable(self, cipher: SecretCipher) -> None:
        """Raises SecretUnreadableError if a secret cannot be decrypted. No worker could work on the table then."""
        for options in (self.lock.options, self.hudi_options):
            opened(cipher, options)

    def to_contract(self, sightings: Sightings, cipher: SecretCipher) -> Table:
        """Returns the data that a worker needs, with all secrets. `sightings` are those of the engines that write the
        table.

        Raises SecretUnreadableError.
        """
        return Table(
            base_path=self.base_path,
            name=self.name,
            index=self.index,
            lock=dataclasses.replace(self.lock, options=opened(cipher, self.lock.options)),
            writers_hudi_version=self.writers.hudi_version,
            writers_stopped=self.writers.are_stopped(sightings),
            writers_retry_conflicts=self.writers.retry_conflicts,
            writers_engines=tuple(engine.value for engine in self.writers.known_engines(sightings)),
            writers_query_pruning_off=self.writers.query_pruning_off,
            writers_kafka_connect_ended=self.writers.kafka_connect_ended,
            readers_hudi_version=self.readers.hudi_version,
            hudi_options=opened(cipher, self.hudi_options),
        )
