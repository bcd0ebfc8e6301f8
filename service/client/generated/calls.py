"""The calls of the API. Generated from its OpenAPI document by `python -m tests.client_generator`."""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from typing import Literal

from service.client.call import Call, segment
from service.client.generated.models import (
    ArchivalIn,
    AuditIn,
    AuditPage,
    BucketContractionIn,
    BucketExpansionIn,
    BucketsOut,
    CallbackIn,
    CallbackOut,
    CleaningIn,
    ClusteringIn,
    CommitPage,
    CompactionIn,
    ConsumerIn,
    ConsumerList,
    ConsumerOut,
    DecisionPage,
    DelegatedService,
    DelegationOut,
    DeliveryOut,
    DeliveryPage,
    DeliveryState,
    DemandByGroup,
    DiagnosisIn,
    EffectivePolicyOut,
    EvaluationOut,
    EventTypeList,
    FinishExpansionIn,
    HealthOut,
    IncidentCloseIn,
    IncidentKind,
    IncidentOut,
    IncidentPage,
    IncidentState,
    JobDetail,
    JobKind,
    JobOut,
    JobPage,
    JobState,
    MetadataTableIn,
    Outcome,
    PartitionTtlIn,
    PatternPolicyIn,
    PatternPolicyList,
    PatternPolicyOut,
    PauseIn,
    PauseOut,
    PlanPage,
    PlanState,
    PolicyIn,
    ProblemType,
    RepairIn,
    ReplayIn,
    ReplayOut,
    RestoreIn,
    RollbackIn,
    SavepointIn,
    SessionOut,
    Severity,
    SnapshotOut,
    StandingKind,
    StandingProblemPage,
    SyncIn,
    TableChange,
    TableIn,
    TableOut,
    TablePage,
    TableType,
    TimelineOut,
    WebhookChange,
    WebhookCreated,
    WebhookIn,
    WebhookOut,
    WebhookPage,
    WorkerList,
    WriterEngine,
    WriterOptionsOut,
    WritersStopped,
)

SubmitJobBody = (
    CompactionIn
    | CleaningIn
    | ClusteringIn
    | BucketExpansionIn
    | BucketContractionIn
    | FinishExpansionIn
    | RepairIn
    | ArchivalIn
    | PartitionTtlIn
    | SavepointIn
    | RestoreIn
    | RollbackIn
    | MetadataTableIn
    | SyncIn
    | AuditIn
    | DiagnosisIn
)


def cancel_job(job_id: str) -> Call[JobOut]:
    """Cancel a job.

    Cancels a queued job at once. The worker of a running job learns of it within seconds, and cleans up first.

    Raises DatabaseUnavailableError, ForbiddenError, JobAlreadyEndedError, JobNotFoundError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/jobs/{segment(job_id)}/cancel", JobOut)


def change_table(table_id: str, body: TableChange) -> Call[TableOut]:
    """Change the declarations of a table.

    Verifies a new index on sampled record keys before it takes effect.

    Raises BucketIndexContradictedError, DatabaseUnavailableError, FlinkHostNotAllowedError, ForbiddenError,
    JsonRequiredError, LockUnavailableError, OptionNotAllowedError, ParamsInvalidError, PathNotAllowedError,
    RequestTooLargeError, SecretKeyMissingError, ServiceBusyError, StorageError, TableNotFoundError,
    TooManyReadsError, UnauthenticatedError.
    """
    return Call("PATCH", f"/v1/tables/{segment(table_id)}", TableOut, body=body)


def change_webhook(webhook_id: str, body: WebhookChange) -> Call[WebhookOut]:
    """Change a webhook.

    Pending deliveries go to the new URL, with the new headers.

    Raises DatabaseUnavailableError, ForbiddenError, HeaderNotAllowedError, JsonRequiredError,
    KafkaNotInstalledError, ParamsInvalidError, RequestTooLargeError, SecretKeyMissingError, ServiceBusyError,
    UnauthenticatedError, UrlNotAllowedError, WebhookNotFoundError.
    """
    return Call("PATCH", f"/v1/webhooks/{segment(webhook_id)}", WebhookOut, body=body)


def close_incident(incident_id: str, body: IncidentCloseIn) -> Call[IncidentOut]:
    """Close an incident by hand.

    Sets the state to `cleared`. The incident is no longer repaired, and cleaning resumes, which may delete the
    files that a repair needs. `because` keeps the caller and the reason.

    Raises DatabaseUnavailableError, ForbiddenError, IncidentAlreadyClosedError, IncidentNotFoundError,
    JsonRequiredError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/incidents/{segment(incident_id)}/close", IncidentOut, body=body)


