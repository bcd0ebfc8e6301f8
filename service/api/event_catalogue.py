"""Catalogue of event types: a description, the JSON Schema (2020-12) of `data`, and an example of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind
from jobs.kinds.registry import RESCALES
from service.api.event_schemas import (
    AN_OPEN_PROBLEM,
    COUNT,
    FLAG,
    OPEN_COUNTS,
    OPEN_PROBLEM,
    TEXT,
    Schema,
    document_of,
    object_of,
    or_null,
)
from service.delegation.inbox import SUGGESTION
from service.delegation.plan import DelegatedService
from service.events.event import EventType
from service.incidents.incident import IncidentKind, IncidentState
from service.model.flink_restart import FlinkRestart
from service.model.hand_over import HandOverState
from service.queue.job import JobVerdict

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Entry:
    """An event type. `example` is the `data` of such an event."""

    description: str
    schema: Mapping[str, Any]
    example: Mapping[str, Any]


_INSTANT: Schema = {"type": "string", "description": "A time of Hudi's timeline, such as 20260101120000000"}
_INSTANTS: Schema = {"type": "array", "items": _INSTANT}
_PROBLEM = object_of(type=TEXT, title=TEXT, detail=TEXT, hint=TEXT, retriable=FLAG)
_TABLE = object_of(id=TEXT, name=TEXT, base_path=TEXT)
_WEBHOOK = object_of(id=TEXT, description=TEXT)
_HAND_OVER = object_of(
    state={"enum": [state.value for state in HandOverState]},
    since=TEXT,
    deadline={"type": "string", "description": "The job fails if the writers are not stopped by then"},
    by={"type": ["string", "null"], "description": "The caller that stopped them"},
    savepoint={"type": ["string", "null"], "description": "Path of the Flink job's savepoint"},
    restart={"enum": [each.value for each in FlinkRestart], "description": "How Flink has to be started afterwards"},
    detail=TEXT,
    what_to_do=TEXT,
)
_JOB = object_of(
    id=TEXT,
    kind={"enum": [kind.value for kind in JobKind]},
    dry_run=FLAG,
    attempt={**COUNT, "description": "Number of leases so far"},
    max_attempts=COUNT,
    instants={**_INSTANTS, "description": "Created by its attempts on the table's timeline"},
    verdict={"enum": [*(verdict.value for verdict in JobVerdict), None], "description": "As of GET /v1/jobs/{id}"},
    error=or_null(_PROBLEM),
    hand_over=or_null(_HAND_OVER),
)
_EXPANSION = object_of(
    job_id=TEXT,
    kind={"type": "string", "enum": sorted(kind.value for kind in RESCALES)},
    attempt=COUNT,
    instant=or_null(_INSTANT),
    params={"type": "object"},
    hand_over=or_null(_HAND_OVER),
)
_COMMIT = object_of(
    instant=_INSTANT,
    action={"type": "string", "description": "As on the timeline: commit, deltacommit, replacecommit, clean ..."},
    operation={"type": ["string", "null"], "description": "Hudi's WriteOperationType: UPSERT, COMPACT, CLUSTER ..."},
    completion_time=or_null(_INSTANT),
    rows_written=or_null(COUNT),
    rows_deleted=or_null(COUNT),
    bytes_written=or_null(COUNT),
    partitions={"type": "array", "items": TEXT, "description": "The first 100 partitions that it touched"},
    partition_count=COUNT,
    file_groups=COUNT,
    schema_changed=FLAG,
)
_SUGGESTION = object_of(
    base_path=TEXT,
    table_name=TEXT,
    service={"enum": [service.value for service in DelegatedService]},
    instants={**_INSTANTS, "description": "The pending plans that its writer delegates"},
    what_to_do=TEXT,
)
_INCIDENT = object_of(
    id=TEXT,
    kind={"enum": [kind.value for kind in IncidentKind]},
    instant={**_INSTANT, "description": "The commit that caused it, or the write that was fenced"},
    operation={"type": ["string", "null"], "description": "Hudi's WriteOperationType of that commit"},
    state={"enum": [state.value for state in IncidentState]},
    opened_at={"type": "string", "format": "date-time"},
    closed_at={"type": ["string", "null"], "format": "date-time"},
    because={"type": ["string", "null"], "description": "The reason for closing it"},
    details={"type": "object", "description": "Figures that depend on the kind, such as `rows`"},
)

_A_TABLE = {"id": "tbl_0f3c2a9d5e7b1c44", "name": "orders", "base_path": "s3a://lake/orders"}
_A_WEBHOOK = {"id": "wh_5d0c9b8a7f6e4d3c", "description": "cache invalidation"}
_A_PROBLEM = {
    "type": "column-unknown",
    "title": "The table has no such column",
    "detail": "nope",
    "hint": "Its columns are id and city.",
    "retriable": False,
}
_A_JOB: dict[str, Any] = {
    "id": "job_4be1c0d2f6a89b37",
    "kind": "compaction",
    "dry_run": False,
    "attempt": 1,
    "max_attempts": 3,
    "instants": ["20260101120000000"],
    "verdict": None,
    "error": None,
    "hand_over": None,
}
_A_HAND_OVER = {
    "state": "draining",
    "since": "2026-01-01T12:00:00+00:00",
    "deadline": "2026-01-01T13:00:00+00:00",
    "by": None,
    "savepoint": None,
    "restart": "from-savepoint",
    "detail": "Flink writes this table and has to be stopped.",
    "what_to_do": "Stop every Flink job that writes this table, with a savepoint; wait until it has ended; then POST"
    ' /v1/jobs/job_4be1c0d2f6a89b37/writers-stopped {"savepoint": "..."}, before 2026-01-01T13:00:00+00:00.',
}
_RESUBMIT = {
    **_A_HAND_OVER,
    "state": "stopped",
    "by": "groundskeeper",
    "savepoint": "s3://lake/sp/savepoint-1f2e3d",
    "detail": "The Flink job orders-ingest was stopped.",
    "what_to_do": "Submit the Flink job again, from the savepoint s3://lake/sp/savepoint-1f2e3d, with the options that"
    " GET /v1/tables/tbl_0f3c2a9d5e7b1c44/writer-options?engine=flink returns now.",
}
_AN_EXPANSION: dict[str, Any] = {
    "job_id": "job_4be1c0d2f6a89b37",
    "kind": "bucket_expansion",
    "attempt": 1,
    "instant": "20260101120000000",
    "params": {"num_buckets": 8},
    "hand_over": None,
}
_A_COMMIT = {
    "instant": "20260101120000000",
    "action": "deltacommit",
    "operation": "UPSERT",
    "completion_time": "20260101120003123",
    "rows_written": 1200,
    "rows_deleted": 0,
    "bytes_written": 482_133,
    "partitions": ["region=eu/dt=2026-01-01"],
    "partition_count": 1,
    "file_groups": 4,
    "schema_changed": False,
}
_AN_INCIDENT: dict[str, Any] = {
    "id": "inc_8c1d0e5f2a7b4963",
    "kind": "stale-write",
    "instant": "20260101120000000",
    "operation": "UPSERT_PREPPED",
    "state": "open",
    "opened_at": "2026-01-01T12:00:04+00:00",
    "closed_at": None,
    "because": None,
    "details": {
        "rows": 173,
        "file_groups": 1,
        "partitions": 1,
        "groups": [
            {
                "partition": "region=eu",
                "file_id": "00000001-3f5e-4c0a-9d1b-6f2f6e0c8a11-0",
                "replaced_by": "20260101115800000",
            }
        ],
    },
}


def _of_job(description: str, **example: Any) -> Entry:
    return Entry(description, document_of(table=_TABLE, job=_JOB), {"table": _A_TABLE, "job": {**_A_JOB, **example}})


def _of_expansion(description: str, **example: Any) -> Entry:
    schema = document_of(table=_TABLE, expansion=_EXPANSION)
    return Entry(description, schema, {"table": _A_TABLE, "expansion": {**_AN_EXPANSION, **example}})


_OF_PROBLEM = {
    **document_of(problem=OPEN_PROBLEM, open=OPEN_COUNTS, table=_TABLE),
    "required": ["problem", "open"],
}

CATALOGUE: Mapping[EventType, Entry] = {
    EventType.COMMIT_PUBLISHED: Entry(
        "An instant of a registered table has completed, by a writer or by a table service.",
        document_of(table=_TABLE, commit=_COMMIT),
        {"table": _A_TABLE, "commit": _A_COMMIT},
    ),
    EventType.JOB_QUEUED: _of_job(
        "A job was submitted; or an attempt ended and the job will be retried, with the reason in `error`; or the job"
        " waits from now on until the writers have been stopped, with the instructions in `hand_over`.",
        attempt=0,
        instants=[],
    ),
    EventType.JOB_STARTED: _of_job("A worker has begun an attempt.", instants=[]),
    EventType.JOB_SUCCEEDED: _of_job("A job has succeeded. GET /v1/jobs/{id} has its result."),
    EventType.JOB_FAILED: _of_job("A job has failed for good.", error=_A_PROBLEM),
    EventType.JOB_CANCELLED: _of_job("A job has ended because it was cancelled."),
    EventType.EXPANSION_DRAINING: _of_expansion(
        "A bucket expansion or contraction (`kind`) waits until the writers have been stopped: `hand_over` has the"
        " instructions and the deadline, and there is no `instant` yet. Or it has rewritten the files and waits for a"
        " moment without writes in flight; this is sent once per attempt.",
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
            "problem": {
                "type": "path-not-found",
                "title": "The path does not exist, or the service cannot read it",
                "detail": "s3a://lake/orders",
                "hint": "Check the spelling, and that the service has the permissions and storage options to read it.",
                "retriable": False,
            },
        },
    ),
    EventType.TABLE_RECOVERED: Entry(
        "A table that was unhealthy can be polled again, and it has no open incident.",
        document_of(table=_TABLE),
        {"table": _A_TABLE},
    ),
    EventType.TABLE_INCIDENT_OPENED: Entry(
        "A fault was found on a table that needs a repair: a commit wrote to file groups that had been replaced "
        "(`stale-write`), or with an old number of buckets (`old-number`), and readers do not see its rows; "
        "or a write was fenced whose files may reappear (`late-files`).",
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
                "closed_at": "2026-01-01T12:00:41+00:00",
                "because": "20260101120030000 brought its rows over",
            },
        },
    ),
    EventType.TABLE_SUGGESTED: Entry(
        "A writer delegates table services of a table that is not registered. Its plans are executed once it is.",
        document_of(suggestion=_SUGGESTION),
        {
            "suggestion": {
                "base_path": "s3a://lake/orders",
                "table_name": "orders",
                "service": "compact",
                "instants": ["20260101120000000"],
                "what_to_do": SUGGESTION,
            }
        },
    ),
    EventType.PROBLEM_OPENED: Entry(
        "Something is wrong that was not before (GET /v1/problems), or its severity has risen. With `table` if it is"
        " about one.",
        _OF_PROBLEM,
        {"table": _A_TABLE, "problem": AN_OPEN_PROBLEM, "open": {"critical": 0, "warning": 1, "notice": 4}},
    ),
    EventType.PROBLEM_RESOLVED: Entry(
        "A problem that was announced is over: two checks in a row have not found it.",
        _OF_PROBLEM,
        {
            "table": _A_TABLE,
            "problem": {**AN_OPEN_PROBLEM, "resolved_at": "2026-01-01T12:20:45+00:00"},
            "open": {"critical": 0, "warning": 0, "notice": 4},
        },
    ),
    EventType.WEBHOOK_DISABLED: Entry(
        "A webhook was disabled and gets no more events. The other webhooks get this event.",
        document_of(webhook=_WEBHOOK, because=TEXT),
        {"webhook": _A_WEBHOOK, "because": "The receiver answered 410 Gone."},
    ),
    EventType.WEBHOOK_TEST: Entry(
        "A test of this webhook was requested. It is sent once, whatever types the webhook subscribes to.",
        document_of(webhook=_WEBHOOK),
        {"webhook": _A_WEBHOOK},
    ),
}
