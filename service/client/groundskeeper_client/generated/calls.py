"""The calls of the API. Generated from its OpenAPI document by `python -m service.client.generator`."""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from typing import Literal

from groundskeeper_client.call import Call, segment
from groundskeeper_client.generated.models import (
    AcknowledgementIn,
    AcknowledgementOut,
    AdviceIn,
    AdviceList,
    AdviceOut,
    AdviceState,
    ArchivalIn,
    AuditIn,
    AuditPage,
    BrokenLockOut,
    BucketContractionIn,
    BucketCountIn,
    BucketExpansionIn,
    BucketResizeIn,
    BucketsOut,
    BulkOut,
    CalendarOut,
    CallbackIn,
    CallbackOut,
    CatalogList,
    CatalogOut,
    CatalogReport,
    CatalogSyncIn,
    CleaningIn,
    ClusteringIn,
    CommitPage,
    CompactionIn,
    ComparedShadowOut,
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
    DiscoverIn,
    DiscoveryOut,
    EffectivePolicyOut,
    EvaluationOut,
    EventTypeList,
    FinishExpansionIn,
    FreezeIn,
    FreezeList,
    FreezeOut,
    GroupBy,
    Health,
    HealthOut,
    HealthProblemPage,
    HeldLockOut,
    HistoryOut,
    IncidentCloseIn,
    IncidentKind,
    IncidentOut,
    IncidentPage,
    IncidentState,
    IndexIn,
    JobDetail,
    JobKind,
    JobLog,
    JobOut,
    JobPage,
    JobsOfTables,
    JobState,
    LabelsOfTables,
    LearnedCostList,
    LineageEventIn,
    LineageOut,
    ListedPolicyList,
    LogLevel,
    LogOutOut,
    MetadataTableIn,
    NotificationDetail,
    NotificationIn,
    NotificationList,
    NotificationOut,
    NotificationPut,
    Order,
    Outcome,
    OutcomesOutcomeOut,
    Overview,
    ParamsBucketIndexIn,
    PartitionTtlIn,
    PatternPolicyIn,
    PatternPolicyOut,
    PauseIn,
    PauseOut,
    PlanPage,
    PlanState,
    PolicyIn,
    PolicyOfTables,
    PollOut,
    PreviewIn,
    PreviewOut,
    ProblemKind,
    ProblemsOfTables,
    ProblemType,
    ProblemTypeList,
    Readiness,
    RepairIn,
    ReplayIn,
    ReplayOut,
    ReportReportOut,
    RestoreIn,
    RollbackIn,
    SavepointIn,
    SessionOut,
    SetOfTables,
    Severity,
    ShadowList,
    ShadowOut,
    SimulateIn,
    SimulationOut,
    SnapshotOut,
    SnoozeIn,
    SyncIn,
    TableAdviceOut,
    TableChange,
    TableDetected,
    TableIn,
    TableOut,
    TablePage,
    TableState,
    TableType,
    TimelineOut,
    TrendOut,
    UpgradeIn,
    Verdict,
    WebhookChange,
    WebhookCreated,
    WebhookDetail,
    WebhookIn,
    WebhookOut,
    WebhookPage,
    WorkerList,
    WorkerState,
    WriterEngine,
    WriterOptionsOut,
    WritersStopped,
)

ChangeTablesBody = SetOfTables | ProblemsOfTables | PolicyOfTables | LabelsOfTables | JobsOfTables


SubmitJobBody = (
    CompactionIn
    | CleaningIn
    | ClusteringIn
    | BucketExpansionIn
    | BucketContractionIn
    | BucketCountIn
    | BucketResizeIn
    | ParamsBucketIndexIn
    | FinishExpansionIn
    | RepairIn
    | ArchivalIn
    | PartitionTtlIn
    | SavepointIn
    | RestoreIn
    | RollbackIn
    | MetadataTableIn
    | IndexIn
    | UpgradeIn
    | SyncIn
    | AuditIn
    | DiagnosisIn
)


def acknowledge_problem(problem_id: str, body: AcknowledgementIn) -> Call[AcknowledgementOut]:
    """Acknowledge one problem.

    Marks the problem as known until it ends or becomes more serious, but no longer than `until`. An earlier
    acknowledgement is replaced. Meanwhile notifications do not report the problem, and PagerDuty gets
    `acknowledge` for its alert.

    Raises BodyNotJsonError, DatabaseUnavailableError, FleetUnavailableError, ForbiddenError,
    ParamsInvalidError, ProblemNotStandingError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("PUT", f"/v1/problems/{segment(problem_id)}/acknowledgement", AcknowledgementOut, body=body)


def break_lock(table_id: str, *, reason: str, lock_id: str | None = None) -> Call[BrokenLockOut]:
    """Break a lock that a dead writer has left.

    Removes the file of a lock that never ends by itself. The lock must be older than the limit, no writer may
    have a current heartbeat, and no job of this service may hold the lock. **If the holder is only slow, it
    would then write at the same time as others**, so the limit has to be far longer than any pause of a writer.

    `reason`: How you know that the holder is dead; stored in the audit trail

    `lock_id`: Break only the lock with this `id`

    Raises DatabaseUnavailableError, ForbiddenError, LockChangedError, LockEndsByItselfError, LockFreeError,
    LockHeldByJobError, LockNotRemovableError, LockTooYoungError, NotAHudiTableError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PathNotFoundError, RequestTooLargeError, ServiceBusyError,
    StorageError, StorageNotSupportedError, TableNotFoundError, TableNotSupportedError, TooManyReadsError,
    UnauthenticatedError, WritersAliveError.
    """
    return Call(
        "DELETE", f"/v1/tables/{segment(table_id)}/lock", BrokenLockOut, query={"reason": reason, "lock_id": lock_id}
    )


def cancel_job(job_id: str) -> Call[JobOut]:
    """Cancel a job.

    Cancels a queued job at once. The worker of a running job learns of it within seconds, and cleans up first.

    Raises DatabaseUnavailableError, ForbiddenError, JobAlreadyEndedError, JobNotFoundError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/jobs/{segment(job_id)}/cancel", JobOut)


def change_table(table_id: str, body: TableChange, *, if_match: str | None = None) -> Call[TableOut]:
    """Change the declarations of a table.

    Verifies a new index on sampled record keys before it takes effect.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises BodyNotJsonError, BucketIndexContradictedError, ChangedMeanwhileError, DatabaseUnavailableError,
    FlinkHostNotAllowedError, ForbiddenError, LockUnavailableError, OptionNotAllowedError, ParamsInvalidError,
    PathNotAllowedError, RequestTooLargeError, SecretKeyMissingError, ServiceBusyError, StorageError,
    TableNotFoundError, TooManyReadsError, UnauthenticatedError.
    """
    return Call("PATCH", f"/v1/tables/{segment(table_id)}", TableOut, headers={"If-Match": if_match}, body=body)