def confirm_writers_stopped(job_id: str, body: WritersStopped | None = None) -> Call[JobOut]:
    """Confirm that the writers were stopped, for a job that waits for it.

    Lets the job go on. Confirm only when every Flink job that writes the table has ended. A repeated call
    changes nothing.

    Raises DatabaseUnavailableError, ForbiddenError, JobNotFoundError, JobNotWaitingError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/jobs/{segment(job_id)}/writers-stopped", JobOut, body=body)


def create_webhook(body: WebhookIn) -> Call[WebhookCreated]:
    """Create a webhook: send events to a URL, or write them to a Kafka topic.

    Sends CloudEvents 1.0, signed as in Standard Webhooks with `secret`, which only this answer shows. Delivery
    is at least once, with the same `webhook-id` in every attempt, and in the order of events for each table.

    Raises DatabaseUnavailableError, ForbiddenError, HeaderNotAllowedError, JsonRequiredError,
    KafkaNotInstalledError, ParamsInvalidError, RequestTooLargeError, SecretKeyMissingError, ServiceBusyError,
    UnauthenticatedError, UrlNotAllowedError.
    """
    return Call("POST", "/v1/webhooks", WebhookCreated, body=body)


def delegate_plans(
    service: DelegatedService,
    *,
    action: Literal["REQUEST"],
    basepath: str,
    instant: str | None = None,
    table_name: str | None = None,
    queue: str | None = None,
    resource: str | None = None,
    parallelism: str | None = None,
    execution_engine: str | None = None,
    username: str | None = None,
) -> Call[DelegationOut]:
    """Delegate the pending plans of a table (called by Hudi's writers).

    Stores the plans, and answers. A repeated request changes nothing, and a lost one is made up for by the
    next: each names all pending plans. Credentials go into the URI of the writer's option, as
    `http://writer:<token>@...`: the callback key if the service has one, otherwise any token.

    `instant`: All pending instants, separated by commas

    `queue`: A wish: ignored if it is not usable

    `resource`: A wish: ignored if it is not usable

    `parallelism`: A wish: ignored if it is not usable

    `execution_engine`: A wish: ignored if it is not usable

    `username`: A wish: ignored if it is not usable

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/hoodie/service/{segment(service)}",
        DelegationOut,
        query={
            "action": action,
            "basepath": basepath,
            "instant": instant,
            "table_name": table_name,
            "queue": queue,
            "resource": resource,
            "parallelism": parallelism,
            "execution_engine": execution_engine,
            "username": username,
        },
    )


def delete_consumer(table_id: str, name: str) -> Call[None]:
    """Delete a consumer, so that nothing is kept for it.

    Raises ConsumerNotFoundError, DatabaseUnavailableError, ForbiddenError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/tables/{segment(table_id)}/consumers/{segment(name)}", NoneType)


def delete_policy(pattern: str) -> Call[None]:
    """Delete the policy of a pattern.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError, PolicyNotFoundError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/policies/{segment(pattern)}", NoneType)


def delete_table_policy(table_id: str) -> Call[None]:
    """Delete the policy of one table.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError, PolicyNotFoundError,
    RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/tables/{segment(table_id)}/policy", NoneType)


def delete_webhook(webhook_id: str) -> Call[None]:
    """Delete a webhook and its deliveries.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("DELETE", f"/v1/webhooks/{segment(webhook_id)}", NoneType)


def disable_webhook(webhook_id: str) -> Call[WebhookOut]:
    """Disable a webhook.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/disable", WebhookOut)


def enable_webhook(webhook_id: str) -> Call[WebhookOut]:
    """Enable a webhook, and retry pending deliveries at once.

    Does not send the events from the time while it was disabled; a replay sends them.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/enable", WebhookOut)


