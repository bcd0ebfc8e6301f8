"""The messages that the service and a worker exchange. The module needs the standard library and `msgspec` only.

A worker leases a `WorkOrder`, sends `Progress` while it runs and ends with a `Result`, as JSON. Either side may be the
older one: unknown keys are ignored, and `VERSION` grows when a key changes its meaning.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self, TypeVar, cast

import msgspec

from jobs.spec import Spec

if TYPE_CHECKING:
    import typing_extensions

    Given = typing_extensions.TypeVar("Given", covariant=True, default=Any)
    Other = TypeVar("Other")
else:
    # Types of the messages.
    Given = TypeVar("Given", covariant=True, bound=Mapping[str, Any])

Converted = TypeVar("Converted")

VERSION = 1

Json = dict[str, Any]


def json_of(value: object) -> Any:
    """Returns the JSON form of a struct or dataclass. A name in a table may contain half of a surrogate pair. UTF-8
    cannot encode it, so it becomes a question mark."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return json.loads(json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode(errors="replace"))


def converted(value: object, kind: type[Converted], *, strict: bool = True, from_attributes: bool = False) -> Converted:
    """Returns a value as this struct or dataclass. Raises msgspec.ValidationError.

    msgspec 0.22 describes a type at its first use. If a second thread uses the type meanwhile, the interpreter crashes.
    """
    if kind not in _described:
        with _describing, suppress(msgspec.ValidationError):
            try:
                msgspec.convert({}, kind)
            finally:
                _described.add(kind)
    return msgspec.convert(value, kind, strict=strict, from_attributes=from_attributes)


_described: set[type] = set()
_describing = threading.Lock()


class JsonMapped:
    """A dataclass with a JSON form: an object with the names of its fields."""

    def to_json(self) -> Json:
        """Returns the JSON form; times are text (RFC 3339)."""
        mapped: Json = json_of(self)
        return mapped

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Ignores unknown keys, and sets the defaults of missing ones. Raises ValueError."""
        return converted(data, cls, strict=False)


class JobKind(StrEnum):
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


class WriterEngine(StrEnum):
    """An engine that writes a table. `SPARK_SQL`: statements with row locations, `UPDATE`, `DELETE`, some `MERGE`s."""

    SPARK = "spark"
    SPARK_SQL = "spark-sql"
    FLINK = "flink"


class ExpansionStep(StrEnum):
    """Steps of a bucket rescale that are published as events. `SETTLING` comes only after the commit."""

    DRAINING = "waiting for writers to finish"
    SETTLING = "watching writers that start"


class Outcome(StrEnum):
    """The end of an attempt. `UNKNOWN`: the commit may or may not have landed; the timeline decides."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class HeartbeatAnswer(StrEnum):
    """The worker's next action. `LOST`: another attempt holds the job; stop and write nothing."""

    CONTINUE = "continue"
    CANCEL = "cancel"
    LOST = "lost"


@dataclass(frozen=True)
class Problem(JsonMapped):
    """A typed error for users (RFC 9457): the event, the cause and the remedy.

    `type` is a kebab-case name such as `column-unknown`. `retriable` says whether the same job may succeed later.
    """

    type: str
    title: str
    detail: str = ""
    hint: str = ""
    retriable: bool = False


@dataclass(frozen=True)
class BucketIndex(JsonMapped):
    """Hudi's simple bucket index as its writers declare it; `hoodie.properties` does not store it (Hudi 1.2).

    `num_buckets` is the writers' own number. A hashing config on the table overrides it for each partition.
    """

    num_buckets: int
    hash_fields: tuple[str, ...]


@dataclass(frozen=True)
class TableLock(JsonMapped):
    """The lock that the table's writers take.

    A job that finds the lock held waits for it at most `wait_seconds`, or for as long as the job has worked.
    """

    provider: Annotated[str, Spec("`filesystem`, `zookeeper`, or a LockProvider class")] = "filesystem"
    options: Annotated[Mapping[str, str], Spec("The provider's options")] = field(default_factory=dict)
    wait_seconds: Annotated[float | None, Spec("How long the job waits for it; null for the default")] = None


