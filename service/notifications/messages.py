"""Makes the messages of alerts. They report that problems are open or resolved, or that jobs have failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from service.delivery.message import MOST_ENTRIES, Entry, Message, MessageState
from service.health.problem import RANKS, HealthProblem, Severity
from service.model.formatting import count
from service.notifications.notification import Notification, ReportedProblem

_DIGEST = "digest"


@dataclass(frozen=True)
class Failure:
    """Jobs of one kind that have failed for good, all for the same reason."""

    title: str
    remedy: str
    entries: tuple[Entry, ...]
    count: int
    at: datetime


@dataclass
class Draft:
    """A message that may still be merged with others, and the changes to the list of reported problems."""

    message: Message
    kept: list[ReportedProblem] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def opened(notification: Notification, alert: str, problems: Sequence[HealthProblem], began: datetime) -> Message:
    first = min(problems, key=lambda each: RANKS[each.severity])
    entries = [
        Entry(each.about.name, each.detail, each.command, _link(notification, each)) for each in problems[:MOST_ENTRIES]
    ]
    return Message(
        key=alert,
        state=MessageState.OPEN,
        kind=first.kind.value,
        severity=first.severity.value,
        title=_title(first.title, [each.about.name for each in problems], first.about.type.value),
        since=began,
        entries=tuple(entries),
        count=len(problems),
        consequence=first.consequence,
        remedy=first.remedy,
        link=_link(notification, first) if len(problems) == 1 else notification.link or None,
    )


def acknowledged(notification: Notification, alert: str, members: Sequence[ReportedProblem], now: datetime) -> Message:
    return replace(resolved(notification, alert, members, now), state=MessageState.ACKNOWLEDGED, ended_at=None)


def resolved(notification: Notification, alert: str, members: Sequence[ReportedProblem], now: datetime) -> Message:
    kind, severity = identity(members)
    return Message(
        key=alert,
        state=MessageState.RESOLVED,
        kind=kind,
        severity=severity,
        title=_title(members[0].title, [each.name for each in members], members[0].about_type),
        since=members[0].began_at,
        entries=tuple(Entry(each.name) for each in members[:MOST_ENTRIES]),
        count=len(members),
        ended_at=now,
        link=notification.link or None,
    )


def failed(notification: Notification, failure: Failure) -> Message:
    return Message(
        key=key(notification, failure.title, failure.at),
        state=MessageState.FAILED,
        kind="job-failed",
        severity=Severity.WARNING.value,
        title=failure.title if failure.count > 1 else f"{failure.title}: {failure.entries[0].name}",
        since=failure.at,
        entries=failure.entries[:MOST_ENTRIES],
        count=failure.count,
        remedy=failure.remedy,
        link=notification.link or None,
    )


def together(notification: Notification, drafts: Sequence[Draft], now: datetime) -> Draft:
    """Merges drafts into one draft. All problems of the drafts belong to one alert from now on. The alert ends when the
    last of these problems ends."""
    parts = [each.message for each in drafts]
    shown, others = parts[:MOST_ENTRIES], parts[MOST_ENTRIES:]
    states = {part.state for part in parts}
    state = next(each for each in MessageState if each in states)
    alert = key(notification, _DIGEST, parts[0].key, now)
    members = [problem for each in drafts for problem in each.kept]
    entries = [
        Entry(
            part.headline,
            ", ".join([each.name for each in part.entries] + ([part.more_words] if part.more else [])),
            link=part.link,
        )
        for part in shown
    ]
    message = Message(
        key=alert,
        state=state,
        kind="problems",
        severity=identity(members)[1] if members else parts[0].severity,
        title=f"{count(sum(part.count for part in parts), 'problem')} in one message, because of the limit for an hour",
        since=min(part.since for part in parts),
        entries=tuple(entries),
        count=len(entries) + sum(part.count for part in others),
        ended_at=now if state is MessageState.RESOLVED else None,
        link=notification.link or None,
    )
    kept = [each.moved(alert, f"{_DIGEST} {each.cause}") for each in members]
    return Draft(message, kept, [gone for each in drafts for gone in each.gone])


def identity(members: Iterable[ReportedProblem]) -> tuple[str, str]:
    """Returns the kind and the severity of an alert, which stay the same until it ends."""
    members = list(members)
    worst = min(members, key=lambda each: RANKS[each.severity]).severity.value
    return "problems" if members[0].cause.startswith(_DIGEST) else members[0].kind, worst


def by_alert(members: Iterable[ReportedProblem]) -> Mapping[str, list[ReportedProblem]]:
    found: dict[str, list[ReportedProblem]] = defaultdict(list)
    for each in members:
        found[each.alert].append(each)
    return found


def key(notification: Notification, *parts: object) -> str:
    digest = sha256(repr((notification.webhook_id, *parts)).encode()).hexdigest()[:24]
    return f"groundskeeper-{digest}"


def _title(title: str, names: Sequence[str], noun: str) -> str:
    return f"{title}: {names[0]}" if len(names) == 1 else f"{title}: {count(len(names), noun)}"


def _link(notification: Notification, problem: HealthProblem) -> str | None:
    if not notification.link:
        return None
    return f"{notification.link}/#/tables/{problem.table_id}" if problem.table_id else notification.link
