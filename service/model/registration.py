"""A table as its owner registered it: what it is, and what the table itself does not tell."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jobs.contract import BucketIndex, Table, TableLock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jobs.contract import Problem


@dataclass(frozen=True)
class Writers:
    """What the owner declares about the table's writers: their Hudi version, or that none is running.

    `retry_conflicts`: all of them are set to write a batch again when it conflicts.
    """

    hudi_version: str | None = None
    stopped: bool = False
    retry_conflicts: bool = False

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Writers:
        return cls(
            hudi_version=data.get("hudi_version"),
            stopped=bool(data.get("stopped", False)),
            retry_conflicts=bool(data.get("retry_conflicts", False)),
        )


@dataclass(frozen=True)
class Registration:
    """One registered table. `base_path` is canonical, so that no table can be registered twice under two spellings.

    `profile` is what was detected on the table when it was last examined (`service.model.table.TableProfile`), as JSON.
    `unhealthy` is why it could not be looked at the last time.
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
    unhealthy: Problem | None = None

    def evolve(self, **changes: Any) -> Registration:
        return dataclasses.replace(self, **changes)

    def to_contract(self) -> Table:
        """What a worker has to know."""
        return Table(
            base_path=self.base_path,
            name=self.name,
            index=self.index,
            lock=self.lock,
            writers_hudi_version=self.writers.hudi_version,
            writers_stopped=self.writers.stopped,
            writers_retry_conflicts=self.writers.retry_conflicts,
            hudi_options=self.hudi_options,
        )