def change_tables(body: ChangeTablesBody) -> Call[BulkOut]:
    """Do the same with many tables.

    Each table is changed in a separate transaction, so that a refusal of one does not affect the others. A
    repeated call changes nothing more. A job that is still active from the first call is not submitted again,
    but refused as `job-conflict`.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/tables/bulk", BulkOut, body=body)


def change_webhook(webhook_id: str, body: WebhookChange, *, if_match: str | None = None) -> Call[WebhookOut]:
    """Change a webhook.

    Pending deliveries go to the new URL, with the new headers.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    HeaderNotAllowedError, KafkaNotInstalledError, NotificationNeededError, ParamsInvalidError,
    RequestTooLargeError, SecretKeyMissingError, ServiceBusyError, UnauthenticatedError, UrlNotAllowedError,
    WebhookNotFoundError, WebhookOfNotificationError.
    """
    return Call("PATCH", f"/v1/webhooks/{segment(webhook_id)}", WebhookOut, headers={"If-Match": if_match}, body=body)


def close_incident(incident_id: str, body: IncidentCloseIn) -> Call[IncidentOut]:
    """Close an incident by hand.

    Sets the state to `cleared`. The incident will not be repaired. Cleaning resumes, and may delete the files
    that a repair needs. The incident's `because` then names the caller and the reason.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, IncidentAlreadyClosedError,
    IncidentNotFoundError, JsonRequiredError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError,
    UnauthenticatedError.
    """
    return Call("POST", f"/v1/incidents/{segment(incident_id)}/close", IncidentOut, body=body)


def confirm_writers_stopped(job_id: str, body: WritersStopped | None = None) -> Call[JobOut]:
    """Confirm that the writers were stopped for a job that waits for this.

    Lets the job go on. Confirm only when every Flink job that writes the table has ended. A repeated call
    changes nothing.

    Raises BodyNotJsonError, DatabaseUnavailableError, FlinkStateReturnsError, ForbiddenError, JobNotFoundError,
    JobNotWaitingError, JsonRequiredError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError,
    UnauthenticatedError.
    """
    return Call("POST", f"/v1/jobs/{segment(job_id)}/writers-stopped", JobOut, body=body)


def create_webhook(body: WebhookIn) -> Call[WebhookCreated]:
    """Create a webhook: send events to a URL, or write them to a Kafka topic.

    Sends CloudEvents 1.0, signed as in Standard Webhooks with `secret`, which only this answer shows. Each
    event is delivered at least once, with the same `webhook-id` in every attempt. The events of a table are
    sent in their order.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, HeaderNotAllowedError, JsonRequiredError,
    KafkaNotInstalledError, NotificationNeededError, ParamsInvalidError, RequestTooLargeError,
    SecretKeyMissingError, ServiceBusyError, UnauthenticatedError, UrlNotAllowedError.
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

    Stores the plans. A repeated request changes nothing. If a request was lost, the next one is enough, because
    each request names all pending plans. The URI in the writer's option has the credentials,
    `http://writer:<token>@...`: the callback key if the service has one, otherwise any token.

    `action`: Always `REQUEST`

    `basepath`: Base path of the table, as the writer spells it

    `instant`: All pending instants, separated by commas

    `table_name`: Name of the table

    `queue`: What the writer asks for; ignored if the value is not valid

    `resource`: What the writer asks for; ignored if the value is not valid

    `parallelism`: What the writer asks for; ignored if the value is not valid

    `execution_engine`: What the writer asks for; ignored if the value is not valid

    `username`: What the writer asks for; ignored if the value is not valid

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


def delete_consumer(table_id: str, name: str, *, if_match: str | None = None) -> Call[None]:
    """Delete a consumer, so that no files are kept for it.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, ConsumerNotFoundError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call(
        "DELETE", f"/v1/tables/{segment(table_id)}/consumers/{segment(name)}", NoneType, headers={"If-Match": if_match}
    )


def delete_freeze(name: str, *, if_match: str | None = None) -> Call[None]:
    """Delete a freeze, which ends it.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, FreezeNotFoundError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/freezes/{segment(name)}", NoneType, headers={"If-Match": if_match})


def delete_notification(name: str, *, if_match: str | None = None) -> Call[None]:
    """Delete a notification and its messages.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, NotificationNotFoundError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/notifications/{segment(name)}", NoneType, headers={"If-Match": if_match})


def delete_policy(pattern: str, *, if_match: str | None = None) -> Call[None]:
    """Delete the policy of a pattern.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    PolicyNotFoundError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/policies/{segment(pattern)}", NoneType, headers={"If-Match": if_match})


def delete_shadow(pattern: str, *, if_match: str | None = None) -> Call[None]:
    """End a shadow.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, ShadowNotFoundError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/policy-shadows/{segment(pattern)}", NoneType, headers={"If-Match": if_match})


def delete_table_policy(table_id: str, *, if_match: str | None = None) -> Call[None]:
    """Delete the policy of one table.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    PolicyNotFoundError, RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/tables/{segment(table_id)}/policy", NoneType, headers={"If-Match": if_match})


def delete_webhook(webhook_id: str, *, if_match: str | None = None) -> Call[None]:
    """Delete a webhook and its deliveries.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError,
    WebhookOfNotificationError.
    """
    return Call("DELETE", f"/v1/webhooks/{segment(webhook_id)}", NoneType, headers={"If-Match": if_match})


def detect_table(body: TableIn) -> Call[TableDetected]:
    """Show what a registration would find.

    Reads the table as a registration does, with the same refusals, and stores nothing.

    Raises BodyNotJsonError, BucketIndexContradictedError, DatabaseUnavailableError, FlinkHostNotAllowedError,
    ForbiddenError, JsonRequiredError, LockUnavailableError, NotAHudiTableError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PathNotFoundError, RequestTooLargeError, ServiceBusyError,
    StorageError, StorageNotSupportedError, TableNotSupportedError, TooManyReadsError, UnauthenticatedError.
    """
    return Call("POST", "/v1/tables/detect", TableDetected, body=body)


