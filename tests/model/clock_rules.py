"""Rules for the times of our instants, and the clocks of a scenario. Each rule can be switched off."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Service(Enum):
    """A compaction of a MERGE_ON_READ table, whose writers append to logs; or a clustering of a COPY_ON_WRITE table,
    whose writers rewrite base files."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"


@dataclass(frozen=True)
class ClockProtocol:
    """The rules; the defaults are the correct protocol. The frame of a table is the offset of its writers' instants
    from the storage's clock."""

    # Our instant's requested time is in the frame; otherwise it is the time of our own clock.
    requested_in_frame: bool = True
    completed_in_frame: bool = (
        True  # Our instant's completion time is in the frame; otherwise it is the time of our own clock.
    )
    # The requested and the completion time are later than all completed instants, also of the metadata table.
    after_all: bool = True
    stays_in_frame: bool = (
        True  # If no such time is in the frame, the job is refused; otherwise a time outside of the frame is used.
    )
    refuses_disagreement: bool = True  # The job is refused if writers have different frames.
    refuses_foreign_plans: bool = (
        True  # The job is refused if a plan's time is in another frame than the writers' instants.
    )
    verifies: bool = True  # Everything is measured again under the lock, before the commit.
    watches: bool = True  # Instants that do not ascend are reported as an incident.


GOOD = ClockProtocol()


@dataclass(frozen=True)
class ClockScenario:
    """Offsets of clocks from the storage's clock. A step of the model takes one unit of time; `HOURS` is more than all
    steps together."""

    name: str
    service: Service
    writers: tuple[int, ...]  # Offsets of the writers' clocks at the start; each writer has written before.
    batches: int = 1  # Batches of each writer.
    steps: tuple[int, ...] = ()  # Changes that may happen to a writer's clock, once.
    runner: int | None = None  # Offset of the process that has planned the compaction; None if we plan it.
    metadata_compactions: int = 1


HOURS = 50
