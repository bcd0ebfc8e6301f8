"""Clocks: the rules by which our instants get their times, each with a switch, and whose clocks there are."""

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
    """The defaults are the protocol that holds. The frame of a table is how far its writers' instants are from the
    storage's clock.

    `requested_in_frame`, `completed_in_frame`: our instant's two times lie in the frame, else they are those of our own
    clock. `after_all`: both lie after all that has completed, in the metadata table as well; where that is not so
    within the frame, the job is refused (`stays_in_frame`, else they are set after it). `refuses_disagreement`: so it
    is where writers have different frames; `refuses_foreign_plans`: and where a plan's time lies in another frame than
    the writers'. `verifies`: all of it is measured again under the lock, before the commit. `watches`: instants that do
    not ascend afterwards are an incident.
    """

    requested_in_frame: bool = True
    completed_in_frame: bool = True
    after_all: bool = True
    stays_in_frame: bool = True
    refuses_disagreement: bool = True
    refuses_foreign_plans: bool = True
    verifies: bool = True
    watches: bool = True


GOOD = ClockProtocol()


@dataclass(frozen=True)
class ClockScenario:
    """Offsets of clocks from the storage's; a step of the model is one unit of time, so `HOURS` is more than all steps.

    `writers`: their clocks' offsets at the start; each has written before. `batches`: how many each writes. `steps`: by
    how much a writer's clock may step, once. `runner`: the offset of the process that has planned the compaction, None
    where we plan it.
    """

    name: str
    service: Service
    writers: tuple[int, ...]
    batches: int = 1
    steps: tuple[int, ...] = ()
    runner: int | None = None
    metadata_compactions: int = 1


HOURS = 50
