"""Catalogue of event types: a description, the JSON Schema (2020-12) of `data`, and an example of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.kinds.registry import RESCALES
from service.api.advices import AdviceOut
from service.api.delegation import PlanOut
from service.api.event_schemas import Schema, document_of, example_of, object_of, or_null, part
from service.api.health_problems import ActionOut, HealthProblemOut, SeverityCounts
from service.api.incidents import IncidentOut
from service.api.job_models import HandOverOut, JobOut, JobProblem
from service.api.observed import CommitOut
from service.api.table_models import TableOut
from service.api.webhook_forms import WebhookOut
from service.delegation.inbox import SUGGESTION
from service.delivery.message import MOST_ENTRIES, MOST_FACTS, MessageState
from service.events.event import EventType
from service.model.storage_errors import PathNotFoundError


@dataclass(frozen=True)
class Entry:
    """An event type. `example` is the `data` of such an event."""

    description: str
    schema: Mapping[str, Any]
    example: Mapping[str, Any]


def _text(description: str, example: str) -> Schema:
    return {"type": "string", "description": description, "examples": [example]}


_INSTANT = _text("A time of Hudi's timeline", "20260101120000000")
_WHAT_TO_DO = _text("What to do, in words", "")
_PROBLEM = part(
    JobProblem, "title", "detail", "hint", "retriable", type=_text("The type of the problem", "column-unknown")
)
_TABLE = part(TableOut, "id", "name", "base_path")
_WEBHOOK = part(WebhookOut, "id", "description")
_MESSAGE = object_of(
    key=_text("Key of the alert", "groundskeeper-3b0f2a9d5e7b1c44"),
    state={"type": "string", "enum": [each.value for each in MessageState]},
    kind=_text("Kind of problem", "lock-awaited"),
    severity=_text("Severity of the most serious problem", "warning"),
    title=_text("What is wrong", "The table's lock has been held for long: 40 tables"),
    since={"type": "string", "format": "date-time", "description": "When the alert began"},
    entries={
        "type": "array",
        "maxItems": MOST_ENTRIES,
        "items": {"type": "object"},
        "description": "The first problems, each with `name`, `detail`, `command` and `link`",
        "examples": [[{"name": "orders", "detail": "", "command": "", "link": None}]],
    },
    count={"type": "integer", "minimum": 1, "description": "Number of all problems", "examples": [40]},
    consequence=_text("What happens if nobody does anything", ""),
    remedy=_WHAT_TO_DO,
    ended_at=or_null({"type": "string", "format": "date-time"}),
    link=or_null(_text("Address in the dashboard", "https://groundskeeper.example.com")),
    facts={
        "type": "array",
        "maxItems": MOST_FACTS,
        "items": {"type": "object"},
        "description": "The figures of a report, each with `name` and `value`",
        "examples": [[]],
    },
)
_NOTIFICATION = object_of(
    id=_text("Id of the notification's webhook", "wh_5d0c9b8a7f6e4d3c"),
    name=_text("Name of the notification", "on-call"),
)
_HAND_OVER = part(
    HandOverOut, "state", "since", "deadline", "by", "savepoint", "restart", "detail", what_to_do=_WHAT_TO_DO
)
_JOB = part(
    JobOut,
    *("id", "kind", "dry_run", "attempt", "max_attempts", "instants", "verdict"),
    error=or_null(_PROBLEM),
    hand_over=or_null(_HAND_OVER),
)
_EXPANSION = part(
    JobOut,
    *("attempt", "params"),
    job_id=_text("Id of the job", "job_4be1c0d2f6a89b37"),
    kind={"type": "string", "enum": sorted(kind.value for kind in RESCALES)},
    instant=or_null(_INSTANT),
    hand_over=or_null(_HAND_OVER),
)
_COMMIT = part(
    CommitOut,
    *("action", "operation", "completion_time", "rows_written", "rows_deleted", "bytes_written", "file_groups"),
    "schema_changed",
    instant=_INSTANT,
    partitions={
        "type": "array",
        "items": {"type": "string"},
        "description": "The first 100 partitions that the commit touched",
        "examples": [["region=eu/dt=2026-01-01"]],
    },
    partition_count={
        "type": "integer",
        "minimum": 0,
        "description": "Number of partitions that the commit touched",
        "examples": [1],
    },
)
_SUGGESTION = part(
    PlanOut,
    *("base_path", "table_name", "service"),
    instants={"type": "array", "items": _INSTANT, "description": "The pending plans that the writer delegates"},
    what_to_do=_text("What to do, in words", SUGGESTION),
)
_ADVICE = part(AdviceOut, "because", "setting", "before", "after", "figures")
_INCIDENT = part(
    IncidentOut, "id", "kind", "instant", "operation", "state", "opened_at", "closed_at", "because", "details"
)
_ACTION = part(ActionOut, "label", "method", "path", "body")
_OPEN_PROBLEM = part(
    HealthProblemOut,
    *("id", "kind", "severity", "about", "since", "title", "detail", "consequence", "remedy", "command", "evidence"),
    "action",
    opened_at={"type": "string", "format": "date-time", "description": "Time at which the incident was found"},
    resolved_at=or_null({"type": "string", "format": "date-time"}),
)
_OPEN_COUNTS = {
    **part(SeverityCounts, "critical", "warning", "notice"),
    "description": "Problems that are open now, by severity",
}

_A_TABLE = example_of(_TABLE)
_A_WEBHOOK = example_of(_WEBHOOK)
_A_PROBLEM = example_of(
    _PROBLEM, title="The table has no such column", detail="nope", hint="Its columns are id and city."
)
_A_JOB = example_of(_JOB, verdict=None)
_A_HAND_OVER = example_of(
    _HAND_OVER,
    deadline="2026-01-01T13:00:00Z",
    by=None,
    savepoint=None,
    detail="Flink writes this table and has to be stopped.",
    what_to_do="Stop every Flink job that writes this table, with a savepoint; wait until it has ended; then POST"
    ' /v1/jobs/job_4be1c0d2f6a89b37/writers-stopped {"savepoint": "..."}, before 2026-01-01T13:00:00Z.',
)
_RESUBMIT = {
    **_A_HAND_OVER,
    "state": "stopped",
    "by": "groundskeeper",
    "savepoint": "s3://lake/sp/savepoint-1f2e3d",
    "detail": "The Flink job orders-ingest was stopped.",
    "what_to_do": "Submit the Flink job again, from the savepoint s3://lake/sp/savepoint-1f2e3d, with the options that"
    " GET /v1/tables/tbl_0f3c2a9d5e7b1c44/writer-options?engine=flink returns now.",
}
_AN_EXPANSION = example_of(_EXPANSION, kind="bucket_expansion", instant="20260101120000000", params={"num_buckets": 8})
_AN_INCIDENT = example_of(_INCIDENT, closed_at=None, because=None)
_AN_OPEN_PROBLEM = example_of(_OPEN_PROBLEM, severity="warning", action=example_of(_ACTION))


def _of_job(description: str, **example: Any) -> Entry:
    return Entry(description, document_of(table=_TABLE, job=_JOB), {"table": _A_TABLE, "job": {**_A_JOB, **example}})


def _of_expansion(description: str, **example: Any) -> Entry:
    schema = document_of(table=_TABLE, expansion=_EXPANSION)
    return Entry(description, schema, {"table": _A_TABLE, "expansion": {**_AN_EXPANSION, **example}})


_OF_PROBLEM = {
    **document_of(problem=_OPEN_PROBLEM, open=_OPEN_COUNTS, table=_TABLE),
    "required": ["problem", "open"],
}

CATALOGUE: Mapping[EventType, Entry] = {
    EventType.COMMIT_PUBLISHED: Entry(
        "An instant of a registered table has completed, by a writer or by a table service.",
        document_of(table=_TABLE, commit=_COMMIT),
        {"table": _A_TABLE, "commit": example_of(_COMMIT)},
    ),
    EventType.JOB_QUEUED: _of_job(
        "A job was submitted. Or an attempt ended and the job will be retried: `error` has the reason. Or the job waits"
        " from now on until the writers have been stopped: `hand_over` has the instructions.",
        attempt=0,
        instants=[],
    ),
    EventType.JOB_STARTED: _of_job("A worker has begun an attempt.", instants=[]),
    EventType.JOB_SUCCEEDED: _of_job("A job has succeeded. GET /v1/jobs/{id} has its result."),
    EventType.JOB_FAILED: _of_job("A job has failed for good.", error=_A_PROBLEM),
    EventType.JOB_CANCELLED: _of_job("A job has ended because it was cancelled."),
    EventType.EXPANSION_DRAINING: _of_expansion(
        "A bucket expansion or contraction (`kind`) waits. Either the writers have to be stopped: `hand_over` has the"
        " instructions and the deadline, and there is no `instant` yet. Or the job has rewritten the files, and waits"
        " for a moment without writes in flight; the event is then sent once per attempt.",
        attempt=0,
        instant=None,
        hand_over=_A_HAND_OVER,
    ),
    EventType.EXPANSION_COMMITTED: _of_expansion(
        "A bucket expansion or contraction (`kind`) has switched data and number of buckets. Restart long-running"
        " writers. Restart Flink jobs that were stopped for it as `hand_over.what_to_do` says, with the table's new"
        " options.",
        hand_over=_RESUBMIT,
    ),
    EventType.EXPANSION_ABORTED: _of_expansion(
        "A bucket expansion or contraction (`kind`) gave up before its commit, and left nothing behind. The job's own"
        " event has the reason."
    ),
    EventType.TABLE_REGISTERED: Entry("A table was registered.", document_of(table=_TABLE), {"table": _A_TABLE}),
    EventType.TABLE_UNHEALTHY: Entry(
        "A table can no longer be polled, or its first incident was opened.",
        document_of(table=_TABLE, problem=_PROBLEM),
        {
            "table": _A_TABLE,
            "problem": PathNotFoundError("s3a://lake/orders").problem().to_json(),
        },
    ),
    EventType.TABLE_RECOVERED: Entry(
        "A table that was unhealthy can be polled again, and it has no open incident.",
        document_of(table=_TABLE),
        {"table": _A_TABLE},
    ),
    EventType.TABLE_INCIDENT_OPENED: Entry(
        "A fault was found on a table. A commit wrote to file groups that had been replaced (`stale-write`), or with an"
        " old number of buckets (`old-number`), and readers do not see its rows. Or a write was fenced, and its files"
        " may reappear (`late-files`).",
        document_of(table=_TABLE, incident=_INCIDENT),
        {"table": _A_TABLE, "incident": _AN_INCIDENT},
    ),
    EventType.TABLE_INCIDENT_CLOSED: Entry(
        "An incident was repaired (`repaired`), or no longer needs a repair (`cleared`).",
        document_of(table=_TABLE, incident=_INCIDENT),
        {
            "table": _A_TABLE,
            "incident": {
                **_AN_INCIDENT,
                "state": "repaired",
                "closed_at": "2026-01-01T12:00:41Z",
                "because": "20260101120030000 brought its rows over",
            },
        },
    ),
    EventType.TABLE_SUGGESTED: Entry(
        "A writer delegates table services of a table that is not registered. The plans are executed once the table is"
        " registered.",
        document_of(suggestion=_SUGGESTION),
        {"suggestion": example_of(_SUGGESTION)},
    ),
    EventType.ADVICE_APPLIED: Entry(
        "Advice about a setting was applied to the policy of a table, by a person or automatically.",
        document_of(table=_TABLE, advice=_ADVICE),
        {"table": _A_TABLE, "advice": example_of(_ADVICE)},
    ),
    EventType.ADVICE_TAKEN_BACK: Entry(
        "Advice that had been applied was taken back, because the outcome was worse than expected.",
        document_of(table=_TABLE, advice=_ADVICE),
        {"table": _A_TABLE, "advice": example_of(_ADVICE)},
    ),
    EventType.PROBLEM_OPENED: Entry(
        "A new problem was found (GET /v1/problems), or the severity of a problem has risen. The event has `table` if "
        "the problem is about a table.",
        _OF_PROBLEM,
        {"table": _A_TABLE, "problem": _AN_OPEN_PROBLEM, "open": {"critical": 0, "warning": 1, "notice": 4}},
    ),
    EventType.PROBLEM_RESOLVED: Entry(
        "A problem that `problem.opened` reported has ended: two checks in a row have not found it.",
        _OF_PROBLEM,
        {
            "table": _A_TABLE,
            "problem": {**_AN_OPEN_PROBLEM, "resolved_at": "2026-01-01T12:20:45Z"},
            "open": {"critical": 0, "warning": 0, "notice": 4},
        },
    ),
    EventType.WEBHOOK_DISABLED: Entry(
        "A webhook was disabled and gets no more events. The other webhooks get this event.",
        document_of(webhook=_WEBHOOK, because={"type": "string"}),
        {"webhook": _A_WEBHOOK, "because": "The receiver answered 410 Gone."},
    ),
    EventType.WEBHOOK_TEST: Entry(
        "A test of this webhook was requested. The event is sent once, whatever types the webhook subscribes to.",
        document_of(webhook=_WEBHOOK),
        {"webhook": _A_WEBHOOK},
    ),
    EventType.NOTIFICATION_SENT: Entry(
        "A message of a notification. Only the notification's own target gets it; the list and the stream of events"
        " show it too.",
        document_of(notification=_NOTIFICATION, message=_MESSAGE),
        {"notification": example_of(_NOTIFICATION), "message": example_of(_MESSAGE, state="open")},
    ),
    EventType.NOTIFICATION_TEST: Entry(
        "A test message of a notification, which is sent once.",
        document_of(notification=_NOTIFICATION, message=_MESSAGE),
        {"notification": example_of(_NOTIFICATION), "message": example_of(_MESSAGE, state="test")},
    ),
}