def disable_webhook(webhook_id: str) -> Call[WebhookOut]:
    """Disable a webhook.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/disable", WebhookOut)


def discover_tables(body: DiscoverIn) -> Call[DiscoveryOut]:
    """Find the tables below a folder, and register them.

    Without `register`, the call only reads. If a table cannot be registered, it is listed with the reason, and
    the others are still registered. Policies act on each registered table at once, so its writers must take the
    given lock.

    Raises BodyNotJsonError, BucketIndexContradictedError, DatabaseUnavailableError, FlinkHostNotAllowedError,
    ForbiddenError, JsonRequiredError, LockUnavailableError, NotAHudiTableError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PathNotFoundError, RequestTooLargeError, SecretKeyMissingError,
    ServiceBusyError, StorageError, StorageNotSupportedError, TableNotSupportedError, TooManyReadsError,
    UnauthenticatedError.
    """
    return Call("POST", "/v1/discover", DiscoveryOut, body=body)


def download_job_log(job_id: str, *, level: LogLevel | None = None) -> Call[str]:
    """Download the log of a job.

    Returns all lines that are kept, the oldest first, as a file that is named after the job.

    `level`: Only lines of this level and above

    Raises DatabaseUnavailableError, ForbiddenError, JobNotFoundError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/jobs/{segment(job_id)}/log.txt", str, query={"level": level})


def enable_webhook(webhook_id: str) -> Call[WebhookOut]:
    """Enable a webhook, and retry pending deliveries at once.

    Events that were published while it was disabled are not sent; a replay sends them.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/enable", WebhookOut)


def evaluate_table(table_id: str) -> Call[EvaluationOut]:
    """Show the decisions that a table would get now.

    Starts nothing and stores nothing.

    Raises DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/tables/{segment(table_id)}/evaluate", EvaluationOut)


def explain_problem(name: str) -> Call[ProblemType]:
    """Explain a type of problem.

    Explains what the problem means, why it happens and what to do, with an example. The `type` of each problem
    document is the address of such a page.

    Raises ParamsInvalidError, RouteNotFoundError.
    """
    return Call("GET", f"/problems/{segment(name)}", ProblemType)


def get_advice(table_id: str) -> Call[TableAdviceOut]:
    """Show the advice about a table and its index, and how its buckets grow.

    The `ETag` identifies the table's own policy, to which the advice is applied.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/advice", TableAdviceOut)


def get_buckets(table_id: str, *, partitions: int | None = None) -> Call[BucketsOut]:
    """Show the size of each bucket.

    Returns bytes, rows and skew of the buckets of each partition.

    `partitions`: Maximum number of partitions, largest first

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, SnapshotNotTakenError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/buckets", BucketsOut, query={"partitions": partitions})


def get_calendar(*, since: datetime, until: datetime) -> Call[CalendarOut]:
    """Show freezes and maintenance windows of some days.

    `since`: Begin of the period

    `until`: End of the period, at most 35 days later

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/calendar", CalendarOut, query={"since": since, "until": until})


def get_catalog(name: str) -> Call[CatalogOut]:
    """Show a catalog and its last sync.

    Raises CatalogNotFoundError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/catalogs/{segment(name)}", CatalogOut)


def get_consumer(table_id: str, name: str) -> Call[ConsumerOut]:
    """Show a consumer.

    Raises ConsumerNotFoundError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/consumers/{segment(name)}", ConsumerOut)


def get_cost_model() -> Call[LearnedCostList]:
    """Show what is learned about the cost of jobs, and its error by kind.

    The model learns from the last 50 000 attempts. A restart does not change the model.

    Raises DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", "/v1/models/cost", LearnedCostList)


def get_delivery(delivery_id: str) -> Call[DeliveryOut]:
    """Show a delivery and its attempts.

    Raises DatabaseUnavailableError, DeliveryNotFoundError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/deliveries/{segment(delivery_id)}", DeliveryOut)


def get_demand(*, group: list[str] | None = None) -> Call[DemandByGroup]:
    """Show the demand of each worker group, for a scaler.

    A `group` in the query is listed even if it has neither jobs nor workers. A scaler can compute the number of
    workers from a group's `wanted_slots`, with the slots of one worker as the target value.

    `group`: Worker group; may be repeated

    Raises DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", "/v1/workers/demand", DemandByGroup, query={"group": group})


def get_freeze(name: str) -> Call[FreezeOut]:
    """Show a freeze.

    Raises DatabaseUnavailableError, ForbiddenError, FreezeNotFoundError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/freezes/{segment(name)}", FreezeOut)


def get_history(
    table_id: str, *, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
) -> Call[HistoryOut]:
    """Show how a table's backlog and files have developed.

    Returns samples of polls that found the timeline changed: at most one for each five minutes of the last day,
    for each hour of the last 30 days, and for each day before.

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Number of samples, the newest of the period

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/history",
        HistoryOut,
        query={"since": since, "until": until, "limit": limit},
    )


