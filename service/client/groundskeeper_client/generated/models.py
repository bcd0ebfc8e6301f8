"""The objects of the API. Generated from its OpenAPI document by `python -m service.client.generator`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from groundskeeper_client.model import Model, Word


class AboutOut(Model, frozen=True, kw_only=True):
    """The object that has the problem."""

    type: ObjectType
    """Type of the object"""
    id: str
    """Id of the object; for a worker group, its name"""
    name: str
    """Its name"""


class AcknowledgementIn(Model, frozen=True, kw_only=True):
    """How long a problem is acknowledged, and why."""

    until: datetime | UnsetType | None = UNSET
    """When the acknowledgement ends, unless the problem ends before. Default: when the problem ends"""
    reason: str | UnsetType | None = UNSET
    """For others"""


class AcknowledgementOut(Model, frozen=True, kw_only=True):
    """An acknowledgement: somebody knows of the problem."""

    by: str
    """Name of the caller"""
    until: datetime | None
    """When the acknowledgement ends, if the problem has not ended before; null: when the problem ends"""
    reason: str | None
    """Why, for others"""
    at: datetime
    """Since when"""


class Action(Word):
    NONE = "none"
    REGISTER = "register"
    FOLLOW = "follow"
    UNREGISTER = "unregister"


class ActionOut(Model, frozen=True, kw_only=True):
    """A call of the API that helps. The caller needs the role for that call."""

    label: str
    """For a button"""
    method: str
    """HTTP method"""
    path: str
    """Address of the call"""
    body: dict[str, Any] | None
    """The JSON to send; null for none"""


class ActiveJobs(Model, frozen=True, kw_only=True):
    queued: int
    """Jobs that no worker has"""
    leased: int
    """Jobs that a worker has leased and not begun"""
    running: int
    """Jobs that a worker runs"""
    forecast: dict[str, str]
    """Length of the queue of each worker group, in words; groups without jobs are left out"""
    items: list[JobOut]
    """At most 50: those that workers hold first, then the oldest"""


class AdviceIn(Model, frozen=True, kw_only=True):
    state: Answer
    """`applied` writes the setting to the table's own policy, `dismissed` hides the advice for 30 days"""


class AdviceList(Model, frozen=True, kw_only=True):
    items: list[AdviceOut]
    """The items of this page, or all if there are no pages"""


class AdviceOut(Model, frozen=True, kw_only=True):
    computed_at: datetime
    """When the advice was computed"""
    state: AdviceState
    """State of the advice"""
    because: str
    """The advice with its figures, or why there is none"""
    setting: str | None
    """The setting of the policy; null without advice"""
    before: int | None
    """Its value when the advice was computed"""
    after: int | None
    """The value that is advised"""
    figures: dict[str, float]
    """Cost a day, now and with the new value"""
    changed_at: datetime | None
    """When the advice was applied, dismissed or taken back"""
    table_id: str
    """Id of the table"""
    name: str
    """Name of the table"""


class AdvicePolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only shows what the mode `auto` would do"""
    read_overhead: float | UnsetType = UNSET
    """A read may cost this many times what it costs right after a compaction, or a merge of small files, in 95 %
    of the time
    """
    storage_overhead: float | UnsetType | None = UNSET
    """All files may have this many times the size of those in use, in 95 % of the time; null: a tenth more than
    now
    """


class AdviceState(Word):
    """What has become of advice. `none`: there is no advice, and `because` says why. `kept`: it was applied, and
    the outcome of a week was as expected.
    """

    NONE = "none"
    OPEN = "open"
    APPLIED = "applied"
    KEPT = "kept"
    TAKEN_BACK = "taken-back"
    DISMISSED = "dismissed"


class AlertOut(Model, frozen=True, kw_only=True):
    """Problems that were reported in one message. One message reports their end."""

    key: str
    """PagerDuty's `dedup_key`"""
    kind: str
    """Kind of problem"""
    severity: Severity
    """Severity of the most serious problem"""
    title: str
    """What is wrong"""
    began_at: datetime
    """When the alert was first reported"""
    problems: int
    """Number of problems in the alert"""
    names: list[str]
    """Objects that have the problem, at most 20"""


class AmountOut(Model, frozen=True, kw_only=True):
    """An amount that a job is expected to take, besides its seconds."""

    of: CostPart
    """What is counted. CPU seconds include those of the worker's processes"""
    expected: float
    """How much an attempt takes"""
    low: float
    """Nine of ten attempts take more than this"""
    high: float
    """Nine of ten attempts take less than this"""


class Answer(Word):
    APPLIED = "applied"
    DISMISSED = "dismissed"


class ArchivalIn(Model, frozen=True, kw_only=True):
    """Moves the oldest instants of the timeline to the history, and says why others cannot be moved yet."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["archival"] = "archival"
    """Kind of job"""
    params: ArchivalParams | UnsetType = UNSET
    """Parameters of the kind"""


class ArchivalLimit(Model, frozen=True, kw_only=True):
    """A reason to keep an instant and all later ones on the active timeline"""

    type: str | UnsetType = UNSET
    """Kind of the reason, such as `pending-instant`, `savepoint` or `consumer`"""
    instant: str | UnsetType = UNSET
    """The first instant that it keeps"""
    reason: str | UnsetType = UNSET
    """This case"""
    remedy: str | UnsetType = UNSET
    """What to do; empty if waiting is enough"""


class ArchivalParams(Model, frozen=True, kw_only=True):
    retain: int | UnsetType = UNSET
    """Completed commits to keep on the active timeline, at least"""


class ArchivalPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    commits: int | UnsetType = UNSET
    """More completed commits on the active timeline are archived"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    retain: int | UnsetType = UNSET
    """Completed commits to keep on the active timeline, at least"""


class ArchivalResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `archival`"""

    retain: int | UnsetType = UNSET
    """Commits to keep at least"""
    instants: int | UnsetType = UNSET
    """Instants on the active timeline"""
    commits: int | UnsetType = UNSET
    """Commits among them"""
    candidates: list[str] | UnsetType = UNSET
    """Instants that can be archived; only in a dry run"""
    limits: list[ArchivalLimit] | UnsetType = UNSET
    """Reasons for which more instants stay on the active timeline"""
    archived: int | UnsetType = UNSET
    """Instants that were archived"""
    last_archived: str | UnsetType | None = UNSET
    """The last instant that was archived"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class AttemptOut(Model, frozen=True, kw_only=True):
    outcome: AttemptOutcome | None
    """How the attempt ended; null until its end"""
    application_id: str | None
    """Id of the Spark application that ran the attempt"""
    attempt: int
    """Number of the attempt, from 1"""
    worker_id: str
    """Id that the worker has given itself; null if no worker has the job"""
    started_at: datetime
    """Time of the start; null before the start"""
    ended_at: datetime | None
    """Time of the end; null until then"""
    error: JobProblem | None
    """What went wrong; null if nothing went wrong"""
    spark_url: str | None
    """Address of its Spark application: the UI of the worker, or a history server by GROUNDSKEEPER_SPARK_UI_URL"""


class AttemptOutcome(Word):
    """Outcomes of an attempt: those of `jobs.contract.Outcome`, and `LOST` for a worker that disappeared."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    LOST = "lost"


class AuditEntryOut(Model, frozen=True, kw_only=True):
    """A call that changed something, or that was refused."""

    at: datetime
    """When the call was made"""
    who: str
    """Name of the token; `anybody` while no token exists, `nobody` if the call had no valid one, `<user> on the
    command line`
    """
    method: str
    """HTTP method; `CLI` for a command"""
    route: str
    """Address of the call, with names for its variable parts"""
    operation: str
    """`operationId` of this documentation"""
    token_id: str | None
    """Id of the token; null without one"""
    address: str | None
    """Address of the caller; null for a command"""
    object_type: str | None
    """Type of the object; null if there is none"""
    object_id: str | None
    """Id of the object; null if there is none"""
    object_name: str | None
    """Name of the object; null if it has none"""
    status: int | None
    """HTTP status; null for a command"""
    problem: str | None
    """Type of the problem"""
    repeats: int
    """Number of further calls of the same caller that were refused within the minute after this one. These calls
    have no entries of their own. The number is rounded down to a power of two
    """
    request_id: str | None
    """`X-Request-Id` of the call; null for a command"""
    id: int
    """Number of the entry; grows with time"""
    role: Role | None
    """Role of the token; null without one"""
    before: dict[str, Any] | None
    """The object before the call, with masks for secrets; null if it did not exist"""
    after: dict[str, Any] | None
    """The object after the call; `before` and `after` are null if it did not change"""
    outcome: Outcome
    """`refused`: status 400 to 499; `failed`: 500 and above"""


class AuditIn(Model, frozen=True, kw_only=True):
    """Checks that commits, metadata table and storage agree, that every row is in its bucket, and that no key
    exists twice.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["audit"] = "audit"
    """Kind of job"""
    params: AuditParams | UnsetType = UNSET
    """Parameters of the kind"""


