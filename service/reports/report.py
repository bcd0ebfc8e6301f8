"""A report about a period: the work of the service for each table, owner or tag, and its cost. Only `read` uses the
database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection

from service.catalog import table_store
from service.catalog.ownership import tag_words
from service.health import problem_history
from service.health.problem_history import ProblemCounts
from service.model.formatting import count, duration, size
from service.queue import attempt_figures
from service.queue.attempt_figures import Figures, Sums

_GROUPS_OF_TEXT = 10
_HOUR = 3600.0


class GroupBy(StrEnum):
    """The grouping of the figures of a report."""

    TABLE = "table"
    OWNER = "owner"
    TAG = "tag"
    KIND = "kind"


@dataclass(frozen=True)
class Subject:
    """The table to which a row belongs. A table that is no longer registered has no name."""

    id: str
    name: str | None = None
    owner: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


_GONE = Subject("")


@dataclass(frozen=True)
class Group:
    """The figures of one key. The key is null for tables without an owner, or without a tag."""

    key: str | None
    name: str | None  # The name of the table, if the group is one table.
    tables: int
    figures: Figures


@dataclass(frozen=True)
class Report:
    """A report. `total` counts each attempt once, although with tags an attempt is in several groups."""

    since: datetime
    until: datetime
    by: GroupBy
    total: Figures
    tables: int
    groups: Sequence[Group]  # The groups on which workers spent the most time come first.
    left_out: int  # Number of groups beyond the limit.
    problems: ProblemCounts


def read(
    connection: Connection,
    since: datetime,
    until: datetime,
    by: GroupBy,
    *,
    within: Container[str] | None = None,
    limit: int = 100,
) -> Report:
    """Returns the report of the attempts that ended from `since` on and before `until`, with the `limit` largest
    groups. `within` are the ids of the tables to include, None for all."""
    rows = attempt_figures.sums(connection, since, until, by_kind=by is GroupBy.KIND)
    if within is not None:
        rows = [each for each in rows if each.table_id in within]
    known = (
        {row.id: Subject(*row) for row in table_store.owned(connection)} if by in (GroupBy.OWNER, GroupBy.TAG) else {}
    )
    members: dict[str | None, list[Sums]] = defaultdict(list)
    for row in rows:
        for key in _keys(row, known, by):
            members[key].append(row)
    seconds = {key: sum(row.seconds for row in each) for key, each in members.items()}
    order = sorted(seconds, key=lambda key: (-seconds[key], key or ""))
    shown = order[:limit]
    names = table_store.names(connection, [key for key in shown if key]) if by is GroupBy.TABLE else {}
    return Report(
        since,
        until,
        by,
        total=_sum(rows),
        tables=len({row.table_id for row in rows}),
        groups=[
            Group(key, names.get(key or ""), len({row.table_id for row in members[key]}), _sum(members[key]))
            for key in shown
        ],
        left_out=len(order) - len(shown),
        problems=problem_history.counts(connection, since, until, within),
    )


def _sum(rows: Sequence[Sums]) -> Figures:
    return Figures(*map(sum, zip(*(row.amounts for row in rows), strict=True)))


def _keys(row: Sums, known: Mapping[str, Subject], by: GroupBy) -> Iterable[str | None]:
    match by:
        case GroupBy.TABLE:
            return [row.table_id]
        case GroupBy.KIND:
            return [row.kind]
        case GroupBy.OWNER | GroupBy.TAG:
            subject = known.get(row.table_id, _GONE)
            return [subject.owner] if by is GroupBy.OWNER else tag_words(subject.tags) or [None]


def cost(figures: Figures, price_per_gb_hour: float | None) -> float | None:
    return None if price_per_gb_hour is None else figures.gb_seconds / _HOUR * price_per_gb_hour


def as_text(report: Report, price_per_gb_hour: float | None = None) -> str:
    """Returns the report as short plain text, for a message: the totals, and the largest groups."""
    total = report.total
    lines = [
        f"Groundskeeper from {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}: {count(report.tables, 'table')},"
        f" {count(total.succeeded, 'attempt')} succeeded, {total.failed} failed.",
        f"Freed {size(total.freed_bytes)} in {count(int(total.files_deleted), 'file')}; merged"
        f" {count(int(total.log_files), 'log file')} ({size(total.log_bytes)}); rewrote"
        f" {count(int(total.files_before), 'file')} into {int(total.files_after)}.",
        f"Workers: {total.seconds / _HOUR:.1f} h, {total.gb_seconds / _HOUR:.1f} GB-hours"
        f"{_money(total, price_per_gb_hour)}. Writers waited at most {duration(total.locked_seconds)} for locks,"
        f" and Flink was stopped for {duration(total.stopped_seconds)}.",
        f"Problems: {report.problems.opened} opened, {report.problems.resolved} resolved, {report.problems.open} open.",
    ]
    for group in report.groups[:_GROUPS_OF_TEXT]:
        figures = group.figures
        lines.append(
            f"- {group.name or group.key or 'none'}: {figures.seconds / _HOUR:.1f} h"
            f"{_money(figures, price_per_gb_hour)}, freed {size(figures.freed_bytes)},"
            f" {count(int(figures.log_files), 'log file')} merged, {figures.failed} failed"
        )
    if more := report.left_out + len(report.groups[_GROUPS_OF_TEXT:]):
        lines.append(f"- and {more} more")
    return "\n".join(lines)


def _money(figures: Figures, price: float | None) -> str:
    found = cost(figures, price)
    return "" if found is None else f", cost {found:.2f}"
