"""The model of notifications, and of the open problems that each has reported."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated
from zoneinfo import ZoneInfo

from jobs.spec import Spec
from service.delivery.webhook import concerns
from service.health.problem import RANKS, HealthProblem, ProblemKind, Severity
from service.model.record import Record
from service.policies import windows
from service.policies.policy import DAYS, Window

HOUR = timedelta(hours=1)


class Occasion(StrEnum):
    """What a message is about."""

    OPENED = "opened"
    RESOLVED = "resolved"
    FAILED = "failed"


@dataclass(frozen=True)
class Weekly:
    """The time at which a weekly report is due, in the time zone of its notification. If daylight saving skips this
    hour, the next hour counts. If this hour occurs twice, the first one counts."""

    day: str
    hour: int

    def latest(self, time_zone: str, now: datetime) -> datetime:
        """Returns the last time at which a report was due, in UTC."""
        return max(each for each in self._around(time_zone, now) if each <= now)

    def before(self, time_zone: str, due: datetime) -> datetime:
        """Returns the time at which the report before this one was due."""
        return max(each for each in self._around(time_zone, due) if each < due)

    def _around(self, time_zone: str, now: datetime) -> list[datetime]:
        zone = ZoneInfo(time_zone)
        today = now.astimezone(zone).date()
        monday = today - timedelta(days=today.weekday())
        days = [monday + timedelta(days=DAYS.index(self.day), weeks=week) for week in (-2, -1, 0)]
        return [datetime.combine(day, time(self.hour), zone).astimezone(UTC) for day in days]


@dataclass(frozen=True)
class Notification(Record):
    """A notification. The webhook `webhook_id` has the notification's target, and sends its messages."""

    name: Annotated[str, Spec("Its name", examples=("on-call",))]
    webhook_id: Annotated[
        str,
        Spec(
            "The webhook that sends the messages: `/v1/webhooks/{id}/deliveries` lists them",
            examples=("wh_5d0c9b8a7f6e4d3c",),
        ),
    ]
    created_at: datetime
    updated_at: datetime
    events: tuple[Occasion, ...] = (Occasion.OPENED, Occasion.RESOLVED, Occasion.FAILED)
    least_severity: Severity = Severity.WARNING
    kinds: tuple[ProblemKind, ...] = ()
    tables: tuple[str, ...] = ()
    most_per_hour: int = 20
    quiet_hours: tuple[Window, ...] = ()
    time_zone: str = "UTC"
    link: str = ""
    snoozed_until: Annotated[
        datetime | None, Spec("The notification sends nothing until this time; null if it is not snoozed")
    ] = None
    snoozed_because: Annotated[str | None, Spec("The caller that has snoozed the notification, and the reason")] = None
    read_to: int = 0
    sent: tuple[datetime, ...] = ()
    report: Weekly | None = None
    reported_at: datetime | None = None  # When the last report was due, or when the report was switched on.

    def wants(self, problem: HealthProblem) -> bool:
        return (
            self.covers(problem.severity)
            and (not self.kinds or problem.kind in self.kinds)
            and concerns(self.tables, problem.table_id, problem.about.name if problem.table_id else None)
        )

    def covers(self, severity: Severity) -> bool:
        return RANKS[severity] <= RANKS[self.least_severity]

    def is_snoozed(self, now: datetime) -> bool:
        return self.snoozed_until is not None and now < self.snoozed_until

    def is_quiet(self, now: datetime) -> bool:
        return windows.closes_at(self.quiet_hours, self.time_zone, now) is not None

    def report_due(self, now: datetime) -> datetime | None:
        """Returns the time at which the report that has to be sent now was due; None if no report has to be sent."""
        if self.report is None or self.is_snoozed(now):
            return None
        due = self.report.latest(self.time_zone, now)
        return due if self.reported_at is None or due > self.reported_at else None

    def sent_lately(self, now: datetime) -> tuple[datetime, ...]:
        """Returns the times of the messages that count towards the limit."""
        return tuple(at for at in self.sent if now - at < HOUR)


@dataclass(frozen=True)
class ReportedProblem(Record):
    """An open problem that a notification has reported, or that has joined an alert without another message."""

    problem_id: str
    alert: str  # The key of the alert to which the problem belongs.
    cause: str
    kind: str
    severity: Severity
    title: str
    about_type: str
    name: str
    began_at: datetime  # When the alert began.
    reported_at: datetime | None = None  # None if the problem joined the alert without another message.
    acknowledged_at: datetime | None = None

    @classmethod
    def of(cls, problem: HealthProblem, alert: str, cause: str, began: datetime) -> ReportedProblem:
        about = problem.about
        return cls(
            problem.id,
            alert,
            cause,
            problem.kind.value,
            problem.severity,
            problem.title,
            about.type.value,
            about.name,
            began,
        )

    def moved(self, alert: str, cause: str) -> ReportedProblem:
        return dataclasses.replace(self, alert=alert, cause=cause)
