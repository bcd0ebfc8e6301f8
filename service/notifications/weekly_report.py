"""Makes the message of a notification that sums up a week."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from service.delivery.message import Entry, Fact, Message, MessageState
from service.health.problem import Severity
from service.health.problem_history import ProblemCounts
from service.model.formatting import count, duration, size
from service.notifications.messages import key
from service.notifications.notification import Notification
from service.reports import report
from service.reports.report import Group, GroupBy, Report

_MOST_TABLES = 5
_MOST_KINDS = 3
_HOUR = 3600.0


def read(
    connection: Connection,
    notification: Notification,
    due: datetime,
    within: Container[str] | None,
    price: float | None,
) -> Message:
    """Returns the message about the week that ends at `due`. `within` are the ids of the tables in the report."""
    assert notification.report is not None
    since = notification.report.before(notification.time_zone, due)
    found = report.read(connection, since, due, GroupBy.TABLE, within=within, limit=_MOST_TABLES)
    zone = ZoneInfo(notification.time_zone)
    period = {"since": since.isoformat(), "until": due.isoformat()}
    return Message(
        key=key(notification, "report", due),
        state=MessageState.REPORT,
        kind="report",
        severity=Severity.NOTICE.value,
        title=f"Groundskeeper from {since.astimezone(zone):%d %B} to {due.astimezone(zone):%d %B %Y}",
        since=since,
        ended_at=due,
        entries=tuple(_entry(each, price, notification.link) for each in found.groups),
        count=max(1, len(found.groups) + found.left_out),
        link=f"{notification.link}/#/report?{urlencode(period)}" if notification.link else None,
        facts=tuple(_facts(found, price)),
    )


def _facts(found: Report, price: float | None) -> list[Fact]:
    total = found.total
    facts = [
        Fact("Tables", str(found.tables)),
        Fact("Attempts at jobs", f"{total.succeeded} succeeded, {total.failed} failed"),
        Fact("Freed", f"{size(total.freed_bytes)} in {count(int(total.files_deleted), 'file')}"),
        Fact("Log files merged", f"{int(total.log_files)} ({size(total.log_bytes)})"),
        Fact("Files rewritten", f"{int(total.files_before)} into {int(total.files_after)}"),
        Fact("Workers", f"{total.seconds / _HOUR:.1f} h, {total.gb_seconds / _HOUR:.1f} GB-hours"),
        Fact(
            "Writers waited",
            f"at most {duration(total.locked_seconds)} for locks; Flink stopped for {duration(total.stopped_seconds)}",
        ),
        Fact("Problems", _problems(found.problems)),
    ]
    money = report.cost(total, price)
    if money is not None:
        facts.insert(6, Fact("Cost", f"{money:.2f}"))
    return facts


def _problems(found: ProblemCounts) -> str:
    words = f"{found.opened} opened, {found.resolved} resolved, {found.open} open now"
    kinds = [f"{each.opened} {each.kind}" for each in found.kinds[:_MOST_KINDS] if each.opened]
    return f"{words}; most often: {', '.join(kinds)}" if kinds else words


def _entry(group: Group, price: float | None, link: str) -> Entry:
    figures = group.figures
    money = report.cost(figures, price)
    words = [f"{figures.seconds / _HOUR:.1f} h", f"freed {size(figures.freed_bytes)}"]
    words += [f"{count(int(figures.log_files), 'log file')} merged", f"{figures.failed} failed"]
    words += [] if money is None else [f"cost {money:.2f}"]
    page = f"{link}/#/tables/{group.key}" if link and group.name else None
    return Entry(group.name or group.key or "", ", ".join(words), link=page)
