"""The order in which the commits of a table completed, and which of their times can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jobs.format.appearance import appearances, inversions
from jobs.format.clock_frame import ClockFrame
from jobs.format.completion_order import CompletionOrder
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.records import Commit


def in_order(table: OpenedTable, commits: Iterable[Commit]) -> list[Commit]:
    """Sorts commits by completion, as far as that is known."""
    if table.version >= WITH_COMPLETION_TIMES:
        named = [replace(each, write=replace(each.write, completed=each.completed)) for each in commits]
        return sorted(named, key=lambda each: (each.completed, each.write.instant))
    order = CompletionOrder.of(_times(table))
    ordered = [each if order.is_known(each.write.instant) else _unordered(each) for each in commits]
    return sorted(ordered, key=lambda each: order.key(each.write.instant))


def misdated_instants(table: OpenedTable, frame: ClockFrame) -> frozenset[str]:
    """Returns the instants whose times cannot be compared with others, because clocks disagree. `frame` is the frame of
    the table's clock."""
    if frame.disagreement is not None:
        return frozenset(item.requested for item in table.instants())
    return frozenset(
        instant for each in inversions(appearances(_times(table))) for instant in (each.instant, each.after)
    )


def _times(table: OpenedTable) -> dict[str, int]:
    return {name: file.modified_ms for name, file in table.timeline_files().items()}


def _unordered(commit: Commit) -> Commit:
    """Returns a commit marked as unordered, because the time of its file is not that of its completion. The earlier of
    that time and the instant is used, because the commit cannot have completed before it."""
    write = replace(commit.write, is_ordered=False)
    return replace(commit, write=write, completed=min(commit.completed, commit.write.instant))
