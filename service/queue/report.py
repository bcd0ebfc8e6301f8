"""A report of a period: the work of the service, for whom it was done, and its cost. Pure, apart from `read`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from service.catalog import table_store
from service.catalog.ownership import tag_words
from service.model.formatting import count, duration, size
from service.queue import attempt_figures
from service.queue.attempt_figures import Figures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import JobKind
    from service.catalog.ownership import TableSelection

_HOUR = 3600.0


class GroupBy(StrEnum):
    """The grouping of the figures of a report."""

    TABLE = "table"
    OWNER = "owner"
    TAG = "tag"
    KIND = "kind"


@dataclass(frozen=True)
class Subject:
    """The table of a row. One that is not registered any more has no name."""

    id: str
    name: str | None = None
    owner: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """The figures of one key, which is null for tables without an owner or without a tag."""

    key: str | None
    name: str | None  # The name of the table, for a group of one.
    tables: int
    figures: Figures


@dataclass(frozen=True)
class Report:
    """`total` counts each attempt once, while an attempt is in the group of each tag of its table."""

    since: datetime
    until: datetime
    by: GroupBy
    total: Figures
    tables: int
    groups: Sequence[Group]  # Those on which workers spent the most time come first.


def read(
    connection: Connection, since: datetime, until: datetime, by: GroupBy, selection: TableSelection | None = None
) -> Report:
    """Returns the report of the attempts that ended from `since` on and before `until`."""
    sums = attempt_figures.sums(connection, since, until)
    known = {row.id: Subject(**row._mapping) for row in table_store.owned(connection)}
    if selection is not None and not selection.is_open:
        wanted = table_store.ids_of(connection, selection)
        sums = {key: figures for key, figures in sums.items() if key[0] in wanted}
    rows = [(known.get(table_id) or Subject(table_id), kind, figures) for (table_id, kind), figures in sums.items()]
    return grouped(rows, since, until, by)


def grouped(rows: Sequence[tuple[Subject, JobKind, Figures]], since: datetime, until: datetime, by: GroupBy) -> Report:
    found: dict[str | None, list[tuple[Subject, Figures]]] = defaultdict(list)
    for subject, kind, figures in rows:
        for key in _keys(subject, kind, by):
            found[key].append((subject, figures))
    groups = [
        Group(
            key=key,
            name=members[0][0].name if by is GroupBy.TABLE else None,
            tables=len({subject.id for subject, _ in members}),
            figures=sum((figures for _, figures in members), Figures()),
        )
        for key, members in found.items()
    ]
    groups.sort(key=lambda each: (-each.figures.seconds, each.key or ""))
    total = sum((figures for _, _, figures in rows), Figures())
    return Report(since, until, by, total, len({subject.id for subject, _, _ in rows}), groups)


def _keys(subject: Subject, kind: JobKind, by: GroupBy) -> Iterable[str | None]:
    match by:
        case GroupBy.TABLE:
            return [subject.id]
        case GroupBy.OWNER:
            return [subject.owner]
        case GroupBy.TAG:
            return tag_words(subject.tags) or [None]
        case GroupBy.KIND:
            return [kind.value]


def cost(figures: Figures, price_per_gb_hour: float | None) -> float | None:
    return None if price_per_gb_hour is None else figures.gb_seconds / _HOUR * price_per_gb_hour


def as_text(report: Report, price_per_gb_hour: float | None = None, *, most: int = 10) -> str:
    """Returns the report as short plain text, for a message: the totals, and the `most` largest groups."""
    total = report.total
    lines = [
        f"Groundskeeper from {report.since:%Y-%m-%d} to {report.until:%Y-%m-%d}: {count(report.tables, 'table')},"
        f" {count(total.succeeded, 'attempt')} succeeded, {total.failed} failed.",
        f"Freed {size(total.freed_bytes)} in {count(int(total.files_deleted), 'file')}; merged"
        f" {count(int(total.log_files), 'log file')} ({size(total.log_bytes)}); rewrote"
        f" {count(int(total.files_before), 'file')} into {int(total.files_after)}.",
        f"Workers: {total.seconds / _HOUR:.1f} h, {total.gb_seconds / _HOUR:.1f} GiB h"
        f"{_money(total, price_per_gb_hour)}. Writers waited for locks at most {duration(total.locked_seconds)},"
        f" and Flink was stopped for {duration(total.stopped_seconds)}.",
    ]
    for group in report.groups[:most]:
        figures = group.figures
        lines.append(
            f"- {group.name or group.key or 'none'}: {figures.seconds / _HOUR:.1f} h"
            f"{_money(figures, price_per_gb_hour)}, freed {size(figures.freed_bytes)},"
            f" {count(int(figures.log_files), 'log file')} merged, {figures.failed} failed"
        )
    if len(report.groups) > most:
        lines.append(f"- and {len(report.groups) - most} more")
    return "\n".join(lines)


def _money(figures: Figures, price: float | None) -> str:
    found = cost(figures, price)
    return "" if found is None else f", cost {found:.2f}"