def get_job(job_id: str, *, wait_seconds: float | None = None) -> Call[JobDetail]:
    """Show a job, its attempts, and what it waits for.

    To wait for the end of the job, call with `wait_seconds` and repeat the call until `state` is `succeeded`,
    `failed` or `cancelled`.

    `wait_seconds`: Delays the answer until the job has ended, but at most this long

    Raises DatabaseUnavailableError, ForbiddenError, JobNotFoundError, ParamsInvalidError, TooManyWaitsError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/jobs/{segment(job_id)}", JobDetail, query={"wait_seconds": wait_seconds})


def get_job_log(
    job_id: str,
    *,
    level: LogLevel | None = None,
    format: Literal["json", "text"] | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[JobLog]:
    """Read the log of a job.

    Returns the lines of all attempts, the oldest first: all lines of the worker, and warnings and errors of its
    JVM. A worker sends lines with its heartbeats, so the last second of a killed worker may be missing. The
    newest MiB of lines is kept as long as the job.

    `level`: Only lines of this level and above

    `format`: Default: text if `Accept` names `text/plain`, else json

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` or `position` of an earlier answer

    Raises DatabaseUnavailableError, ForbiddenError, JobNotFoundError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/jobs/{segment(job_id)}/log",
        JobLog,
        query={"level": level, "format": format, "limit": limit, "cursor": cursor},
    )


def get_lineage_facet_schema() -> Call[dict[str, object]]:
    """Read the JSON Schema of the OpenLineage facet `groundskeeper_job`.

    The `_schemaURL` of the facet is the `$id` of this schema.

    Raises ParamsInvalidError.
    """
    return Call("GET", "/openlineage/groundskeeper_job.json", dict[str, object])


def get_lock(table_id: str) -> Call[HeldLockOut]:
    """Show the table's lock, and who may hold it.

    Reads the storage of the table: the file of the lock, the heartbeats and the timeline. Takes no lock.

    Raises DatabaseUnavailableError, ForbiddenError, NotAHudiTableError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PathNotFoundError, StorageError, StorageNotSupportedError,
    TableNotFoundError, TableNotSupportedError, TooManyReadsError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/lock", HeldLockOut)


def get_metrics() -> Call[str]:
    """Show the metrics in the text format of Prometheus.

    Needs the role reader, unless `GROUNDSKEEPER_OPEN_METRICS` is set. An answer is computed at most once a
    second; calls get the last answer if it is at most two seconds old.

    Raises DatabaseUnavailableError, ForbiddenError, NotReadyError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/metrics", str)


def get_notification(name: str) -> Call[NotificationDetail]:
    """Show a notification, and the open problems that it has reported.

    `GET /v1/webhooks/{id}/deliveries` lists its messages with the receiver's answers. `GET
    /v1/events?types=notification.*` has the content of the messages.

    Raises DatabaseUnavailableError, ForbiddenError, NotificationNotFoundError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/notifications/{segment(name)}", NotificationDetail)


def get_outcome(table_id: str) -> Call[OutcomesOutcomeOut]:
    """Show what reads of a table cost, and whether its objective is kept.

    An overhead is the cost of a read now, divided by its cost right after a compaction.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/outcome", OutcomesOutcomeOut)


def get_overview(
    *,
    q: str | None = None,
    health: list[Health] | None = None,
    kind: list[ProblemKind] | None = None,
    table_type: list[TableType] | None = None,
    state: list[TableState] | None = None,
    sort: Order | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    brief: bool | None = None,
    owner: list[str] | None = None,
    tag: list[str] | None = None,
) -> Call[Overview]:
    """Show the state of everything, and a page of tables with their last jobs.

    Returns all data of the dashboard's first page. The filter and the order apply to the tables. Problems and
    backlogs are some seconds old. If there are many thousands of tables, their list is also some seconds old,
    so that a call takes milliseconds. After a pause of some minutes, the first call then gets problems that are
    minutes old.

    `q`: A part of the name or path, in upper or lower case

    `health`: The most serious problem. May be repeated. Default: any

    `kind`: A problem of this kind. May be repeated. Default: any

    `table_type`: May be repeated. Default: any

    `state`: May be repeated. Default: any

    `sort`: `problems`: the most serious first; `backlog`: the most bytes of logs first; `ratio`: the most logs
    beside their base files first; `commit`: the last commit first; `silent`: the longest without a commit
    first; `registered`: the newest first

    `limit`: Maximum number of tables on a page

    `cursor`: `next_cursor` of the previous page

    `brief`: Shortens the answer to about half of its bytes: `problems.items` is empty, `jobs.items` has at most
    20 jobs, and each table has its most serious problem and its last 4 jobs

    `owner`: Only tables of this owner. May be repeated: any of these owners

    `tag`: Only tables with this tag: `key`, or `key=value`. May be repeated: all of these tags

    Raises DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/overview",
        Overview,
        query={
            "q": q,
            "health": health,
            "kind": kind,
            "table_type": table_type,
            "state": state,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
            "brief": brief,
            "owner": owner,
            "tag": tag,
        },
    )


def get_pause() -> Call[PauseOut]:
    """Show whether automatic jobs are paused.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/pause", PauseOut)


def get_policy(pattern: str) -> Call[PatternPolicyOut]:
    """Show the policy of a pattern.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, PolicyNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/policies/{segment(pattern)}", PatternPolicyOut)


def get_report(
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    by: GroupBy | None = None,
    limit: int | None = None,
    owner: list[str] | None = None,
    tag: list[str] | None = None,
) -> Call[ReportReportOut]:
    """Sum up the work of the service in a period, and its cost.

    Counts the attempts that ended in the period from `since` to `until` (exclusive). The default is the last
    seven days; at most 366 days are possible. Figures are kept for GROUNDSKEEPER_SAMPLE_DAYS, which is longer
    than jobs are kept.

    `since`: Only items from this time on

    `until`: Before this time

    `by`: How the figures are grouped

    `limit`: Maximum number of items on a page

    `owner`: Only tables of this owner. May be repeated: any of these owners

    `tag`: Only tables with this tag: `key`, or `key=value`. May be repeated: all of these tags

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/report",
        ReportReportOut,
        query={"since": since, "until": until, "by": by, "limit": limit, "owner": owner, "tag": tag},
    )


def get_session() -> Call[SessionOut]:
    """Show who you are.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/session", SessionOut)


def get_shadow(pattern: str) -> Call[ComparedShadowOut]:
    """Compare a shadow with the real policy.

    The policy and the shadow decide about the commits since the shadow has started, or about those of the last
    week. The call takes seconds, or a minute for very many commits.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, ShadowNotFoundError,
    SimulationTooLargeError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/policy-shadows/{segment(pattern)}", ComparedShadowOut)


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

    Returns all levels merged, and the source of each value. The `ETag` identifies the table's own policy.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/policy", EffectivePolicyOut)


def get_timeline(table_id: str) -> Call[TimelineOut]:
    """Show a table's active timeline.

    Reads the table's storage now. Pending instants have their age and heartbeat.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, PathNotAllowedError, PathNotFoundError,
    StorageError, TableNotFoundError, TooManyReadsError, UnauthenticatedError.
    """
    return Call("GET", f"/v1/tables/{segment(table_id)}/timeline", TimelineOut)


def get_trend(*, since: datetime | None = None, until: datetime | None = None) -> Call[TrendOut]:
    """Show how the fleet has developed.

    Shows backlog, ended jobs, use of slots and freed bytes in at most 200 steps. The default period is the last
    seven days; at most 366 days are possible. All tables are sampled every five minutes.

    `since`: Only items from this time on

    `until`: Before this time

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/report/trend", TrendOut, query={"since": since, "until": until})


def get_webhook(webhook_id: str) -> Call[WebhookDetail]:
    """Show a webhook.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError,
    WebhookNotFoundError.
    """
    return Call("GET", f"/v1/webhooks/{segment(webhook_id)}", WebhookDetail)


def get_writer_options(
    table_id: str,
    *,
    engine: WriterEngine | None = None,
    services: Literal["none", "delegated"] | None = None,
    hudi_version: str | None = None,
) -> Call[WriterOptionsOut]:
    """Show the options that a writer of a table needs.

    Returns the options for writing beside this service: concurrency control with the table's own lock, the
    callback, no inline services, the bucket index. The options have the engine's own names; for Flink and Spark
    SQL the answer has SQL too.

    `engine`: The writer's engine

    `services`: `delegated`: the writer plans compactions, and delegates them by Hudi's own protocol

    `hudi_version`: Only options that this version of Hudi knows, under its names. Default: the declared version
    of the table's writers, or 1.2.0

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/writer-options",
        WriterOptionsOut,
        query={"engine": engine, "services": services, "hudi_version": hudi_version},
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
    hudi_version: str | None = None,
) -> Call[WriterOptionsOut]:
    """Show the options for a table that does not exist yet.

    Returns the same as for a registered table, and in addition the options that the first write fixes for good.
    Does not read storage.

    `engine`: The writer's engine

    `base_path`: The table's base path, an absolute path or a URI

    `table_name`: Name of the table

    `table_type`: Type of the new table

    `record_key`: Columns, separated by commas

    `partition_by`: Columns, separated by commas

    `ordering_fields`: Columns, separated by commas

    `num_buckets`: For a bucket index

    `hash_fields`: Default: the record key

    `lock_provider`: `filesystem`, `zookeeper`, or the full name of a Hudi LockProvider class

    `services`: `delegated`: the writer plans compactions, and delegates them by Hudi's own protocol

    `hudi_version`: Only options that this version of Hudi knows, under its names. Default: the declared version
    of the table's writers, or 1.2.0

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
            "hudi_version": hudi_version,
        },
    )


def hudi_callback(body: CallbackIn, *, hudi_callback_key: str | None = None) -> Call[CallbackOut]:
    """Report a writer's commit.

    Accepts the HTTP commit callback of Hudi and requests a poll of the table, without waiting for the poll.

    `hudi_callback_key`: Required if the service has a callback key

    Raises BodyNotJsonError, CallbackUnknownTableError, DatabaseUnavailableError, ForbiddenError,
    JsonRequiredError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/callbacks/hudi", CallbackOut, headers={"hudi-callback-key": hudi_callback_key}, body=body)


def is_alive() -> Call[HealthOut]:
    """Check that the process is alive.

    Raises ParamsInvalidError.
    """
    return Call("GET", "/healthz", HealthOut)


def is_ready() -> Call[Readiness]:
    """Check that the database can be used, and that no background task fails or stands still.

    Writes to the database and commits, at most once a second; calls in between get the last outcome. An SQLite
    database must also be intact, still be the file that was opened, and have space left on its disk. `checks`
    says what was found, even if the status is 503. A service without workers is ready, because it takes calls.

    Raises DatabaseDamagedError, DatabaseUnavailableError, NotReadyError, ParamsInvalidError.
    """
    return Call("GET", "/readyz", Readiness)


def list_advice(*, state: AdviceState | None = None, limit: int | None = None) -> Call[AdviceList]:
    """List the advice about tables.

    Advice is computed in the background, for each table once a day, from the commits of a week.

    `state`: Only advice in this state

    `limit`: Most items

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/advice", AdviceList, query={"state": state, "limit": limit})


def list_audit_entries(
    *,
    who: str | None = None,
    token_id: str | None = None,
    operation: list[str] | None = None,
    object_type: list[str] | None = None,
    object_id: str | None = None,
    outcome: list[Outcome] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[AuditPage]:
    """List who changed what, newest first.

    Lists an entry for every call that changed something or was refused, except the frequent calls of workers
    and writers. Creating or revoking a token on the command line adds an entry too. An entry is written in the
    same transaction as the change.

    `who`: Name of the token of the caller

    `token_id`: Id of the token of the caller

    `operation`: `operationId` of the call. May be repeated. Default: any

    `object_type`: Type of the object that was changed, such as `table`. May be repeated. Default: any

    `object_id`: Id of the object that was changed

    `outcome`: `done`, `refused` (status 400 to 499) or `failed` (500 and above). May be repeated. Default: any

    `since`: Only items from this time on

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


def list_catalogs() -> Call[CatalogList]:
    """List the catalogs.

    The catalogs are declared by the setting GROUNDSKEEPER_CATALOGS.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/catalogs", CatalogList)


def list_commits(
    *,
    table_id: str | None = None,
    action: list[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[CommitPage]:
    """List commits, latest first.

    Lists the completed instants of all tables, by writers and table services, in the order of completion.

    `table_id`: Only items of the table with this id

    `action`: May be repeated. Default: any

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/commits",
        CommitPage,
        query={
            "table_id": table_id,
            "action": action,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
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
    kind: list[JobKind] | None = None,
    verdict: list[Verdict] | None = None,
    current: bool | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DecisionPage]:
    """List the decisions about a table, newest first.

    If the same decision was made several times in a row, it is one item, with `count` and the latest figures.
    `since` and `until` select decisions that were made or repeated in this period.

    `kind`: May be repeated. Default: any

    `verdict`: May be repeated. Default: any

    `current`: Only the current decisions: the last of each kind

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, ParamsInvalidError,
    TableNotFoundError, UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/decisions",
        DecisionPage,
        query={
            "kind": kind,
            "verdict": verdict,
            "current": current,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_delegated_plans(
    *,
    table_id: str | None = None,
    state: list[PlanState] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[PlanPage]:
    """List the plans that writers have delegated, newest first.

    `state=unregistered` lists the tables that wait to be registered. `since` and `until` are times of the first
    request.

    `table_id`: Id of the table

    `state`: May be repeated. Default: any

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/delegated-plans",
        PlanPage,
        query={"table_id": table_id, "state": state, "since": since, "until": until, "limit": limit, "cursor": cursor},
    )


def list_deliveries(
    webhook_id: str,
    *,
    state: list[DeliveryState] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[DeliveryPage]:
    """List the deliveries to a webhook, newest first.

    `since` and `until` are times of the events.

    `state`: May be repeated. Default: any

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError,
    WebhookNotFoundError.
    """
    return Call(
        "GET",
        f"/v1/webhooks/{segment(webhook_id)}/deliveries",
        DeliveryPage,
        query={"state": state, "since": since, "until": until, "limit": limit, "cursor": cursor},
    )


def list_event_types() -> Call[EventTypeList]:
    """List the types of events.

    Returns each type with the JSON Schema of its `data` and an example of the whole event.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/event-types", EventTypeList)


def list_freezes() -> Call[FreezeList]:
    """List the freezes, the ended ones too.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/freezes", FreezeList)


def list_incidents(
    *,
    table_id: str | None = None,
    kind: list[IncidentKind] | None = None,
    state: list[IncidentState] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[IncidentPage]:
    """List incidents, newest first.

    `since` and `until` are times of opening.

    `table_id`: Only items of the table with this id

    `kind`: `stale-write`: rows in replaced file groups; `old-number`: rows in buckets of an old number; `late-
    files`: files of a fenced write; `damage`: found by a diagnosis. May be repeated

    `state`: May be repeated. Default: any

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/incidents",
        IncidentPage,
        query={
            "table_id": table_id,
            "kind": kind,
            "state": state,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_incidents_of_table(
    table_id: str,
    *,
    kind: list[IncidentKind] | None = None,
    state: list[IncidentState] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[IncidentPage]:
    """List the incidents of a table, newest first.

    `kind`: `stale-write`: rows in replaced file groups; `old-number`: rows in buckets of an old number; `late-
    files`: files of a fenced write; `damage`: found by a diagnosis. May be repeated

    `state`: May be repeated. Default: any

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        f"/v1/tables/{segment(table_id)}/incidents",
        IncidentPage,
        query={"kind": kind, "state": state, "since": since, "until": until, "limit": limit, "cursor": cursor},
    )


def list_jobs(
    *,
    table_id: str | None = None,
    kind: list[JobKind] | None = None,
    state: list[JobState] | None = None,
    owner: list[str] | None = None,
    tag: list[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[JobPage]:
    """List jobs, newest first.

    `since` and `until` are times of submission.

    `table_id`: Only items of the table with this id

    `kind`: May be repeated. Default: any

    `state`: May be repeated. Default: any

    `owner`: Only tables of this owner. May be repeated: any of these owners

    `tag`: Only tables with this tag: `key`, or `key=value`. May be repeated: all of these tags

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/jobs",
        JobPage,
        query={
            "table_id": table_id,
            "kind": kind,
            "state": state,
            "owner": owner,
            "tag": tag,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_notifications() -> Call[NotificationList]:
    """List the notifications.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/notifications", NotificationList)


def list_policies() -> Call[ListedPolicyList]:
    """List the policies of patterns.

    Lists each policy with the tables that have a setting from it. A table is left out if stronger patterns or
    the table's own policy replace all settings of this policy.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/policies", ListedPolicyList)


def list_problem_types() -> Call[ProblemTypeList]:
    """List the types of problems.

    Raises ParamsInvalidError.
    """
    return Call("GET", "/problems", ProblemTypeList)


def list_problems(
    *,
    table_id: str | None = None,
    kind: list[ProblemKind] | None = None,
    severity: list[Severity] | None = None,
    owner: list[str] | None = None,
    tag: list[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[HealthProblemPage]:
    """List what is wrong now, the most serious first.

    The list is computed now from what the service knows, without reading a table. So the list shows at once
    whether a remedy has helped. If there are many thousands of tables, the list is some seconds old, unless
    `table_id` names one table. The events `problem.opened` and `problem.resolved` come from a check every half
    minute. Equally serious problems are listed oldest first. `since` and `until` select problems by their own
    `since`.

    `table_id`: Only the problems of this table

    `kind`: May be repeated. Default: any

    `severity`: May be repeated. Default: any

    `owner`: Only tables of this owner. May be repeated: any of these owners

    `tag`: Only tables with this tag: `key`, or `key=value`. May be repeated: all of these tags

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, ParamsInvalidError,
    UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/problems",
        HealthProblemPage,
        query={
            "table_id": table_id,
            "kind": kind,
            "severity": severity,
            "owner": owner,
            "tag": tag,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_shadows() -> Call[ShadowList]:
    """List the shadows of policies.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call("GET", "/v1/policy-shadows", ShadowList)


def list_tables(
    *,
    name: str | None = None,
    path: str | None = None,
    owner: list[str] | None = None,
    tag: list[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[TablePage]:
    """List the registered tables, in the order of their registration.

    `since` and `until` are times of registration.

    `name`: A pattern of names with `*` and `?`, in upper or lower case

    `path`: A base path, or a folder: lists the tables below it

    `owner`: Only tables of this owner. May be repeated: any of these owners

    `tag`: Only tables with this tag: `key`, or `key=value`. May be repeated: all of these tags

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/tables",
        TablePage,
        query={
            "name": name,
            "path": path,
            "owner": owner,
            "tag": tag,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_webhooks(
    *,
    description: str | None = None,
    enabled: bool | None = None,
    failing: bool | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[WebhookPage]:
    """List the webhooks.

    `since` and `until` are times of creation.

    `description`: A pattern with `*` and `?`, in upper or lower case

    `enabled`: Only enabled webhooks, or only disabled ones

    `failing`: Only webhooks whose last delivery failed, or only those where it succeeded

    `since`: Only items from this time on

    `until`: Before this time

    `limit`: Maximum number of items on a page

    `cursor`: `next_cursor` of the previous page

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET",
        "/v1/webhooks",
        WebhookPage,
        query={
            "description": description,
            "enabled": enabled,
            "failing": failing,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_workers(
    *,
    group: list[str] | None = None,
    state: list[WorkerState] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Call[WorkerList]:
    """List the workers, most recently seen first.

    Leaves out workers that were not seen for a day. `since` and `until` are times at which a worker was last
    seen.

    `group`: Worker group; may be repeated

    `state`: May be repeated. Default: any

    `since`: Only items from this time on

    `until`: Before this time

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, UnauthenticatedError.
    """
    return Call(
        "GET", "/v1/workers", WorkerList, query={"group": group, "state": state, "since": since, "until": until}
    )


def log_in() -> Call[SessionOut]:
    """Log in: exchange a token for a cookie.

    Send the token as `Authorization: Bearer <token>`. The answer sets a cookie for the dashboard, which ends
    after GROUNDSKEEPER_SESSION_HOURS, with the token, or when you log out. Other clients send their token with
    each call.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, LoginUnencryptedError, NoLoginError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/session", SessionOut)


def log_out() -> Call[LogOutOut]:
    """Log out: end the session of the cookie.

    After this call, copies of the cookie are not valid. Without a session, the call changes nothing.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError,
    UnauthenticatedError.
    """
    return Call("DELETE", "/v1/session", LogOutOut)


def pause(body: PauseIn | None = None, *, if_match: str | None = None) -> Call[PauseOut]:
    """Pause automatic jobs on all tables.

    Withdraws automatic jobs that wait for their first worker; jobs that have begun go on. Jobs can still be
    submitted.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("PUT", "/v1/pause", PauseOut, headers={"If-Match": if_match}, body=body)


def poll_table(table_id: str) -> Call[PollOut]:
    """Have a table polled now.

    Polls the table within moments, even if its polls are delayed because they fail. Jobs that wait because
    earlier attempts failed are tried again. The table's snapshot and problems show what the poll has found.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/tables/{segment(table_id)}/poll", PollOut)


def post_lineage(body: LineageEventIn) -> Call[LineageOut]:
    """Report which tables a run reads.

    Accepts the RunEvents of OpenLineage, as Spark, Flink, Trino and Airflow send them. A run counts once for
    each table, however many events it sends. Tables are found by their path, or by their name in a catalog.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/lineage", LineageOut, body=body)


def preview_policy(body: PreviewIn) -> Call[PreviewOut]:
    """Show the effect of an edit of a pattern's policy.

    Shows the tables whose policy would change, and the jobs that would start there now. Starts nothing and
    stores nothing.

    Raises BodyNotJsonError, DatabaseUnavailableError, FleetUnavailableError, ForbiddenError, JsonRequiredError,
    ParamsInvalidError, PolicyNotFoundError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", "/v1/policy-preview", PreviewOut, body=body)


def put_advice(table_id: str, body: AdviceIn, *, if_match: str | None = None) -> Call[AdviceOut]:
    """Apply or dismiss the advice about a table.

    The service takes applied advice back if its outcome within a week is worse than expected.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises AdviceOutdatedError, BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError,
    ForbiddenError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("PUT", f"/v1/tables/{segment(table_id)}/advice", AdviceOut, headers={"If-Match": if_match}, body=body)


def put_consumer(
    table_id: str, name: str, body: ConsumerIn, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[ConsumerOut]:
    """Report how far a consumer has come.

    Registers the consumer, or renews it. An earlier instant does not bring back files that were already
    cleaned.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    `if_none_match`: `*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing
    is overwritten that somebody else has created meanwhile

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call(
        "PUT",
        f"/v1/tables/{segment(table_id)}/consumers/{segment(name)}",
        ConsumerOut,
        headers={"If-Match": if_match, "If-None-Match": if_none_match},
        body=body,
    )