def evaluate_table(table_id: str) -> Call[EvaluationOut]:
    """Show the decisions that a table would get now.

    Starts nothing and stores nothing.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/tables/{segment(table_id)}/evaluate", EvaluationOut)


def explain_problem(name: str) -> Call[ProblemType]:
    """Explain a problem type.

    Raises ParamsInvalidError, RouteNotFoundError.
    """
    return Call("GET", f"/problems/{segment(name)}", ProblemType)


def get_buckets(table_id: str, *, partitions: int | None = None) -> Call[BucketsOut]:
    """Show the size of each bucket.

    Returns bytes, rows and skew of the buckets of each partition.

    `partitions`: Maximum number of partitions, largest first

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, SnapshotNotTakenError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/buckets", BucketsOut, query={"partitions": partitions})


def get_consumer(table_id: str, name: str) -> Call[ConsumerOut]:
    """Show a consumer.

    Raises ConsumerNotFoundError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/consumers/{segment(name)}", ConsumerOut)


def get_delivery(delivery_id: str) -> Call[DeliveryOut]:
    """Show a delivery and its attempts.

    Raises DatabaseUnavailableError, DeliveryNotFoundError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/deliveries/{segment(delivery_id)}", DeliveryOut)


def get_demand(*, group: list[str] | None = None) -> Call[DemandByGroup]:
    """Show what each worker group needs, for a scaler.

    With `wanted_slots` of a group and the slots of one worker as the target, a scaler gets the number of
    workers.

    `group`: Group to list even if it has neither jobs nor workers; may be repeated

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/workers/demand", DemandByGroup, query={"group": group})


def get_job(job_id: str) -> Call[JobDetail]:
    """Show a job, its attempts, and what it waits for.

    Raises DatabaseUnavailableError, ForbiddenError, JobNotFoundError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/jobs/{segment(job_id)}", JobDetail)


def get_metrics() -> Call[str]:
    """Show the metrics in the text format of Prometheus.

    Needs the role reader, unless `GROUNDSKEEPER_OPEN_METRICS` is set. The answer is made once a second at most:
    callers in between get the last one.

    Raises DatabaseUnavailableError, ForbiddenError, NotReadyError, UnauthenticatedError.
    """
    return Call("GET", "/metrics", str)


def get_pause() -> Call[PauseOut]:
    """Show whether automatic jobs are paused.

    Raises DatabaseUnavailableError, ForbiddenError, UnauthenticatedError.
    """
    return Call("GET", "/v1/pause", PauseOut)


def get_policy(pattern: str) -> Call[PatternPolicyOut]:
    """Show the policy of a pattern.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, PolicyNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/policies/{segment(pattern)}", PatternPolicyOut)


def get_session() -> Call[SessionOut]:
    """Show who you are.

    Raises DatabaseUnavailableError, ForbiddenError, UnauthenticatedError.
    """
    return Call("GET", "/v1/session", SessionOut)


def get_snapshot(table_id: str, *, partitions: int | None = None) -> Call[SnapshotOut]:
    """Show the state of a table.

    Returns the state as of the last observed change of the timeline.

    `partitions`: Maximum number of partitions, largest first

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, SnapshotNotTakenError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/snapshot", SnapshotOut, query={"partitions": partitions})


def get_table(table_id: str) -> Call[TableOut]:
    """Show a table.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}", TableOut)


def get_table_policy(table_id: str) -> Call[EffectivePolicyOut]:
    """Show the effective policy of a table.

    Returns all levels merged, and the source of each value.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/policy", EffectivePolicyOut)


def get_timeline(table_id: str) -> Call[TimelineOut]:
    """Show a table's active timeline.

    Reads the table's storage now. Pending instants have their age and heartbeat.

    Raises DatabaseUnavailableError, ForbiddenError, PathNotAllowedError, PathNotFoundError, StorageError,
    TableNotFoundError, TooManyReadsError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/timeline", TimelineOut)


def get_webhook(webhook_id: str) -> Call[WebhookOut]:
    """Show a webhook.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError,
    WebhookNotFoundError.
    """
    return Call("GET", f"/v1/webhooks/{segment(webhook_id)}", WebhookOut)


def get_writer_options(
    table_id: str, *, engine: WriterEngine | None = None, services: Literal["none", "delegated"] | None = None
) -> Call[WriterOptionsOut]:
    """Show the options that a writer of a table needs.

    Options for writing beside this service: concurrency control with the table's own lock, the callback, no
    inline services, the bucket index. They have the engine's own names; for Flink and Spark SQL there is SQL
    too.

    `engine`: The writer's engine

    `services`: `delegated`: the writer plans compactions, and delegates them by Hudi's own protocol

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/writer-options",
        WriterOptionsOut,
        query={"engine": engine, "services": services},
    )


