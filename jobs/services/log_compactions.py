"""Log compactions, which merge the log files of a file slice into one log file: why none is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.problems.plans import LOG_COMPACTION_UNSOUND

if TYPE_CHECKING:
    from collections.abc import Collection

    from jobs.contract import Problem
    from jobs.hudi.table import HudiTable

_ACTION = "logcompaction"


def refusals(table: HudiTable, instants: Collection[str]) -> list[Problem]:
    """Returns the refusal of those of these pending instants that are log compactions.

    Seen with Hudi 1.2.0: the rows that it merges get the log compaction's `_hoodie_commit_time` and sequence number. It
    does not execute one with a later compaction on the timeline, nor one that was begun and interrupted
    (`BaseHoodieTableServiceClient.logCompact`).
    """
    pending = sorted(
        item.requested for item in table.instants() if item.action == _ACTION and item.state != "COMPLETED"
    )
    found = [instant for instant in pending if instant in instants]
    if not found:
        return []
    return [
        LOG_COMPACTION_UNSOUND.because(
            f"{', '.join(found[:5])}: the merged rows would get a new commit time, as if they had been written again"
        )
    ]
