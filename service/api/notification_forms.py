"""Request and response models of /v1/notifications."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from service.access.errors import SecretUnreadableError
from service.access.secret_cipher import SecretCipher
from service.api.answers import Declared
from service.api.policy_models import Day, TimeZone, WindowIn
from service.api.requests import A_REASON, HOST_NAME, MAIL_ADDRESS, Moment, Request, Word
from service.api.structs import made
from service.delivery.targets import registry
from service.delivery.targets.registry import Target
from service.delivery.webhook import DeliveryState, Webhook
from service.health.problem import ProblemKind, Severity
from service.notifications.messages import by_alert
from service.notifications.notification import Notification, Occasion, ReportedProblem, Weekly
from service.policies.policy import Window

_MOST_ALERTS = 100

_Mail = Annotated[str, StringConstraints(max_length=254, pattern=MAIL_ADDRESS)]
_Host = Annotated[str, StringConstraints(max_length=253, pattern=HOST_NAME)]

_TARGET = {"type": "slack", "url": "https://hooks.slack.com/services/T0/B0/XXXX"}


class TargetIn(
    Request,
    # For each type: the members that it may have, and whether they are required. Forms show fields accordingly.
    json_schema_extra={
        "examples": [_TARGET],
        "x-members": {target.value: dict(members) for target, members in registry.MEMBERS.items()},
    },
):
    """Where messages go. `GET` shows secrets masked. If a masked value is sent back, the stored value stays."""

    type: Target = Field(description="What receives the messages", examples=["slack"])
    url: Annotated[str, StringConstraints(min_length=1, max_length=2048)] | None = Field(
        None,
        description="Slack: the incoming webhook. Teams: the webhook of a workflow. Alertmanager: its address, such as"
        " https://alertmanager.example.com. Webhook: any https URL. PagerDuty: only needed for another region",
        examples=["https://hooks.slack.com/services/T0/B0/XXXX"],
    )
    routing_key: Word | None = Field(None, description="PagerDuty: the integration key of the service")
    authorization: Word | None = Field(None, description="Alertmanager: the header `Authorization`")
    headers: Annotated[dict[str, str], Field(max_length=100)] | None = Field(
        None, description="Webhook: sent with every message"
    )
    host: _Host | None = Field(None, description="Mail: the SMTP server", examples=["smtp.example.com"])
    port: int | None = Field(None, ge=1, le=65_535, description="Mail: port of the server. Default: 587")
    starttls: bool | None = Field(
        None, description="Mail: whether to encrypt by STARTTLS; false only for an allowed host. Default: true"
    )
    user: Word | None = Field(None, description="Mail: the user for the log-in")
    password: Word | None = Field(None, description="Mail: the password for the log-in")
    sender: _Mail | None = Field(None, description="Mail: address of the sender", examples=["lake@example.com"])
    to: Annotated[list[_Mail], Field(min_length=1, max_length=50)] | None = Field(
        None, description="Mail: addresses of the recipients", examples=[["on-call@example.com"]]
    )

    @model_validator(mode="after")
    def _fits_its_type(self) -> TargetIn:
        members = registry.MEMBERS[self.type]
        given = self.options
        if missing := sorted(name for name, needed in members.items() if needed and name not in given):
            raise ValueError(f"a target of the type {self.type} needs: {', '.join(missing)}")
        if unknown := sorted(set(given) - set(members)):
            raise ValueError(f"a target of the type {self.type} does not have: {', '.join(unknown)}")
        return self

    @property
    def options(self) -> dict[str, Any]:
        return self.model_dump(exclude={"type"}, exclude_none=True)


class TargetOut(TargetIn):
    """Where messages go. Secrets are masked."""

    @model_validator(mode="after")
    def _fits_its_type(self) -> TargetOut:
        """Skips the check of a request, because secrets that cannot be read are left out here."""
        return self


class WeeklyIn(Request, json_schema_extra={"examples": [{"day": "mon", "hour": 8}]}):
    """When a weekly report is sent, in the time zone of the notification."""

    day: Day = Field(description="Day of the week", examples=["mon"])
    hour: int = Field(8, ge=0, le=23, description="Hour of the day", examples=[8])


class NotificationIn(
    Request, json_schema_extra={"examples": [{"target": _TARGET, "tables": ["orders*"], "least_severity": "critical"}]}
):
    target: TargetIn = Field(description="Where messages go")
    events: Annotated[list[Occasion], Field(max_length=3)] = Field(
        default_factory=lambda: list(Occasion),
        json_schema_extra={"x-default": [each.value for each in Occasion]},
        description="`opened` and `resolved` are about problems, `failed` about jobs that have failed for good. May be"
        " empty if there is a report",
    )
    least_severity: Severity = Field(
        Severity.WARNING, description="Lowest severity of problems to report. A failed job counts as a warning"
    )
    kinds: Annotated[list[ProblemKind], Field(max_length=100)] = Field(
        default_factory=list, description="Kinds of problems. Default: all", examples=[["lock-awaited"]]
    )
    tables: Annotated[list[Word], Field(max_length=1000)] = Field(
        default_factory=list,
        description="Ids of tables, or patterns of names, owners (`owner:shop`) or tags (`tag:team=*`). Default: "
        "all tables, and problems that are not about a table",
        examples=[["orders*"]],
    )
    most_per_hour: int = Field(
        20,
        ge=1,
        le=500,
        description="Largest number of messages in an hour; the last one sums up all that is still to be reported. Ends"
        " of alerts in PagerDuty and Alertmanager do not count",
    )
    quiet_hours: Annotated[list[WindowIn], Field(max_length=50)] = Field(
        default_factory=list,
        description="Hours in which only critical problems are reported. The others are reported after these hours if "
        "they are still open",
    )
    time_zone: TimeZone = Field(
        "UTC", description="Time zone of the quiet hours and of the report", examples=["Europe/Berlin"]
    )
    report: WeeklyIn | None = Field(
        None,
        description="When to send a report of the last week; null for no report. Not for PagerDuty and "
        "Alertmanager, which would raise an alarm",
        examples=[{"day": "mon", "hour": 8}],
    )

    @model_validator(mode="after")
    def _says_something(self) -> NotificationIn:
        if self.report and self.target.type.keeps_alerts:
            raise ValueError(f"a target of the type {self.target.type} cannot get a report")
        if not (self.events or self.report):
            raise ValueError("events: must name at least one, unless there is a report")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """Returns the fields of a notification."""
        given = self.model_dump(exclude={"target"})
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        windows = tuple(map(Window.from_json, given["quiet_hours"]))
        report = Weekly(**given["report"]) if given["report"] else None
        return {**given, **lists, "quiet_hours": windows, "report": report}


class SnoozeIn(Request, json_schema_extra={"examples": [{"until": "2026-01-02T07:00:00Z"}]}):
    until: Moment = Field(description="When the snooze ends", examples=["2026-01-02T07:00:00Z"])
    reason: Annotated[str, StringConstraints(max_length=1000, pattern=A_REASON)] | None = Field(
        None, description="Why, for other people", examples=["planned work on the storage"]
    )


class NotificationOut(Declared, declared=Notification):
    target: TargetOut = Field(description="Where messages go")
    events: list[Occasion] = Field(description="What the notification reports")
    least_severity: Severity = Field(description="Lowest severity of problems that are reported")
    kinds: list[ProblemKind] = Field(description="Kinds of problems; empty for all")
    tables: list[str] = Field(description="Ids of tables or patterns of names; empty for all")
    most_per_hour: int = Field(description="Largest number of messages in an hour", examples=[20])
    quiet_hours: list[WindowIn] = Field(description="Hours in which only critical problems are reported")
    time_zone: str = Field(description="Time zone of the quiet hours and of the report", examples=["UTC"])
    report: WeeklyIn | None = Field(description="When the notification sends a weekly report; null for none")
    enabled: bool = Field(description="False if its webhook is disabled, so that nothing is sent", examples=[True])
    disabled_because: str | None = Field(description="Why nothing is sent")
    failing_since: datetime | None = Field(description="The first failure after the last success")
    last_success_at: datetime | None = Field(description="When a message was last delivered")
    pending: int = Field(description="Messages that wait for an attempt or a retry", examples=[0])
    dead: int = Field(description="Messages that were given up", examples=[0])
    sent_last_hour: int = Field(description="Messages that count towards the limit", examples=[3])
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(
        cls,
        notification: Notification,
        webhook: Webhook,
        cipher: SecretCipher,
        counts: Mapping[DeliveryState, int],
        now: datetime,
        **more: Any,
    ) -> Self:
        return made(
            cls,
            notification,
            target=shown_target(webhook, cipher),
            quiet_hours=[
                {"start": f"{each.start:%H:%M}", "end": f"{each.end:%H:%M}", "days": list(each.days)}
                for each in notification.quiet_hours
            ],
            enabled=webhook.is_enabled,
            disabled_because=webhook.disabled_because,
            failing_since=webhook.failing_since,
            last_success_at=webhook.last_success_at,
            pending=counts.get(DeliveryState.PENDING, 0),
            dead=counts.get(DeliveryState.DEAD, 0),
            sent_last_hour=len(notification.sent_lately(now)),
            **more,
        )


class NotificationPut(NotificationOut):
    secret: str | None = Field(
        description="Secret for checking the signatures of a webhook. Only the answer to the call that creates the"
        " notification has the secret"
    )


class AlertOut(BaseModel):
    """Problems that were reported in one message. One message reports their end."""

    key: str = Field(description="PagerDuty's `dedup_key`", examples=["groundskeeper-3b0f2a9d5e7b1c44"])
    kind: str = Field(description="Kind of problem", examples=["lock-awaited"])
    severity: Severity = Field(description="Severity of the most serious problem")
    title: str = Field(description="What is wrong", examples=["The table's lock has been held for long"])
    began_at: datetime = Field(description="When the alert was first reported")
    problems: int = Field(description="Number of problems in the alert", examples=[40])
    names: list[str] = Field(description="Objects that have the problem, at most 20", examples=[["orders"]])


class NotificationDetail(NotificationOut):
    told: int = Field(description="Number of open problems that were reported", examples=[40])
    waiting: int = Field(
        description="Number of open problems that are still to be reported: they are new, or the notification is "
        "snoozed, has quiet hours or has reached its limit",
        examples=[0],
    )
    alerts: list[AlertOut] = Field(description="Reported problems that are still open; at most 100")


def alerts_of(reported: list[ReportedProblem]) -> list[AlertOut]:
    return [
        AlertOut(
            key=alert,
            kind=members[0].kind,
            severity=min((each.severity for each in members), key=list(Severity).index),
            title=members[0].title,
            began_at=members[0].began_at,
            problems=len(members),
            names=[each.name for each in members[:20]],
        )
        for alert, members in list(by_alert(reported).items())[:_MOST_ALERTS]
    ]


def shown_target(webhook: Webhook, cipher: SecretCipher) -> TargetOut:
    assert webhook.target is not None
    try:
        options = registry.masked(webhook.target, json.loads(cipher.open(webhook.sealed_headers)))
    except SecretUnreadableError:
        options = {}
    return made(TargetOut, None, type=webhook.target, **options)