def get_writer_options_of_new_table(
    *,
    engine: WriterEngine,
    base_path: str,
    table_name: str | None = None,
    table_type: TableType | None = None,
    record_key: str | None = None,
    partition_by: str | None = None,
    ordering_fields: str | None = None,
    num_buckets: int | None = None,
    hash_fields: str | None = None,
    lock_provider: str | None = None,
    services: Literal["none", "delegated"] | None = None,
) -> Call[WriterOptionsOut]:
    """Show the options for a table that does not exist yet.

    The same as for a registered table, and the options that the first writer fixes for good. Reads no storage.

    `engine`: The writer's engine

    `record_key`: Columns, separated by commas

    `partition_by`: Columns, separated by commas

    `ordering_fields`: Columns, separated by commas

    `num_buckets`: For a bucket index

    `hash_fields`: Default: the record key

    `services`: `delegated`: the writer plans compactions, and delegates them by Hudi's own protocol

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/writer-options",
        WriterOptionsOut,
        query={
            "engine": engine,
            "base_path": base_path,
            "table_name": table_name,
            "table_type": table_type,
            "record_key": record_key,
            "partition_by": partition_by,
            "ordering_fields": ordering_fields,
            "num_buckets": num_buckets,
            "hash_fields": hash_fields,
            "lock_provider": lock_provider,
            "services": services,
        },
    )


def hudi_callback(body: CallbackIn, *, hudi_callback_key: str | None = None) -> Call[CallbackOut]:
    """Report a writer's commit.

    Accepts Hudi's own HTTP commit callback and requests a poll of the table. The answer does not wait for it.

    `hudi_callback_key`: Required if the service has a callback key

    Raises CallbackUnknownTableError, DatabaseUnavailableError, ForbiddenError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/callbacks/hudi", CallbackOut, headers={"hudi-callback-key": hudi_callback_key}, body=body)


def is_alive() -> Call[HealthOut]:
    """Check that the process is alive."""
    return Call("GET", "/healthz", HealthOut)


def is_ready() -> Call[HealthOut]:
    """Check that the database can be used, and that no background task fails or stands still.

    Writes and commits, once a second at most: callers in between get the last outcome. Of an SQLite database it
    also checks that its files are still those that were opened, intact, and on a disk with space left.

    Raises DatabaseDamagedError, DatabaseUnavailableError, NotReadyError.
    """
    return Call("GET", "/readyz", HealthOut)


def list_audit_entries(
    *,
    who: str | None = None,
    token_id: str | None = None,
    operation: str | None = None,
    object_type: str | None = None,
    object_id: str | None = None,
    outcome: Outcome | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[AuditPage]:
    """List who changed what, newest first.

    Has an entry for every call that changed something, or was refused, except the frequent ones of workers and
    writers; and for tokens that were created or revoked on the command line. An entry is written in the same
    transaction as the change.

    `since`: At this time or later

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/audit",
        AuditPage,
        query={
            "who": who,
            "token_id": token_id,
            "operation": operation,
            "object_type": object_type,
            "object_id": object_id,
            "outcome": outcome,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_commits(
    *,
    table_id: str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[CommitPage]:
    """List commits, latest first.

    Lists every completed instant of every table, of writers and table services. The commits of one table are in
    the order of completion.

    `since`: Completed at this time or later

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/commits",
        CommitPage,
        query={"table_id": table_id, "action": action, "since": since, "limit": limit, "cursor": cursor},
    )


def list_consumers(table_id: str) -> Call[ConsumerList]:
    """List the consumers of a table.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/consumers", ConsumerList)


def list_decisions(
    table_id: str,
    *,
    kind: JobKind | None = None,
    current: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DecisionPage]:
    """List the decisions about a table, newest first.

    Lists equal decisions in a row as one item, with `count` and the latest figures.

    `current`: Only the current decisions: the last of each kind

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/decisions",
        DecisionPage,
        query={"kind": kind, "current": current, "limit": limit, "cursor": cursor},
    )