class AuditPage(Model, frozen=True, kw_only=True):
    items: list[AuditEntryOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class AuditParams(Model, frozen=True, kw_only=True):
    rows: bool | UnsetType = UNSET
    """Read the key of every row as well: rows in wrong buckets, duplicate keys, rows that filters miss"""


class AuditPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    rows: bool | UnsetType = UNSET
    """Read the key of every row as well: rows in wrong buckets, duplicate keys, rows that filters miss"""


class AuditResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `audit`"""

    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: int | UnsetType = UNSET
    """Number of file groups"""
    partitions: int | UnsetType = UNSET
    """Number of partitions"""
    misplaced: int | UnsetType = UNSET
    """Rows in a bucket that is not theirs"""
    duplicates: int | UnsetType = UNSET
    """Rows with the same key as another row"""
    buckets_with_several_file_groups: int | UnsetType | None = UNSET
    """Buckets with more than one file group"""
    file_groups_without_bucket: int | UnsetType | None = UNSET
    """File groups whose names have no bucket"""
    dangling_hashing_configs: list[str] | UnsetType = UNSET
    """Hashing configs without a completed commit"""
    stale_writes: list[StaleWrite] | UnsetType = UNSET
    """Commits whose rows no reader sees"""
    keys_hidden_by_statistics: int | UnsetType = UNSET
    """Probed keys that a query with a filter does not find"""
    readers: list[RowsOfReaders] | UnsetType = UNSET
    """Partitions for which the metadata table and the storage list different files"""
    clean: bool | UnsetType = UNSET
    """Whether all checks were made and found nothing wrong"""
    pending_instants: list[str] | UnsetType = UNSET
    """Instants that have not completed"""
    findings: list[DamageFound] | UnsetType = UNSET
    """Damages that were found"""
    checked: list[str] | UnsetType = UNSET
    """Checks that were made"""
    unchecked: list[CheckNotMade] | UnsetType = UNSET
    """Checks that could not be made"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class BacklogOut(Model, frozen=True, kw_only=True):
    """The work that the table services of a table have not done yet, at the last poll that found something new."""

    log_bytes: int
    """Size of the log files of all partitions"""
    base_bytes: int
    """Size of the latest base files of all partitions"""
    commits: int
    """Commits since the last compaction"""
    metadata_commits: int | None
    """Commits of the metadata table since its last compaction; null without one"""


class Basis(Word):
    """The source of an expected cost. All sources but `TABLE` make it a guess."""

    TABLE = "table"
    SHAPE = "shape"
    KIND = "kind"
    DEFAULT = "default"


class BlockedOut(Model, frozen=True, kw_only=True):
    """A delivery that has failed and will be tried again. Events of the same table wait behind it."""

    delivery: DeliveryOut
    """The delivery"""
    waiting_behind: int
    """Number of deliveries that wait for this one"""


class BreakerOut(Model, frozen=True, kw_only=True):
    """Attempts of this kind of job fail on this table, so the next one is delayed: failing work gets at most a
    tenth of the slots while other jobs wait.
    """

    failures: int
    """Failed attempts in a row"""
    since: datetime
    """End of the first failed attempt"""
    next_try_at: datetime
    """When an attempt may start again"""
    state: BreakerState
    """`open`: the next attempt waits; `half_open`: the next attempt may start"""
    slot_seconds: float
    """Seconds for which the failed attempts had a slot"""
    error: JobProblem | None
    """Error of the last failed attempt"""


class BreakerState(Word):
    """The states of a breaker. A closed one is not stored."""

    OPEN = "open"
    HALF_OPEN = "half_open"


class BriefProblem(Model, frozen=True, kw_only=True):
    """A problem in short. `GET /v1/problems` has its details and remedy."""

    id: str
    """Id"""
    kind: ProblemKind
    """Kind of job"""
    severity: Severity
    """How serious the problem is"""
    title: str
    """What is wrong, in the same words in every case"""
    since: datetime
    """When the problem began, as exactly as this is known"""
    is_acknowledged: bool
    """Whether somebody has acknowledged the problem"""
    remedy: str
    """What to do"""


class BrokenLockOut(Model, frozen=True, kw_only=True):
    """The lock that was broken, as it was before."""

    table_id: str
    """Id of the table"""
    path: str | None
    """The file that was removed"""
    since: datetime | None
    """Time at which the lock was taken"""
    held_seconds: float | None
    """For how long the lock was held"""
    holder: str | None
    """Who held the lock, as far as this was known"""
    reason: str
    """Why, for other users"""
    waiting_jobs: list[str]
    """Jobs that waited for the lock. Those that are queued are due now"""


class BucketContractionIn(Model, frozen=True, kw_only=True):
    """Gives a bucket-indexed table fewer buckets: files of several buckets become one, without a shuffle."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["bucket_contraction"] = "bucket_contraction"
    """Kind of job"""
    params: BucketContractionParams
    """Parameters of the kind"""


class BucketContractionParams(Model, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    engine: CompactionEngine | UnsetType | None = UNSET
    """Who merges file slices with logs before their rows are written. `auto` (default): Arrow if its merge is
    proved to be equal to Hudi's, otherwise Hudi's readers. `arrow`: refuse slices for which this is not proved.
    `hudi`: always Hudi's readers
    """
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """
    num_buckets: int | UnsetType | None = UNSET
    """The new number, a divisor of the current one; partitions that have it already are left unchanged"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later ones. Default:
    the whole table
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""
    factor: int | UnsetType | None = UNSET
    """How many buckets become one, in each of the partitions"""


class BucketContractionResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `bucket_contraction`"""

    buckets: list[int] | UnsetType = UNSET
    """Numbers of buckets before and after, in the partition with the most buckets"""
    partitions: int | UnsetType = UNSET
    """Partitions that were rewritten"""
    rules: str | BucketRulesChange | UnsetType = UNSET
    """Rules of the hashing config; in a dry run the rules before and after"""
    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: FileGroupNumbers | UnsetType = UNSET
    """Number of file groups"""
    files_read: int | UnsetType = UNSET
    """Files that were read"""
    files_written: int | UnsetType = UNSET
    """Files that were written"""
    files_copied: int | UnsetType = UNSET
    """Files that were written by copying row groups, without decoding rows"""
    merged: SlicesMerged | UnsetType = UNSET
    """Who merged file slices with logs"""
    engine: str | UnsetType = UNSET
    """The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers would merge them; only in a dry run"""
    bytes_read: int | UnsetType = UNSET
    """Bytes that were read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes that were written"""
    rounds: int | UnsetType = UNSET
    """Rounds in which changed slices were rewritten again"""
    rewritten_again: int | UnsetType = UNSET
    """Slices that were rewritten again"""
    left_out: int | UnsetType = UNSET
    """Slices that were left out because writers changed them"""
    waited_seconds: float | UnsetType = UNSET
    """Wait for a moment without writes in flight"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    fenced: list[str] | UnsetType = UNSET
    """Instants of writers that were rolled back"""
    lock_lost: bool | UnsetType = UNSET
    """Whether the lock was lost after the commit"""
    repaired: list[str] | UnsetType = UNSET
    """Stale writes that were repaired afterwards"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class BucketCountIn(Model, frozen=True, kw_only=True):
    """Gives a bucket-indexed table any number of buckets, also one without a common divisor, without a shuffle."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["bucket_count"] = "bucket_count"
    """Kind of job"""
    params: BucketCountParams
    """Parameters of the kind"""


class BucketCountParams(Model, frozen=True, kw_only=True):
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    engine: CompactionEngine | UnsetType | None = UNSET
    """Who merges file slices with logs before their rows are written. `auto` (default): Arrow if its merge is
    proved to be equal to Hudi's, otherwise Hudi's readers. `arrow`: refuse slices for which this is not proved.
    `hudi`: always Hudi's readers
    """
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """
    num_buckets: int
    """The new number; partitions that have it already are left unchanged"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later ones. Default:
    the whole table
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""
    way: Literal["auto", "one_rehash", "through_multiple"] | UnsetType = UNSET
    """`one_rehash`: a task reads all old buckets whose rows go to its new buckets. `through_multiple`: each old
    bucket is split first, so that more tasks share the work, but rows are written twice. `auto`: the cheaper of
    the two ways, which a dry run shows in `ways`
    """


class BucketCountResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `bucket_count`"""

    way: str | UnsetType = UNSET
    """The way that the job takes"""
    ways: list[RehashWay] | UnsetType = UNSET
    """What each way would cost, the cheapest first; only in a dry run"""
    buckets: list[int] | UnsetType = UNSET
    """Numbers of buckets before and after, in the partition with the most buckets"""
    partitions: int | UnsetType = UNSET
    """Partitions that were rewritten"""
    rules: str | BucketRulesChange | UnsetType = UNSET
    """Rules of the hashing config; in a dry run the rules before and after"""
    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: FileGroupNumbers | UnsetType = UNSET
    """Number of file groups"""
    files_read: int | UnsetType = UNSET
    """Files that were read"""
    files_written: int | UnsetType = UNSET
    """Files that were written"""
    files_copied: int | UnsetType = UNSET
    """Files that were written by copying row groups, without decoding rows"""
    merged: SlicesMerged | UnsetType = UNSET
    """Who merged file slices with logs"""
    engine: str | UnsetType = UNSET
    """The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers would merge them; only in a dry run"""
    bytes_read: int | UnsetType = UNSET
    """Bytes that were read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes that were written"""
    rounds: int | UnsetType = UNSET
    """Rounds in which changed slices were rewritten again"""
    rewritten_again: int | UnsetType = UNSET
    """Slices that were rewritten again"""
    left_out: int | UnsetType = UNSET
    """Slices that were left out because writers changed them"""
    waited_seconds: float | UnsetType = UNSET
    """Wait for a moment without writes in flight"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    fenced: list[str] | UnsetType = UNSET
    """Instants of writers that were rolled back"""
    lock_lost: bool | UnsetType = UNSET
    """Whether the lock was lost after the commit"""
    repaired: list[str] | UnsetType = UNSET
    """Stale writes that were repaired afterwards"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class BucketExpansionIn(Model, frozen=True, kw_only=True):
    """Gives a bucket-indexed table more buckets, without a shuffle."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["bucket_expansion"] = "bucket_expansion"
    """Kind of job"""
    params: BucketExpansionParams
    """Parameters of the kind"""


class BucketExpansionParams(Model, frozen=True, kw_only=True):
    """Exactly one of `num_buckets` and `factor`."""

    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    engine: CompactionEngine | UnsetType | None = UNSET
    """Who merges file slices with logs before their rows are written. `auto` (default): Arrow if its merge is
    proved to be equal to Hudi's, otherwise Hudi's readers. `arrow`: refuse slices for which this is not proved.
    `hudi`: always Hudi's readers
    """
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """
    num_buckets: int | UnsetType | None = UNSET
    """The new number, a multiple of the current one"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later ones. Default:
    the whole table
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""
    factor: int | UnsetType | None = UNSET
    """The new number as a multiple of the current one"""


class BucketExpansionResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `bucket_expansion`"""

    buckets: list[int] | UnsetType = UNSET
    """Numbers of buckets before and after, in the partition with the most buckets"""
    partitions: int | UnsetType = UNSET
    """Partitions that were rewritten"""
    rules: str | BucketRulesChange | UnsetType = UNSET
    """Rules of the hashing config; in a dry run the rules before and after"""
    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: FileGroupNumbers | UnsetType = UNSET
    """Number of file groups"""
    files_read: int | UnsetType = UNSET
    """Files that were read"""
    files_written: int | UnsetType = UNSET
    """Files that were written"""
    files_copied: int | UnsetType = UNSET
    """Files that were written by copying row groups, without decoding rows"""
    merged: SlicesMerged | UnsetType = UNSET
    """Who merged file slices with logs"""
    engine: str | UnsetType = UNSET
    """The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers would merge them; only in a dry run"""
    bytes_read: int | UnsetType = UNSET
    """Bytes that were read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes that were written"""
    rounds: int | UnsetType = UNSET
    """Rounds in which changed slices were rewritten again"""
    rewritten_again: int | UnsetType = UNSET
    """Slices that were rewritten again"""
    left_out: int | UnsetType = UNSET
    """Slices that were left out because writers changed them"""
    waited_seconds: float | UnsetType = UNSET
    """Wait for a moment without writes in flight"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    fenced: list[str] | UnsetType = UNSET
    """Instants of writers that were rolled back"""
    lock_lost: bool | UnsetType = UNSET
    """Whether the lock was lost after the commit"""
    repaired: list[str] | UnsetType = UNSET
    """Stale writes that were repaired afterwards"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class BucketIndexKind(Word):
    """Kinds of bucket indexes. `UNKNOWN`: there are no file groups yet, or they do not fit any kind."""

    SIMPLE = "simple"
    CONSISTENT_HASHING = "consistent_hashing"
    NONE = "none"
    UNKNOWN = "unknown"


class BucketIndexParams(Model, frozen=True, kw_only=True):
    action: Literal["adopt", "drop"]
    """`adopt` routes all rows to file groups of a bucket index, and commits them at once. `drop` gives the bucket
    index up: the rows stay in their files, and the logs of a merge-on-read table are compacted
    """
    num_buckets: int | UnsetType | None = UNSET
    """Number of buckets of each partition. Default: so many that the largest partition has about 512 MiB in each
    bucket, a power of two
    """
    hash_fields: list[str] | UnsetType | None = UNSET
    """The fields of the record key that are hashed (`hoodie.bucket.index.hash.field`). Default: all of them"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment without writes in flight"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class BucketIndexResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `bucket_index`"""

    action: str | UnsetType = UNSET
    """The action of the job"""
    num_buckets: int | UnsetType = UNSET
    """Number of buckets of each partition; absent after `drop`"""
    hash_fields: list[str] | UnsetType = UNSET
    """The fields of the record key that are hashed"""
    partitions: int | UnsetType = UNSET
    """Partitions of the table"""
    bytes_of_largest_bucket: int | UnsetType = UNSET
    """Expected size of a bucket in the largest partition, in bytes; only in a dry run"""
    misplaced: int | UnsetType = UNSET
    """Rows that are not in the file group of their bucket; only in a dry run"""
    writer_options: list[WriterOption] | UnsetType = UNSET
    """Options that every Spark writer needs afterwards, in place of those that it has now"""
    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: FileGroupNumbers | UnsetType = UNSET
    """Number of file groups"""
    files_read: int | UnsetType = UNSET
    """Files that were read"""
    files_written: int | UnsetType = UNSET
    """Files that were written"""
    files_copied: int | UnsetType = UNSET
    """Files that were written by copying row groups, without decoding rows"""
    merged: SlicesMerged | UnsetType = UNSET
    """Who merged file slices with logs"""
    engine: str | UnsetType = UNSET
    """The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers would merge them; only in a dry run"""
    bytes_read: int | UnsetType = UNSET
    """Bytes that were read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes that were written"""
    rounds: int | UnsetType = UNSET
    """Rounds in which changed slices were rewritten again"""
    rewritten_again: int | UnsetType = UNSET
    """Slices that were rewritten again"""
    left_out: int | UnsetType = UNSET
    """Slices that were left out because writers changed them"""
    waited_seconds: float | UnsetType = UNSET
    """Wait for a moment without writes in flight"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    fenced: list[str] | UnsetType = UNSET
    """Instants of writers that were rolled back"""
    lock_lost: bool | UnsetType = UNSET
    """Whether the lock was lost after the commit"""
    repaired: list[str] | UnsetType = UNSET
    """Stale writes that were repaired afterwards"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class BucketLayout(Model, frozen=True, kw_only=True):
    """The bucket index that the file groups indicate.

    `keys_checked` is 0 if there was nothing to check, or there is no index. `fixed_file_ids` says that the file
    ids are the same in each partition. If there is a `hashing_config`, it sets each partition's number of
    buckets, and the writers' options do not.
    """

    kind: BucketIndexKind
    """What the names of the files indicate"""
    file_groups: int | UnsetType = UNSET
    """Number of file groups"""
    highest_bucket: int | UnsetType | None = UNSET
    """Highest number of a bucket; null without files"""
    keys_checked: int | UnsetType = UNSET
    """Sampled record keys that were found in their buckets"""
    fixed_file_ids: bool | UnsetType = UNSET
    """Whether the file ids are those of non-blocking concurrency control"""
    hashing_config: str | UnsetType | None = UNSET
    """Instant of the hashing config in force; null without one"""


class BucketOut(Model, frozen=True, kw_only=True):
    bucket: int
    """Number of the bucket, from 0"""
    bytes: int
    """Size in bytes"""
    rows: int | None
    """Number of rows; null if not known"""


class BucketResizeIn(Model, frozen=True, kw_only=True):
    """Splits large buckets of a table with consistent hashing, and merges small ones."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["bucket_resize"] = "bucket_resize"
    """Kind of job"""
    params: BucketResizeParams | UnsetType = UNSET
    """Parameters of the kind"""


class BucketResizeParams(Model, frozen=True, kw_only=True):
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    split_bytes: int | UnsetType = UNSET
    """A bucket whose files have more bytes is split into two"""
    merge_bytes: int | UnsetType = UNSET
    """Neighbouring buckets whose files have at most this many bytes each are merged; at most a fourth of
    `split_bytes`. 0: none is merged
    """
    min_buckets: int | UnsetType = UNSET
    """Minimum number of buckets of a partition"""
    max_buckets: int | UnsetType = UNSET
    """Maximum number of buckets of a partition"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Paths of partitions, relative to the base path"""


class BucketResizeResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `bucket_resize`"""

    changes: list[ResizedBuckets] | UnsetType = UNSET
    """What is split and merged: the first 100 changes"""
    split: int | UnsetType = UNSET
    """Buckets that were split into two"""
    one_sided: int | UnsetType = UNSET
    """Splits of no use, since more than 90 % of the rows or bytes went into one of the two buckets"""
    merged_away: int | UnsetType = UNSET
    """Buckets that no longer exist, because they were merged with a neighbour"""
    partitions: int | UnsetType = UNSET
    """Partitions whose buckets were changed"""
    proof: KeyProof | UnsetType = UNSET
    """The comparison of the rows before and after"""
    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: FileGroupNumbers | UnsetType = UNSET
    """Number of file groups"""
    files_read: int | UnsetType = UNSET
    """Files that were read"""
    files_written: int | UnsetType = UNSET
    """Files that were written"""
    files_copied: int | UnsetType = UNSET
    """Files that were written by copying row groups, without decoding rows"""
    merged: SlicesMerged | UnsetType = UNSET
    """Who merged file slices with logs"""
    engine: str | UnsetType = UNSET
    """The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers would merge them; only in a dry run"""
    bytes_read: int | UnsetType = UNSET
    """Bytes that were read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes that were written"""
    rounds: int | UnsetType = UNSET
    """Rounds in which changed slices were rewritten again"""
    rewritten_again: int | UnsetType = UNSET
    """Slices that were rewritten again"""
    left_out: int | UnsetType = UNSET
    """Slices that were left out because writers changed them"""
    waited_seconds: float | UnsetType = UNSET
    """Wait for a moment without writes in flight"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    fenced: list[str] | UnsetType = UNSET
    """Instants of writers that were rolled back"""
    lock_lost: bool | UnsetType = UNSET
    """Whether the lock was lost after the commit"""
    repaired: list[str] | UnsetType = UNSET
    """Stale writes that were repaired afterwards"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class BucketRulesChange(Model, frozen=True, kw_only=True):
    """Rules of the hashing config before and after a job"""

    before: str | UnsetType = UNSET
    """Before the job"""
    after: str | UnsetType = UNSET
    """After the job"""


class BucketsOfPartition(Model, frozen=True, kw_only=True):
    path: str
    """Path of the partition relative to the base path; empty without partitions"""
    num_buckets: int
    """Number of buckets; 0 without a bucket index"""
    bytes: int
    """Size in bytes"""
    rows: int | None
    """Number of rows; null if not known"""
    skew: float | None
    """Size of the largest bucket divided by the mean of all, including empty ones; 1 is even"""
    buckets: list[BucketOut]
    """The buckets of the partition"""


class BucketsOut(Model, frozen=True, kw_only=True):
    """The buckets of a table; none without a simple bucket index."""

    taken_at: datetime
    """When the service read this state of the table"""
    num_buckets: int
    """Number of buckets; 0 without a bucket index"""
    num_partitions: int
    """Number of partitions"""
    partitions: list[BucketsOfPartition]
    """The largest partitions"""


class BudgetPolicyIn(Model, frozen=True, kw_only=True):
    gb_hours_per_day: float | UnsetType | None = UNSET
    """GB-hours of all jobs of these tables in a day; or null"""
    worker_hours_per_day: float | UnsetType | None = UNSET
    """Hours of workers' slots that these jobs may take in a day; or null"""
    carry_over_days: int | UnsetType = UNSET
    """The unspent rest of this many earlier days may be spent today in addition"""


class BulkItem(Model, frozen=True, kw_only=True):
    table_id: str
    """Id of the table from the request"""
    table_name: str | None
    """Null if there is no such table"""
    outcome: BulkOutcome
    """`unchanged`: nothing had to change, for example because the table was already paused; `refused`: see
    `problem`. Other tables are changed even if one is refused
    """
    job_id: str | None
    """The job that was submitted; null without one"""
    problem: BulkProblem | None
    """Why the action was refused; null otherwise"""


class BulkOut(Model, frozen=True, kw_only=True):
    items: list[BulkItem]
    """In the order of the request, each table once"""
    done: int
    """Number of tables that the call has changed"""
    unchanged: int
    """Number of tables where nothing had to change"""
    refused: int
    """Number of tables with a `problem`"""


class BulkOutcome(Word):
    """What a call has done to one table."""

    DONE = "done"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class BulkProblem(Model, frozen=True, kw_only=True):
    type: str
    """The type of the problem"""
    title: str
    """What is wrong, in the same words in every case"""
    detail: str
    """What is wrong in this case"""
    hint: str | None
    """What to do about it"""


class CalendarOut(Model, frozen=True, kw_only=True):
    freezes: list[FreezeInCalendar]
    """Freezes. During a freeze, no automatic job starts on its tables"""
    windows: list[OpenWindowsOut]
    """Windows: automatic jobs start only in these. Tables with the same windows share an entry; the windows of the
    most tables come first
    """
    always: int
    """Number of tables without windows"""


class CallbackIn(Model, frozen=True, kw_only=True):
    """Hudi's `HoodieWriteCommitCallbackMessage`, 0.6 to 1.2. Other members differ between versions and are
    ignored.
    """

    commit_time: str = field(name="commitTime")
    """Requested time of the commit"""
    base_path: str = field(name="basePath")
    """Base path of the table"""


class CallbackOut(Model, frozen=True, kw_only=True):
    table_id: str
    """Id of the table"""
    is_new: bool
    """False if the commit is known, or a poll of the table is already requested"""


class CatalogFinding(Model, frozen=True, kw_only=True):
    """A difference between a catalog and the registered tables."""

    name: str
    """The table in the catalog; `database.*` is a whole database"""
    kind: FindingKind
    """What differs"""
    action: Action
    """The action that the rules of the catalog demand"""
    base_path: str | None
    """Its location in the catalog"""
    before: str | None
    """Where the table is registered, if it has moved or was dropped"""
    table_id: str | None
    """The registered table, if there is one"""
    is_done: bool
    """Whether this sync has carried out the action"""
    because: str | None
    """Why nothing is done"""
    owner: str | None
    """The owner that the entry gives"""
    tags: dict[str, str] | None
    """The tags that its parameters give"""
    reason: ReasonOut | None
    """The problem that prevents the action; null if there is none"""


class CatalogKind(Word):
    GLUE = "glue"
    HIVE = "hive"
    UNITY = "unity"
    SQL = "sql"


class CatalogList(Model, frozen=True, kw_only=True):
    items: list[CatalogOut]
    """The items of this page, or all if there are no pages"""


class CatalogOut(Model, frozen=True, kw_only=True):
    """A catalog of GROUNDSKEEPER_CATALOGS, without its secrets."""

    name: str
    """Its name"""
    kind: CatalogKind
    """Kind of the catalog"""
    address: str
    """Its address"""
    new: OnNew
    """What happens to new tables"""
    moved: OnMoved
    """What happens to tables whose location changes"""
    dropped: OnDropped
    """What happens to tables that the catalog drops"""
    every_seconds: float
    """Seconds between two syncs"""
    synced_at: datetime | None
    """When the last successful sync ended"""
    next_at: datetime | None
    """When the next sync is due"""
    failing_since: datetime | None
    """Since when syncs fail; null if the last one did not fail"""
    error: ReasonOut | None
    """Why the last sync failed; null if it did not fail"""
    report: CatalogReport | None
    """What the last sync has found; null before the first"""


class CatalogReport(Model, frozen=True, kw_only=True):
    """What a sync has found and done."""

    entries: int
    """Tables of all kinds in the catalog that its patterns select"""
    tables: int
    """Hudi tables among them, one for each location"""
    in_step: int
    """Hudi tables that are registered at the catalog's location"""
    counts: dict[str, int]
    """Findings that the sync has not settled, by kind"""
    findings: list[CatalogFinding]
    """The differences, 500 at most"""
    is_complete: bool
    """False if a limit of number or time ended the sync; then nothing counts as dropped, and the next sync
    continues
    """


class CatalogSyncIn(Model, frozen=True, kw_only=True):
    dry_run: bool | UnsetType = UNSET
    """Only says what the sync would do"""


class ChangedProperty(Model, frozen=True, kw_only=True):
    """A property of the table that gets another value"""

    name: str | UnsetType = UNSET
    """Its name in hoodie.properties"""
    before: str | UnsetType | None = UNSET
    """Its value before; null if it had none"""
    after: str | UnsetType | None = UNSET
    """Its value afterwards; null if it has none"""


class ChangedSettingOut(Model, frozen=True, kw_only=True):
    setting: str
    """Name of the setting"""
    source: str
    """The level that would set the value"""
    before: bool | float | str | list[dict[str, Any]] | None
    """Its value now"""
    after: bool | float | str | list[dict[str, Any]] | None
    """Value after the edit"""


class Check(Model, frozen=True, kw_only=True):
    status: Literal["ok", "warning", "failing"]
    """`warning`: the service is ready nevertheless"""
    detail: str | UnsetType = UNSET
    """What is wrong in this case"""


class CheckNotMade(Model, frozen=True, kw_only=True):
    """A check that could not be made"""

    check: str | UnsetType = UNSET
    """The check"""
    reason: ResultReason | UnsetType = UNSET
    """Why it could not be made"""


class Checks(Model, frozen=True, kw_only=True):
    """What `/readyz` has checked."""

    database: Check
    """Whether the database answers"""
    scheduler: Check
    """The background tasks of this process"""
    workers: WorkersCheck
    """Whether a worker takes jobs"""


class CleaningIn(Model, frozen=True, kw_only=True):
    """Deletes file slices that no retained instant needs."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["cleaning"] = "cleaning"
    """Kind of job"""
    params: CleaningParams | UnsetType = UNSET
    """Parameters of the kind"""


class CleaningParams(Model, frozen=True, kw_only=True):
    plans: list[str] | UnsetType | None = UNSET
    """Pending plans to execute. The job executes exactly these, and schedules none"""
    take_over: bool | UnsetType | None = UNSET
    """Also execute `plans` that another process has begun without sending heartbeats. Set this only if that
    process is dead
    """
    parallelism: int | UnsetType | None = UNSET
    """Maximum number of concurrent tasks while `plans` are executed"""
    policy: CleaningPolicy | UnsetType = UNSET
    """What `retain` counts"""
    retain: int | UnsetType = UNSET
    """Commits, hours or file versions to keep"""
    files_per_clean: int | UnsetType | None = UNSET
    """Maximum number of files that one clean deletes, by default 100000. The job deletes more files by further
    cleans
    """


class CleaningPolicy(Word):
    """Hudi's `HoodieCleaningPolicy` (1.2)."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class CleaningPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    trigger: Trigger | UnsetType = UNSET
    """Which thresholds apply"""
    commits: int | UnsetType = UNSET
    """Since the last run"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    policy: CleaningPolicy | UnsetType = UNSET
    """What `retain` counts"""
    retain: int | UnsetType = UNSET
    """Commits, hours or file versions to keep"""
    consumer_hours: int | UnsetType = UNSET
    """Time after which nothing is kept for a silent consumer"""


class CleaningResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `cleaning`"""

    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    cleans: int | UnsetType = UNSET
    """Cleans into which the files are divided"""
    policy: str | UnsetType = UNSET
    """The policy that was applied"""
    retain: int | UnsetType = UNSET
    """The requested value of `retain`"""
    retained: int | UnsetType = UNSET
    """The value of `retain` that was used; it is higher than requested if consumers need more"""
    consumers: list[ConsumerSeen] | UnsetType = UNSET
    """Consumers for which more was kept"""
    partitions: int | UnsetType = UNSET
    """Partitions with files to delete"""
    dropped_partitions: list[str] | UnsetType = UNSET
    """Partitions that are deleted completely"""
    paths: list[str] | UnsetType = UNSET
    """Files that would be deleted; 1000 at most"""
    rolled_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that were rolled back"""
    late_files_deleted: int | UnsetType = UNSET
    """Files of fenced writers that were removed"""
    files_deleted: int | UnsetType = UNSET
    """Files that were deleted"""
    failed_deletes: int | UnsetType = UNSET
    """Files that could not be deleted"""
    plans: list[str] | UnsetType = UNSET
    """Plans that were executed"""
    completed_before: list[str] | UnsetType = UNSET
    """Plans that had completed before the job"""
    gone: list[str] | UnsetType = UNSET
    """Plans that do not exist any more"""
    scheduled: bool | UnsetType = UNSET
    """Always false, because a job with `plans` schedules none"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class ClockDisagreementOut(Model, frozen=True, kw_only=True):
    """Two clocks from which writers take the times of their instants in turn."""

    one_seconds: float
    """Offset of the one clock from UTC"""
    other_seconds: float
    """Offset of the other clock from UTC"""
    since: datetime
    """Beginning of this state"""


class ClockOut(Model, frozen=True, kw_only=True):
    """The clock from which writers take the times of instants, as measured by the last poll that found the
    timeline changed. The measurement uses at most 100 commits of writers, of two days.
    """

    utc_offset_seconds: float | None
    """Offset of the clock from UTC, zone included; null if no file of the timeline shows it"""
    zone_seconds: int | None
    """The part of the offset that looks like a time zone"""
    ahead_seconds: float | None
    """The rest of the offset, by which the clock is ahead"""
    since: datetime | None
    """When the first of the latest commits, all by this clock, appeared"""
    samples: int
    """Number of commits by this clock"""
    disagreement: ClockDisagreementOut | None
    """Two clocks, if writers use both in turn; then jobs that write are refused"""
    set_back: ClockSetBackOut | UnsetType | None = UNSET
    """Set if a clock was set back in the last two days, so that rows may be lost"""


class ClockSetBackOut(Model, frozen=True, kw_only=True):
    """A clock was set back: instants appeared that are earlier than an instant which had completed before them.
    The members describe the first such instant.
    """

    instant: str
    """Requested time of the instant"""
    after: str
    """The instant that had completed before"""
    seconds: float
    """How much earlier the instant is"""
    since: datetime
    """When the first such instant appeared"""
    instants: int
    """Number of such instants"""


class CloudEvent(Model, frozen=True, kw_only=True):
    """An event: CloudEvents 1.0, JSON"""

    specversion: Literal["1.0"] = "1.0"
    """Version of CloudEvents"""
    id: str
    """Id of the event"""
    source: str
    """The service"""
    type: str
    """Type of the event"""
    time: datetime
    """When the event happened"""
    sequence: str
    """Position of the event. If positions are sorted as texts, they are in the order of the events"""
    datacontenttype: Literal["application/json"] = "application/json"
    """Media type of `data`"""
    subject: str | UnsetType = UNSET
    """Id of the table"""
    data: dict[str, Any]
    """The event itself; GET /v1/event-types has its schema"""


class ClusteringIn(Model, frozen=True, kw_only=True):
    """Sorts the rows (inside each bucket, if the table has a bucket index), or merges small files."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["clustering"] = "clustering"
    """Kind of job"""
    params: ClusteringParams | GivenClusteringParams
    """Parameters of the kind"""


class ClusteringLayout(Word):
    """The order of rows: by one column after the other, or along a space-filling curve over all columns."""

    LINEAR = "linear"
    ZORDER = "zorder"
    HILBERT = "hilbert"


class ClusteringParams(Model, frozen=True, kw_only=True):
    """Without `sort_by` and `expansion_factor` the job merges small files; a table with a bucket index refuses
    that.
    """

    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    engine: CompactionEngine | UnsetType | None = UNSET
    """Who merges file slices with logs before their rows are written. `auto` (default): Arrow if its merge is
    proved to be equal to Hudi's, otherwise Hudi's readers. `arrow`: refuse slices for which this is not proved.
    `hudi`: always Hudi's readers
    """
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """
    sort_by: list[str] | UnsetType | None = UNSET
    """Columns, the most important one first"""
    layout: ClusteringLayout | UnsetType = UNSET
    """How `sort_by` orders the rows"""
    expansion_factor: int | UnsetType | None = UNSET
    """Prepares a table with a bucket index for an expansion by this factor, or by one that divides it. Rows that
    the expansion will separate go to different row groups, each ordered by `sort_by`; the expansion then copies
    whole row groups without decoding them. The effect lasts until the files are rewritten, for example by a
    compaction
    """
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Paths of partitions, relative to the base path"""


class ClusteringPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    sort_by: list[str] | UnsetType = UNSET
    """Parameter of the job; without it only small files are merged"""
    layout: ClusteringLayout | UnsetType = UNSET
    """How `sort_by` orders the rows"""
    expansion_factor: int | UnsetType | None = UNSET
    """Parameter of the job; or null"""
    small_file_share: float | UnsetType | None = UNSET
    """Share of base files that are small and not alone in their partition; or null"""
    unsorted_bytes: int | UnsetType | None = UNSET
    """Bytes written since the last clustering; or null"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    stale_plan_seconds: int | UnsetType = UNSET
    """Age at which a pending plan causes a warning. A job executes the plan if the process that began the plan is
    proved dead
    """
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class ClusteringResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `clustering`"""

    plans: list[str] | UnsetType = UNSET
    """Plans that were executed"""
    completed_before: list[str] | UnsetType = UNSET
    """Plans that had completed before the job"""
    gone: list[str] | UnsetType = UNSET
    """Plans that do not exist any more"""
    scheduled: bool | UnsetType = UNSET
    """Always false, because a job with `plans` schedules none"""
    inside_buckets: bool | UnsetType = UNSET
    """Whether rows were ordered inside each bucket"""
    proof: KeyProof | UnsetType = UNSET
    """The comparison of the rows before and after"""
    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: FileGroupNumbers | UnsetType = UNSET
    """Number of file groups"""
    files_read: int | UnsetType = UNSET
    """Files that were read"""
    files_written: int | UnsetType = UNSET
    """Files that were written"""
    files_copied: int | UnsetType = UNSET
    """Files that were written by copying row groups, without decoding rows"""
    merged: SlicesMerged | UnsetType = UNSET
    """Who merged file slices with logs"""
    engine: str | UnsetType = UNSET
    """The engine that would merge file slices with logs, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers would merge them; only in a dry run"""
    bytes_read: int | UnsetType = UNSET
    """Bytes that were read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes that were written"""
    rounds: int | UnsetType = UNSET
    """Rounds in which changed slices were rewritten again"""
    rewritten_again: int | UnsetType = UNSET
    """Slices that were rewritten again"""
    left_out: int | UnsetType = UNSET
    """Slices that were left out because writers changed them"""
    waited_seconds: float | UnsetType = UNSET
    """Wait for a moment without writes in flight"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    fenced: list[str] | UnsetType = UNSET
    """Instants of writers that were rolled back"""
    lock_lost: bool | UnsetType = UNSET
    """Whether the lock was lost after the commit"""
    repaired: list[str] | UnsetType = UNSET
    """Stale writes that were repaired afterwards"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class Column(Model, frozen=True, kw_only=True):
    """A column that is not one of Hudi's meta columns."""

    name: str
    """Name of the column"""
    type: str
    """Type of the column, as Arrow spells it"""


class CommitOut(Model, frozen=True, kw_only=True):
    """A completed instant. Counts are null if the action writes no data."""

    requested_time: str
    """The instant: its requested time, in the timeline's zone"""
    action: str
    """The completed action: a compaction is a `commit`"""
    completion_time: str | None
    """Null before table version 8, whose timelines do not contain it"""
    seen_at: datetime
    """When a poll saw the commit"""
    completed_at: datetime
    """When the commit completed"""
    operation: str | None
    """Hudi's WriteOperationType; null if the instant has none"""
    rows_written: int | None
    """Rows that the commit wrote"""
    rows_deleted: int | None
    """Rows that the commit deleted"""
    bytes_written: int | None
    """Bytes that the commit wrote"""
    partitions: list[str]
    """Partitions that the commit touched"""
    file_groups: int
    """File groups that the commit touched"""
    schema_changed: bool
    """Whether the schema differs from that of the previous commit"""
    is_news: bool
    """False for instants from before the registration"""
    id: int
    """Number of the commit; grows in the order in which commits were seen"""
    table_id: str
    """Id of the table"""


class CommitPage(Model, frozen=True, kw_only=True):
    items: list[CommitOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class CompactionEngine(Word):
    """The executor of compaction plans. `AUTO`: Arrow where its merge is proved to be equal to Hudi's, else
    Hudi's.
    """

    AUTO = "auto"
    ARROW = "arrow"
    HUDI = "hudi"


class CompactionIn(Model, frozen=True, kw_only=True):
    """Merges log files into new base files."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["compaction"] = "compaction"
    """Kind of job"""
    params: CompactionParams | UnsetType = UNSET
    """Parameters of the kind"""


class CompactionParams(Model, frozen=True, kw_only=True):
    """Without `plans` the job executes all pending plans, and then schedules and executes a plan for the rest.
    `limit_bytes`, `limit_file_groups` and `partitions` restrict both.
    """

    plans: list[str] | UnsetType | None = UNSET
    """Pending plans to execute. The job executes exactly these, and schedules none"""
    take_over: bool | UnsetType | None = UNSET
    """Also execute `plans` that another process has begun without sending heartbeats. Set this only if that
    process is dead
    """
    limit_bytes: int | UnsetType | None = UNSET
    """Maximum bytes of base and log files to read, the newest partitions first. At least one file group or pending
    plan is compacted, whatever its size. The result says what is `left`
    """
    limit_file_groups: int | UnsetType | None = UNSET
    """Maximum number of file groups to compact, in the same order. If `limit_bytes` is set too, both limits apply"""
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Paths of partitions, relative to the base path"""
    engine: CompactionEngine | UnsetType | None = UNSET
    """Who executes a plan. `auto` (default): Arrow, which is several times as fast, if its merge is proved to be
    equal to Hudi's; otherwise Hudi's executor. The result has the engine and the reasons for each plan.
    `arrow`: refuse plans for which this is not proved. `hudi`: always Hudi's executor
    """
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new base files. Default: the codec of the file that each one replaces"""


class CompactionPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    trigger: Trigger | UnsetType = UNSET
    """Which thresholds apply"""
    commits: int | UnsetType = UNSET
    """Since the last run"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    log_ratio: float | UnsetType | None = UNSET
    """Ratio of log bytes to base file bytes, in addition to the trigger; or null"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    stale_plan_seconds: int | UnsetType = UNSET
    """Age at which a pending plan causes a warning. A job executes the plan if the process that began the plan is
    proved dead
    """
    limit_bytes: int | UnsetType | None = UNSET
    """Parameter of the job; work beyond the limit is due at once; null: no limit"""
    limit_file_groups: int | UnsetType | None = UNSET
    """Parameter of the job; work beyond the limit is due at once; null: no limit"""
    engine: CompactionEngine | UnsetType = UNSET
    """Who executes a plan. `auto` (default): Arrow, which is several times as fast, if its merge is proved to be
    equal to Hudi's; otherwise Hudi's executor. The result has the engine and the reasons for each plan.
    `arrow`: refuse plans for which this is not proved. `hudi`: always Hudi's executor
    """
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new base files. Default: the codec of the file that each one replaces"""


class CompactionResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `compaction`"""

    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys: equal for equal sets of keys"""
    file_groups: int | UnsetType = UNSET
    """File groups with logs"""
    log_files: int | UnsetType = UNSET
    """Log files"""
    log_bytes: int | UnsetType = UNSET
    """Size of these log files in bytes"""
    bytes_written: int | UnsetType = UNSET
    """Bytes of the new base files"""
    pending_plans: list[str] | UnsetType = UNSET
    """Plans that were pending"""
    left: WorkLeft | UnsetType = UNSET
    """Work that is left to the next job"""
    withheld_plans: list[WithheldPlan] | UnsetType = UNSET
    """Plans of others that were not executed, with the reasons"""
    proof: KeyProof | UnsetType = UNSET
    """The comparison of the rows before and after"""
    engines: list[EngineOfPlan] | UnsetType = UNSET
    """Who executed each plan"""
    engine: str | UnsetType = UNSET
    """The engine that would execute a plan, as far as the dry run can tell; only in a dry run"""
    engine_reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi would execute it; only in a dry run"""
    plans: list[str] | UnsetType = UNSET
    """Plans that were executed"""
    completed_before: list[str] | UnsetType = UNSET
    """Plans that had completed before the job"""
    gone: list[str] | UnsetType = UNSET
    """Plans that do not exist any more"""
    scheduled: bool | UnsetType = UNSET
    """Always false, because a job with `plans` schedules none"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class ComparedShadowOut(Model, frozen=True, kw_only=True):
    shadow: ShadowOut
    """The shadow"""
    is_enough: bool
    """Whether the shadow has decided for a week"""
    comparison: SimulationOut
    """Outcomes since the shadow has started, but of a week at most. `now`: the real policy; `new`: the shadow,
    with the same commits; `actual`: what really happened
    """


class CompletedOut(Model, frozen=True, kw_only=True):
    requested_time: str
    """The instant: its requested time, in the timeline's zone"""
    action: str
    """Action of the instant on the table's timeline"""
    completion_time: str | None
    """Completion time of the instant; null before table version 8"""


class ConsumerIn(Model, frozen=True, kw_only=True):
    instant: str
    """The last commit that the consumer has seen: `requested_time` of GET /v1/commits"""


class ConsumerList(Model, frozen=True, kw_only=True):
    items: list[ConsumerOut]
    """The items of this page, or all if there are no pages"""


class ConsumerOut(Model, frozen=True, kw_only=True):
    """A consumer. Cleaning and archival keep the files that the consumer has yet to read, unless its last report
    is too old.
    """

    name: str
    """Name"""
    instant: str
    """Requested time of the last commit that the consumer has seen"""
    seen_at: datetime
    """Time of its last report"""
    created_at: datetime
    """Time of the creation"""
    expires_at: datetime
    """Time after which no files are kept for the consumer, unless it reports earlier"""
    stale: bool
    """Whether its last report is so old that no files are kept for it"""


class ConsumerSeen(Model, frozen=True, kw_only=True):
    """A consumer of the table for which more is kept"""

    name: str | UnsetType = UNSET
    """Its name"""
    instant: str | UnsetType = UNSET
    """The last commit that it has seen"""


class ContractionPolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what `auto` would do"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""
    min_bucket_bytes: int | UnsetType = UNSET
    """The average bucket of a partition is too small if it has fewer bytes"""


class CostOut(Model, frozen=True, kw_only=True):
    """Expected cost of an attempt, learned from attempts that have ended."""

    seconds: float
    """How long an attempt takes"""
    low_seconds: float
    """Nine of ten attempts take longer than this"""
    high_seconds: float
    """Nine of ten attempts take less than this"""
    gb_hours: float
    """GiB of memory of a slot, times hours; 0 if the workers do not report their memory"""
    low_gb_hours: float
    """Nine of ten attempts take more than this"""
    high_gb_hours: float
    """Nine of ten attempts take less than this"""
    learned_from: Basis
    """The jobs from which this is learned: earlier jobs of this kind on the same `table`, on tables of the same
    `shape`, or all of this `kind`; `default` if there are none
    """
    is_guess: bool
    """Whether no job of this kind has ended on this table"""
    amounts: list[AmountOut]
    """CPU seconds, and bytes of files that are read and written, if jobs of this kind and their workers report
    them
    """
    text: str
    """The same in words"""


class CostPart(Word):
    """A part of the cost that is learned. An ended attempt and its row in the database have members of these
    names. A worker's report has them too, except the seconds, which the service itself measures from the lease
    on.
    """

    SECONDS = "seconds"
    CPU_SECONDS = "cpu_seconds"
    BYTES_READ = "bytes_read"
    BYTES_WRITTEN = "bytes_written"


class Cure(Model, frozen=True, kw_only=True):
    """A job that repairs a damage"""

    kind: str | UnsetType = UNSET
    """Kind of the job"""
    params: dict[str, Any] | UnsetType = UNSET
    """Its parameters"""


class DamageFound(Model, frozen=True, kw_only=True):
    """A damage that was found"""

    type: str | UnsetType = UNSET
    """Type of the damage"""
    title: str | UnsetType = UNSET
    """What is damaged"""
    detail: str | UnsetType = UNSET
    """Where"""
    effect: str | UnsetType = UNSET
    """The effect on readers, writers or services"""
    hint: str | UnsetType = UNSET
    """What to do"""
    check: str | UnsetType = UNSET
    """The check that found it"""
    cure: Cure | UnsetType | None = UNSET
    """The job that repairs it; null if no job can"""


class DecisionOut(Model, frozen=True, kw_only=True):
    verdict: Verdict
    """`wait`: the job is due, but something blocks it"""
    code: str
    """The reason as a code"""
    because: str
    """The reason as a sentence"""
    first_at: datetime
    """Time at which the decision was first made"""
    last_at: datetime
    """Time of its last repetition; the figures are of this time"""
    count: int
    """How often the decision was made in succession"""
    params: dict[str, Any]
    """Parameters of the job that was started or suggested"""
    wanted_since: datetime | None
    """Time since which a waiting job has been due"""
    kind: JobKind
    """Kind of job"""
    warning: str | None
    """What needs attention although nothing has failed; null if nothing needs attention"""
    job_id: str | None
    """Id of the job; null if there is none"""
    cost: CostOut | UnsetType | None = UNSET
    """Expected cost of the job. Null unless the decision is current, the job is due, and such jobs have ended
    before
    """


class DecisionPage(Model, frozen=True, kw_only=True):
    items: list[DecisionOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class DelegatedService(Word):
    """The table services that a writer can delegate. The value is the last part of the path of the request."""

    COMPACT = "compact"
    CLUSTER = "cluster"
    CLEAN = "clean"


class DelegationOut(Model, frozen=True, kw_only=True):
    """The answer to a writer, which reads only its status."""

    table_id: str | None
    """Null if no table is registered with this base path"""
    stored: list[str]
    """Instants that were not known before"""


class DeliveryAttemptOut(Model, frozen=True, kw_only=True):
    status: int | None
    """HTTP status; null without an answer, and for Kafka and mail"""
    error: str | None
    """Why the attempt failed; null if there was an HTTP answer"""
    at: datetime
    """Time"""
    milliseconds: int
    """Until the status arrived, or the attempt was given up"""
    response: str
    """The beginning of the answer's body; for Kafka, partition and offset"""
    retry_at: datetime | None
    """When the next attempt is due; null if there is none"""


class DeliveryOut(Model, frozen=True, kw_only=True):
    id: str
    """Id of the delivery"""
    event_id: str
    """The `webhook-id` of the message, the same in every attempt and replay"""
    event_type: str
    """Type of the event"""
    state: DeliveryState
    """`pending`, `delivered`, or `dead`: given up unless replayed"""
    webhook_id: str
    """Id of the webhook"""
    table_id: str | None
    """Id of the table"""
    created_at: datetime
    """Time of the creation"""
    ended_at: datetime | None
    """Time of the end; null until then"""
    attempts: list[DeliveryAttemptOut]
    """All attempts, first to last"""


class DeliveryPage(Model, frozen=True, kw_only=True):
    items: list[DeliveryOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class DeliveryState(Word):
    """State of a delivery. A `DEAD` delivery was given up, but may be replayed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


class DemandByGroup(Model, frozen=True, kw_only=True):
    groups: dict[str, DemandOut]
    """The group `default`, the groups of the query, and all groups that have queued or running jobs or workers"""


class DemandOut(Model, frozen=True, kw_only=True):
    """The demand of a worker group, in numbers for a scaler and as a sentence. The members from `work_seconds` on
    come from a forecast.
    """

    queued: int
    """Queued jobs, including those that cannot start yet"""
    startable: int
    """Queued jobs that a free slot would take at once"""
    bytes: int
    """Size of the tables of startable jobs; each table counts once"""
    oldest_seconds: float
    """How long the oldest startable job has been due"""
    running: int
    """Jobs that workers hold"""
    workers: int
    """Ready workers that were seen within a minute"""
    waiting_workers: int
    """Workers that start Spark, or wait for a first executor"""
    slots: int
    """Slots of the ready workers"""
    wanted_slots: int
    """Number of slots that are needed so that no startable job waits longer than the goal; at least `running`"""
    goal_seconds: float
    """How long a job may wait for a slot"""
    work_seconds: float
    """Seconds that all due jobs together will take"""
    wait_seconds: float | None
    """When the last due job will start; null without a slot"""
    done_seconds: float | None
    """When the last due job will have ended; null without a slot"""
    held_back: int
    """Queued jobs that are not due: between two attempts, or until the writers stop"""
    guesses: int
    """Number of due jobs whose kind has not yet run on their table"""
    forecast: str
    """In words"""


class DiagnosisIn(Model, frozen=True, kw_only=True):
    """Looks for damages that are known to happen to Hudi tables, and names the job that repairs each one."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["diagnosis"] = "diagnosis"
    """Kind of job"""
    params: DiagnosisParams | UnsetType = UNSET
    """Parameters of the kind"""


class DiagnosisParams(Model, frozen=True, kw_only=True):
    rows: bool | UnsetType = UNSET
    """Read the key of every row as well: rows in wrong buckets, duplicate keys"""
    index: RequestsBucketIndexIn | UnsetType | None = UNSET
    """The bucket index of the writers. Needed for a table that was registered without an index because its files
    contradict this one
    """


class DiagnosisPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    rows: bool | UnsetType = UNSET
    """Read the key of every row as well: rows in wrong buckets, duplicate keys"""


class DiagnosisResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `diagnosis`"""

    healthy: bool | UnsetType = UNSET
    """All checks were made, and none found anything"""
    findings: list[DamageFound] | UnsetType = UNSET
    """Damages that were found"""
    checked: list[str] | UnsetType = UNSET
    """Checks that were made"""
    unchecked: list[CheckNotMade] | UnsetType = UNSET
    """Checks that could not be made"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class DiscoverIn(Model, frozen=True, kw_only=True):
    root: str
    """The folder: an absolute path or a URI (s3a://...)"""
    pattern: str | UnsetType = UNSET
    """A glob for the paths of tables relative to the root; `*` also matches slashes"""
    register: bool | UnsetType = UNSET
    """Registers every table that was found and is not registered yet, with the members below"""
    limit: int | UnsetType = UNSET
    """Maximum number of tables that this call examines or registers. Tables that are already registered do not
    count
    """
    lock: LockIn | UnsetType = UNSET
    """The lock that the writers of all tables take"""
    writers: WritersIn | UnsetType | None = UNSET
    """What is known about the writers of all tables"""
    readers: ReadersIn | UnsetType | None = UNSET
    """What is known about the readers of all tables"""
    hudi_options: dict[str, str] | UnsetType = UNSET
    """Added to the Hudi client's options in every job"""
    owner: str | UnsetType | None = UNSET
    """Who is responsible for the table: a team, a person, an address; for filters, policies and reports"""
    tags: dict[str, str] | UnsetType = UNSET
    """Keys with values. Filters, policies and reports select tables by them. A value may be empty"""
    rules: list[str] | UnsetType = UNSET
    """Rules that derive owner and tags from paths below the root: `{team}/*` gives the tag `team`, `{owner}` the
    owner; `*` is one folder, `**` any number. If several rules give the same tag, the first one counts; rules
    take precedence over `owner` and `tags`
    """


class DiscoveryOut(Model, frozen=True, kw_only=True):
    items: list[FoundTable]
    """The tables that match, in the order of their paths"""
    skipped: list[SkippedFolder]
    """Folders that could not be listed; 50 at most"""
    is_complete: bool
    """False if a limit of depth, number or time ended the search. Then repeat a call that registers, or name
    folders further below
    """


class EffectivePolicyOut(Model, frozen=True, kw_only=True):
    policy: dict[str, Any]
    """The effective policy of the table, with every member"""
    sources: dict[str, str]
    """The source of each member: `default`, `pattern <glob>` or `table`"""


class EngineOfPlan(Model, frozen=True, kw_only=True):
    """Who executed a plan"""

    instant: str | UnsetType = UNSET
    """The plan"""
    engine: str | UnsetType = UNSET
    """Who executed it: arrow or hudi"""
    reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi executed it"""


class EstimatedCost(Model, frozen=True, kw_only=True):
    """What the work would cost"""

    bytes_read: int | UnsetType = UNSET
    """Bytes to read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes to write, at most"""
    tasks: int | UnsetType = UNSET
    """Tasks of Spark"""
    requests: int | UnsetType = UNSET
    """Requests to the storage"""
    deletes: int | UnsetType = UNSET
    """Files to delete"""


class EvaluationOut(Model, frozen=True, kw_only=True):
    looked_at: datetime | None
    """Time of the last poll that found the timeline changed; null: never polled, so there is no decision"""
    decisions: list[DecisionOut]
    """The decisions that would be made now, one for each kind"""


class EventType(Word):
    """Types of events. `service.api.event_catalogue` describes each."""

    COMMIT_PUBLISHED = "commit.published"
    JOB_QUEUED = "job.queued"
    JOB_STARTED = "job.started"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    EXPANSION_DRAINING = "expansion.draining"
    EXPANSION_COMMITTED = "expansion.committed"
    EXPANSION_ABORTED = "expansion.aborted"
    TABLE_REGISTERED = "table.registered"
    TABLE_UNHEALTHY = "table.unhealthy"
    TABLE_RECOVERED = "table.recovered"
    TABLE_INCIDENT_OPENED = "table.incident_opened"
    TABLE_INCIDENT_CLOSED = "table.incident_closed"
    TABLE_SUGGESTED = "table.suggested"
    ADVICE_APPLIED = "advice.applied"
    ADVICE_TAKEN_BACK = "advice.taken_back"
    PROBLEM_OPENED = "problem.opened"
    PROBLEM_RESOLVED = "problem.resolved"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_TEST = "webhook.test"
    NOTIFICATION_SENT = "notification.sent"
    NOTIFICATION_TEST = "notification.test"


class EventTypeList(Model, frozen=True, kw_only=True):
    items: list[EventTypeOut]
    """The items of this page, or all if there are no pages"""


class EventTypeOut(Model, frozen=True, kw_only=True):
    type: EventType
    """The type"""
    description: str
    """When such an event is sent"""
    data_schema: dict[str, Any]
    """JSON Schema (2020-12) of the event's `data`"""
    example: CloudEvent
    """A whole event: CloudEvents 1.0, JSON"""


class Examination(Model, frozen=True, kw_only=True):
    """The checks of an audit that read no rows"""

    findings: list[DamageFound] | UnsetType = UNSET
    """Damages that were found"""
    checked: list[str] | UnsetType = UNSET
    """Checks that were made"""
    unchecked: list[CheckNotMade] | UnsetType = UNSET
    """Checks that could not be made"""


class ExpansionPolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what `auto` would do"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """
    settle_seconds: int | UnsetType = UNSET
    """How long the job watches afterwards for writers that still use the old number"""
    codec: Literal["gzip", "snappy", "zstd"] | UnsetType | None = UNSET
    """Compression of the new files. Default: the table's"""
    max_bucket_bytes: int | UnsetType = UNSET
    """Size limit of the largest bucket"""


class ExpiredPartition(Model, frozen=True, kw_only=True):
    """A partition that has expired"""

    partition: str | UnsetType = UNSET
    """Its path"""
    since: str | UnsetType | None = UNSET
    """The instant from which its age is counted"""
    modified: str | UnsetType | None = UNSET
    """The instant that wrote to it last"""
    file_groups: int | UnsetType = UNSET
    """File groups in the partition"""
    files: int | UnsetType = UNSET
    """Files in the partition"""
    rows: int | UnsetType | None = UNSET
    """Rows in the partition"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""


class FieldError(Model, frozen=True, kw_only=True):
    field: str
    """Name of the member or parameter, as a path"""
    message: str
    """What is wrong with the value"""


class FiguresOut(Model, frozen=True, kw_only=True):
    """Work and cost of attempts. Amounts of data are those of successful attempts, without dry runs."""

    succeeded: int
    """Attempts that succeeded, dry runs included"""
    failed: int
    """Attempts that failed, or whose worker disappeared"""
    seconds: float
    """Time that workers spent on attempts, failed ones and dry runs included"""
    gb_seconds: float
    """`seconds` of each attempt, multiplied by the memory of one slot in GiB: the memory of the worker's driver
    and executors, divided by the worker's slots. A worker that does not report its memory counts as 0
    """
    freed_bytes: float
    """Size of the files that cleanings have deleted"""
    files_deleted: float
    """Number of files that cleanings have deleted"""
    files_before: float
    """Files that clusterings, expansions and contractions have replaced"""
    files_after: float
    """Files that these jobs have written instead"""
    log_files: float
    """Log files that compactions have merged"""
    log_bytes: float
    """Size of the merged log files in bytes"""
    locked_seconds: float
    """Time for which commits of jobs held the lock of a table. A writer that wanted to commit waited no longer
    than this
    """
    stopped_seconds: float
    """Time for which Flink jobs were stopped for a job, until its attempt ended"""
    cost: float | UnsetType | None = UNSET
    """`gb_seconds` as hours, times GROUNDSKEEPER_PRICE_PER_GB_HOUR; null without that setting"""


class FileGroupNumbers(Model, frozen=True, kw_only=True):
    """Numbers of file groups before and after a job"""

    before: int | UnsetType = UNSET
    """Before the job"""
    after: int | UnsetType | None = UNSET
    """After the job; null if not known"""


class FilesOut(Model, frozen=True, kw_only=True):
    """Totals of the latest file slices, and of the files that are in no latest file slice. A cleaning could free
    at most the files in no latest slice.
    """

    file_groups: int
    """Number of file groups with a latest file slice"""
    base_files: int
    """Number of base files"""
    base_bytes: int
    """Size of the base files"""
    log_files: int
    """Number of log files that are not compacted"""
    log_bytes: int
    """Size of the log files"""
    small_files: int
    """Number of base files below `small_file_bytes` of the settings"""
    small_bytes: int
    """Size of the small base files"""
    freed_files: int
    """Number of files that are in no latest file slice"""
    freed_bytes: int
    """Size of these files"""
    rows: int | None
    """Rows in base files; null if the number is not known for every file"""


class FindingKind(Word):
    """The kind of a difference. `NEW`: in the catalog, but not registered. `MOVED`: the catalog has another
    location. `DROPPED`: registered, but not in the catalog any more. `REFUSED`: the table cannot be registered.
    `BROKEN`: the entry cannot be read.
    """

    NEW = "new"
    MOVED = "moved"
    DROPPED = "dropped"
    REFUSED = "refused"
    BROKEN = "broken"


class FinishExpansionIn(Model, frozen=True, kw_only=True):
    """Retires the hashing config of an expansion once every writer has the new number of buckets as its own
    option.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["finish_expansion"] = "finish_expansion"
    """Kind of job"""
    params: FinishExpansionParams | UnsetType = UNSET
    """Parameters of the kind"""


class FinishExpansionParams(Model, frozen=True, kw_only=True):
    undo: bool | UnsetType = UNSET
    """Restore the hashing config that was retired last"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class FinishExpansionResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `finish_expansion`"""

    num_buckets: int | UnsetType | None = UNSET
    """Number of buckets in the config; null without a config"""
    retired: list[str] | UnsetType = UNSET
    """Folders of the configs that are retired, the last one at the end"""
    in_force: bool | UnsetType = UNSET
    """Whether a config is in force"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class FlinkIn(Model, frozen=True, kw_only=True):
    """The Flink job that writes the table. The service stops it with a savepoint when a job needs the writers
    stopped. The host must be one of GROUNDSKEEPER_FLINK_HOSTS.
    """

    rest_url: str
    """Address of the cluster's REST API"""
    job: str
    """Name of the Flink job (`pipeline.name`), or its id"""
    savepoint_folder: str | UnsetType | None = UNSET
    """Default: `execution.checkpointing.savepoint-dir` of the cluster"""
    restart: FlinkRestart | UnsetType = UNSET
    """How you start the job again after each stop. Without a declared bucket index, the service stops the job only
    if this is `without-state`, because the job's state may hold the file group of each key
    """


class FlinkOut(Model, frozen=True, kw_only=True):
    rest_url: str
    """Address of the cluster's REST API"""
    job: str
    """Name or id of the job"""
    savepoint_folder: str | None
    """Folder of the Flink job's savepoints; null for the cluster's own"""
    restart: FlinkRestart
    """How the Flink job is started again after each stop"""


class FlinkRestart(Word):
    """The way in which a Flink job has to be started after file groups were replaced.

    A Flink job with a bucket index reads the file groups from the table when it starts. If the index is another
    one, the state of the Flink job may contain the file group of each key (`FLINK_STATE`, the default). Such a
    Flink job has to start without that state.
    """

    FROM_SAVEPOINT = "from-savepoint"
    WITHOUT_STATE = "without-state"


class ForecastOut(Model, frozen=True, kw_only=True):
    """Expected start, end and cost of an active job, from the order of the queue and the durations of ended jobs."""

    seconds: float
    """How long an attempt takes"""
    low_seconds: float
    """Nine of ten attempts take longer than this"""
    high_seconds: float
    """Nine of ten attempts take less than this"""
    gb_hours: float
    """GiB of memory of a slot, times hours; 0 if the workers do not report their memory"""
    low_gb_hours: float
    """Nine of ten attempts take more than this"""
    high_gb_hours: float
    """Nine of ten attempts take less than this"""
    learned_from: Basis
    """The jobs from which this is learned: earlier jobs of this kind on the same `table`, on tables of the same
    `shape`, or all of this `kind`; `default` if there are none
    """
    is_guess: bool
    """Whether no job of this kind has ended on this table"""
    amounts: list[AmountOut]
    """CPU seconds, and bytes of files that are read and written, if jobs of this kind and their workers report
    them
    """
    text: str
    """The same in words"""
    starts_at: datetime | None
    """Expected start of a queued job; null while its group has no ready worker, or the table's writers must stop"""
    ends_at: datetime | None
    """Expected end of its attempt; null if the start is not known"""
    held_back_by: HeldBack | None
    """Why a queued job is not due; null if the job is due"""


class FoundBeside(Model, frozen=True, kw_only=True):
    """Work of others on the table"""

    dead_writers: list[str] | UnsetType = UNSET
    """Instants of dead writers"""
    writers: list[str] | UnsetType = UNSET
    """Instants that writers have in flight"""
    plans: list[str] | UnsetType = UNSET
    """Plans that are pending"""


class FoundState(Word):
    """`registered` includes tables that this call has registered."""

    REGISTERED = "registered"
    CAN_BE_REGISTERED = "can-be-registered"
    REFUSED = "refused"


class FoundTable(Model, frozen=True, kw_only=True):
    """A table below the root."""

    base_path: str
    """Canonical, as in a registration"""
    name: str | None
    """The name in its `hoodie.properties`; null if the file was not read"""
    table_type: str | None
    """Type in its properties"""
    table_version: int | None
    """Version in its properties"""
    state: FoundState
    """Whether the table is registered, can be registered, or is refused"""
    is_new: bool
    """Whether this call has registered the table"""
    table_id: str | None
    """Null unless the table is registered"""
    reason: ReasonOut | None
    """Why the table is refused; null otherwise"""
    owner: str | None
    """The owner that this search declares when it registers the table; a registered table keeps its own"""
    tags: dict[str, str]
    """The tags that this search declares when it registers the table"""


class FreezeIn(Model, frozen=True, kw_only=True):
    starts_at: datetime
    """When the freeze begins"""
    ends_at: datetime
    """When the freeze ends, later than `starts_at`"""
    tables: list[str] | UnsetType = UNSET
    """Patterns of tables, as in policies: `orders_*`, `tag:team=shop`; all by default"""
    reason: str | UnsetType = UNSET
    """Shown to other users"""


class FreezeInCalendar(Model, frozen=True, kw_only=True):
    freeze: FreezeOut
    """The freeze"""
    tables: int
    """Number of tables that match the freeze"""
    table_names: list[str]
    """Names of the first of these tables"""


class FreezeList(Model, frozen=True, kw_only=True):
    items: list[FreezeOut]
    """The items of this page, or all if there are no pages"""


class FreezeOut(Model, frozen=True, kw_only=True):
    name: str
    """Name of the freeze"""
    starts_at: datetime
    """When the freeze begins"""
    ends_at: datetime
    """When the freeze ends"""
    tables: list[str]
    """Ids of tables or patterns of their names; empty for all"""
    reason: str
    """The reason, for other users"""
    set_by: str
    """Who has set the freeze"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""


class GainOut(Model, frozen=True, kw_only=True):
    """What a job of a policy was expected to save each read, and what it has saved according to its result."""

    job_id: str
    """Id of the job; null if there is none"""
    kind: JobKind
    """Kind of job"""
    created_at: datetime
    """Time of the creation"""
    expected_seconds: float
    """Processor seconds that the job was expected to save each read"""
    saved_seconds: float | None
    """Processor seconds that the job has saved each read; null until the job has succeeded"""
    overhead_before: float
    """Overhead of reads when the job was queued"""
    overhead_after: float | None
    """Overhead at the first poll after the job, which includes later writes"""


class GivenClusteringParams(Model, frozen=True, kw_only=True):
    """Executes Hudi's own plans; refused on a table with a bucket index, whose layout they would break."""

    plans: list[str]
    """Pending plans to execute. The job executes exactly these, and schedules none"""
    take_over: bool | UnsetType | None = UNSET
    """Also execute `plans` that another process has begun without sending heartbeats. Set this only if that
    process is dead
    """
    parallelism: int | UnsetType | None = UNSET
    """Maximum number of concurrent tasks while `plans` are executed"""


class GroupBy(Word):
    """The grouping of the figures of a report."""

    TABLE = "table"
    OWNER = "owner"
    TAG = "tag"
    KIND = "kind"


class GroupCheck(Model, frozen=True, kw_only=True):
    ready: int
    """Workers that take jobs"""
    waiting: int
    """Workers that start Spark, or wait for a first executor"""
    queued: int
    """Queued jobs"""


class GroupWrittenTo(Model, frozen=True, kw_only=True):
    """A replaced file group to which a stale write wrote"""

    partition: str | UnsetType = UNSET
    """Path of the file group's partition"""
    file_id: str | UnsetType = UNSET
    """Its id"""
    replaced_by: str | UnsetType = UNSET
    """The instant that had replaced the file group"""


class GrowthOut(Model, frozen=True, kw_only=True):
    """How the largest bucket of the table grows."""

    largest_bytes: int
    """Size of the largest bucket"""
    bytes_per_day: int
    """Bytes by which that bucket grows in a day"""
    num_buckets: int
    """Number of buckets"""
    needed: int
    """The next number of buckets that the table needs"""
    needed_at: datetime | None
    """When the largest bucket reaches its limit; null if that will take years"""
    in_90_days: int
    """Number of buckets that is needed in 90 days"""
    factor: int
    """Factor of an expansion that lasts for 90 days; 1 if no expansion is needed"""
    quiet_at: datetime | None
    """The best time for an expansion: the present or next maintenance window or quiet hour; null if no expansion
    is needed
    """
    text: str
    """The same in words"""
    time_zone: str
    """The policy's time zone, in which the text gives times"""


class HandOverOut(Model, frozen=True, kw_only=True):
    state: HandOverState
    """`draining`: a user has to stop the writers; `stopping`: the service is stopping them"""
    deadline: datetime
    """If the writers are not stopped by this time, the job fails without any change"""
    by: str | None
    """The caller that stopped the writers, or `groundskeeper`"""
    savepoint: str | None
    """The savepoint with which the Flink job was stopped"""
    detail: str
    """The condition that the job waits for, or the result"""
    restart: FlinkRestart
    """The way in which Flink has to be started afterwards"""
    since: datetime
    """Beginning of this state"""


class HandOverState(Word):
    """States: draining (someone has to stop the writers) -> stopping (the service stops them) -> stopped |
    expired.
    """

    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXPIRED = "expired"


class Health(Word):
    """The severity of the most serious problem of a table, or `healthy` without any."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"
    HEALTHY = "healthy"


class HealthOut(Model, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"
    """Always `ok`"""


class HealthProblemOut(Model, frozen=True, kw_only=True):
    """Something that is wrong now. A problem is listed until its cause has gone; nobody has to close it."""

    kind: ProblemKind
    """Kind of problem"""
    severity: Severity
    """`critical`: rows are wrong or unreadable, or nothing is done any more; `warning`: it becomes worse by
    itself; `notice`: it can wait
    """
    since: datetime
    """When the problem began, as exactly as this is known"""
    title: str
    """What is wrong"""
    detail: str
    """The evidence in a sentence"""
    consequence: str
    """What happens if nobody does anything"""
    remedy: str
    """What to do"""
    command: str
    """A line for a shell that applies the remedy, or shows facts that it needs. Replace words in angle brackets,
    such as `<COLUMN>`; until then a shell refuses the line
    """
    evidence: dict[str, str | float | bool | list[str] | None]
    """Figures that depend on the kind"""
    id: str
    """The id stays the same as long as the problem lasts, and when it comes back"""
    about: AboutOut
    """The object that has the problem"""
    table_id: str | None
    """Null unless the problem is about a table"""
    action: ActionOut | None
    """A call of the API that applies the remedy; null if there is none"""
    acknowledged: AcknowledgementOut | UnsetType | None = UNSET
    """Set if somebody has acknowledged the problem; null again once the acknowledgement or the problem ends, or
    the problem becomes more serious
    """


class HealthProblemPage(Model, frozen=True, kw_only=True):
    items: list[HealthProblemOut]
    """The items of this page, or all if there are no pages"""
    counts: SeverityCounts
    """Numbers by severity, of all pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class HeldBack(Word):
    """Reasons why a queued job is not due. It is between two attempts, or it waits until the writers have stopped,
    until the table's lock is free, until a pause ends, or until a maintenance window opens.
    """

    NEXT_ATTEMPT = "next_attempt"
    WRITERS = "writers"
    LOCK = "lock"
    PAUSE = "pause"
    WINDOW = "window"


class HeldLockOut(Model, frozen=True, kw_only=True):
    """A table's lock, and signs of whether its holder is alive."""

    state: LockState
    """`unknown`: the service has no client for this provider. In a dry run of a job a worker reads the lock"""
    path: str | None
    """File of the lock"""
    id: str | None
    """Changes when another holder gets the lock, or when the same holder takes it again"""
    since: datetime | None
    """Time at which the lock was taken; null if not known"""
    holder: str | None
    """Who holds it, as far as that is known: Hudi does not sign its filesystem lock, this service does"""
    ends_at: datetime | None
    """When the lock ends unless its holder renews it; null: never, or not known"""
    table_id: str
    """Id of the table"""
    provider: str
    """Class of Hudi's lock provider"""
    detail: str | None
    """Why the state is unknown"""
    age_seconds: float | None
    """Seconds since the lock was taken"""
    ending: str
    """How a lock of this provider ends if its holder never releases it"""
    break_after_seconds: float
    """Age from which the lock may be broken"""
    is_breakable: bool
    """Whether DELETE would break the lock now"""
    refusal: RefusalOut | None
    """Why the lock cannot be broken now; null if it can"""
    writers: list[WriterHeartbeatOut]
    """Heartbeats of writers, latest first; at most 100"""
    pending: list[PendingOut]
    """Pending instants of the table"""
    jobs: list[LockJobOut]
    """Jobs of this service that may hold the lock or wait for it"""


class HistoryOut(Model, frozen=True, kw_only=True):
    items: list[SampleOut]
    """Oldest first"""


class IncidentCloseIn(Model, frozen=True, kw_only=True):
    reason: str
    """Kept with the incident, with the caller that closed it"""


class IncidentCounts(Model, frozen=True, kw_only=True):
    """Counts of unresolved incidents; `GET /v1/tables/{id}/incidents` lists them."""

    open: int | UnsetType = UNSET
    """Open incidents"""
    suspected: int | UnsetType = UNSET
    """Suspected incidents"""


class IncidentDetails(Model, frozen=True, kw_only=True):
    """Figures of an incident, depending on its kind"""

    rows: int | UnsetType | None = UNSET
    """Rows that are misplaced; null if not known"""
    file_groups: int | UnsetType = UNSET
    """Number of replaced file groups to which the commit wrote"""
    partitions: int | UnsetType = UNSET
    """Number of partitions to which the commit wrote"""
    groups: list[GroupWrittenTo] | UnsetType = UNSET
    """The first of these file groups"""
    doubt: str | UnsetType = UNSET
    """Why it is not proved that the commit came after the replacement; absent if it is proved"""
    by_partition: list[SuspectedPartition] | UnsetType = UNSET
    """The first of the partitions"""
    job_id: str | UnsetType = UNSET
    """The job that found the incident, or that fenced the write"""
    job_kind: str | UnsetType = UNSET
    """Kind of the job that fenced the write"""
    type: str | UnsetType = UNSET
    """Type of the damage"""
    title: str | UnsetType = UNSET
    """What is damaged"""
    detail: str | UnsetType = UNSET
    """Where"""
    effect: str | UnsetType = UNSET
    """The effect on readers, writers or services"""
    hint: str | UnsetType = UNSET
    """What to do"""
    check: str | UnsetType = UNSET
    """The check that found it"""
    cure: Cure | UnsetType | None = UNSET
    """The job that repairs it; null if no job can"""


class IncidentKind(Word):
    """`STALE_WRITE`: a commit wrote to file groups that had been replaced, so no reader sees its rows there.
    `OLD_NUMBER`: a commit seems to come from a writer with an old number of buckets, or without the bucket
    index. After an expansion, all rows that the commit wrote to a partition lie in the old buckets. After a
    contraction, some rows lie in buckets that were removed. `LATE_FILES`: a fenced writer may be alive, and may
    still write files. Readers would use these files when the rollback of its write has been archived. `DAMAGE`:
    a diagnosis, an audit or the checks after a job have found a damage; `details` describe the damage, and
    `instant` is the time of the check.
    """

    STALE_WRITE = "stale-write"
    OLD_NUMBER = "old-number"
    LATE_FILES = "late-files"
    DAMAGE = "damage"


class IncidentOut(Model, frozen=True, kw_only=True):
    """An incident. `title`, `detail` and `hint` describe its effect on the table's readers, and the remedy."""

    id: str
    """Id of the incident"""
    table_id: str
    """Id of the table"""
    kind: IncidentKind
    """`stale-write`, `late-files` of a fenced write, or `damage` found by a diagnosis"""
    instant: str
    """The commit that caused the incident, or the write that was fenced; for a damage, when it was found (UTC)"""
    state: IncidentState
    """`suspected`: only a check of the rows can prove it, as a repair does"""
    operation: str | None
    """Hudi's WriteOperationType of that commit"""
    details: IncidentDetails
    """Figures that depend on the kind"""
    because: str | None
    """The reason for closing it, and the user if a user closed it"""
    title: str
    """What the incident means for readers"""
    detail: str
    """What is wrong in this case"""
    hint: str
    """The remedy"""
    opened_at: datetime
    """Time at which the incident was found"""
    closed_at: datetime | None
    """Time at which the incident was closed; null while open"""


class IncidentPage(Model, frozen=True, kw_only=True):
    items: list[IncidentOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class IncidentState(Word):
    """The state of an incident. `SUSPECTED`: only the rows can prove the incident, and a repair checks the rows.
    `CLEARED`: there was nothing to repair, or a user closed the incident.
    """

    SUSPECTED = "suspected"
    OPEN = "open"
    REPAIRED = "repaired"
    CLEARED = "cleared"


class IndexChoiceOut(Model, frozen=True, kw_only=True):
    """Whether a bucket index would suit the table's writers."""

    kind: JobKind | None
    """The job that would change the index; null if the index may stay"""
    upserts: int
    """Upserts of the last week, the latest 200 of them"""
    touched: float
    """Share of the file groups of its partitions that the median upsert touches"""
    text: str
    """The same in words"""


class IndexCost(Model, frozen=True, kw_only=True):
    """What the index costs a writer, by the latest commits of the table"""

    commits: int | UnsetType = UNSET
    """Number of commits from which this was computed"""
    entries_per_commit: int | UnsetType = UNSET
    """Entries that a commit writes, at most"""
    bytes_per_commit: int | UnsetType = UNSET
    """Size of these entries in bytes, at most"""


class IndexDifference(Model, frozen=True, kw_only=True):
    """A difference between an index and the rows"""

    partition: str | UnsetType = UNSET
    """The index"""
    missing: list[str] | UnsetType = UNSET
    """Rows without a right entry, at most 100; for statistics, files or partitions without any entry, which
    readers never skip
    """
    hiding: list[str] | UnsetType = UNSET
    """Columns by whose statistics queries skip files or partitions although they match"""
    beyond: list[str] | UnsetType = UNSET
    """Entries without a row, at most 100"""


class IndexIn(Model, frozen=True, kw_only=True):
    """Builds an index of the metadata table, drops it, or compares it with the rows."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["index"] = "index"
    """Kind of job"""
    params: IndexParams | UnsetType = UNSET
    """Parameters of the kind"""


class IndexOut(Model, frozen=True, kw_only=True):
    type: Literal["bucket"] = "bucket"
    """Type of the index"""
    num_buckets: int
    """Number of buckets; 0 without a bucket index"""
    hash_fields: list[str]
    """Fields whose hash decides the bucket"""


class IndexParams(Model, frozen=True, kw_only=True):
    action: Literal["verify", "build", "drop"] | UnsetType = UNSET
    """`verify` compares the indexes with the rows and shows their size and age. `build` builds the `index`, and
    `drop` drops it, both under the table's lock
    """
    index: (
        Literal["record", "partitioned_record", "column_stats", "bloom_filters", "secondary", "expression"]
        | UnsetType
        | None
    ) = UNSET
    """The index: `record` (one for the whole table), `partitioned_record` (keys are unique in each partition
    only), `column_stats`, `bloom_filters`; `secondary` and `expression` can only be verified and dropped.
    Required to build and to drop; `verify` without it compares all
    """
    name: str | UnsetType | None = UNSET
    """The name of a secondary or expression index, as in `CREATE INDEX`"""
    columns: list[str] | UnsetType | None = UNSET
    """The columns of `column_stats`. Default: the first 32 columns of the table, as Hudi's writers do"""
    file_groups: int | UnsetType | None = UNSET
    """Number of file groups of a record index. Default: Hudi chooses by the number of rows"""
    lock_seconds: int | UnsetType = UNSET
    """The maximum time for which writers may have to wait while the index is built and compared. A build that
    takes longer is taken back
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment without writes in flight"""


class IndexResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `index`"""

    files: int | UnsetType = UNSET
    """Number of files of the latest file slices"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    partitions: list[str] | UnsetType = UNSET
    """Partitions of the metadata table that are built or dropped"""
    cost: IndexCost | UnsetType = UNSET
    """What it would cost a writer; only in a dry run"""
    writer_options: list[WriterOption] | UnsetType = UNSET
    """Options that every Spark writer needs, because a writer without them drops the index at its next commit"""
    compared: list[str] | UnsetType = UNSET
    """Indexes that were compared with the rows"""
    differences: list[IndexDifference] | UnsetType = UNSET
    """Differences from the rows"""
    indexes: list[IndexShown] | UnsetType = UNSET
    """The indexes of the table"""
    locked_seconds: float | UnsetType = UNSET
    """Time for which the table's lock was held"""
    undone: bool | UnsetType = UNSET
    """Whether the job first removed an index that was half built or half dropped"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class IndexShown(Model, frozen=True, kw_only=True):
    """An index of the table: one partition of its metadata table"""

    partition: str | UnsetType = UNSET
    """Its partition of the metadata table"""
    columns: list[str] | UnsetType = UNSET
    """The columns of the index, if its definition names any"""
    base_files: int | UnsetType = UNSET
    """Base files (HFiles)"""
    log_files: int | UnsetType = UNSET
    """Log files, which each reader merges"""
    bytes: int | UnsetType = UNSET
    """Size of the base and log files in bytes"""
    age_seconds: float | UnsetType = UNSET
    """Time since the index was built"""


class JobDetail(Model, frozen=True, kw_only=True):
    id: str
    """Id of the job"""
    not_before: datetime
    """No worker gets the job earlier"""
    params: dict[str, Any]
    """Parameters of the kind, with all defaults"""
    state: JobState
    """`queued`, `leased` by a worker, `running`, or ended. `unknown`: the table's timeline will tell"""
    attempt: int
    """Number of leases so far"""
    max_attempts: int
    """Attempts after which the job fails"""
    lease_deadline: datetime | None
    """When the lease expires without a heartbeat"""
    instants: list[str]
    """Instants that the job's attempts created on the table's timeline"""
    result: dict[str, Any] | None
    """Measured values; for a dry run, the plan"""
    cancel_requested: bool
    """Whether somebody has asked to cancel the job"""
    priority: int
    """Jobs with a higher priority start first"""
    worker_group: str
    """Only workers of this group get the job"""
    timeout_seconds: int | None
    """Time limit of one attempt; null: the service's setting"""
    requested_by: str | None
    """The caller that submitted the job, or `policy`"""
    retry_of: str | None
    """The job that this one repeats, which may have been deleted"""
    reason: str | None
    """The reason, if a policy submitted the job"""
    leased_at: datetime | None
    """When a worker last took the job; null before"""
    worth: float | None
    """Processor seconds that readers have paid for the job's delay, per second of its work; null if unknown"""
    starts_by: datetime | None
    """When the job begins to go before other jobs, even if these save more"""
    table_id: str
    """Id of the table"""
    table_name: str
    """The name of the table"""
    kind: JobKind
    """Kind of job"""
    dry_run: bool
    """Whether the job only plans, and changes nothing"""
    worker_id: str | None
    """Id that the worker has given itself; null if no worker has the job"""
    progress: ProgressOut | None
    """What the job does now; null before it runs"""
    verdict: JobVerdict | None
    """The result of a dry run: its plan is `ready`, the job would be `refused`, or there is `nothing_to_do`.
    Another job has a verdict only if it was refused or had nothing to do
    """
    error: JobProblem | None
    """Error of the last attempt"""
    created_at: datetime
    """Time of the creation"""
    started_at: datetime | None
    """Time of the start; null before the start"""
    finished_at: datetime | None
    """Time of the end, successful or not; null until then"""
    hand_over: HandOverOut | None
    """The hand-over of a job that waits, or has waited, until the writers are stopped"""
    waits_for: str | UnsetType | None = UNSET
    """What a queued job, or the present step of a running one, waits for; to be read after the words `waits for`.
    Null if it does not wait
    """
    forecast: ForecastOut | UnsetType | None = UNSET
    """Null for a job that has ended, or whose state changed a moment ago"""
    cost: CostOut | UnsetType | None = UNSET
    """Expected cost of the job that this dry run has planned; null unless the plan is ready"""
    breaker: BreakerOut | UnsetType | None = UNSET
    """Set for a queued job while attempts of its kind fail on the table"""
    attempts: list[AttemptOut]
    """All attempts, first to last"""
    spent: SpentOut
    """How long the job waited and worked, and the sum of both"""


class JobKind(Word):
    """Table services, repairs, and jobs that only read. Each has a module of its name in `jobs.kinds`."""

    COMPACTION = "compaction"
    CLEANING = "cleaning"
    CLUSTERING = "clustering"
    BUCKET_EXPANSION = "bucket_expansion"
    BUCKET_CONTRACTION = "bucket_contraction"
    BUCKET_COUNT = "bucket_count"
    BUCKET_RESIZE = "bucket_resize"
    BUCKET_INDEX = "bucket_index"
    FINISH_EXPANSION = "finish_expansion"
    REPAIR = "repair"
    ARCHIVAL = "archival"
    PARTITION_TTL = "partition_ttl"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    ROLLBACK = "rollback"
    METADATA_TABLE = "metadata_table"
    INDEX = "index"
    UPGRADE = "upgrade"
    SYNC = "sync"
    AUDIT = "audit"
    DIAGNOSIS = "diagnosis"


class JobLog(Model, frozen=True, kw_only=True):
    """Lines of the log of a job, the oldest first."""

    items: list[LogLineOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Cursor of the next page; null if these are the last lines so far"""
    position: str
    """Cursor after the last of these lines. Pass it later to get only the lines that came since then"""


class JobOut(Model, frozen=True, kw_only=True):
    id: str
    """Id of the job"""
    not_before: datetime
    """No worker gets the job earlier"""
    params: dict[str, Any]
    """Parameters of the kind, with all defaults"""
    state: JobState
    """`queued`, `leased` by a worker, `running`, or ended. `unknown`: the table's timeline will tell"""
    attempt: int
    """Number of leases so far"""
    max_attempts: int
    """Attempts after which the job fails"""
    lease_deadline: datetime | None
    """When the lease expires without a heartbeat"""
    instants: list[str]
    """Instants that the job's attempts created on the table's timeline"""
    result: dict[str, Any] | None
    """Measured values; for a dry run, the plan"""
    cancel_requested: bool
    """Whether somebody has asked to cancel the job"""
    priority: int
    """Jobs with a higher priority start first"""
    worker_group: str
    """Only workers of this group get the job"""
    timeout_seconds: int | None
    """Time limit of one attempt; null: the service's setting"""
    requested_by: str | None
    """The caller that submitted the job, or `policy`"""
    retry_of: str | None
    """The job that this one repeats, which may have been deleted"""
    reason: str | None
    """The reason, if a policy submitted the job"""
    leased_at: datetime | None
    """When a worker last took the job; null before"""
    worth: float | None
    """Processor seconds that readers have paid for the job's delay, per second of its work; null if unknown"""
    starts_by: datetime | None
    """When the job begins to go before other jobs, even if these save more"""
    table_id: str
    """Id of the table"""
    table_name: str
    """The name of the table"""
    kind: JobKind
    """Kind of job"""
    dry_run: bool
    """Whether the job only plans, and changes nothing"""
    worker_id: str | None
    """Id that the worker has given itself; null if no worker has the job"""
    progress: ProgressOut | None
    """What the job does now; null before it runs"""
    verdict: JobVerdict | None
    """The result of a dry run: its plan is `ready`, the job would be `refused`, or there is `nothing_to_do`.
    Another job has a verdict only if it was refused or had nothing to do
    """
    error: JobProblem | None
    """Error of the last attempt"""
    created_at: datetime
    """Time of the creation"""
    started_at: datetime | None
    """Time of the start; null before the start"""
    finished_at: datetime | None
    """Time of the end, successful or not; null until then"""
    hand_over: HandOverOut | None
    """The hand-over of a job that waits, or has waited, until the writers are stopped"""
    waits_for: str | UnsetType | None = UNSET
    """What a queued job, or the present step of a running one, waits for; to be read after the words `waits for`.
    Null if it does not wait
    """
    forecast: ForecastOut | UnsetType | None = UNSET
    """Null for a job that has ended, or whose state changed a moment ago"""
    cost: CostOut | UnsetType | None = UNSET
    """Expected cost of the job that this dry run has planned; null unless the plan is ready"""
    breaker: BreakerOut | UnsetType | None = UNSET
    """Set for a queued job while attempts of its kind fail on the table"""


class JobPage(Model, frozen=True, kw_only=True):
    items: list[JobOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class JobProblem(Model, frozen=True, kw_only=True):
    type: str
    """The type of the problem"""
    title: str
    """What is wrong, in the same words in every case"""
    detail: str
    """What is wrong in this case"""
    hint: str
    """What to do about it"""
    retriable: bool
    """Whether the same job may succeed later without a change"""


class JobState(Word):
    """States: queued -> leased (a worker took the job) -> running (the worker sent a heartbeat) -> succeeded |
    failed | cancelled.

    After the last attempt a job may be `unknown` instead: its worker disappeared, or could not find out whether
    it committed. The next poll of the table's timeline settles it (`service.queue.unknown_outcomes`).
    """

    QUEUED = "queued"
    LEASED = "leased"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class JobVerdict(Word):
    """The finding of an ended job. `ready`: a dry run has made a plan that can be executed. `refused`: the job was
    refused, or a dry run found that it would be. `nothing_to_do`: there was no work.
    """

    READY = "ready"
    REFUSED = "refused"
    NOTHING_TO_DO = "nothing_to_do"


class JobsOfTables(Model, frozen=True, kw_only=True):
    """Submits the same job on each table."""

    tables: list[str]
    """Their ids"""
    action: Literal["run"] = "run"
    """Action of the instant on the table's timeline"""
    job: (
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
    """The job for each table"""


class KeptOut(Model, frozen=True, kw_only=True):
    """Whether the objective is kept now, and for which share of the time it was kept. Time for which this is not
    known is left out.
    """

    missed: str | None
    """How the objective was missed at the last check; null if it was kept"""
    missed_since: datetime | None
    """Since when"""
    looked_at: datetime
    """Time of the last check"""
    week_percent: float
    """Share of the last week for which the objective was kept"""
    budget_used: float
    """Share of the week's error budget that is used; above 1 the objective is not kept"""
    burn_hour: float
    """Rate at which the last hour used the error budget; at rate 1 the budget lasts a week"""
    burn_day: float
    """The same rate over the last day"""
    text: str
    """The same in words"""


class KeyProof(Model, frozen=True, kw_only=True):
    """The comparison of the record keys before and after"""

    rows_before: int | UnsetType = UNSET
    """Rows in the base files before the job"""
    key_digest_before: str | UnsetType = UNSET
    """Digest of the keys of these rows"""
    inserted: int | UnsetType = UNSET
    """Keys that only the logs have"""
    deleted: int | UnsetType = UNSET
    """Keys that the logs delete"""
    corrupt_log_blocks: int | UnsetType = UNSET
    """Corrupt log blocks that were skipped, as Hudi's readers do"""
    seconds: float | UnsetType = UNSET
    """Time of the comparison"""
    left_out: list[str] | UnsetType = UNSET
    """File groups that were not compared"""


class KindCount(Model, frozen=True, kw_only=True):
    """Problems of one kind."""

    kind: str
    """The kind of problem"""
    opened: int
    """Problems of this kind that opened"""
    resolved: int
    """Problems of this kind that ended"""


class KindOutcomeOut(Model, frozen=True, kw_only=True):
    """The jobs of one kind."""

    jobs: int
    """Jobs that succeeded"""
    seconds: float
    """Time that workers spent on these jobs"""
    gb_hours: float
    """This time in hours, times the memory of a slot in GiB"""
    kind: JobKind
    """Kind of job"""


class LabelsOfTables(Model, frozen=True, kw_only=True):
    """Declares the owner and tags of each table. Needs the role admin, as every declaration does."""

    tables: list[str]
    """Their ids"""
    action: Literal["label"] = "label"
    """Action of the instant on the table's timeline"""
    owner: str | UnsetType | None = UNSET
    """Who is responsible for the table: a team, a person, an address; for filters, policies and reports. Null
    removes the owner; if left out, the owner stays
    """
    tags: dict[str, str] | UnsetType = UNSET
    """Tags to add to each table, or to set to another value"""
    remove_tags: list[str] | UnsetType = UNSET
    """Keys of tags to remove"""


class LearnedAmountOut(Model, frozen=True, kw_only=True):
    """What is learned about one part of the cost. An attempt takes `per_job`, plus `per_gib` and `per_file` for
    the files that it works on. If the attempts of a table take more or less, the model has a factor for this
    table.
    """

    of: CostPart
    """The part of the cost"""
    jobs: int
    """Number of attempts from which the amount is learned: the latest that succeeded and reported it"""
    tables: int
    """Number of tables of these attempts"""
    per_job: float
    """What each attempt takes"""
    per_gib: float
    """What each GiB of files takes"""
    per_file: float
    """What each file takes"""
    first_job: float
    """Factor by which the first job of a worker takes more than later ones"""
    beside_another: float
    """Factor by which a job takes more while its worker runs another one"""
    error_on_other_tables: float | None
    """Median error for tables that the model does not know, as a share of what an attempt took. To measure the
    error, one half of the tables at a time is left out. Null if too few tables are known
    """
    error_on_known_tables: float | None
    """Median error if the model knows the previous attempt on the same table; null if there is none"""


class LearnedCostList(Model, frozen=True, kw_only=True):
    items: list[LearnedCostOut]
    """The items of this page, or all if there are no pages"""


class LearnedCostOut(Model, frozen=True, kw_only=True):
    kind: JobKind
    """Kind of job"""
    dry_run: bool
    """Whether this is the cost of dry runs"""
    amounts: list[LearnedAmountOut]
    """The seconds of attempts; also CPU seconds and bytes, as far as attempts report them"""


class LineageDatasetIn(Model, frozen=True, kw_only=True):
    """A dataset that the run has read."""

    namespace: str
    """Namespace of the dataset"""
    name: str
    """Name of the dataset in the namespace"""
    facets: dict[str, Any] | UnsetType | None = UNSET
    """Facets of the dataset. Only `symlinks` is read: other names of the dataset"""


class LineageEventIn(Model, frozen=True, kw_only=True):
    """A RunEvent. Events about jobs and datasets, which have no run, are accepted and not counted."""

    run: LineageRunIn | UnsetType | None = UNSET
    """The run; null in events about jobs and datasets"""
    producer: str | UnsetType = UNSET
    """The program that sends the event"""
    inputs: list[LineageDatasetIn] | UnsetType | None = UNSET
    """The datasets that the run has read"""


class LineageOut(Model, frozen=True, kw_only=True):
    counted: int
    """Number of tables whose read was counted"""
    repeated: int
    """Number of tables whose read by the same run was counted before"""
    unknown: int
    """Number of datasets that are no registered tables"""


class LineageRunIn(Model, frozen=True, kw_only=True):
    run_id: str = field(name="runId")
    """Id of the run. A run counts once for each table"""


class ListedPolicyList(Model, frozen=True, kw_only=True):
    items: list[ListedPolicyOut]
    """The items of this page, or all if there are no pages"""


class ListedPolicyOut(Model, frozen=True, kw_only=True):
    """A policy in the list, with the tables that have a setting from it."""

    pattern: str
    """Glob for names of tables, or for `tag:` or `owner:`"""
    settings: PolicyIn
    """The members that were sent"""
    precedence: int
    """If two patterns match, the higher value wins"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""
    tables: int
    """Number of tables that have a setting from this policy"""
    table_names: list[str]
    """Names of the first of these tables"""


class LockFound(Model, frozen=True, kw_only=True):
    """The table's lock as a dry run found it"""

    provider: str | UnsetType = UNSET
    """The lock's provider"""
    reachable: bool | UnsetType = UNSET
    """Whether it can be reached"""
    held: bool | UnsetType | None = UNSET
    """Whether somebody holds it; null if its provider does not tell"""
    holder: str | UnsetType | None = UNSET
    """Who holds it, as far as its provider tells"""


class LockIn(Model, frozen=True, kw_only=True):
    """The lock that the table's writers take."""

    provider: str | UnsetType = UNSET
    """`filesystem`, `zookeeper`, or the full name of a Hudi LockProvider class"""
    options: dict[str, str] | UnsetType = UNSET
    """The provider's Hudi options, `hoodie.write.lock.*`"""
    wait_seconds: float | UnsetType | None = UNSET
    """How long a job waits for a lock that others hold before it goes back to the queue. Default:
    GROUNDSKEEPER_LOCK_WAIT_SECONDS
    """


class LockJobOut(Model, frozen=True, kw_only=True):
    """A job of this table that a worker has, or that the lock keeps in the queue."""

    id: str
    """Id"""
    kind: JobKind
    """Kind of job"""
    state: JobState
    """State"""
    holds: bool
    """Whether the lock's file names this job as its owner; false for a lock without a file"""
    waits: bool
    """Whether the job waits for the lock, in its worker or in the queue"""
    step: str | None
    """What the job's worker does now"""


class LockOut(Model, frozen=True, kw_only=True):
    provider: str
    """`filesystem`, `zookeeper`, or a LockProvider class"""
    options: dict[str, str]
    """The provider's options, secrets masked"""
    wait_seconds: float | None
    """How long a job waits for the lock; null for the service's setting"""


class LockState(Word):
    """The state of a lock. `UNKNOWN`: the lock's provider keeps it where the service cannot read it, or the lock's
    file does not have Hudi's format.
    """

    HELD = "held"
    FREE = "free"
    UNKNOWN = "unknown"


class LogLevel(Word):
    """Levels of Python's `logging`."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class LogLineOut(Model, frozen=True, kw_only=True):
    at: datetime
    """When the line was written, by the clock of the worker"""
    level: LogLevel
    """How serious the line is"""
    logger: str
    """The module of the worker, or the Java class"""
    message: str
    """The text, with the stack trace if there is one; without secrets"""
    attempt: int
    """The attempt that wrote the line"""


class LogOutOut(Model, frozen=True, kw_only=True):
    """What the browser still has to do after a log-out from this service."""

    log_out_url: str | None
    """Where a browser logs out of the OpenID provider too; null if it need not, or cannot"""


class MetadataTableFiles(Model, frozen=True, kw_only=True):
    """The latest file slices of the metadata table, and the commits since its last compaction"""

    commits: int | UnsetType = UNSET
    """Deltacommits that completed since its last compaction was planned"""
    base_files: int | UnsetType = UNSET
    """Base files (HFiles)"""
    log_files: int | UnsetType = UNSET
    """Log files, which each reader merges"""
    bytes: int | UnsetType = UNSET
    """Size of the base and log files in bytes"""


class MetadataTableIn(Model, frozen=True, kw_only=True):
    """Compares the metadata table with the storage, compacts it, or rebuilds it. For a rebuild the writers must be
    stopped.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["metadata_table"] = "metadata_table"
    """Kind of job"""
    params: MetadataTableParams | UnsetType = UNSET
    """Parameters of the kind"""


class MetadataTableOut(Model, frozen=True, kw_only=True):
    """The metadata table of a table. Every reader and writer uses it for planning. Sizes are those of its latest
    file slices.
    """

    read_at: datetime
    """When the metadata table was read"""
    commits: int
    """Deltacommits since its last compaction"""
    base_files: int
    """Base files (HFiles)"""
    base_bytes: int
    """Their size"""
    log_files: int
    """Log files since its last compaction"""
    log_bytes: int
    """Their size"""
    pending: int
    """Pending instants on its own timeline"""
    pending_since: datetime | None
    """When the first pending instant was requested; null without any"""
    missing: list[str]
    """Completed commits of the table that the metadata table lacks"""
    until: str
    """The latest completion of the table that `commits` counts"""


class MetadataTableParams(Model, frozen=True, kw_only=True):
    action: Literal["validate", "compact", "rebuild"] | UnsetType = UNSET
    """`validate` compares the metadata table with the storage. `compact` merges its log files and deletes its old
    files, beside running writers. `rebuild` deletes the metadata table and builds it again
    """


class MetadataTablePolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    commits: int | UnsetType = UNSET
    """Deltacommits of the metadata table since its last compaction"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""


class MetadataTableResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `metadata_table`"""

    partitions: list[str] | UnsetType = UNSET
    """Partitions of the metadata table"""
    findings: list[DamageFound] | UnsetType = UNSET
    """Differences from the storage"""
    before: MetadataTableFiles | UnsetType = UNSET
    """Before a compaction"""
    after: MetadataTableFiles | UnsetType = UNSET
    """After a compaction"""
    pending: int | UnsetType = UNSET
    """Pending instants of the metadata table itself"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class Mode(Word):
    """Mode of a table service. `SUGGEST` only shows the proposal."""

    AUTO = "auto"
    SUGGEST = "suggest"
    OFF = "off"


class NextJobOut(Model, frozen=True, kw_only=True):
    """The next job of a table."""

    kind: JobKind
    """Kind of job"""
    state: NextState
    """`running`, or `queued`; `waits`: it is due, but something blocks it; `suggested`: a person has to start it"""
    because: str | None
    """The decision about the job; null for a job that exists already"""
    job_id: str | None
    """Null if the job does not exist yet"""


class NextState(Word):
    """The state of the next job. `RUNNING`: a worker has it. `QUEUED`: it was submitted. `WAITS`: it is due, but
    something blocks it. `SUGGESTED`: it is due, and a person has to start it.
    """

    RUNNING = "running"
    QUEUED = "queued"
    WAITS = "waits"
    SUGGESTED = "suggested"


class NotificationDetail(Model, frozen=True, kw_only=True):
    name: str
    """Its name"""
    webhook_id: str
    """The webhook that sends the messages: `/v1/webhooks/{id}/deliveries` lists them"""
    snoozed_until: datetime | None
    """The notification sends nothing until this time; null if it is not snoozed"""
    snoozed_because: str | None
    """The caller that has snoozed the notification, and the reason"""
    target: TargetOut
    """Where messages go"""
    events: list[Occasion]
    """What the notification reports"""
    least_severity: Severity
    """Lowest severity of problems that are reported"""
    kinds: list[ProblemKind]
    """Kinds of problems; empty for all"""
    tables: list[str]
    """Ids of tables or patterns of names; empty for all"""
    most_per_hour: int
    """Largest number of messages in an hour"""
    quiet_hours: list[WindowIn]
    """Hours in which only critical problems are reported"""
    time_zone: str
    """Time zone of the quiet hours and of the report"""
    report: WeeklyIn | None
    """When the notification sends a weekly report; null for none"""
    enabled: bool
    """False if its webhook is disabled, so that nothing is sent"""
    disabled_because: str | None
    """Why nothing is sent"""
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    """When a message was last delivered"""
    pending: int
    """Messages that wait for an attempt or a retry"""
    dead: int
    """Messages that were given up"""
    sent_last_hour: int
    """Messages that count towards the limit"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""
    told: int
    """Number of open problems that were reported"""
    waiting: int
    """Number of open problems that are still to be reported: they are new, or the notification is snoozed, has
    quiet hours or has reached its limit
    """
    alerts: list[AlertOut]
    """Reported problems that are still open; at most 100"""


class NotificationIn(Model, frozen=True, kw_only=True):
    target: TargetIn
    """Where messages go"""
    events: list[Occasion] | UnsetType = UNSET
    """`opened` and `resolved` are about problems, `failed` about jobs that have failed for good. May be empty if
    there is a report
    """
    least_severity: Severity | UnsetType = UNSET
    """Lowest severity of problems to report. A failed job counts as a warning"""
    kinds: list[ProblemKind] | UnsetType = UNSET
    """Kinds of problems. Default: all"""
    tables: list[str] | UnsetType = UNSET
    """Ids of tables, or patterns of names, owners (`owner:shop`) or tags (`tag:team=*`). Default: all tables, and
    problems that are not about a table
    """
    most_per_hour: int | UnsetType = UNSET
    """Largest number of messages in an hour; the last one sums up all that is still to be reported. Ends of alerts
    in PagerDuty and Alertmanager do not count
    """
    quiet_hours: list[WindowIn] | UnsetType = UNSET
    """Hours in which only critical problems are reported. The others are reported after these hours if they are
    still open
    """
    time_zone: str | UnsetType = UNSET
    """Time zone of the quiet hours and of the report"""
    report: WeeklyIn | UnsetType | None = UNSET
    """When to send a report of the last week; null for no report. Not for PagerDuty and Alertmanager, which would
    raise an alarm
    """


class NotificationList(Model, frozen=True, kw_only=True):
    items: list[NotificationOut]
    """The items of this page, or all if there are no pages"""


class NotificationOut(Model, frozen=True, kw_only=True):
    name: str
    """Its name"""
    webhook_id: str
    """The webhook that sends the messages: `/v1/webhooks/{id}/deliveries` lists them"""
    snoozed_until: datetime | None
    """The notification sends nothing until this time; null if it is not snoozed"""
    snoozed_because: str | None
    """The caller that has snoozed the notification, and the reason"""
    target: TargetOut
    """Where messages go"""
    events: list[Occasion]
    """What the notification reports"""
    least_severity: Severity
    """Lowest severity of problems that are reported"""
    kinds: list[ProblemKind]
    """Kinds of problems; empty for all"""
    tables: list[str]
    """Ids of tables or patterns of names; empty for all"""
    most_per_hour: int
    """Largest number of messages in an hour"""
    quiet_hours: list[WindowIn]
    """Hours in which only critical problems are reported"""
    time_zone: str
    """Time zone of the quiet hours and of the report"""
    report: WeeklyIn | None
    """When the notification sends a weekly report; null for none"""
    enabled: bool
    """False if its webhook is disabled, so that nothing is sent"""
    disabled_because: str | None
    """Why nothing is sent"""
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    """When a message was last delivered"""
    pending: int
    """Messages that wait for an attempt or a retry"""
    dead: int
    """Messages that were given up"""
    sent_last_hour: int
    """Messages that count towards the limit"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""


class NotificationPut(Model, frozen=True, kw_only=True):
    name: str
    """Its name"""
    webhook_id: str
    """The webhook that sends the messages: `/v1/webhooks/{id}/deliveries` lists them"""
    snoozed_until: datetime | None
    """The notification sends nothing until this time; null if it is not snoozed"""
    snoozed_because: str | None
    """The caller that has snoozed the notification, and the reason"""
    target: TargetOut
    """Where messages go"""
    events: list[Occasion]
    """What the notification reports"""
    least_severity: Severity
    """Lowest severity of problems that are reported"""
    kinds: list[ProblemKind]
    """Kinds of problems; empty for all"""
    tables: list[str]
    """Ids of tables or patterns of names; empty for all"""
    most_per_hour: int
    """Largest number of messages in an hour"""
    quiet_hours: list[WindowIn]
    """Hours in which only critical problems are reported"""
    time_zone: str
    """Time zone of the quiet hours and of the report"""
    report: WeeklyIn | None
    """When the notification sends a weekly report; null for none"""
    enabled: bool
    """False if its webhook is disabled, so that nothing is sent"""
    disabled_because: str | None
    """Why nothing is sent"""
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    """When a message was last delivered"""
    pending: int
    """Messages that wait for an attempt or a retry"""
    dead: int
    """Messages that were given up"""
    sent_last_hour: int
    """Messages that count towards the limit"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""
    secret: str | None
    """Secret for checking the signatures of a webhook. Only the answer to the call that creates the notification
    has the secret
    """


class ObjectType(Word):
    TABLE = "table"
    GROUP = "group"
    WORKER = "worker"
    WEBHOOK = "webhook"
    CATALOG = "catalog"
    SERVICE = "service"


class ObjectivePolicyIn(Model, frozen=True, kw_only=True):
    read_overhead: float | UnsetType | None = UNSET
    """Highest cost of a read, divided by its cost right after a compaction (and a clustering, if that is on); or
    null
    """
    read_seconds: float | UnsetType | None = UNSET
    """Highest cost of a read of all current rows, in processor seconds of a reader as the service estimates them;
    or null
    """
    of_reads: float | UnsetType | None = UNSET
    """Share of the reads that must not cost more than `read_overhead` and `read_seconds` allow, among the reads of
    all tables to which this pattern's policy applies; or null for all reads
    """
    log_age_seconds: int | UnsetType | None = UNSET
    """Longest time for which a log file may wait for a compaction; or null"""
    least_worth: float | UnsetType | None = UNSET
    """A job that makes reads cheaper waits, for up to a day, until readers have paid this number of seconds for
    each second of its work; or null
    """
    storage_overhead: float | UnsetType | None = UNSET
    """Highest size of all files, divided by the size of the files in use; or null"""
    max_gb_hours_per_day: float | UnsetType | None = UNSET
    """When the table's jobs have taken this many GB-hours in 24 hours, compaction, clustering and cleaning wait,
    even if other limits are exceeded; or null
    """
    kept_percent: float | UnsetType = UNSET
    """Share of the time for which the objective is to be kept; the rest is the error budget"""


class Occasion(Word):
    """What a message is about."""

    OPENED = "opened"
    RESOLVED = "resolved"
    FAILED = "failed"


class OnActiveWriters(Word):
    """The reaction of a job that replaces file groups to a write that is in flight when the job wants to commit.

    `FENCE` rolls the write back, so its batch must be written again.
    """

    WAIT = "wait"
    FENCE = "fence"
    ABORT = "abort"


class OnDropped(Word):
    REPORT = "report"
    UNREGISTER = "unregister"


class OnMoved(Word):
    """What happens to a table whose location the catalog has changed. `FOLLOW` registers the table at the new
    location, with the declarations about it, and unregisters the old location.
    """

    REPORT = "report"
    FOLLOW = "follow"


class OnNew(Word):
    """What happens to a table that the catalog lists and that is not registered."""

    REPORT = "report"
    REGISTER = "register"


class OpenWindowsOut(Model, frozen=True, kw_only=True):
    source: str
    """The level of the policy that has set the windows: `pattern <glob>` or `table`"""
    time_zone: str
    """Time zone of the windows' times of day"""
    windows: list[WindowIn]
    """The windows of the policy"""
    tables: int
    """Number of tables that have these windows"""
    table_names: list[str]
    """Names of the first of these tables"""
    spans: list[SpanOut]
    """Times in which at least one window is open, so that jobs may start"""


class Order(Word):
    """The order of tables. `PROBLEMS`: the most serious first. `BACKLOG`: the most bytes of logs first. `RATIO`:
    the highest ratio of logs to base files first. `COMMIT`: the last commit first. `SILENT`: the longest
    without a commit first. `REGISTERED`: the newest first. Tables of equal rank are ordered by name.
    """

    PROBLEMS = "problems"
    NAME = "name"
    BACKLOG = "backlog"
    RATIO = "ratio"
    COMMIT = "commit"
    SILENT = "silent"
    REGISTERED = "registered"


class Outcome(Word):
    """The outcome of a call: `DONE` for a status below 400, `REFUSED` below 500, and `FAILED` from 500 on."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class OutcomesOutcomeOut(Model, frozen=True, kw_only=True):
    objective: dict[str, float | None]
    """The objective of the effective policy"""
    is_set: bool
    """Whether the objective can be kept"""
    reads: ReadsOut
    """How often the table is read"""
    cost: ReadCostOut | None
    """What a read costs; null before the first poll"""
    kept: KeptOut | None
    """Null without an objective, and before the first check"""
    gb_hours_of_day: float | None
    """GB-hours of the table's jobs in 24 hours; null without `max_gb_hours_per_day`"""
    gains: list[GainOut]
    """The last jobs that make reads cheaper, the newest first"""


class Overview(Model, frozen=True, kw_only=True):
    at: datetime
    """The service's time of this answer"""
    event_id: int
    """The newest event at this time. To continue from this answer, pass it as `after` to the stream of events"""
    problems: ProblemsNow
    """Everything that is wrong"""
    pause: PauseOut
    """The pause of automatic jobs on all tables"""
    jobs: ActiveJobs
    """Jobs that have not ended"""
    incidents: IncidentCounts
    """Unresolved incidents of all tables"""
    suggestions: list[SuggestionOut]
    """At most 20"""
    webhooks: WebhookSummary
    """Webhooks and their deliveries"""
    workers: WorkerSummary
    """Workers of all groups"""
    tables: TableRows
    """One page of tables"""


class ParamsBucketIndexIn(Model, frozen=True, kw_only=True):
    """Gives a table with a Bloom, simple or no index a bucket index, or takes it back. The writers must be
    stopped.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["bucket_index"] = "bucket_index"
    """Kind of job"""
    params: BucketIndexParams
    """Parameters of the kind"""


class PartitionExtractor(Word):
    """Hudi's `PartitionValueExtractor`s (1.2, `org.apache.hudi.hive`).

    `PARTS`: one value for each part of a path; `WHOLE`: the path is one value; `DAY`, `HOUR`: `2026/01/31`, or
    with an hour, is one value.
    """

    NONE = "none"
    PARTS = "parts"
    WHOLE = "whole"
    DAY = "day"
    HOUR = "hour"


class PartitionOut(Model, frozen=True, kw_only=True):
    file_groups: int
    """Number of file groups with a latest file slice"""
    base_files: int
    """Number of base files"""
    base_bytes: int
    """Size of the base files"""
    log_files: int
    """Number of log files that are not compacted"""
    log_bytes: int
    """Size of the log files"""
    small_files: int
    """Number of base files below `small_file_bytes` of the settings"""
    small_bytes: int
    """Size of the small base files"""
    freed_files: int
    """Number of files that are in no latest file slice"""
    freed_bytes: int
    """Size of these files"""
    rows: int | None
    """Rows in base files; null if the number is not known for every file"""
    path: str
    """Path of the partition relative to the base path; empty without partitions"""
    num_buckets: int
    """Number of buckets; 0 without a bucket index"""
    buckets: int
    """Buckets that have rows"""
    largest_bucket: int | None
    """Number of the largest bucket; null without any"""
    largest_bucket_bytes: int
    """Size of the largest bucket"""


class PartitionPrefix(Model, frozen=True, kw_only=True):
    """All partitions whose path has this prefix."""

    prefix: str
    """Beginning of paths of partitions"""


class PartitionTtlIn(Model, frozen=True, kw_only=True):
    """Drops partitions that were last modified, or created, too many days ago. Cleaning removes their files later."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["partition_ttl"] = "partition_ttl"
    """Kind of job"""
    params: PartitionTtlParams
    """Parameters of the kind"""


class PartitionTtlParams(Model, frozen=True, kw_only=True):
    days_retain: int
    """Partitions that are older than this number of days are dropped"""
    strategy: TtlStrategy | UnsetType = UNSET
    """`KEEP_BY_TIME`: days since the last modification, also by a table service that rewrites files;
    `KEEP_BY_CREATION_TIME`: days since the commit that created the partition
    """
    partitions: list[str | PartitionPrefix] | UnsetType | None = UNSET
    """Paths of partitions, relative to the base path"""
    limit_partitions: int | UnsetType = UNSET
    """Maximum number of partitions to drop, the oldest first. The result says what is `left`"""
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment at which nobody writes to these partitions"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class PartitionTtlPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    days_retain: int | UnsetType | None = UNSET
    """Parameter of the job; without it nothing is ever dropped"""
    strategy: TtlStrategy | UnsetType = UNSET
    """`KEEP_BY_TIME`: days since the last modification, also by a table service that rewrites files;
    `KEEP_BY_CREATION_TIME`: days since the commit that created the partition
    """
    partitions: list[str | PrefixOfPolicy] | UnsetType = UNSET
    """Parameter of the job; empty: all"""
    limit_partitions: int | UnsetType = UNSET
    """Parameter of the job; work beyond the limit is due at once"""
    seconds: int | UnsetType = UNSET
    """Since the last run"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""


class PartitionTtlResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `partition_ttl`"""

    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows"""
    strategy: str | UnsetType = UNSET
    """How the age of a partition is determined"""
    days_retain: float | UnsetType = UNSET
    """Age at which a partition expires, in days"""
    partitions: list[ExpiredPartition] | UnsetType = UNSET
    """Partitions that were dropped, or would be"""
    withheld: list[WithheldPartition] | UnsetType = UNSET
    """Partitions that have expired but are kept, with the reason"""
    left: WorkLeft | UnsetType = UNSET
    """Work that is left to the next job"""
    kept_unchanged: bool | UnsetType = UNSET
    """Whether the file slices of all other partitions stayed as they were"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class PastJobOut(Model, frozen=True, kw_only=True):
    """One of a table's last jobs. `GET /v1/jobs/{id}` has its details."""

    id: str
    """Id"""
    kind: JobKind
    """Kind of job"""
    state: JobState
    """State"""
    dry_run: bool
    """Whether the job changes nothing"""
    verdict: JobVerdict | None
    """The same as in `GET /v1/jobs/{id}`"""
    created_at: datetime
    """When the job was submitted"""
    started_at: datetime | None
    """When the job's last attempt began; null before the first"""
    finished_at: datetime | None
    """Null while the job is active"""
    error: str | None
    """The title of the error of its last attempt, even if the job is tried again"""


class PatternPolicyIn(Model, frozen=True, kw_only=True):
    """The policy of a pattern: like that of one table, with a precedence."""

    paused: bool | UnsetType = UNSET
    """No job starts automatically; running jobs go on"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    worker_group: str | UnsetType = UNSET
    """Only workers of this group get the table's jobs, including submitted ones"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt of a job, unless the job sets its own; null: that of the service"""
    time_zone: str | UnsetType = UNSET
    """Time zone of the windows and of the cron expressions"""
    windows: list[WindowIn] | UnsetType = UNSET
    """When jobs may start; empty: at any time"""
    objective: ObjectivePolicyIn | UnsetType = UNSET
    """Limits on the cost of reads and storage, which determine when jobs run"""
    budget: BudgetPolicyIn | UnsetType = UNSET
    """Limit on the cost of the jobs of all tables of a pattern in a day"""
    advice: AdvicePolicyIn | UnsetType = UNSET
    """Whether advice about thresholds is applied, and how costly reads may become"""
    compaction: CompactionPolicyIn | UnsetType = UNSET
    """When log files are merged into base files"""
    cleaning: CleaningPolicyIn | UnsetType = UNSET
    """When old versions of files are deleted"""
    clustering: ClusteringPolicyIn | UnsetType = UNSET
    """When rows are ordered or small files merged"""
    bucket_expansion: ExpansionPolicyIn | UnsetType = UNSET
    """When a table gets more buckets"""
    bucket_contraction: ContractionPolicyIn | UnsetType = UNSET
    """When a table gets fewer buckets"""
    bucket_resize: ResizePolicyIn | UnsetType = UNSET
    """When buckets of consistent hashing are split and merged"""
    repair: RepairPolicyIn | UnsetType = UNSET
    """Whether rows of stale writes are brought back at once"""
    rollback: RollbackPolicyIn | UnsetType = UNSET
    """When writes of dead writers are rolled back"""
    archival: ArchivalPolicyIn | UnsetType = UNSET
    """When the active timeline is shortened"""
    metadata_table: MetadataTablePolicyIn | UnsetType = UNSET
    """When the metadata table is compacted"""
    partition_ttl: PartitionTtlPolicyIn | UnsetType = UNSET
    """When partitions expire"""
    audit: AuditPolicyIn | UnsetType = UNSET
    """When the table is audited"""
    diagnosis: DiagnosisPolicyIn | UnsetType = UNSET
    """When the table is searched for damages"""
    sync: SyncPolicyIn | UnsetType = UNSET
    """When a metastore is updated"""
    precedence: int | UnsetType = UNSET
    """If several patterns match, the higher value wins (default 0), then the more exact pattern"""


class PatternPolicyOut(Model, frozen=True, kw_only=True):
    pattern: str
    """Glob for names of tables, or for `tag:` or `owner:`"""
    settings: PolicyIn
    """The members that were sent"""
    precedence: int
    """If two patterns match, the higher value wins"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""


class PauseIn(Model, frozen=True, kw_only=True):
    reason: str | UnsetType = UNSET
    """Shown to other users"""


class PauseOut(Model, frozen=True, kw_only=True):
    paused: bool
    """Whether automatic jobs are paused on all tables"""
    since: datetime | UnsetType | None = UNSET
    """Beginning of this state"""
    by: str | UnsetType | None = UNSET
    """Who paused the jobs"""
    reason: str | UnsetType = UNSET
    """The given reason; may be empty"""


class PendingOut(Model, frozen=True, kw_only=True):
    action: str
    """Action of the instant"""
    state: str
    """`REQUESTED` or `INFLIGHT`"""
    heartbeat_at: datetime | None
    """Last heartbeat of its writer, if the writer sends any"""
    is_plan: bool
    """Whether the instant is a scheduled compaction or clustering that can be executed"""
    requested_time: str
    """The instant: its requested time, in the timeline's zone"""
    requested_at: datetime | None
    """Time of the request"""
    age_seconds: float | None
    """Time since the instant was requested"""
    heartbeat_age_seconds: float | None
    """Time since the last heartbeat of its writer; null without any"""


class PlanOut(Model, frozen=True, kw_only=True):
    id: str
    """Id of the plan"""
    base_path: str
    """The table's base path, an absolute path or a URI"""
    service: DelegatedService
    """The delegated service"""
    instant: str
    """Requested time of the instant"""
    is_metadata: bool
    """Whether this is a plan of the table's metadata table"""
    requested_by: str
    """The caller that delegated the plan"""
    last_requested_at: datetime
    """Time of the last request that named the plan"""
    state: PlanState
    """State of the plan"""
    because: str | None
    """The reason for the state"""
    job_id: str | None
    """The last job that was submitted for the plan"""
    table_id: str | None
    """Id of the table"""
    table_name: str
    """Name of the table"""
    hint: str | None
    """The remedy, for a table that is not registered"""
    queue: str | None
    """The worker group that its writer asks for"""
    resource: str | None
    """Resources that its writer asks for; not used"""
    parallelism: int | None
    """Parallelism that its writer asks for; not used"""
    engine: str | None
    """Engine that the writer names"""
    username: str | None
    """User that the writer names"""
    requested_at: datetime
    """Time of the request"""
    ended_at: datetime | None
    """Time of the end; null until then"""


class PlanPage(Model, frozen=True, kw_only=True):
    items: list[PlanOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class PlanState(Word):
    """The state of a plan. `UNREGISTERED`: no registered table has the base path. `WAITING`: the plan will be
    executed. `SUBMITTED`: a job executes the plan. `WITHHELD`: the plan is not executed, and `because` says
    why. `DONE`: the plan has completed. `GONE`: the plan has left the timeline without completing.
    """

    UNREGISTERED = "unregistered"
    WAITING = "waiting"
    SUBMITTED = "submitted"
    WITHHELD = "withheld"
    DONE = "done"
    GONE = "gone"


class PointOut(Model, frozen=True, kw_only=True):
    """The sums over all tables at one time."""

    at: datetime
    """Time"""
    log_bytes: int
    """Log files that wait for a compaction"""
    base_bytes: int
    """Size of the base files"""
    freed_bytes: int
    """Size of files that are out of use"""
    read_overhead: float
    """Cost of a read of all tables, divided by the cost right after compactions"""
    small_file_overhead: float
    """Cost of a read right after compactions, divided by the cost with small files merged"""


class PolicyIn(Model, frozen=True, kw_only=True):
    """The members that differ from weaker levels. The levels from weak to strong are: defaults, patterns, the
    table.
    """

    paused: bool | UnsetType = UNSET
    """No job starts automatically; running jobs go on"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    worker_group: str | UnsetType = UNSET
    """Only workers of this group get the table's jobs, including submitted ones"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt of a job, unless the job sets its own; null: that of the service"""
    time_zone: str | UnsetType = UNSET
    """Time zone of the windows and of the cron expressions"""
    windows: list[WindowIn] | UnsetType = UNSET
    """When jobs may start; empty: at any time"""
    objective: ObjectivePolicyIn | UnsetType = UNSET
    """Limits on the cost of reads and storage, which determine when jobs run"""
    budget: BudgetPolicyIn | UnsetType = UNSET
    """Limit on the cost of the jobs of all tables of a pattern in a day"""
    advice: AdvicePolicyIn | UnsetType = UNSET
    """Whether advice about thresholds is applied, and how costly reads may become"""
    compaction: CompactionPolicyIn | UnsetType = UNSET
    """When log files are merged into base files"""
    cleaning: CleaningPolicyIn | UnsetType = UNSET
    """When old versions of files are deleted"""
    clustering: ClusteringPolicyIn | UnsetType = UNSET
    """When rows are ordered or small files merged"""
    bucket_expansion: ExpansionPolicyIn | UnsetType = UNSET
    """When a table gets more buckets"""
    bucket_contraction: ContractionPolicyIn | UnsetType = UNSET
    """When a table gets fewer buckets"""
    bucket_resize: ResizePolicyIn | UnsetType = UNSET
    """When buckets of consistent hashing are split and merged"""
    repair: RepairPolicyIn | UnsetType = UNSET
    """Whether rows of stale writes are brought back at once"""
    rollback: RollbackPolicyIn | UnsetType = UNSET
    """When writes of dead writers are rolled back"""
    archival: ArchivalPolicyIn | UnsetType = UNSET
    """When the active timeline is shortened"""
    metadata_table: MetadataTablePolicyIn | UnsetType = UNSET
    """When the metadata table is compacted"""
    partition_ttl: PartitionTtlPolicyIn | UnsetType = UNSET
    """When partitions expire"""
    audit: AuditPolicyIn | UnsetType = UNSET
    """When the table is audited"""
    diagnosis: DiagnosisPolicyIn | UnsetType = UNSET
    """When the table is searched for damages"""
    sync: SyncPolicyIn | UnsetType = UNSET
    """When a metastore is updated"""


class PolicyOfTables(Model, frozen=True, kw_only=True):
    """Sets some settings of each table's own policy; all others stay as they are."""

    tables: list[str]
    """Their ids"""
    action: Literal["policy"] = "policy"
    """Action of the instant on the table's timeline"""
    policy: PolicyIn | UnsetType = UNSET
    """The settings that are set"""
    unset: list[str] | UnsetType = UNSET
    """Settings to remove, so that weaker levels apply again: for example `compaction.commits`, or all of
    `compaction`
    """


class PollOut(Model, frozen=True, kw_only=True):
    table_id: str
    """Id of the table"""
    is_new: bool
    """Whether this call requested a poll; false if one was about to begin anyway"""


class PrefixOfPolicy(Model, frozen=True, kw_only=True):
    """A `PartitionPrefix` in a level of a policy, which is stored as it was sent."""

    prefix: str
    """Beginning of paths of partitions"""


class PreviewIn(Model, frozen=True, kw_only=True):
    pattern: str
    """A glob for names of tables"""
    policy: PatternPolicyIn | None
    """The policy that the pattern would have; null for its deletion"""


class PreviewOut(Model, frozen=True, kw_only=True):
    tables: int
    """Number of tables whose policy would change"""
    items: list[PreviewTableOut]
    """The first of these tables"""


class PreviewTableOut(Model, frozen=True, kw_only=True):
    id: str
    """Id of the table"""
    name: str
    """Name"""
    settings: list[ChangedSettingOut]
    """The settings that change"""
    starts: list[StartOut]
    """The jobs that would start now"""


class ProblemCountsOut(Model, frozen=True, kw_only=True):
    """Problems that opened and ended in the period."""

    opened: int
    """Problems that opened or became more serious, each once"""
    resolved: int
    """Problems that ended"""
    open: int
    """Problems that are open now"""
    kinds: list[KindCount]
    """Counts by kind, the most frequent kind first"""


class ProblemExample(Model, frozen=True, kw_only=True):
    """A problem document, without `status` if it is the error of a job."""

    type: str
    """The type of the problem"""
    title: str
    """What is wrong, in the same words in every case"""
    status: int | UnsetType = UNSET
    """HTTP status"""
    detail: str
    """What is wrong in this case"""
    hint: str | UnsetType | None = UNSET
    """What to do about it"""
    instance: str | UnsetType | None = UNSET
    """Address of the call"""
    request_id: str | UnsetType | None = UNSET
    """Id of the request, as in the header `X-Request-Id` and in the service's log"""
    errors: list[FieldError] | UnsetType | None = UNSET
    """Each value that is wrong"""
    checks: Checks | UnsetType | None = UNSET
    """What `/readyz` has checked"""


class ProblemGroupOut(Model, frozen=True, kw_only=True):
    """Problems that have one cause, although they may be about several objects."""

    kinds: list[ProblemKind]
    """Kinds of the group's problems, by which `GET /v1/problems` lists them"""
    severity: Severity
    """Severity of the most serious problem"""
    title: str
    """What is wrong"""
    remedy: str
    """What to do about the most serious problem"""
    problems: int
    """Number of problems"""
    objects: int
    """Number of tables, workers or webhooks that have these problems"""
    names: list[str]
    """Names of the first of these objects, at most 5"""
    acknowledged: int
    """Number of these problems that somebody has acknowledged"""
    since: datetime
    """When the oldest problem began"""


class ProblemKind(Word):
    """The kinds of problems. The function of `service.health` that finds a kind is next to its text and threshold."""

    TABLE_UNREADABLE = "table-unreadable"
    TABLE_NOT_POLLED = "table-not-polled"
    TABLE_NOT_WRITABLE = "table-not-writable"
    COMMITS_VANISHED = "commits-vanished"
    COMMITS_MISSED = "commits-missed"
    INCIDENT_STANDING = "incident-standing"
    DEAD_WRITER = "dead-writer"
    PLAN_STUCK = "plan-stuck"
    OTHER_RUNNER = "other-runner"
    CLOCKS_DISAGREE = "clocks-disagree"
    COMPACTION_BEHIND = "compaction-behind"
    COMPACTION_BACKLOG_GROWING = "compaction-backlog-growing"
    CLEANING_BEHIND = "cleaning-behind"
    OBJECTIVE_MISSED = "objective-missed"
    TIMELINE_LONG = "timeline-long"
    METADATA_TABLE_BEHIND = "metadata-table-behind"
    METADATA_TABLE_INCOMPLETE = "metadata-table-incomplete"
    BUCKET_TOO_LARGE = "bucket-too-large"
    BUCKETS_SKEWED = "buckets-skewed"
    SMALL_FILES = "small-files"
    POLICY_CANNOT_ACT = "policy-cannot-act"
    POLICY_WARNING = "policy-warning"
    JOBS_HELD_UP = "jobs-held-up"
    JOB_FAILING = "job-failing"
    JOB_HELD_BACK = "job-held-back"
    JOB_UNSETTLED = "job-unsettled"
    LOCK_AWAITED = "lock-awaited"
    LOCK_HELD_LONG = "lock-held-long"
    GROUP_WITHOUT_WORKER = "group-without-worker"
    WORKER_LOST = "worker-lost"
    WEBHOOK_FAILING = "webhook-failing"
    WEBHOOK_DISABLED = "webhook-disabled"
    DELIVERIES_GIVEN_UP = "deliveries-given-up"
    JOBS_PAUSED = "jobs-paused"
    CATALOG_FAILING = "catalog-failing"
    CATALOG_DIFFERS = "catalog-differs"


class ProblemType(Model, frozen=True, kw_only=True):
    """A type of problem that calls, jobs or both may have."""

    type: str
    """The last part of `type` in a problem document"""
    title: str
    """What happened"""
    why: str
    """Why such a problem occurs"""
    hint: str
    """What to do"""
    status: int | None
    """HTTP status of an answer with such a problem; null for a type that only the `error` of a job has"""
    example: ProblemExample
    """A problem document of this type"""


class ProblemTypeList(Model, frozen=True, kw_only=True):
    """All types of problems, in alphabetical order."""

    items: list[ProblemType]
    """The types"""


class ProblemsNow(Model, frozen=True, kw_only=True):
    as_of: datetime | None
    """When the problems and backlogs were computed. If that was more than some seconds ago, this call has started
    a new computation for later calls. Null after a start with very many tables, while they have not been
    computed; the counts and lists are then empty
    """
    counts: SeverityCounts
    """Counts of all problems, whatever the filter of the tables"""
    groups: list[ProblemGroupOut]
    """All problems, those with one cause in one group"""
    items: list[HealthProblemOut]
    """The 20 most serious ones; `GET /v1/problems` lists all"""


class ProblemsOfTables(Model, frozen=True, kw_only=True):
    """Acknowledges the present problems of each table, until a problem ends or becomes more serious, or until a
    given time. Earlier acknowledgements stay as they are.
    """

    until: datetime | UnsetType | None = UNSET
    """When the acknowledgement ends, unless the problem ends before. Default: when the problem ends"""
    reason: str | UnsetType | None = UNSET
    """For others"""
    tables: list[str]
    """Their ids"""
    action: Literal["acknowledge"] = "acknowledge"
    """Action of the instant on the table's timeline"""


class ProgressOut(Model, frozen=True, kw_only=True):
    step: str
    """What the job does now"""
    tasks_done: int
    """Tasks of Spark that have ended"""
    tasks_total: int
    """Tasks of Spark in this step, as far as known"""
    bytes_done: int
    """Bytes of this step that are done"""
    bytes_total: int
    """All bytes of this step; 0 if not known"""


class RatesBasis(Word):
    """Where the rates come from: workers have measured them, or they are assumed."""

    PROBE = "probe"
    DEFAULT = "default"


class ReadCostOut(Model, frozen=True, kw_only=True):
    """What a read of all current rows costs, in processor seconds of a reader."""

    seconds: float
    """Now"""
    compacted_seconds: float
    """After a compaction"""
    merged_seconds: float
    """Processor seconds if small files were merged too"""
    overhead: float
    """Cost of a read, divided by its cost right after a compaction"""
    basis: RatesBasis
    """`probe`: measured by workers; `default`: assumed"""


class ReadSource(Word):
    """Where the frequency of reads comes from. The owner's declaration takes precedence over observed reads."""

    OWNER = "owner"
    LINEAGE = "lineage"
    SPARK_LOGS = "spark_logs"
    CONSUMERS = "consumers"
    ASSUMED = "assumed"


class ReadersIn(Model, frozen=True, kw_only=True):
    """The programs that read the table, such as Trino, Athena or Hive. Each contains a version of Hudi."""

    hudi_version: str | UnsetType | None = UNSET
    """The oldest version of Hudi among the readers"""
    reads_per_day: float | UnsetType | None = UNSET
    """How often the whole table is read. Default: what lineage, event logs and consumers show"""


class ReadersOut(Model, frozen=True, kw_only=True):
    hudi_version: str | None
    """The declared version of Hudi; null if not declared"""
    reads_per_day: float | None
    """How often the whole table is read, as declared"""


class Readiness(Model, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"
    """Always `ok`; in all other cases the answer is a problem document"""
    checks: Checks
    """The checks, one by one"""


class ReadsOut(Model, frozen=True, kw_only=True):
    """How often the whole table is read."""

    per_day: float
    """Reads a day"""
    source: ReadSource
    """Where the number comes from; `assumed`: nobody has given one"""
    text: str
    """The same in words"""


class ReasonOut(Model, frozen=True, kw_only=True):
    """Why a folder or a table is left out."""

    type: str
    """Type of the problem"""
    title: str
    """What is wrong"""
    detail: str
    """What is wrong in this case"""
    hint: str
    """What to do"""


class RefusalOut(Model, frozen=True, kw_only=True):
    """The problem with which a request to break the lock would be refused now."""

    type: str
    """Name of the problem's type: GET /problems/{name} explains it"""
    title: str
    """What is wrong, in the same words in every case"""
    detail: str
    """The reason in this case; may be empty"""
    hint: str
    """What to do"""


class RehashWay(Model, frozen=True, kw_only=True):
    """A way to the new number, and what it would cost"""

    way: str | UnsetType = UNSET
    """Name of the way"""
    cost: float | UnsetType = UNSET
    """Time on this worker's cores in relation to the cheapest way"""
    bytes_read: int | UnsetType = UNSET
    """Bytes to read"""
    bytes_written: int | UnsetType = UNSET
    """Bytes to write, at most"""
    tasks: int | UnsetType = UNSET
    """Tasks of Spark"""
    requests: int | UnsetType = UNSET
    """Requests to the storage"""
    deletes: int | UnsetType = UNSET
    """Files to delete"""


class RepairIn(Model, frozen=True, kw_only=True):
    """Recovers the rows of commits that wrote to replaced file groups, or with an old number of buckets."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["repair"] = "repair"
    """Kind of job"""
    params: RepairParams | UnsetType = UNSET
    """Parameters of the kind"""


class RepairParams(Model, frozen=True, kw_only=True):
    instants: list[str] | UnsetType | None = UNSET
    """Completed instants to repair even if nothing proves that they are stale, in addition to the proved stale
    writes. Default: all suspected writes, except those whose file groups an overwrite or a deletion replaced
    """
    accepted: list[str] | UnsetType | None = UNSET
    """Instants to mark as repaired without changing anything: because you have run their lost deletes again, or
    because their rows shall stay where they are
    """
    leftovers: bool | UnsetType | None = UNSET
    """Instead remove the leftovers that a diagnosis has found: markers of ended writes, files of rolled-back
    writes, and hashing configs that have neither a commit nor rows written by them
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment without writes"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class RepairPolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what `auto` would do"""
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""


class RepairResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `repair`"""

    repaired: list[str] | UnsetType = UNSET
    """Stale writes whose rows were brought back"""
    cleared: list[str] | UnsetType = UNSET
    """Suspected stale writes that turned out to be harmless"""
    left: list[str] | UnsetType = UNSET
    """Suspected stale writes that were left unchanged, because nothing proves them and `instants` does not name
    them
    """
    waived: list[str] | UnsetType = UNSET
    """Suspected stale writes that count as repaired now, because `accepted` names them"""
    rows: int | UnsetType = UNSET
    """Rows that were brought back"""
    deletes: int | UnsetType = UNSET
    """Deletes that were done again"""
    superseded: int | UnsetType = UNSET
    """Rows that were not brought back, because the table has newer ones"""
    moved: int | UnsetType = UNSET
    """Rows that were moved to their buckets"""
    deletes_without_rows: list[str] | UnsetType = UNSET
    """Commits after the repaired ones with deletes that have removed no row. If they deleted rows that only a
    wrong bucket had, these rows are back: run the deletes again
    """
    stale: list[str] | UnsetType = UNSET
    """Stale writes that would be repaired; only in a dry run"""
    suspects: list[str] | UnsetType = UNSET
    """Writes that would be checked; only in a dry run"""
    file_groups: int | UnsetType = UNSET
    """File groups of these writes"""
    late_files: int | UnsetType = UNSET
    """Files of fenced writers; with `leftovers`"""
    markers: list[str] | UnsetType = UNSET
    """Instants whose markers are left behind; with `leftovers`"""
    hashing_configs: list[str] | UnsetType = UNSET
    """Dangling hashing configs; with `leftovers`"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class ReplayIn(Model, frozen=True, kw_only=True):
    since: datetime
    """Events from this time on"""
    until: datetime | UnsetType | None = UNSET
    """Default: now"""
    with_delivered: bool | UnsetType = UNSET
    """Whether to send events again that were already delivered"""


class ReplayOut(Model, frozen=True, kw_only=True):
    replayed: int
    """Number of deliveries that will be sent again"""
    is_complete: bool
    """False if there are more: repeat the same call"""


class ReportGroup(Model, frozen=True, kw_only=True):
    key: str | None
    """Id of the table, owner, tag (`key=value`, or `key`) or kind of job; null for tables without an owner or
    without a tag
    """
    name: str | None
    """The table's name if `by=table`; null if the table is no longer registered"""
    tables: int
    """Tables in this group on which something ran"""
    figures: FiguresOut
    """The sums of the group"""


class ReportReportOut(Model, frozen=True, kw_only=True):
    since: datetime
    """Beginning of this state"""
    until: datetime
    """The end of the period"""
    by: GroupBy
    """How the figures are grouped"""
    tables: int
    """Tables on which something ran"""
    total: FiguresOut
    """The sums of all attempts, each counted once"""
    groups: list[ReportGroup]
    """The groups; those on which workers spent the most time come first. If `by=tag`, an attempt is counted in the
    group of each tag of its table
    """
    left_out: int
    """Groups beyond `limit`"""
    problems: ProblemCountsOut
    """Counts of the period's problems, which are known for GROUNDSKEEPER_EVENTS_DAYS"""
    text: str
    """The report as short plain text, for a message"""


class RequestsBucketIndexIn(Model, frozen=True, kw_only=True):
    """The writers' values of `hoodie.bucket.index.num.buckets` and `hoodie.bucket.index.hash.field`."""

    type: Literal["bucket"] = "bucket"
    """Type of the index"""
    num_buckets: int
    """Number of buckets; 0 without a bucket index"""
    hash_fields: list[str]
    """Fields whose hash decides the bucket"""


class ResizePolicyIn(Model, frozen=True, kw_only=True):
    mode: Mode | UnsetType = UNSET
    """`suggest` only records what `auto` would do"""
    split_bytes: int | UnsetType = UNSET
    """Parameter of the job"""
    merge_bytes: int | UnsetType = UNSET
    """Parameter of the job; 0: no bucket is merged"""
    min_buckets: int | UnsetType = UNSET
    """Minimum number of buckets of a partition"""
    max_buckets: int | UnsetType = UNSET
    """Maximum number of buckets of a partition"""
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""
    on_active_writers: OnActiveWriters | UnsetType = UNSET
    """What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write (it
    is rolled back, and its batch has to be written again), or `abort` the job
    """
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for a moment to commit"""
    lock_seconds: int | UnsetType = UNSET
    """How long writers may have to wait while the job rewrites slices that they have changed"""


class ResizedBuckets(Model, frozen=True, kw_only=True):
    """A bucket that is split, or neighbours that become one"""

    partition: str | UnsetType = UNSET
    """Path of the partition"""
    change: str | UnsetType = UNSET
    """`split` or `merge`"""
    file_ids: list[str] | UnsetType = UNSET
    """File groups that are replaced"""
    bytes: int | UnsetType = UNSET
    """Size of these file groups in bytes"""
    because: str | UnsetType = UNSET
    """Why"""
    larger_share: float | UnsetType = UNSET
    """After a split: the share of the rows or bytes, whichever is more, in the larger bucket"""


class RestoreIn(Model, frozen=True, kw_only=True):
    """Takes the table back to a savepoint. All later commits are lost for good. The writers must be stopped."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["restore"] = "restore"
    """Kind of job"""
    params: RestoreParams
    """Parameters of the kind"""


class RestoreParams(Model, frozen=True, kw_only=True):
    savepoint: str
    """The instant of the savepoint"""
    table_name: str
    """The table's name, as a confirmation, because rows are removed for good"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class RestoreResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `restore`"""

    savepoint: str | UnsetType = UNSET
    """The savepoint"""
    rolled_back: list[str] | UnsetType = UNSET
    """Commits that are undone"""
    writers_commits: int | UnsetType = UNSET
    """Those of these commits that wrote rows"""
    streams: list[str] | UnsetType = UNSET
    """Queries of Structured Streaming whose last batches are undone. Spark's checkpoint counts these batches as
    written, so the query does not write them again
    """
    indexes_dropped: list[str] | UnsetType = UNSET
    """Indexes that the restored table cannot have, which were dropped"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class ResultReason(Model, frozen=True, kw_only=True):
    """A reason for a refusal or an omission, as a problem"""

    type: str | UnsetType = UNSET
    """Type of the problem"""
    title: str | UnsetType = UNSET
    """What it is"""
    detail: str | UnsetType = UNSET
    """This case"""
    hint: str | UnsetType = UNSET
    """What to do"""
    retriable: bool | UnsetType = UNSET
    """Whether it may end by itself"""


class Role(Word):
    """The roles. reader < operator < admin: each includes the rights of the role before it. A worker may only
    lease, send heartbeats and report.
    """

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


class RollbackIn(Model, frozen=True, kw_only=True):
    """Rolls back a pending instant that nobody works on, or the latest completed commit."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["rollback"] = "rollback"
    """Kind of job"""
    params: RollbackParams
    """Parameters of the kind"""


class RollbackParams(Model, frozen=True, kw_only=True):
    instant: str
    """A pending instant, or the latest completed commit"""
    table_name: str | UnsetType | None = UNSET
    """Needed for a completed instant: the table's name"""
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class RollbackPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    after_seconds: int | UnsetType = UNSET
    """Time without a heartbeat after which a writer counts as dead"""
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""


class RollbackResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `rollback`"""

    instant: str | UnsetType = UNSET
    """The instant that is undone"""
    action: str | UnsetType | None = UNSET
    """Action of the instant"""
    state: str | UnsetType | None = UNSET
    """State of the instant"""
    operation: str | UnsetType | None = UNSET
    """Operation of the instant"""
    file_groups: int | UnsetType | None = UNSET
    """File groups that the instant wrote"""
    streams: list[str] | UnsetType = UNSET
    """Queries of Structured Streaming whose last batches are undone. Spark's checkpoint counts these batches as
    written, so the query does not write them again
    """
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class RowsOfReaders(Model, frozen=True, kw_only=True):
    """The rows of a partition as both kinds of readers find them"""

    partition: str | UnsetType = UNSET
    """Partition path"""
    rows_by_metadata_table: int | UnsetType = UNSET
    """Rows that readers with the metadata table find"""
    rows_by_listing: int | UnsetType = UNSET
    """Rows that readers who list the storage find"""
    same_keys: bool | UnsetType = UNSET
    """Whether both find the same keys"""


class SampleOut(Model, frozen=True, kw_only=True):
    """The state at one time. Between two samples nothing has changed, unless samples in between were deleted."""

    at: datetime
    """Time"""
    log_bytes: int
    """Size of the current log files, which wait for a compaction"""
    base_bytes: int
    """Size of the current base files"""
    delta_commits: int
    """Commits of writers since the last compaction; 0 for a copy-on-write table"""
    file_groups: int
    """Number of file groups"""
    base_files: int
    """Number of current base files"""
    small_files: int
    """Base files below GROUNDSKEEPER_SMALL_FILE_BYTES"""
    freed_bytes: int
    """Size of files in no latest slice: the most that cleaning could free"""
    timeline_commits: int
    """Completed commits on the active timeline"""
    compacted_at: datetime | None
    """Completion of the last compaction"""
    metadata_commits: int | None
    """Commits of the metadata table since its last compaction; null without one"""
    metadata_log_files: int | None
    """Log files of the metadata table"""
    metadata_bytes: int | None
    """Size of the metadata table, logs included"""
    log_ratio: float | None
    """Log bytes divided by base bytes; null without base files"""


class SavepointIn(Model, frozen=True, kw_only=True):
    """Creates, lists or deletes savepoints. A savepoint keeps the files of a commit, so that the table can be
    restored to it.
    """

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["savepoint"] = "savepoint"
    """Kind of job"""
    params: SavepointParams | UnsetType = UNSET
    """Parameters of the kind"""


class SavepointOfTable(Model, frozen=True, kw_only=True):
    """A savepoint"""

    instant: str | UnsetType = UNSET
    """The commit whose files are kept"""
    by: str | UnsetType | None = UNSET
    """Who created it"""
    comment: str | UnsetType | None = UNSET
    """Why"""
    files: int | UnsetType = UNSET
    """Number of files that are kept"""


class SavepointParams(Model, frozen=True, kw_only=True):
    action: Literal["create", "list", "delete"] | UnsetType = UNSET
    """What to do with savepoints"""
    instant: str | UnsetType | None = UNSET
    """The commit. Default when creating: the latest completed one"""
    comment: str | UnsetType = UNSET
    """Note for others"""
    wait_seconds: int | UnsetType = UNSET
    """How long to wait for writes that began before this commit"""


class SavepointResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `savepoint`"""

    savepoint: str | UnsetType = UNSET
    """The savepoint that was created"""
    deleted: str | UnsetType = UNSET
    """The savepoint that was deleted"""
    savepoints: list[SavepointOfTable] | UnsetType = UNSET
    """All savepoints of the table"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class SessionOut(Model, frozen=True, kw_only=True):
    """The caller, as the service sees it."""

    who: str
    """Name of the token"""
    token_id: str | None
    """Id of the token; null without one"""
    role: Role
    """What the caller may do"""
    tables: list[str] | None
    """Patterns of the tables for which the role holds; for others the caller is a reader. Null: the role holds for
    all tables
    """
    way: Way
    """How the caller was identified"""
    expires_at: datetime | None
    """When the session or the token ends; null: never"""


class SetOfTables(Model, frozen=True, kw_only=True):
    """`pause` and `resume` set `paused` in each table's own policy. `unacknowledge` takes back the
    acknowledgements of the tables' problems. `poll` reads the tables' timelines now.
    """

    tables: list[str]
    """Their ids"""
    action: Literal["pause", "resume", "unacknowledge", "poll"]
    """Action of the instant on the table's timeline"""


class Severity(Word):
    """The severity of a problem. `CRITICAL`: readers get wrong rows or none, or no work is done any more.
    `WARNING`: the problem becomes worse by itself. `NOTICE`: the problem costs something, and can wait.
    """

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"


class SeverityCounts(Model, frozen=True, kw_only=True):
    """Counts of all problems that match the filter, not only of this page."""

    critical: int | UnsetType = UNSET
    """Critical problems"""
    warning: int | UnsetType = UNSET
    """Warnings"""
    notice: int | UnsetType = UNSET
    """Notices"""


class ShadowList(Model, frozen=True, kw_only=True):
    items: list[ShadowOut]
    """The items of this page, or all if there are no pages"""


class ShadowOut(Model, frozen=True, kw_only=True):
    pattern: str
    """Glob for names of tables, or for `tag:` or `owner:`"""
    settings: PolicyIn
    """The members that were sent"""
    started_at: datetime
    """Time of the start; null before the start"""
    precedence: int
    """If two patterns match, the higher value wins"""


class SightingOut(Model, frozen=True, kw_only=True):
    """The detection of an engine."""

    instant: str | None
    """The latest instant with evidence; null if the evidence is in the table itself"""
    evidence: str
    """What shows that the engine writes the table"""
    first_seen: datetime
    """Time of the first sighting"""
    last_seen: datetime
    """Time of the last sighting"""


class SimulateIn(Model, frozen=True, kw_only=True):
    """A pattern, a tag or tables, and the policy that these would have had."""

    policy: PatternPolicyIn | None
    """The policy that replaces the present one of the pattern or tag; null for its deletion. If `tables` are
    given: settings that are added to each table's own policy
    """
    pattern: str | UnsetType | None = UNSET
    """A pattern of tables, as in policies"""
    tag: str | UnsetType | None = UNSET
    """A tag, which is the same as the pattern `tag:<tag>`"""
    tables: list[str] | UnsetType | None = UNSET
    """Ids of tables"""
    from_: datetime | UnsetType | None = field(default=UNSET, name="from")
    """Beginning of the period; default: 14 days before its end"""
    to: datetime | UnsetType | None = UNSET
    """End of the period; default: now. A later time, without `from`, means a forecast from now on: it begins with
    the files of the last polls, and repeats the commits of a past period of the same length
    """


class SimulatedTableOut(Model, frozen=True, kw_only=True):
    id: str
    """Id of the table"""
    name: str
    """Name"""
    jobs_now: int
    """Simulated jobs of the present policy"""
    jobs_new: int
    """Simulated jobs of the new policy"""
    gb_hours_now: float
    """Their GB-hours"""
    gb_hours_new: float
    """Their GB-hours"""
    read_overhead_now: float
    """Not exceeded in 95 % of the time"""
    read_overhead_new: float
    """Not exceeded in 95 % of the time"""


class SimulationOut(Model, frozen=True, kw_only=True):
    from_: datetime = field(name="from")
    """Beginning of the period"""
    to: datetime
    """End of the period"""
    tables: int
    """Tables that the edit is about"""
    commits: int
    """Commits of writers that were replayed"""
    known_since: datetime | None
    """First known commit of the period; null if there is none"""
    text: str
    """The difference in a sentence"""
    error: float | None
    """Share by which the jobs of `now` differ from those of `actual`; null if there were none"""
    caution: str | None
    """Why the figures may be wrong; null if there is no reason for doubt"""
    now: SimulationsOutcomeOut
    """Result of the present policy in the simulation"""
    new: SimulationsOutcomeOut
    """Result of the new policy in the simulation"""
    actual: SimulationsOutcomeOut
    """What really happened, including submitted jobs, failures and table services in writers"""
    items: list[SimulatedTableOut]
    """The 20 tables whose work changes the most"""


class SimulationsOutcomeOut(Model, frozen=True, kw_only=True):
    jobs: int
    """Jobs that succeeded"""
    seconds: float
    """Seconds that workers spent on these jobs"""
    gb_hours: float
    """This time in hours, times the memory of a slot in GiB"""
    rewritten_bytes: int
    """Bytes that the jobs wrote into base files"""
    read_overhead: float | None
    """The read overhead of all tables together, as the value that was not exceeded in 95 % of the time; null if
    nothing is known
    """
    kept: float | None
    """Share of the time for which objectives were kept, of all tables with an objective; null without such tables"""
    longest_wait: float | None
    """Longest time for which a due job waited for a slot, in seconds; null if it is not known"""
    kinds: list[KindOutcomeOut]
    """The jobs by kind; the kind on which workers spent the most time comes first"""
    points: list[PointOut]
    """At equidistant times, without those about which nothing is known"""


class SinceOut(Model, frozen=True, kw_only=True):
    """Commits of writers since the last run of a table service, or since the beginning if there was none."""

    commits: int
    """Commits of writers"""
    bytes_written: int
    """Bytes that these commits wrote"""
    at: datetime | None
    """When the last run completed; null if there was none"""
    oldest_at: datetime | None
    """When the first of these commits completed; null if there is none, or if an earlier version counted it"""


class SizeClassOut(Model, frozen=True, kw_only=True):
    """A class of file sizes. The class begins where the one before it ends."""

    below_bytes: int | None
    """Null in the last class"""
    files: int
    """Number of files in this class"""


class SkippedFolder(Model, frozen=True, kw_only=True):
    """A folder that could not be listed."""

    path: str
    """Its path relative to the root"""
    reason: ReasonOut
    """Why"""


class SlicesMerged(Model, frozen=True, kw_only=True):
    """Who merged file slices with logs"""

    arrow: int | UnsetType = UNSET
    """File slices with logs that Arrow merged, including repetitions"""
    hudi: int | UnsetType = UNSET
    """File slices with logs that Hudi's readers merged"""
    reasons: list[ResultReason] | UnsetType = UNSET
    """Why Hudi's readers merged some"""


class SnapshotOut(Model, frozen=True, kw_only=True):
    """The state of a table. `partitions` are the largest ones."""

    table_type: TableType
    """Type of the table"""
    last_commit: str | None
    """The last instant that wrote rows; null without any"""
    last_commit_at: datetime | None
    """When that commit completed"""
    first_commit_at: datetime | None
    """When the first known commit completed"""
    small_file_bytes: int
    """Base files below this size count as small"""
    timeline_commits: int
    """Completed commits on the active timeline, which archival shortens"""
    table_id: str
    """Id of the table"""
    taken_at: datetime
    """When the service read this state of the table"""
    since_compaction: SinceOut
    """Commits of writers since the last compaction"""
    since_cleaning: SinceOut
    """Commits of writers since the last cleaning"""
    since_clustering: SinceOut
    """Commits of writers since the last clustering"""
    pending: list[PendingOut]
    """Instants that have not completed"""
    num_buckets: int
    """Number of buckets; 0 without a bucket index"""
    log_ratio: float | None
    """Log bytes divided by base file bytes"""
    total: FilesOut
    """Totals of all partitions"""
    base_file_sizes: list[SizeClassOut]
    """The base files by size, in ten classes. Empty until a partition with base files was listed"""
    metadata_table: MetadataTableOut | None
    """State of the metadata table, at most some minutes older than the rest. Null if the table has no metadata
    table, and until the second poll
    """
    num_partitions: int
    """Number of partitions"""
    partitions: list[PartitionOut]
    """The largest partitions"""
    watch: WatchOut
    """State of the polling of the table"""


class SnoozeIn(Model, frozen=True, kw_only=True):
    until: datetime
    """When the snooze ends"""
    reason: str | UnsetType | None = UNSET
    """Why, for other people"""


class SpanOut(Model, frozen=True, kw_only=True):
    starts_at: datetime
    """Beginning of the span"""
    ends_at: datetime
    """End of the span"""


class SpentOut(Model, frozen=True, kw_only=True):
    """Seconds from the submission of the job to its end, or until now."""

    waited_seconds: float
    """Time before the first attempt and between attempts"""
    worked_seconds: float
    """Time in all attempts together"""
    took_seconds: float
    """Sum of both times"""


class StaleWrite(Model, frozen=True, kw_only=True):
    """A commit that wrote rows to replaced file groups"""

    instant: str | UnsetType = UNSET
    """The commit"""
    operation: str | UnsetType | None = UNSET
    """Hudi's WriteOperationType of that commit"""
    file_groups: int | UnsetType = UNSET
    """Replaced file groups that it wrote to"""
    doubt: str | UnsetType | None = UNSET
    """Why no repair of it starts by itself. `itself`: an overwrite replaced the file groups it had written to;
    `overwritten`: the owner's overwrite or deletion replaced the file groups; `order`: the order of completion
    is unknown; `clocks`: the writers' clocks disagree
    """


class StartOut(Model, frozen=True, kw_only=True):
    """A job that would start now."""

    kind: JobKind
    """Kind of job"""
    because: str
    """Why"""


class SuggestionOut(Model, frozen=True, kw_only=True):
    """A table that is not registered although its writer delegates table services."""

    base_path: str
    """The table's base path, an absolute path or a URI"""
    table_name: str
    """Name of the table"""
    plans: int
    """Plans that the writer has delegated"""
    hint: str
    """The remedy"""


class SuspectedPartition(Model, frozen=True, kw_only=True):
    """A partition to which a writer with the old number of buckets, or without the bucket index, may have written"""

    partition: str | UnsetType = UNSET
    """Its path"""
    rows: int | UnsetType = UNSET
    """Rows that the commit wrote to the partition"""
    buckets: list[int] | UnsetType = UNSET
    """The numbers of buckets before and after the change; one number if an index was adopted"""
    since: str | UnsetType = UNSET
    """The instant that changed the number or adopted the index, if known"""


class SyncIn(Model, frozen=True, kw_only=True):
    """Updates the tables of a Hive metastore or of AWS Glue: columns, partitions, and the last synced commit."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["sync"] = "sync"
    """Kind of job"""
    params: SyncParams
    """Parameters of the kind"""


class SyncParams(Model, frozen=True, kw_only=True):
    metastore_uris: str
    """URIs of the Hive metastore, separated by commas; or `glue://` and the endpoint of AWS Glue, followed by a
    slash and the account's id if the account is another one. The administrator names the hosts that are allowed
    """
    database: str | UnsetType = UNSET
    """Database of the metastore"""
    table: str | UnsetType | None = UNSET
    """Name in the metastore. Default: the table's own"""
    strategy: SyncStrategy | UnsetType = UNSET
    """The metastore tables of a merge-on-read table `trips`. `ALL`: `trips` and `trips_rt` with logs merged, and
    `trips_ro` without logs. `RT`: only `trips`, with logs merged. `RO`: only `trips`, without logs
    """
    partition_fields: list[str] | UnsetType | None = UNSET
    """Partition columns. Default: those of hoodie.properties"""
    partition_extractor: PartitionExtractor | UnsetType | None = UNSET
    """How partition values are read from a partition path. Default: chosen by the table's paths"""
    create_database: bool | UnsetType = UNSET
    """Create the database if there is none"""


class SyncPolicyIn(Model, frozen=True, kw_only=True):
    enabled: bool | UnsetType = UNSET
    """Whether jobs of this kind start automatically"""
    metastore_uris: str | UnsetType | None = UNSET
    """Parameter of the job; null: no sync"""
    database: str | UnsetType = UNSET
    """Database of the metastore"""
    table: str | UnsetType | None = UNSET
    """Name in the metastore. Default: the table's own"""
    strategy: SyncStrategy | UnsetType = UNSET
    """The metastore tables of a merge-on-read table `trips`. `ALL`: `trips` and `trips_rt` with logs merged, and
    `trips_ro` without logs. `RT`: only `trips`, with logs merged. `RO`: only `trips`, without logs
    """
    cron: str | UnsetType | None = UNSET
    """Five fields, in the policy's time zone. The job runs at these times if there is work, and ignores the
    thresholds; null: the thresholds apply
    """
    min_interval_seconds: int | UnsetType = UNSET
    """Minimum time from the end of one job to the start of the next"""


class SyncResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `sync`"""

    metastore: str | UnsetType = UNSET
    """The metastore"""
    changed: bool | UnsetType = UNSET
    """Whether there was anything to do"""
    tables: list[SyncedTable] | UnsetType = UNSET
    """The tables in the metastore"""
    last_instant: str | UnsetType | None = UNSET
    """The last completed instant of the table that the sync covers"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class SyncStrategy(Word):
    """Hudi's `HoodieSyncTableStrategy` (1.2): the metastore tables of a merge-on-read table."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


class SyncedInstants(Model, frozen=True, kw_only=True):
    """The last synced instants of a metastore table, before and after the job"""

    before: str | UnsetType | None = UNSET
    """Before the job"""
    after: str | UnsetType | None = UNSET
    """After it"""


class SyncedTable(Model, frozen=True, kw_only=True):
    """A table in the metastore"""

    table: str | UnsetType = UNSET
    """Database and name"""
    created: bool | UnsetType = UNSET
    """Whether it was created"""
    columns_added: list[str] | UnsetType = UNSET
    """Columns that were added, with their types"""
    columns_changed: list[str] | UnsetType = UNSET
    """Columns that changed, with both types"""
    partitions_added: int | UnsetType = UNSET
    """Number of partitions that were added"""
    partitions_moved: int | UnsetType = UNSET
    """Number of partitions whose folder changed"""
    partitions_dropped: int | UnsetType = UNSET
    """Number of partitions that were dropped"""
    added_partitions: list[str] | UnsetType = UNSET
    """Names of the first hundred added partitions"""
    moved_partitions: list[str] | UnsetType = UNSET
    """Names of the first hundred partitions whose folder changed"""
    dropped_partitions: list[str] | UnsetType = UNSET
    """Names of the first hundred dropped partitions"""
    synced: SyncedInstants | UnsetType = UNSET
    """The last instant that was synced to it"""


class TableAdviceOut(Model, frozen=True, kw_only=True):
    computed_at: datetime
    """When the advice was computed"""
    state: AdviceState
    """State of the advice"""
    because: str
    """The advice with its figures, or why there is none"""
    setting: str | None
    """The setting of the policy; null without advice"""
    before: int | None
    """Its value when the advice was computed"""
    after: int | None
    """The value that is advised"""
    figures: dict[str, float]
    """Cost a day, now and with the new value"""
    changed_at: datetime | None
    """When the advice was applied, dismissed or taken back"""
    table_id: str
    """Id of the table"""
    name: str
    """Name of the table"""
    buckets: GrowthOut | None
    """Null without a bucket index, and while too little is known"""
    index: IndexChoiceOut | None
    """Null with a bucket index, and while too little is known"""


class TableChange(Model, frozen=True, kw_only=True):
    """Members that are left out do not change. `null` sets `index`, `writers`, `readers` and `owner` to unknown,
    and other members to their defaults.
    """

    name: str | UnsetType | None = UNSET
    """Name"""
    index: RequestsBucketIndexIn | UnsetType | None = UNSET
    """The table's bucket index; null if it has none"""
    lock: LockIn | UnsetType | None = UNSET
    """The lock that the table's writers take; null for the default"""
    writers: WritersIn | UnsetType | None = UNSET
    """What is declared about the table's writers"""
    readers: ReadersIn | UnsetType | None = UNSET
    """What is declared about the table's readers"""
    hudi_options: dict[str, str] | UnsetType | None = UNSET
    """Replaces all options; a masked value stands for the stored one"""
    owner: str | UnsetType | None = UNSET
    """Who is responsible for the table: a team, a person, an address; for filters, policies and reports"""
    tags: dict[str, str] | UnsetType | None = UNSET
    """Replaces all tags"""


class TableDetected(Model, frozen=True, kw_only=True):
    """What a registration with the same body would find."""

    name: str
    """Name"""
    base_path: str
    """Canonical: absolute, links and `..` resolved"""
    index: IndexOut | None
    """The given bucket index, or the one that sampled record keys prove"""
    profile: TableProfile
    """Type, version, partitioning, keys and columns, as in GET /v1/tables/{id}"""
    registered_as: str | None
    """The table that is registered at this path already"""


class TableIn(Model, frozen=True, kw_only=True):
    base_path: str
    """An absolute path or a URI (s3a://...)"""
    name: str | UnsetType | None = UNSET
    """Default: the name in hoodie.properties"""
    index: RequestsBucketIndexIn | UnsetType | None = UNSET
    """The bucket index, which is verified on sampled record keys. Default: detected"""
    lock: LockIn | UnsetType = UNSET
    """The lock that the table's writers take"""
    writers: WritersIn | UnsetType | None = UNSET
    """What is known about the table's writers"""
    readers: ReadersIn | UnsetType | None = UNSET
    """What is known about the table's readers"""
    hudi_options: dict[str, str] | UnsetType = UNSET
    """Added to the Hudi client's options in every job"""
    owner: str | UnsetType | None = UNSET
    """Who is responsible for the table: a team, a person, an address; for filters, policies and reports"""
    tags: dict[str, str] | UnsetType = UNSET
    """Keys with values. Filters, policies and reports select tables by them. A value may be empty"""


class TableOut(Model, frozen=True, kw_only=True):
    """A registered table. An option whose name or value looks like a secret is masked."""

    id: str
    """Id of the table"""
    name: str
    """Name"""
    base_path: str
    """Canonical: absolute, links and `..` resolved"""
    index: IndexOut | None
    """The table's bucket index; null if it has none"""
    lock: LockOut
    """The lock that the table's writers take"""
    writers: WritersOut
    """What is declared about the table's writers"""
    readers: ReadersOut
    """What is declared about the table's readers"""
    hudi_options: dict[str, str]
    """Options added to those of the Hudi client in every job"""
    owner: str | None
    """Who is responsible for the table; null if nobody was named"""
    tags: dict[str, str]
    """The table's tags"""
    profile: TableProfile
    """Detected when the table was last examined"""
    incidents: IncidentCounts
    """Unresolved incidents"""
    clock: ClockOut | None
    """The writers' clock; null before the first poll"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""


class TablePage(Model, frozen=True, kw_only=True):
    items: list[TableOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class TableProfile(Model, frozen=True, kw_only=True):
    """The result of the last examination: `hoodie.properties`, the timeline and a few base files.

    `ordering_fields` are called precombine field up to table version 6. `pending_instants` counts requested and
    inflight instants.
    """

    table_type: TableType | UnsetType = UNSET
    """Type of the table"""
    table_version: int | UnsetType = UNSET
    """Version of the table"""
    timeline_layout: int | UnsetType = UNSET
    """1, or 2 from table version 8 on"""
    timeline_path: str | UnsetType = UNSET
    """Folder of the timeline below the base path"""
    bucket_layout: BucketLayout | UnsetType = UNSET
    """The bucket index that the file groups indicate"""
    partition_fields: list[str] | UnsetType = UNSET
    """Fields of the partition path"""
    record_key_fields: list[str] | UnsetType = UNSET
    """Fields of the record key"""
    ordering_fields: list[str] | UnsetType = UNSET
    """Fields that order rows of a key"""
    key_generator: str | UnsetType | None = UNSET
    """Class or type of the key generator; null if not stored"""
    metadata_partitions: list[str] | UnsetType = UNSET
    """Parts of the metadata table"""
    index_options: dict[str, str] | UnsetType = UNSET
    """Options without which a Spark writer deletes the table's indexes"""
    indexes_mixed_by_cleans: list[str] | UnsetType = UNSET
    """Expression indexes, each with the index of its type: no cleaning runs beside them"""
    base_file_format: str | UnsetType = UNSET
    """Format of the base files"""
    populates_meta_fields: bool | UnsetType = UNSET
    """Whether rows have Hudi's meta columns"""
    drops_partition_columns: bool | UnsetType = UNSET
    """Whether files lack the partition columns"""
    hive_style_partitioning: bool | UnsetType = UNSET
    """Whether paths are like `region=eu`"""
    url_encoded_partitions: bool | UnsetType = UNSET
    """Whether paths are URL-encoded"""
    columns: list[Column] | UnsetType = UNSET
    """Columns besides Hudi's; empty until the table has data"""
    pending_instants: int | UnsetType = UNSET
    """Instants that had not completed"""
    warnings: list[str] | UnsetType = UNSET
    """Sentences for the owner"""


class TableRow(Model, frozen=True, kw_only=True):
    """One table. The problems and the backlog are as old as `as_of` says; everything else is current."""

    id: str
    """Id"""
    name: str
    """Name"""
    base_path: str
    """Canonical: absolute, links and `..` resolved"""
    owner: str | None
    """Who is responsible for the table; null if nobody was named"""
    tags: dict[str, str]
    """The table's tags"""
    table_type: str | None
    """Null if the type was not detected"""
    table_version: int | None
    """Null if the version was not detected"""
    declared_buckets: int | None
    """Number of buckets in the writers' options; null without a bucket index"""
    buckets: int | None
    """Number of buckets in force, which a hashing config of the table may have changed"""
    state: TableState
    """`unreadable`: polls fail; `unpolled`: registered, and not polled yet; `busy`: workers hold jobs of it"""
    health: Health | None
    """Severity of the table's most serious problem; `healthy` without problems; null if `as_of` is null"""
    problems: list[BriefProblem]
    """The five most serious problems, most serious first"""
    problem_count: int
    """Number of the table's problems"""
    warnings: list[str]
    """Found when the table was last examined, at most 10"""
    incidents: IncidentCounts
    """Unresolved incidents"""
    backlog: BacklogOut | None
    """Null before the first poll"""
    last_commit_at: datetime | None
    """Null before the first poll, or if there is no commit"""
    log_ratio: float | None
    """Log bytes divided by base bytes; null without base files"""
    log_ratios: list[float]
    """The ratio at 24 equidistant moments of the last day, or since the first poll; empty without polls"""
    next_job: NextJobOut | None
    """The first job that waits or is suggested; null if there is none"""
    jobs: list[PastJobOut]
    """The last 20 jobs, newest first, dry runs included"""


class TableRows(Model, frozen=True, kw_only=True):
    items: list[TableRow]
    """The items of this page, or all if there are no pages"""
    total: int
    """All registered tables"""
    matching: int
    """Those that the filter selects"""
    before: int
    """Number of these tables on earlier pages"""
    next_cursor: str | None
    """For the next page, with the same filter and order; null at the end"""


class TableState(Word):
    """The state of a table. If several apply, the first one counts. `UNREADABLE`: polls fail. `UNPOLLED`: there
    was no poll yet. `BUSY`: workers hold jobs of the table.
    """

    UNREADABLE = "unreadable"
    UNPOLLED = "unpolled"
    BUSY = "busy"
    IDLE = "idle"


class TableType(Word):
    """Hudi's `HoodieTableType`."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class Target(Word):
    """The kinds of targets. `WEBHOOK` gets the event itself, signed."""

    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    ALERTMANAGER = "alertmanager"
    EMAIL = "email"
    WEBHOOK = "webhook"


class TargetIn(Model, frozen=True, kw_only=True):
    """Where messages go. `GET` shows secrets masked. If a masked value is sent back, the stored value stays."""

    type: Target
    """What receives the messages"""
    url: str | UnsetType | None = UNSET
    """Slack: the incoming webhook. Teams: the webhook of a workflow. Alertmanager: its address, such as
    https://alertmanager.example.com. Webhook: any https URL. PagerDuty: only needed for another region
    """
    routing_key: str | UnsetType | None = UNSET
    """PagerDuty: the integration key of the service"""
    authorization: str | UnsetType | None = UNSET
    """Alertmanager: the header `Authorization`"""
    headers: dict[str, str] | UnsetType | None = UNSET
    """Webhook: sent with every message"""
    host: str | UnsetType | None = UNSET
    """Mail: the SMTP server"""
    port: int | UnsetType | None = UNSET
    """Mail: port of the server. Default: 587"""
    starttls: bool | UnsetType | None = UNSET
    """Mail: whether to encrypt by STARTTLS; false only for an allowed host. Default: true"""
    user: str | UnsetType | None = UNSET
    """Mail: the user for the log-in"""
    password: str | UnsetType | None = UNSET
    """Mail: the password for the log-in"""
    sender: str | UnsetType | None = UNSET
    """Mail: address of the sender"""
    to: list[str] | UnsetType | None = UNSET
    """Mail: addresses of the recipients"""


class TargetOut(Model, frozen=True, kw_only=True):
    """Where messages go. Secrets are masked."""

    type: Target
    """What receives the messages"""
    url: str | UnsetType | None = UNSET
    """Slack: the incoming webhook. Teams: the webhook of a workflow. Alertmanager: its address, such as
    https://alertmanager.example.com. Webhook: any https URL. PagerDuty: only needed for another region
    """
    routing_key: str | UnsetType | None = UNSET
    """PagerDuty: the integration key of the service"""
    authorization: str | UnsetType | None = UNSET
    """Alertmanager: the header `Authorization`"""
    headers: dict[str, str] | UnsetType | None = UNSET
    """Webhook: sent with every message"""
    host: str | UnsetType | None = UNSET
    """Mail: the SMTP server"""
    port: int | UnsetType | None = UNSET
    """Mail: port of the server. Default: 587"""
    starttls: bool | UnsetType | None = UNSET
    """Mail: whether to encrypt by STARTTLS; false only for an allowed host. Default: true"""
    user: str | UnsetType | None = UNSET
    """Mail: the user for the log-in"""
    password: str | UnsetType | None = UNSET
    """Mail: the password for the log-in"""
    sender: str | UnsetType | None = UNSET
    """Mail: address of the sender"""
    to: list[str] | UnsetType | None = UNSET
    """Mail: addresses of the recipients"""


class TimelineOut(Model, frozen=True, kw_only=True):
    """The active timeline, read for this request."""

    pending: list[PendingOut]
    """Instants that have not completed"""
    completed: list[CompletedOut]
    """In the order of completion"""
    watch: WatchOut
    """State of the polling of the table"""


class TrendOut(Model, frozen=True, kw_only=True):
    since: datetime
    """Beginning of this state"""
    until: datetime
    """The end of the period"""
    step_seconds: int
    """Length of a step"""
    items: list[TrendPointOut]
    """The steps, oldest first; a step without a sample is missing"""


class TrendPointOut(Model, frozen=True, kw_only=True):
    """A step of time."""

    at: datetime
    """Beginning of the step"""
    tables: int
    """Registered tables, at the end of the step"""
    log_bytes: int
    """Size of the log files that wait for a compaction, at the end of the step"""
    queued: int
    """Jobs that wait for a worker, at the end of the step"""
    running: float
    """Jobs that workers held, on average"""
    slots: float
    """Jobs that the ready workers could run at once, on average"""
    succeeded: int
    """Jobs that succeeded, without dry runs"""
    failed: int
    """Jobs that failed"""
    cancelled: int
    """Jobs that were cancelled"""
    freed_bytes: float
    """Size of the files that cleanings have deleted"""


class Trigger(Word):
    """Selects the thresholds that must be reached: commits since the last run, seconds since the last run, both,
    or one of them.
    """

    COMMITS = "commits"
    SECONDS = "seconds"
    BOTH = "both"
    EITHER = "either"


class TtlStrategy(Word):
    """Hudi's `PartitionTTLStrategyType` (1.2): a partition's age counts from its last modification, or from its
    creation.
    """

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


class UpgradeIn(Model, frozen=True, kw_only=True):
    """Raises or lowers the table version by Hudi's own upgrader. The writers must be stopped."""

    dry_run: bool | UnsetType = UNSET
    """Return the plan, and change nothing"""
    priority: int | UnsetType = UNSET
    """Jobs with a higher value are handed out first"""
    timeout_seconds: int | UnsetType | None = UNSET
    """Time limit of one attempt. Default: the limit in the table's policy, else the service's limit"""
    kind: Literal["upgrade"] = "upgrade"
    """Kind of job"""
    params: UpgradeParams
    """Parameters of the kind"""


class UpgradeParams(Model, frozen=True, kw_only=True):
    to_version: int
    """The table version that the table gets: 6, 8 or 9"""
    undeclared: bool | UnsetType = UNSET
    """Go on although the table does not declare which versions of Hudi its writers and readers have. Set this only
    if you know that all of them can use the new version
    """
    hand_over_seconds: int | UnsetType = UNSET
    """On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody
    does, the job fails (`writers-not-stopped`) and has changed nothing
    """


class UpgradeResult(Model, frozen=True, kw_only=True):
    """The result of a job of kind `upgrade`"""

    files: int | UnsetType = UNSET
    """Number of files"""
    bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    rows: int | UnsetType = UNSET
    """Number of rows, the same before and after"""
    key_digest: str | UnsetType = UNSET
    """Digest of all record keys, the same before and after"""
    from_version: int | UnsetType = UNSET
    """The table version before the change"""
    to_version: int | UnsetType = UNSET
    """The table version after the change"""
    needs_hudi: str | UnsetType = UNSET
    """The oldest Hudi that reads and writes this version"""
    excluded: list[str] | UnsetType = UNSET
    """Declared writers and readers that cannot use this version"""
    properties: list[ChangedProperty] | UnsetType = UNSET
    """Properties that change"""
    instants: int | UnsetType = UNSET
    """Instants on the active timeline whose files move to another folder"""
    archived_instants: int | UnsetType = UNSET
    """Archived instants that are written in another format"""
    file_groups_with_logs: int | UnsetType = UNSET
    """File groups with logs, which are compacted first"""
    indexes: list[str] | UnsetType = UNSET
    """Partitions of the metadata table before the change"""
    indexes_dropped: list[str] | UnsetType = UNSET
    """Indexes that the version does not know, which are dropped"""
    backup_files: int | UnsetType = UNSET
    """Files that the backup copies"""
    backup_bytes: int | UnsetType = UNSET
    """Size of these files in bytes"""
    undone: bool | UnsetType = UNSET
    """Whether the job first undid an upgrade that had not ended"""
    refusals: list[ResultReason] | UnsetType = UNSET
    """All reasons for which the job would be refused; only in a dry run"""
    warnings: list[str] | UnsetType = UNSET
    """Facts that the owner should check; only in a dry run"""
    lock: LockFound | UnsetType = UNSET
    """The table's lock; only in a dry run"""
    beside: FoundBeside | UnsetType = UNSET
    """Work of others on the table; only in a dry run"""
    would_roll_back: list[str] | UnsetType = UNSET
    """Instants of dead writers that the job would roll back; only in a dry run"""
    notes: list[str] | UnsetType = UNSET
    """What the findings mean for the job, in sentences"""
    estimated_cost: EstimatedCost | UnsetType = UNSET
    """The estimated cost of the work; only in a dry run"""
    audit: Examination | UnsetType = UNSET
    """Result of the audit's checks that were made after the job had replaced file groups"""
    nothing_to_do: bool | UnsetType = UNSET
    """Whether there was nothing to do"""
    found_completed: str | UnsetType = UNSET
    """The completed instant of an earlier attempt, so that nothing was left to do"""
    seconds: float | UnsetType = UNSET
    """Time that the attempt took"""
    cpu_seconds: float | UnsetType = UNSET
    """CPU time of the worker and its processes, shared equally by attempts that run at once"""
    lock_wait_seconds: float | UnsetType = UNSET
    """Time for which it waited for the table's lock"""
    clock: dict[str, Any] | UnsetType = UNSET
    """What the timeline says about the clock of the table's writers"""
    not_writable: ResultReason | UnsetType | None = UNSET
    """Why the worker cannot write to the table; null if it can, absent if it has not tried"""


class Verdict(Word):
    RUN = "run"
    WAIT = "wait"
    SUGGEST = "suggest"
    SKIP = "skip"


class WatchOut(Model, frozen=True, kw_only=True):
    """State of the polling of the table."""

    next_poll_at: datetime
    """Time of the next poll"""
    looked_at: datetime | None
    """Time of the last poll that found the timeline changed"""
    gap_at: datetime | None
    """Time at which instants were last found to be archived before a poll saw them"""
    failures: int
    """Failed polls since the last successful one"""
    error: str | None
    """Why the last poll failed; null if it did not fail"""


class Way(Word):
    """How the caller was identified. `open`: no token exists, so the caller needs none."""

    OPEN = "open"
    BEARER = "bearer"
    SESSION = "session"


class WebhookChange(Model, frozen=True, kw_only=True):
    """Members that are left out do not change."""

    url: str | UnsetType | None = UNSET
    """Where the events are sent: https, or a Kafka topic"""
    types: list[str] | UnsetType | None = UNSET
    """Types of events that are sent; `*` matches anything"""
    tables: list[str] | UnsetType | None = UNSET
    """Ids of tables or patterns of their names; empty for all"""
    headers: dict[str, str] | UnsetType | None = UNSET
    """Replaces all headers; a masked value stands for the stored one"""
    description: str | UnsetType | None = UNSET
    """Free text of the creator"""


class WebhookCreated(Model, frozen=True, kw_only=True):
    id: str
    """Id of the webhook"""
    url: str
    """Complete for admins only, because many services accept any caller that knows their URL"""
    old_secret_until: datetime | None
    """Until this time messages are also signed with the previous secret"""
    disabled_because: str | None
    """Why nothing is sent; null if the webhook is enabled"""
    disabled_at: datetime | None
    """Since when nothing is sent"""
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    """When a message was last delivered"""
    types: list[str]
    """Types of events that are sent; `*` matches anything"""
    tables: list[str]
    """Ids of tables or patterns of their names; empty for all"""
    headers: dict[str, str]
    """The values are masked"""
    description: str
    """Free text of the creator"""
    enabled: bool
    """Whether anything is sent"""
    pending: int
    """Deliveries that wait for an attempt or a retry"""
    dead: int
    """Deliveries that were given up and not replayed"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""
    secret: str
    """Secret for checking signatures. Not shown again"""


class WebhookDetail(Model, frozen=True, kw_only=True):
    id: str
    """Id of the webhook"""
    url: str
    """Complete for admins only, because many services accept any caller that knows their URL"""
    old_secret_until: datetime | None
    """Until this time messages are also signed with the previous secret"""
    disabled_because: str | None
    """Why nothing is sent; null if the webhook is enabled"""
    disabled_at: datetime | None
    """Since when nothing is sent"""
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    """When a message was last delivered"""
    types: list[str]
    """Types of events that are sent; `*` matches anything"""
    tables: list[str]
    """Ids of tables or patterns of their names; empty for all"""
    headers: dict[str, str]
    """The values are masked"""
    description: str
    """Free text of the creator"""
    enabled: bool
    """Whether anything is sent"""
    pending: int
    """Deliveries that wait for an attempt or a retry"""
    dead: int
    """Deliveries that were given up and not replayed"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""
    blocked: list[BlockedOut]
    """Deliveries that hold others up, the oldest event first; at most 20"""


class WebhookIn(Model, frozen=True, kw_only=True):
    url: str
    """https; a Kafka topic: `kafka+ssl://broker-1:9093,broker-2:9093/topic`; or an OpenLineage endpoint, which
    gets run events of jobs: `openlineage+https://marquez.example.com/api/v1/lineage`
    """
    types: list[str] | UnsetType = UNSET
    """Types of events, such as `job.*`; `*` matches anything"""
    tables: list[str] | UnsetType = UNSET
    """Ids of tables, or patterns of their names. Default: all tables, and events without a table"""
    headers: dict[str, str] | UnsetType = UNSET
    """Sent with every message, never shown again. To Kafka, `Authorization: Basic ...` logs in (SASL)"""
    description: str | UnsetType = UNSET
    """Free text of the creator"""


class WebhookOut(Model, frozen=True, kw_only=True):
    id: str
    """Id of the webhook"""
    url: str
    """Complete for admins only, because many services accept any caller that knows their URL"""
    old_secret_until: datetime | None
    """Until this time messages are also signed with the previous secret"""
    disabled_because: str | None
    """Why nothing is sent; null if the webhook is enabled"""
    disabled_at: datetime | None
    """Since when nothing is sent"""
    failing_since: datetime | None
    """The first failure after the last success"""
    last_success_at: datetime | None
    """When a message was last delivered"""
    types: list[str]
    """Types of events that are sent; `*` matches anything"""
    tables: list[str]
    """Ids of tables or patterns of their names; empty for all"""
    headers: dict[str, str]
    """The values are masked"""
    description: str
    """Free text of the creator"""
    enabled: bool
    """Whether anything is sent"""
    pending: int
    """Deliveries that wait for an attempt or a retry"""
    dead: int
    """Deliveries that were given up and not replayed"""
    created_at: datetime
    """Time of the creation"""
    updated_at: datetime
    """Time of the last change by a call"""


class WebhookPage(Model, frozen=True, kw_only=True):
    items: list[WebhookOut]
    """The items of this page, or all if there are no pages"""
    next_cursor: str | None
    """Value of `cursor` for the next page; null on the last page"""


class WebhookSummary(Model, frozen=True, kw_only=True):
    total: int
    """Number of webhooks"""
    failing: int
    """Enabled webhooks whose last delivery failed"""
    disabled: int
    """Disabled webhooks"""
    pending: int
    """Deliveries that are due, or wait for their next attempt"""
    given_up: int
    """Deliveries that can be replayed"""


class WeeklyIn(Model, frozen=True, kw_only=True):
    """When a weekly report is sent, in the time zone of the notification."""

    day: Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    """Day of the week"""
    hour: int | UnsetType = UNSET
    """Hour of the day"""


class WindowIn(Model, frozen=True, kw_only=True):
    """A time window. It opens on `days`, or every day if there are none. An `end` that is not after `start` is on
    the next day.
    """

    start: str
    """Time of day at which the window opens"""
    end: str
    """Time of day at which the window closes; the next day, unless later than `start`"""
    days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] | UnsetType = UNSET
    """Days on which the window opens; all if left out"""


class WithheldPartition(Model, frozen=True, kw_only=True):
    """A partition that has expired but is kept, with the reason"""

    partition: str | UnsetType = UNSET
    """Its path"""
    type: str | UnsetType = UNSET
    """Type of the problem"""
    title: str | UnsetType = UNSET
    """What it is"""
    detail: str | UnsetType = UNSET
    """This case"""
    hint: str | UnsetType = UNSET
    """What to do"""
    retriable: bool | UnsetType = UNSET
    """Whether it may end by itself"""


class WithheldPlan(Model, frozen=True, kw_only=True):
    """A plan that was not executed, with the reason"""

    instant: str | UnsetType = UNSET
    """The plan"""
    type: str | UnsetType = UNSET
    """Type of the problem"""
    title: str | UnsetType = UNSET
    """What it is"""
    detail: str | UnsetType = UNSET
    """This case"""
    hint: str | UnsetType = UNSET
    """What to do"""
    retriable: bool | UnsetType = UNSET
    """Whether it may end by itself"""


class WorkLeft(Model, frozen=True, kw_only=True):
    """Work that a job with a limit leaves to the next one"""

    file_groups: int | UnsetType = UNSET
    """File groups that are left to the next job"""
    partitions: int | UnsetType = UNSET
    """Partitions that are left to the next job"""
    bytes: int | UnsetType = UNSET
    """Size of the files that are left, in bytes"""
    plans: list[str] | UnsetType = UNSET
    """Plans that are left"""


class WorkerList(Model, frozen=True, kw_only=True):
    items: list[WorkerOut]
    """The items of this page, or all if there are no pages"""


class WorkerOut(Model, frozen=True, kw_only=True):
    """A worker as it describes itself; members without a value are null."""

    id: str
    """Id that the worker has given itself"""
    version: str | None
    """Version of Groundskeeper"""
    master: str | None
    """Spark master"""
    slots: int | None
    """Jobs that the worker runs at once"""
    spare_slots: int
    """Submitted jobs that the worker may run in addition when all its slots are taken"""
    driver_memory: str | None
    """Memory of its driver"""
    group: str
    """The worker gets the jobs of tables whose policy names this group"""
    state: WorkerState | None
    """Only a worker that is `ready` takes jobs; others start Spark, wait for a first executor, or have `failed` to
    start and ended
    """
    executors: int | None
    """Executors of its Spark application; null if its driver runs the tasks"""
    spark_conf: dict[str, str]
    """Spark options of the worker, and those of its resources; secrets are masked"""
    error: JobProblem | None
    """Why Spark did not start"""
    application_id: str | None
    """Id of its Spark application"""
    ui_url: str | None
    """Address of Spark's UI"""
    read_rates: dict[str, float] | None
    """Processor seconds that reads take on its machine, measured by the worker"""
    first_seen: datetime
    """Time of the first sighting"""
    last_seen: datetime
    """When the worker last called, exact to a few seconds"""
    job_ids: list[str]
    """Jobs that the worker has leased"""


class WorkerState(Word):
    """Only a worker that is `READY` asks for jobs. Other workers are still starting Spark, have no executor, or
    have ended because Spark did not start (`FAILED`).
    """

    FAILED = "failed"
    STARTING = "starting"
    WAITS_FOR_EXECUTORS = "waits_for_executors"
    READY = "ready"


class WorkerSummary(Model, frozen=True, kw_only=True):
    alive: int
    """Number of workers that were seen within a minute"""
    ready: int
    """Number of workers that take jobs"""
    slots: int
    """Number of jobs that the ready workers can run at once"""
    busy: int
    """Number of jobs that workers hold"""


class WorkersCheck(Model, frozen=True, kw_only=True):
    status: Literal["ok", "warning", "failing"]
    """`warning`: the service is ready nevertheless"""
    detail: str | UnsetType = UNSET
    """What is wrong in this case"""
    groups: dict[str, GroupCheck]
    """The group `default`, and all groups that have queued jobs or workers that were seen within a minute"""


class WriterEngine(Word):
    """An engine that writes a table. `SPARK_SQL`: statements with row locations, `UPDATE`, `DELETE`, some
    `MERGE`s.
    """

    SPARK = "spark"
    SPARK_SQL = "spark-sql"
    FLINK = "flink"


class WriterHeartbeatOut(Model, frozen=True, kw_only=True):
    """A heartbeat below `.hoodie/.heartbeat`. Writers in single-writer mode send none."""

    instant: str
    """Instant of the write"""
    heartbeat_at: datetime
    """Time of the last heartbeat"""
    job_id: str | None
    """The job of this service to which the instant belongs"""
    heartbeat_age_seconds: float
    """Seconds since the last heartbeat"""
    is_alive: bool
    """Whether the last heartbeat is less than five minutes old"""


class WriterOption(Model, frozen=True, kw_only=True):
    """An option of a writer"""

    name: str | UnsetType = UNSET
    """Its name"""
    value: str | UnsetType = UNSET
    """Its value"""


class WriterOptionsOut(Model, frozen=True, kw_only=True):
    engine: WriterEngine
    """Engine of the writer"""
    options: dict[str, str]
    """Options of the writer, by the engine's own names"""
    session_conf: dict[str, str]
    """Options for the start of the Spark session; `SET` is too late"""
    sql: dict[str, str]
    """The options as parts of SQL statements: `with` is for Flink's CREATE TABLE, `set` and `tblproperties` (for a
    new table) are for Spark SQL. `create` is a whole statement for an existing table; replace what is in angle
    brackets
    """
    notes: list[str]
    """Further things to do or to know"""


class WritersIn(Model, frozen=True, kw_only=True):
    """The Hudi version and the engines of the table's writers, or that no writer is running."""

    hudi_version: str | UnsetType | None = UNSET
    """The declared version of Hudi; null if not declared"""
    stopped: bool | UnsetType = UNSET
    """No writer is running"""
    retry_conflicts: bool | UnsetType = UNSET
    """Every writer has `hoodie.write.num.retries.on.conflict.failures` of at least 1"""
    query_pruning_off: bool | UnsetType | None = UNSET
    """Hudi's `hoodie.bucket.index.query.pruning` is false wherever SQL reads the table. The first bucket expansion
    of a table that Spark SQL writes requires it. Left out of a PATCH, the stored value stays
    """
    engines: list[WriterEngine] | UnsetType | None = UNSET
    """All engines that write the table: `spark` (DataFrames), `spark-sql` (statements), `flink`. Detected engines
    count too. In a PATCH, a list discards earlier detections; if the member is left out or null, the stored
    value stays.
    """
    flink: FlinkIn | UnsetType | None = UNSET
    """Left out of a PATCH, the stored value stays; null removes it"""
    kafka_connect_ended: str | UnsetType | None = UNSET
    """The last commit of Hudi's sink for Kafka Connect, which is gone for good: jobs may replace its file groups.
    Left out of a PATCH, the stored value stays; null removes it
    """


class WritersOut(Model, frozen=True, kw_only=True):
    stopped: bool
    """Declared: no writer is running"""
    retry_conflicts: bool
    """Declared: all writers write a batch again when it conflicts"""
    query_pruning_off: bool
    """Declared: Hudi's pruning by buckets is off wherever SQL reads the table"""
    engines: list[WriterEngine] | None
    """The declared engines; null if not declared"""
    kafka_connect_ended: str | None
    """Declared: the last commit of a sink for Kafka Connect that is gone; null if not declared"""
    hudi_version: str | None
    """The declared version of Hudi; null if not declared"""
    flink: FlinkOut | None
    """The Flink job that writes the table; null if not declared"""
    detected: dict[str, SightingOut]
    """Detected on the table since `engines` was last declared"""


class WritersStopped(Model, frozen=True, kw_only=True):
    """Confirmation that the writers are stopped. Events contain `savepoint`, for the restart of the Flink job."""

    savepoint: str | UnsetType | None = UNSET
    """The savepoint with which the Flink job was stopped"""
    restart: FlinkRestart | UnsetType = UNSET
    """How the Flink job will be started again. Without a declared bucket index it must be `without-state`"""


DEFAULTS: dict[str, dict[str, Any]] = {
    "DiscoverIn": {"pattern": "*", "limit": 100},
    "FlinkIn": {"restart": "from-savepoint"},
    "FreezeIn": {"tables": ["*"]},
    "LockIn": {"provider": "filesystem"},
    "NotificationIn": {"least_severity": "warning", "most_per_hour": 20, "time_zone": "UTC"},
    "WebhookIn": {"types": ["*"]},
    "WritersStopped": {"restart": "from-savepoint"},
}
"""Values of members that are left out of a request, by the name of its model."""