def put_freeze(
    name: str, body: FreezeIn, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[FreezeOut]:
    """Start no automatic jobs on some tables from one time to another.

    Jobs that have begun go on, and jobs can still be submitted, as in a pause. The table's decisions show the
    freeze as their reason.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    `if_none_match`: `*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing
    is overwritten that somebody else has created meanwhile

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TooManyFreezesError, UnauthenticatedError.
    """
    return Call(
        "PUT",
        f"/v1/freezes/{segment(name)}",
        FreezeOut,
        headers={"If-Match": if_match, "If-None-Match": if_none_match},
        body=body,
    )


def put_notification(
    name: str, body: NotificationIn, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[NotificationPut]:
    """Create or replace a notification.

    Sends messages about problems and failed jobs, one for each cause, in the form of the target. Problems that
    are already open are reported within seconds. Links in messages use GROUNDSKEEPER_PUBLIC_URL, or else the
    address of this request.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    `if_none_match`: `*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing
    is overwritten that somebody else has created meanwhile

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    HeaderNotAllowedError, ParamsInvalidError, RequestTooLargeError, SecretKeyMissingError,
    SecretUnreadableError, ServiceBusyError, UnauthenticatedError, UrlNotAllowedError.
    """
    return Call(
        "PUT",
        f"/v1/notifications/{segment(name)}",
        NotificationPut,
        headers={"If-Match": if_match, "If-None-Match": if_none_match},
        body=body,
    )


def put_policy(
    pattern: str, body: PatternPolicyIn, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[PatternPolicyOut]:
    """Set the policy of all tables that match.

    Replaces the previous policy. Members that are left out come from weaker patterns, or from the defaults.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    `if_none_match`: `*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing
    is overwritten that somebody else has created meanwhile

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, RouteNotFoundError, ServiceBusyError, UnauthenticatedError.
    """
    return Call(
        "PUT",
        f"/v1/policies/{segment(pattern)}",
        PatternPolicyOut,
        headers={"If-Match": if_match, "If-None-Match": if_none_match},
        body=body,
    )


def put_shadow(
    pattern: str, body: PatternPolicyIn, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[ShadowOut]:
    """Let a policy decide beside the real one.

    A shadow is a policy on trial for the pattern. The shadow decides about the same commits as the real policy
    from now on, but starts no jobs. The call replaces an earlier shadow of the pattern.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    `if_none_match`: `*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing
    is overwritten that somebody else has created meanwhile

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TooManyShadowsError, UnauthenticatedError.
    """
    return Call(
        "PUT",
        f"/v1/policy-shadows/{segment(pattern)}",
        ShadowOut,
        headers={"If-Match": if_match, "If-None-Match": if_none_match},
        body=body,
    )


def put_table_by_path(
    body: TableIn, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[TableOut]:
    """Register a table, or change it to these declarations.

    If the same body is sent again, nothing changes, and the same table is returned. The base path may be
    spelled in any way. If `name` and `index` are left out, they keep their detected values; all other members
    get their defaults.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    `if_none_match`: `*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing
    is overwritten that somebody else has created meanwhile

    Raises BodyNotJsonError, BucketIndexContradictedError, ChangedMeanwhileError, DatabaseUnavailableError,
    FlinkHostNotAllowedError, ForbiddenError, LockUnavailableError, NotAHudiTableError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PathNotFoundError, RequestTooLargeError, SecretKeyMissingError,
    ServiceBusyError, StorageError, StorageNotSupportedError, TableNotSupportedError, TooManyReadsError,
    UnauthenticatedError.
    """
    return Call(
        "PUT", "/v1/tables/by-path", TableOut, headers={"If-Match": if_match, "If-None-Match": if_none_match}, body=body
    )


def put_table_policy(table_id: str, body: PolicyIn, *, if_match: str | None = None) -> Call[EffectivePolicyOut]:
    """Set the policy of one table.

    Replaces the previous policy of this table, and returns the new effective one.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises BodyNotJsonError, ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call(
        "PUT", f"/v1/tables/{segment(table_id)}/policy", EffectivePolicyOut, headers={"If-Match": if_match}, body=body
    )


def register_table(body: TableIn) -> Call[TableOut]:
    """Register a Hudi table.

    Detects the table's properties, and verifies its bucket index on sampled record keys. Only reads the table.

    Raises BodyNotJsonError, BucketIndexContradictedError, DatabaseUnavailableError, FlinkHostNotAllowedError,
    ForbiddenError, JsonRequiredError, LockUnavailableError, NotAHudiTableError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PathNotFoundError, RequestTooLargeError, SecretKeyMissingError,
    ServiceBusyError, StorageError, StorageNotSupportedError, TableAlreadyRegisteredError,
    TableNotSupportedError, TooManyReadsError, UnauthenticatedError.
    """
    return Call("POST", "/v1/tables", TableOut, body=body)


def replay_delivery(delivery_id: str) -> Call[DeliveryOut]:
    """Send an event again.

    The delivery keeps its `webhook-id`, and gets a new schedule of attempts.

    Raises DatabaseUnavailableError, DeliveryNotFoundError, ForbiddenError, JsonRequiredError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError.
    """
    return Call("POST", f"/v1/deliveries/{segment(delivery_id)}/replay", DeliveryOut)


def replay_webhook(webhook_id: str, body: ReplayIn) -> Call[ReplayOut]:
    """Send missed events to a webhook.

    Sends deliveries that were given up, and events that were published before the webhook was created or while
    it was disabled. Pending deliveries stay unchanged, so a repeated call sends nothing twice.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/replay", ReplayOut, body=body)


def resume(*, if_match: str | None = None) -> Call[None]:
    """End the pause.

    Every table gets a new decision; a few jobs start at a time.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("DELETE", "/v1/pause", NoneType, headers={"If-Match": if_match})


def retry_job(job_id: str, *, idempotency_key: str | None = None) -> Call[JobOut]:
    """Repeat a job that failed or was cancelled.

    Submits a new job with the same kind, parameters and table. Like any new job, it may be refused, and goes to
    the worker group of the table's policy. `retry_of` names the old job. Until the new job has ended, a
    repeated call returns the new job.

    `idempotency_key`: The same key on the same table returns the same job

    Raises BucketFilesNotMergeableError, DatabaseUnavailableError, ExpansionFactorWithoutBucketsError,
    FenceLosesFlinkBatchesError, ForbiddenError, IdempotencyKeyReusedError, IncidentOpenError, JobConflictError,
    JobNotFoundError, JobNotRetriableError, JsonRequiredError, MetastoreNotAllowedError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PlanUnusableError, RequestTooLargeError, SecretUnreadableError,
    ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/jobs/{segment(job_id)}/retry", JobOut, headers={"idempotency-key": idempotency_key})


def rotate_webhook_secret(webhook_id: str) -> Call[WebhookCreated]:
    """Give a webhook a new secret.

    For a day messages carry the signatures of both secrets.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, SecretKeyMissingError, ServiceBusyError, UnauthenticatedError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/rotate-secret", WebhookCreated)


def simulate_policy(body: SimulateIn) -> Call[SimulationOut]:
    """Show what another policy would have done in the past.

    Replays the commits of the tables under the present policy and under the new one, with the slots of the
    workers that are ready now. Starts nothing and stores nothing. Takes seconds, or up to a minute for very
    many commits.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    PolicyNotFoundError, RequestTooLargeError, ServiceBusyError, SimulationTooLargeError, TableNotFoundError,
    UnauthenticatedError.
    """
    return Call("POST", "/v1/policies/simulate", SimulationOut, body=body)


def skip_delivery(delivery_id: str) -> Call[DeliveryOut]:
    """Give up a delivery that blocks others.

    The delivery becomes `dead`, as after its last attempt, and the deliveries behind it are sent at once. A
    replay can send it later.

    Raises DatabaseUnavailableError, DeliveryEndedError, DeliveryNotFoundError, ForbiddenError,
    JsonRequiredError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/deliveries/{segment(delivery_id)}/skip", DeliveryOut)


def snooze_notification(name: str, body: SnoozeIn) -> Call[NotificationOut]:
    """Send nothing for a time.

    After that time, the problems that are still open, and the jobs that have failed meanwhile, are reported.

    Raises BodyNotJsonError, DatabaseUnavailableError, ForbiddenError, NotificationNotFoundError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("PUT", f"/v1/notifications/{segment(name)}/snooze", NotificationOut, body=body)


def submit_job(table_id: str, body: SubmitJobBody, *, idempotency_key: str | None = None) -> Call[JobOut]:
    """Submit a job.

    Queues the job; a worker starts it within moments. `Location` is the job's URL.

    `idempotency_key`: The same key on the same table returns the same job

    Raises BodyNotJsonError, BucketFilesNotMergeableError, DatabaseUnavailableError,
    ExpansionFactorWithoutBucketsError, FenceLosesFlinkBatchesError, ForbiddenError, IdempotencyKeyReusedError,
    IncidentOpenError, JobConflictError, JsonRequiredError, MetastoreNotAllowedError, OptionNotAllowedError,
    ParamsInvalidError, PathNotAllowedError, PlanUnusableError, RequestTooLargeError, SecretUnreadableError,
    ServiceBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call(
        "POST", f"/v1/tables/{segment(table_id)}/jobs", JobOut, headers={"idempotency-key": idempotency_key}, body=body
    )


def sync_catalog(name: str, body: CatalogSyncIn) -> Call[CatalogReport]:
    """Compare a catalog with the registered tables, and follow it.

    Does what the rules of the catalog say: registers new tables, and follows tables that have moved or were
    dropped. A dry run changes nothing. If a table is refused, the others continue. No table's data are ever
    touched.

    Raises BodyNotJsonError, CatalogFailedError, CatalogNotFoundError, DatabaseUnavailableError, ForbiddenError,
    JsonRequiredError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("POST", f"/v1/catalogs/{segment(name)}/sync", CatalogReport, body=body)


def test_notification(name: str) -> Call[DeliveryOut]:
    """Send a test message.

    Sends one message once; GET /v1/deliveries/{id} shows the outcome. In PagerDuty and Alertmanager the alert
    is resolved at once.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, NotificationNotFoundError,
    ParamsInvalidError, RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError.
    """
    return Call("POST", f"/v1/notifications/{segment(name)}/test", DeliveryOut)


def test_webhook(webhook_id: str) -> Call[DeliveryOut]:
    """Send a test event to a webhook.

    Sends one event of the type `webhook.test` once; GET /v1/deliveries/{id} shows the outcome.

    Raises DatabaseUnavailableError, ForbiddenError, JsonRequiredError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError, WebhookDisabledError, WebhookNotFoundError.
    """
    return Call("POST", f"/v1/webhooks/{segment(webhook_id)}/test", DeliveryOut)


def unacknowledge_problem(problem_id: str) -> Call[None]:
    """Take back the acknowledgement of a problem.

    Notifications report the problem again if they had reported it before the acknowledgement.

    Raises DatabaseUnavailableError, ForbiddenError, ParamsInvalidError, RequestTooLargeError, ServiceBusyError,
    UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/problems/{segment(problem_id)}/acknowledgement", NoneType)


def unregister_table(table_id: str, *, if_match: str | None = None) -> Call[None]:
    """Unregister a table.

    Deletes the registration and the ended jobs. The table's data stay untouched.

    `if_match`: The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused
    with `changed-meanwhile` if the state has changed. Without this header the last update wins

    Raises ChangedMeanwhileError, DatabaseUnavailableError, ForbiddenError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, TableBusyError, TableNotFoundError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/tables/{segment(table_id)}", NoneType, headers={"If-Match": if_match})


def wake_notification(name: str) -> Call[None]:
    """End the snooze.

    Raises DatabaseUnavailableError, ForbiddenError, NotificationNotFoundError, ParamsInvalidError,
    RequestTooLargeError, ServiceBusyError, UnauthenticatedError.
    """
    return Call("DELETE", f"/v1/notifications/{segment(name)}/snooze", NoneType)
