"""A table as its owner registered it: what it is, and what the table itself does not tell."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs.contract import BucketIndex, Table, TableLock, WriterEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.lake.engine_sighting import Sighting, Sightings


@dataclass(frozen=True)
class FlinkWriter:
    """The Flink job that writes a table, so that the service can stop it for a while: the address of its cluster's REST
    API, its name or id, and where its savepoints go (None: where the cluster has them)."""

    rest_url: str
    job: str
    savepoint_folder: str | None = None


@dataclass(frozen=True)
class Writers:
    """What the owner declares about the table's writers: their Hudi version, or that none is running.

    `retry_conflicts`: all of them are set to write a batch again when it conflicts. `engines` are what writes the
    table, None if nothing was said. `declared_at` is when this was said, None for what an earlier version stored;
    `engines_at` when `engines` was said *again*, after the registration: what was seen of an engine before that is
    over. `query_pruning_off`: Hudi's pruning by buckets is off wherever SQL reads the table.
    """

    hudi_version: str | None = None
    stopped: bool = False
    retry_conflicts: bool = False
    query_pruning_off: bool = False
    engines: tuple[WriterEngine, ...] | None = None
    flink: FlinkWriter | None = None
    declared_at: datetime | None = None
    engines_at: datetime | None = None

    def detected(self, sightings: Sightings) -> dict[WriterEngine, Sighting]:
        """What was seen and counts: the owner has not said since then what writes the table."""
        return {
            engine: sighting
            for engine, sighting in sightings.items()
            if self.engines_at is None or sighting.last_seen > self.engines_at
        }

    def known_engines(self, sightings: Sightings) -> tuple[WriterEngine, ...]:
        """Those that were declared and those that were seen; empty if nothing is known."""
        known = {*(self.engines or ()), *self.detected(sightings)} | ({WriterEngine.FLINK} if self.flink else set())
        return tuple(engine for engine in WriterEngine if engine in known)

    def are_stopped(self, sightings: Sightings) -> bool:
        """Whether the owner says so, and no Flink job has been seen since: that one goes on by itself."""
        flink = sightings.get(WriterEngine.FLINK)
        is_contradicted = flink is not None and self.declared_at is not None and flink.last_seen > self.declared_at
        return self.stopped and not is_contradicted

    def to_json(self) -> dict[str, Any]:
        return {
            "hudi_version": self.hudi_version,
            "stopped": self.stopped,
            "retry_conflicts": self.retry_conflicts,
            "query_pruning_off": self.query_pruning_off,
            "engines": None if self.engines is None else [engine.value for engine in self.engines],
            "flink": dataclasses.asdict(self.flink) if self.flink else None,
            "declared_at": self.declared_at.isoformat() if self.declared_at else None,
            "engines_at": self.engines_at.isoformat() if self.engines_at else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Writers:
        engines, flink = data.get("engines"), data.get("flink")
        return cls(
            hudi_version=data.get("hudi_version"),
            stopped=bool(data.get("stopped", False)),
            retry_conflicts=bool(data.get("retry_conflicts", False)),
            query_pruning_off=bool(data.get("query_pruning_off", False)),
            engines=None if engines is None else tuple(WriterEngine(engine) for engine in engines),
            flink=FlinkWriter(**flink) if flink else None,
            declared_at=_moment(data.get("declared_at")),
            engines_at=_moment(data.get("engines_at")),
        )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


@dataclass(frozen=True)
class Registration:
    """One registered table. `base_path` is canonical, so that no table can be registered twice under two spellings.

    `profile` is what was detected on the table when it was last examined (`service.lake.table.TableProfile`), as JSON.
    """

    id: str
    base_path: str
    name: str
    created_at: datetime
    updated_at: datetime
    index: BucketIndex | None = None
    lock: TableLock = field(default_factory=TableLock)
    writers: Writers = field(default_factory=Writers)
    hudi_options: Mapping[str, str] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)

    def evolve(self, **changes: Any) -> Registration:
        return dataclasses.replace(self, **changes)

    def to_contract(self, sightings: Sightings) -> Table:
        """What a worker has to know. `sightings` are those of the table's engines."""
        return Table(
            base_path=self.base_path,
            name=self.name,
            index=self.index,
            lock=self.lock,
            writers_hudi_version=self.writers.hudi_version,
            writers_stopped=self.writers.are_stopped(sightings),
            writers_retry_conflicts=self.writers.retry_conflicts,
            writers_engines=tuple(engine.value for engine in self.writers.known_engines(sightings)),
            writers_query_pruning_off=self.writers.query_pruning_off,
            hudi_options=self.hudi_options,
        )