def list_delegated_plans(
    *,
    table_id: str | None = None,
    state: list[PlanState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[PlanPage]:
    """List the plans that writers have delegated, newest first.

    `state=unregistered` lists the tables that wait to be registered.

    `state`: May be repeated. Default: any state

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/delegated-plans",
        PlanPage,
        query={"table_id": table_id, "state": state, "limit": limit, "cursor": cursor},
    )


def list_deliveries(
    webhook_id: str, *, state: DeliveryState | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[DeliveryPage]:
    """List the deliveries to a webhook, newest first.

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError,
    WebhookNotFoundError.
    """
    return Call(
        "GET",
        f"/v1/webhooks/{segment(webhook_id)}/deliveries",
        DeliveryPage,
        query={"state": state, "limit": limit, "cursor": cursor},
    )


def list_event_types() -> Call[EventTypeList]:
    """List the types of events.

    Returns each type with the JSON Schema of its `data` and an example of the whole event.

    Raises DatabaseUnavailableError, ForbiddenError, UnauthenticatedError.
    """
    return Call("GET", "/v1/event-types", EventTypeList)


def list_incidents(
    *,
    table_id: str | None = None,
    kind: IncidentKind | None = None,
    state: list[IncidentState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[IncidentPage]:
    """List incidents, newest first.

    `kind`: `late-files`: files of a fenced write; `damage`: found by a diagnosis

    `state`: May be repeated. Default: any state

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/incidents",
        IncidentPage,
        query={"table_id": table_id, "kind": kind, "state": state, "limit": limit, "cursor": cursor},
    )


def list_incidents_of_table(
    table_id: str,
    *,
    kind: IncidentKind | None = None,
    state: list[IncidentState] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[IncidentPage]:
    """List the incidents of a table, newest first.

    `kind`: `late-files`: files of a fenced write; `damage`: found by a diagnosis

    `state`: May be repeated. Default: any state

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/incidents",
        IncidentPage,
        query={"kind": kind, "state": state, "limit": limit, "cursor": cursor},
    )


def list_jobs(
    *,
    table_id: str | None = None,
    kind: JobKind | None = None,
    state: JobState | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[JobPage]:
    """List jobs, newest first.

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/jobs",
        JobPage,
        query={"table_id": table_id, "kind": kind, "state": state, "limit": limit, "cursor": cursor},
    )


def list_policies() -> Call[PatternPolicyList]:
    """List the policies of patterns.

    Raises DatabaseUnavailableError, ForbiddenError, UnauthenticatedError.
    """
    return Call("GET", "/v1/policies", PatternPolicyList)


def list_problems(
    *,
    table_id: str | None = None,
    kind: list[StandingKind] | None = None,
    severity: list[Severity] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[StandingProblemPage]:
    """List what is wrong now, the most serious first.

    Computed from what the service knows: tables are not read for it. Equally serious problems are listed oldest
    first.

    `table_id`: Only the problems of this table

    `kind`: May be repeated. Default: any kind

    `severity`: May be repeated. Default: any

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/problems",
        StandingProblemPage,
        query={"table_id": table_id, "kind": kind, "severity": severity, "limit": limit, "cursor": cursor},
    )


def list_tables(*, limit: int | None = None, cursor: str | None = None) -> Call[TablePage]:
    """List the registered tables.

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/tables", TablePage, query={"limit": limit, "cursor": cursor})


def list_webhooks(*, limit: int | None = None, cursor: str | None = None) -> Call[WebhookPage]:
    """List the webhooks.

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/webhooks", WebhookPage, query={"limit": limit, "cursor": cursor})


def list_workers() -> Call[WorkerList]:
    """List the workers, most recently seen first.

    Leaves out workers that were not seen for a day.

    Raises DatabaseUnavailableError, ForbiddenError, UnauthenticatedError.
    """
    return Call("GET", "/v1/workers", WorkerList)


def log_in() -> Call[SessionOut]:
    """Log in: exchange a token for a cookie.

    Send the token as `Authorization: Bearer <token>`. The answer sets a cookie for the dashboard, which ends
    after GROUNDSKEEPER_SESSION_HOURS, with the token, or when you log out. Other clients send their token with
    each call.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, LoginUnencryptedError, NoLoginError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/session", SessionOut)


def log_out() -> Call[None]:
    """Log out: end the session of the cookie.

    A copy of the cookie is worth nothing afterwards. Without a session it changes nothing.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, RequestTooLargeError, ServiceBusyError,
    UnauthenticatedError.
    """
    return Call("DELETE", "/v1/session", NoneType)


def pause(body: PauseIn | None = None) -> Call[PauseOut]:
    """Pause automatic jobs on all tables.

    Withdraws automatic jobs that wait for their first worker; those that have begun go on. Posting still works.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("PUT", "/v1/pause", PauseOut, body=body)


def put_consumer(table_id: str, name: str, body: ConsumerIn) -> Call[ConsumerOut]:
    """Report how far a consumer has come.

    Registers the consumer, or renews it. What was cleaned before is not brought back by an earlier instant.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("PUT", f"/v1/tables/{segment(table_id)}/consumers/{segment(name)}", ConsumerOut, body=body)


def put_policy(pattern: str, body: PatternPolicyIn) -> Call[PatternPolicyOut]:
    """Set the policy of all tables whose name matches.

    Replaces the previous policy. Members that are left out come from weaker patterns, or from the defaults.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("PUT", f"/v1/policies/{segment(pattern)}", PatternPolicyOut, body=body)


def put_table_policy(table_id: str, body: PolicyIn) -> Call[EffectivePolicyOut]:
    """Set the policy of one table.

    Replaces the previous policy of this table, and returns the new effective one.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("PUT", f"/v1/tables/{segment(table_id)}/policy", EffectivePolicyOut, body=body)


def register_table(body: TableIn) -> Call[TableOut]:
    """Register a Hudi table.

    Detects the table's properties, and verifies its bucket index on sampled record keys. Only reads the table.

    Raises BucketIndexContradictedError, DatabaseUnavailableError, FlinkHostNotAllowedError, ForbiddenError,
    JsonRequiredError, LockUnavailableError, NotAHudiTableError, OptionNotAllowedError, ParamsInvalidError,
    PathNotAllowedError, PathNotFoundError, RequestTooLargeError, SecretKeyMissingError, ServiceBusyError,
    StorageError, StorageNotSupportedError, TableAlreadyRegisteredError, TableNotSupportedError,
    TooManyReadsError, UnauthenticatedError.
    """
    return Call("POST", "/v1/tables", TableOut, body=body)


def replay_delivery(delivery_id: str) -> Call[DeliveryOut]:
    """Send an event again.

    Keeps the `webhook-id`, and starts a new schedule of attempts.

    Raises DatabaseUnavailableError, DeliveryNotFoundError, ForbiddenError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError.
    """
    return Call("POST", f"/v1/deliveries/{segment(delivery_id)}/replay", DeliveryOut)


def replay_webhook(webhook_id: str, body: ReplayIn) -> Call[ReplayOut]:
    """Send missed events to a webhook.

    Sends events that were given up, and those from before the webhook was created or while it was disabled.
    Does not touch pending deliveries, so a repeated call sends nothing twice.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/replay", ReplayOut, body=body)


def resume() -> Call[None]:
    """End the pause.

    Decides about every table anew, and starts a few jobs at a time.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, RequestTooLargeError, ServiceBusyError,
    UnauthenticatedError.
    """
    return Call("DELETE", "/v1/pause", NoneType)


def rotate_webhook_secret(webhook_id: str) -> Call[WebhookCreated]:
    """Give a webhook a new secret.

    For a day messages carry the signatures of both secrets.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, SecretKeyMissingError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/rotate-secret", WebhookCreated)


def submit_job(table_id: str, body: SubmitJobBody, *, idempotency_key: str | None = None) -> Call[JobOut]:
    """Submit a job.

    Queues the job; a worker starts it within moments. `Location` is the job's URL.

    `idempotency_key`: The same key on the same table returns the same job

    Raises DatabaseUnavailableError, FenceLosesFlinkBatchesError, ForbiddenError, IdempotencyKeyReusedError,
    IncidentOpenError, JobConflictError, JsonRequiredError, MetastoreNotAllowedError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, RequestTooLargeError, SecretUnreadableError, ServiceBusyError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call(
        "POST", f"/v1/tables/{segment(table_id)}/jobs", JobOut, headers={"idempotency-key": idempotency_key}, body=body
    )


def test_webhook(webhook_id: str) -> Call[DeliveryOut]:
    """Send a test event to a webhook.

    Sends one event of the type `webhook.test` once; GET /v1/deliveries/{id} shows the outcome.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/test", DeliveryOut)


def unregister_table(table_id: str) -> Call[None]:
    """Unregister a table.

    Deletes the registration and the ended jobs. Does not touch the table's data.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, TableBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/tables/{segment(table_id)}", NoneType)
