"""Rounds that write messages about changes. A round stores messages, their deliveries and the reported problems in one
transaction."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from service.db.engine import reading, writing
from service.delivery import delivery_store, outbox, webhook_store
from service.delivery.message import MOST_ENTRIES, Entry
from service.delivery.webhook import concerns
from service.delivery.webhook_events import notification as event_of
from service.events.database import Database
from service.events.event import Event, EventType, Published
from service.health import acknowledgement_store, problem_store
from service.health.acknowledgement_store import Acknowledgement
from service.health.problem import HealthProblem
from service.notifications import store, weekly_report
from service.notifications.digest import Facts, Outcome, compose
from service.notifications.messages import Failure
from service.notifications.notification import Notification
from service.policies import policy_registry
from service.policies.precedence import OWNER, TAG

MOST_PROBLEMS = 10_000
"""Greatest number of open problems that a round reads, the most serious first."""

_MOST_FAILURES = 1000
_MOST_UNNOTED = 1000
"""After this number of events without a failed job, a notification stores its position in the events. Thus later rounds
read only few events again."""


@dataclass(frozen=True)
class Round:
    messages: int = 0

    def __str__(self) -> str:
        return f"{self.messages} messages"


@dataclass(frozen=True)
class _Findings:
    """The findings of a round for one notification. The round has read the events up to `read_to`."""

    notification: Notification
    outcome: Outcome
    read_to: int
    due: datetime | None = None  # The time at which the weekly report was due, if the report has to be sent.

    @property
    def is_idle(self) -> bool:
        found = self.outcome
        is_same = self.due is None and self.read_to == self.notification.read_to
        return is_same and not (found.messages or found.kept or found.gone)


def run_once(database: Database, price_per_gb_hour: float | None = None) -> Round:
    """Writes the messages that are due now. Raises DatabaseUnavailableError."""
    with reading(database.engine) as connection:
        stored = store.every(connection)
        findings = []
        if stored:
            now = _now(connection, database)
            findings = [_examined(connection, database, each, now) for each in stored]
    number = 0
    for found in findings:
        if found.is_idle:
            continue
        with writing(database.engine) as connection:
            # The lock makes replicas take turns, and prevents changes to notifications meanwhile.
            outbox.lock(connection)
            # If another replica has sent messages meanwhile, the stored notification has changed. In this case the next
            # round decides anew.
            if store.find(connection, found.notification.name) == found.notification:
                number += _write_messages(connection, database, found, price_per_gb_hour)
    if number:
        database.notifier.notify()
    return Round(number)


def waiting(connection: Connection, database: Database, notification: Notification) -> int:
    """Returns the number of open problems that will be reported later."""
    return _examined(connection, database, notification, _now(connection, database)).outcome.waiting


@dataclass(frozen=True)
class _Now:
    """The state that all notifications share: the open problems by id, and the acknowledged ones."""

    open: Mapping[str, HealthProblem]
    acknowledged: Mapping[str, Acknowledgement]
    is_whole: bool


def _now(connection: Connection, database: Database) -> _Now:
    found = problem_store.every(connection, MOST_PROBLEMS + 1)
    known = {each.id: each for each in found[:MOST_PROBLEMS]}
    return _Now(known, acknowledgement_store.every(connection, database.clock()), len(found) <= MOST_PROBLEMS)


def _examined(connection: Connection, database: Database, stored: Notification, now: _Now) -> _Findings:
    notification = stored.evolve(tables=_tables(connection, stored.tables))
    webhook = webhook_store.get(connection, notification.webhook_id)
    assert webhook.target is not None
    events, read_to = _failed_jobs(connection, notification)
    facts = Facts(
        open=now.open,
        acknowledged=now.acknowledged,
        reported=store.reported(connection, notification.name),
        failures=_failures(notification, [each.event for each in events]),
        target=webhook.target,
        now=database.clock(),
        is_whole=now.is_whole,
    )
    outcome = compose(notification, facts)
    read_to = notification.read_to if outcome.failures_wait and facts.failures else read_to
    return _Findings(stored, outcome, read_to, stored.report_due(facts.now))


def table_ids(connection: Connection, patterns: Sequence[str]) -> set[str] | None:
    """Returns the ids of the tables that the patterns of a notification select. Returns None, which means all tables,
    if there are no patterns."""
    if not patterns:
        return None
    subjects = policy_registry.subjects(connection).items()
    return {each for each, subject in subjects if each in patterns or any(map(subject.matches, patterns))}


def _tables(connection: Connection, patterns: Sequence[str]) -> tuple[str, ...]:
    """Returns the patterns and the ids of the tables whose owner or tags match one of them."""
    further = [each for each in patterns if each.startswith((OWNER, TAG))]
    if not further:
        return tuple(patterns)
    subjects = policy_registry.subjects(connection)
    found = (each for each, subject in subjects.items() if any(map(subject.matches, further)))
    return (*patterns, *found)


def _write_messages(connection: Connection, database: Database, found: _Findings, price: float | None) -> int:
    notification, outcome, now = found.notification, found.outcome, database.clock()
    store.forget(connection, notification.name, outcome.gone)
    store.keep(connection, notification.name, outcome.kept)
    sent = (*notification.sent_lately(now), *[now] * outcome.counted)
    reported_at = found.due or notification.reported_at
    store.change(connection, notification.evolve(sent=sent, read_to=found.read_to, reported_at=reported_at))
    webhook = webhook_store.get(connection, notification.webhook_id)
    type_ = EventType.NOTIFICATION_SENT
    events = [
        event_of(type_, webhook, notification.name, each, at=now, nonce=secrets.token_hex(8))
        for each in outcome.messages
    ]
    if found.due is not None:
        within = table_ids(connection, notification.tables)
        message = weekly_report.read(connection, notification, found.due, within, price)
        # All replicas give the event of a report the same id, so that only one of them writes the event.
        events.append(event_of(type_, webhook, notification.name, message, at=now, nonce=found.due.isoformat()))
    new = outbox.write(connection, events)
    # Nothing is queued for a disabled webhook; a replay sends the event later.
    if webhook.is_enabled:
        delivery_store.enqueue(connection, [(webhook.id, each) for each in new], now=now)
    return len(new)


def _failed_jobs(connection: Connection, notification: Notification) -> tuple[Sequence[Published], int]:
    """Returns the new failures, and the position up to which events count as read."""
    newest, read_to = outbox.newest(connection), notification.read_to
    found = outbox.of_type(connection, EventType.JOB_FAILED, after_seq=read_to, limit=_MOST_FAILURES)
    if len(found) == _MOST_FAILURES:
        return found, found[-1].seq
    return found, newest if found or newest - read_to >= _MOST_UNNOTED else read_to


def _failures(notification: Notification, events: Sequence[Event]) -> list[Failure]:
    groups: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        if concerns(notification.tables, event.table_id, event.table_name):
            job = event.data["job"]
            groups[job["kind"], (job["error"] or {}).get("type", "")].append(event)
    return [_failure(notification, kind, found) for (kind, _), found in groups.items()]


def _failure(notification: Notification, kind: str, events: Sequence[Event]) -> Failure:
    errors = [event.data["job"]["error"] or {} for event in events]
    entries = [
        Entry(
            event.table_name or "",
            ": ".join(error[name] for name in ("title", "detail") if error.get(name)),
            f"groundskeeper jobs show {event.data['job']['id']}",
            f"{notification.link}/#/jobs/{event.data['job']['id']}" if notification.link else None,
        )
        for event, error in zip(events[:MOST_ENTRIES], errors, strict=False)
    ]
    words = kind.replace("_", " ").capitalize()
    title = f"{words} has failed" if len(events) == 1 else f"{words}: {len(events)} jobs have failed"
    return Failure(title, errors[0].get("hint") or "", tuple(entries), len(events), events[0].at)
