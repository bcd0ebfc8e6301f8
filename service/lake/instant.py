"""An instant on a table's timeline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class InstantState(StrEnum):
    """Hudi's `HoodieInstant.State`."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


@dataclass(frozen=True, order=True)
class Instant:
    """One action on a table, like Hudi's `HoodieInstant` (1.2).

    Times are Hudi's own strings, `yyyyMMddHHmmssSSS` in the table's time zone; they are compared as strings. `action`
    depends on the state: a pending `compaction` completes as `commit`, a `clustering` as `replacecommit`, a
    `logcompaction` as `deltacommit`. `completion_time` is known only for instants that completed in table version 8 or
    later, because earlier file names do not contain it.
    """

    requested_time: str
    action: str
    state: InstantState
    completion_time: str | None = None

    @property
    def is_completed(self) -> bool:
        return self.state is InstantState.COMPLETED
