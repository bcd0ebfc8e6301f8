"""The rules by which our instants get their times, each with a switch, and the clocks of a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Service(Enum):
    """A compaction of a MERGE_ON_READ table, whose writers append to logs; or a clustering of a COPY_ON_WRITE table,
    whose writers write base files anew."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"


@dataclass(frozen=True)
class ClockProtocol:
    """The rules; the defaults are the protocol that holds.

    The frame of a table is how far its writers' instants are from the storage's clock.
    """

    requested_in_frame: bool = True  # Our instant's requested time lies in the frame, else it is our own clock's.
    completed_in_frame: bool = True  # The same for its completion time.
    after_all: bool = True  # Both times lie after all that has completed, in the metadata table as well.
    stays_in_frame: bool = True  # If the frame has no such time, the job is refused, else the time lies after it.
    refuses_disagreement: bool = True  # The job is refused if writers have different frames.
    refuses_foreign_plans: bool = True  # The job is refused if a plan's time lies in another frame than the writers'.
    verifies: bool = True  # Everything is measured again under the lock, before the commit.
    watches: bool = True  # Instants that do not ascend afterwards are an incident.


GOOD = ClockProtocol()


@dataclass(frozen=True)
class ClockScenario:
    """Offsets of clocks from the storage's. A step of the model is one unit of time, and `HOURS` more than all
    steps."""

    name: str
    service: Service
    writers: tuple[int, ...]  # Offsets of the writers' clocks at the start; each writer has written before.
    batches: int = 1  # Batches of each writer.
    steps: tuple[int, ...] = ()  # Steps that a writer's clock may make, once.
    runner: int | None = None  # Offset of the process that has planned the compaction; None where we plan it.
    metadata_compactions: int = 1


HOURS = 50