@dataclass(frozen=True)
class Table(JsonMapped):
    """The facts about a table that a job needs and cannot read from the table itself.

    `base_path` is what the owner registered, an absolute path or a URI. `writers_engines` is empty if nothing is known.
    `writers_query_pruning_off`: the owner has switched off Hudi's bucket pruning wherever SQL reads the table.
    `hudi_options` are added to the Hudi client's options.
    """

    base_path: str
    name: str
    index: BucketIndex | None = None
    lock: TableLock = field(default_factory=TableLock)
    writers_hudi_version: Annotated[str | None, Spec("Declared version of the writers", examples=("1.2.0",))] = None
    writers_stopped: Annotated[bool, Spec("Declared: no writer is running")] = False
    writers_retry_conflicts: Annotated[bool, Spec("Declared: writers retry conflicts")] = False
    writers_engines: Annotated[tuple[str, ...], Spec("Engines that are declared or seen", examples=(["spark"],))] = ()
    writers_query_pruning_off: Annotated[bool, Spec("Declared: pruning by buckets is off")] = False
    writers_kafka_connect_ended: Annotated[str | None, Spec("Declared: last commit of a Kafka Connect sink")] = None
    readers_hudi_version: Annotated[str | None, Spec("Declared Hudi version of the oldest reader")] = None
    hudi_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkOrder(JsonMapped, Generic[Given]):
    """One attempt at one job, as leased. The service has checked the parameters.

    `earlier_instants` are those that earlier attempts have left on the table's timeline; the job first finishes them or
    rolls them back.
    """

    job_id: str
    attempt: int
    kind: JobKind
    table: Annotated[Table, Spec("What the table itself does not record")]
    # A message has a mapping here. The worker converts it to the type that the kind declares (`jobs.kinds`).
    params: Annotated[Given, Spec("Parameters of the kind")] = field(default_factory=lambda: cast("Given", {}))
    dry_run: bool = False
    earlier_instants: Annotated[tuple[str, ...], Spec("Instants of earlier attempts", examples=([],))] = ()
    writers_stopped: Annotated[bool, Spec("Whether the writers were stopped for this job")] = False
    submitted: Annotated[bool, Spec("Whether somebody has asked for the job, so that it goes first")] = False
    timeout_seconds: Annotated[float, Spec("Time limit of the attempt", examples=(3600,))] = 3600.0
    table_id: str | None = None
    traceparent: Annotated[str | None, Spec("The trace of the job (W3C Trace Context); null without one")] = None
    version: Annotated[int, Spec("Version of this contract", examples=(1,))] = VERSION

    def having(self, params: Other) -> WorkOrder[Other]:
        return cast("WorkOrder[Other]", replace(self, params=cast("Any", params)))


@dataclass(frozen=True)
class Progress(JsonMapped):
    """The step of an attempt's protocol, with the step's Spark tasks and its bytes of input read."""

    step: str
    tasks_done: int = 0
    tasks_total: int = 0
    bytes_done: int = 0
    bytes_total: int = 0

    @property
    def waits_for(self) -> str | None:
        """The text behind `WAITS_FOR`, None while the step goes on."""
        return self.step.partition(WAITS_FOR)[2] or None


WAITS_FOR = ": waits for "
"""The text between the name of a step and what the step waits for."""


@dataclass(frozen=True)
class Result(JsonMapped, Generic[Given]):
    """The result of an attempt.

    `instants` are those that the attempt made on the timeline, and `details` the values that its kind of job measures.
    For a dry run, `details` describes the planned work: files, bytes, target layout and `refusals`, each a `Problem`.
    """

    outcome: Outcome
    instants: tuple[str, ...] = ()
    # A message has a mapping here. The job makes it from an object of the type that its kind declares (`jobs.kinds`).
    details: Given = field(default_factory=lambda: cast("Given", {}))
    error: Problem | None = None


TABLE_LOCKED = "table-locked"
"""The type of the problem of an attempt that has waited too long for the table's lock."""

LOCK_UNAVAILABLE = "lock-unavailable"
"""The type of the problem of an attempt that could not ask for the lock."""

DEFAULT_GROUP = "default"


class WorkerState(StrEnum):
    """Only a worker that is `READY` asks for jobs. Other workers are still starting Spark, have no executor, or have
    ended because Spark did not start (`FAILED`)."""

    FAILED = "failed"
    STARTING = "starting"
    WAITS_FOR_EXECUTORS = "waits_for_executors"
    READY = "ready"


@dataclass(frozen=True)
class WorkerInfo(JsonMapped):
    """A worker's description of itself. None means unknown.

    `version` is the version of the worker's package, and `master` its Spark master. `slots` is the number of jobs that
    it runs at once; when all slots are taken, it runs up to `spare_slots` submitted jobs more. `driver_memory` is the
    driver's memory in Spark's notation. The worker gets the jobs of tables whose policy names its `group`. `executors`
    is the number of Spark's executors, None if the driver runs the tasks. `spark_conf` are options of Spark, without
    secrets. `error` is the reason why Spark did not start. `application_id` is the id of the worker's Spark
    application, and `ui_url` the address of Spark's UI, if there is one. `read_rates` are processor seconds for a GiB
    (`jobs.worker.read_probe`).
    """

    version: str | None = None
    master: str | None = None
    slots: int | None = None
    spare_slots: int = 0
    driver_memory: str | None = None
    group: str = DEFAULT_GROUP
    state: WorkerState | None = None
    executors: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    error: Problem | None = None
    application_id: str | None = None
    ui_url: str | None = None
    read_rates: Mapping[str, float] | None = None


class LogLevel(StrEnum):
    """Levels of Python's `logging`."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


@dataclass(frozen=True)
class LogLine(JsonMapped):
    """A line of the log of an attempt, without secrets; `message` includes the stack trace, if there is one.

    The worker numbers the lines of an attempt, so a line that is sent twice is stored once.
    """

    number: int
    at: datetime
    level: LogLevel
    logger: str
    message: str


MOST_LOG_LINES = 200
"""Most lines in one message of a worker."""
MOST_LOG_CHARACTERS = 128 * 1024
"""Most characters that the lines of one message have together."""
MOST_LINE_CHARACTERS = 16 * 1024
"""Most characters of one line. A longer one is cut."""


@dataclass(frozen=True)
class Heartbeat(JsonMapped):
    """A sign of life of a running attempt.

    `instants` are sent as soon as Hudi has them, so that a crash can be recovered. `log` holds the lines since the
    heartbeat before.
    """

    attempt: int
    progress: Progress | None = None
    instants: tuple[str, ...] = ()
    log: tuple[LogLine, ...] = ()
