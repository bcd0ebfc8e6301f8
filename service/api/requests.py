"""Request models of tables, and the patterns of texts in all requests. Unknown members are refused, so that a
misspelled member is not silently ignored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails

from jobs.contract import BucketIndex, TableLock, WriterEngine
from jobs.kinds.words import HIVE_NAME, INSTANT, METASTORE_URIS, NO_NUL
from jobs.redaction import redacted
from jobs.web_url import APPLICATION_ID, WEB_URL
from service.catalog.ownership import MOST_TAGS, OWNER, TAG, TAG_KEY, TAG_VALUE
from service.catalog.registration import FlinkWriter, Writers
from service.model.flink_restart import FlinkRestart
from service.policies.policy import GROUP_PATTERN

SOME_TEXT = r"^[^\x00]+$"
ACTION = r"^[a-z]+$"
A_REASON = r"^[^\x00]*\S[^\x00]*$"
COMMIT_TIME = r"^[0-9]{14,17}$"
EVENT_TYPE = r"^[a-z*]+(\.[a-z*]+)?$"
GLOB = r"^[^*\x00]*(\*[^*\x00]*){0,4}$"
HOST_NAME = r"^[0-9A-Za-z._-]+$"
HTTP_URL = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"
HUDI_VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+([.-]\w+)*$"
MAIL_ADDRESS = r"^[^\s@<>,;\"]+@[A-Za-z0-9.-]+$"
LOCK_PROVIDER = r"^(filesystem|zookeeper|\w+(\.[\w$]+)+)$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"

OTHERWISE = {
    NO_NUL: "must not contain the character NUL",
    SOME_TEXT: "must not be empty or contain the character NUL",
    APPLICATION_ID: "must be the id of a Spark application: 1 to 128 letters, digits, dots, hyphens and underscores",
    WEB_URL: "must be an http or https URL without user information, quotes and blanks",
    ACTION: "must be an action of the timeline, such as deltacommit",
    A_REASON: "must have a character that is not a blank, and none that is NUL",
    COMMIT_TIME: "must be an instant, such as 20260101120000000",
    EVENT_TYPE: "must be a type of event, such as commit.completed, or have * for a part of it",
    GLOB: "must have at most four *, and not the character NUL",
    GROUP_PATTERN: "must be 1 to 24 letters, digits, dots, hyphens and underscores, and begin with a letter or digit",
    HIVE_NAME: "must be 1 to 128 letters, digits and underscores",
    HOST_NAME: "must be a name or an IPv4 address, of letters, digits, dots, hyphens and underscores",
    HTTP_URL: "must be an http or https URL without user, query and fragment",
    HUDI_VERSION: "must be a version of Hudi, such as 1.2.0",
    INSTANT: "must be an instant, such as 20260101120000000",
    MAIL_ADDRESS: "must be the address of a mailbox, such as ada@example.com, without a name",
    LOCK_PROVIDER: "must be filesystem, zookeeper or the class of a lock provider",
    METASTORE_URIS: "must be thrift URIs with commas, such as thrift://metastore:9083, or glue:// and an endpoint",
    OWNER: "must be 1 to 200 characters on one line",
    TAG: "must be a tag, key or key=value, such as team=shop",
    TAG_KEY: "must be 1 to 63 letters, digits, dots, hyphens, slashes and underscores, with a letter or digit at both"
    " ends",
    TAG_VALUE: "must be at most 128 characters on one line",
    NAME: "must be 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit",
    TIME_OF_DAY: "must be a time of day, such as 22:30",
}


def without_secret(text: str) -> str:
    if redacted(text) != text:
        raise ValueError(
            "must not contain a password or token, because it is shown; only storage options may contain secrets"
        )
    return text


def error_of_number(value: Any, hint: Any) -> Literal["int_type", "float_type"] | None:
    """Returns the error of pydantic if true or false is given for a number; None for any other value. Pydantic itself
    would take them for 1 and 0."""
    if not isinstance(value, bool):
        return None
    parts = [part for each in (hint, *get_args(hint)) for part in (each, *get_args(each))]
    if bool in parts or not {int, float} & {each for each in parts if isinstance(each, type)}:
        return None
    return "float_type" if float in parts else "int_type"


Word = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=NO_NUL)]
Public = Annotated[Word, AfterValidator(without_secret)]
Options = Annotated[
    dict[Word, Annotated[str, StringConstraints(max_length=16_384, pattern=NO_NUL)]], Field(max_length=1000)
]
Owner = Annotated[str, StringConstraints(pattern=OWNER), AfterValidator(without_secret)]
Tags = Annotated[
    dict[
        Annotated[str, StringConstraints(pattern=TAG_KEY)],
        Annotated[str, StringConstraints(pattern=TAG_VALUE), AfterValidator(without_secret)],
    ],
    Field(
        max_length=MOST_TAGS,
        examples=[{"team": "shop", "tier": "gold", "pii": ""}],
        json_schema_extra={"additionalProperties": False},
    ),
]
# Moments are limited to years far from the ends of the calendar, so that offsets and intervals can be added to any
# moment.
Moment = Annotated[AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(3000, 1, 1, tzinfo=UTC))]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    # A validator of all fields would include `kind`, by which a union chooses the model, and pydantic forbids this.
    @model_validator(mode="before")
    @classmethod
    def _tells_numbers(cls, data: Any) -> Any:
        if isinstance(data, dict):
            hints = {name: field.annotation for name, field in cls.model_fields.items()}
            found = {name: error_of_number(value, hints.get(name)) for name, value in data.items()}
            wrong = [
                InitErrorDetails(type=error, loc=(name,), input=data[name]) for name, error in found.items() if error
            ]
            if wrong:
                raise ValidationError.from_exception_data(cls.__name__, wrong)
        return data


class BucketIndexIn(Request):
    """The writers' values of `hoodie.bucket.index.num.buckets` and `hoodie.bucket.index.hash.field`."""

    type: Literal["bucket"] = "bucket"
    num_buckets: int = Field(ge=1, le=1_000_000, examples=[4])
    hash_fields: list[Word] = Field(min_length=1, examples=[["id"]])

    def to_contract(self) -> BucketIndex:
        return BucketIndex(self.num_buckets, tuple(self.hash_fields))


class LockIn(Request):
    """The lock that the table's writers take."""

    provider: Annotated[str, StringConstraints(pattern=LOCK_PROVIDER)] = Field(
        "filesystem", description="`filesystem`, `zookeeper`, or the full name of a Hudi LockProvider class"
    )
    options: Options = Field(default_factory=dict, description="The provider's Hudi options, `hoodie.write.lock.*`")

    wait_seconds: float | None = Field(
        None,
        ge=1,
        le=86_400,
        description="How long a job waits for a lock that others hold before it goes back to the queue. Default:"
        " GROUNDSKEEPER_LOCK_WAIT_SECONDS",
        examples=[300],
    )

    def to_contract(self) -> TableLock:
        return TableLock(self.provider, dict(self.options), self.wait_seconds)


class FlinkIn(Request):
    """The Flink job that writes the table. The service stops it with a savepoint when a job needs the writers stopped.
    The host must be one of GROUNDSKEEPER_FLINK_HOSTS."""

    rest_url: Annotated[str, StringConstraints(max_length=2048, pattern=HTTP_URL)] = Field(
        examples=["http://flink-jobmanager:8081"]
    )
    job: Word = Field(description="Name of the Flink job (`pipeline.name`), or its id", examples=["orders-ingest"])
    savepoint_folder: Public | None = Field(
        None, description="Default: `execution.checkpointing.savepoint-dir` of the cluster", examples=["s3://lake/sp"]
    )

    restart: FlinkRestart = Field(
        FlinkRestart.FROM_SAVEPOINT,
        description="How you start the job again after each stop. Without a declared bucket index, the service "
        "stops the job only if this is `without-state`, because the job's state may hold the file group "
        "of each key",
    )

    def to_model(self) -> FlinkWriter:
        return FlinkWriter(self.rest_url.rstrip("/"), self.job, self.savepoint_folder, self.restart)


class WritersIn(Request):
    """The Hudi version and the engines of the table's writers, or that no writer is running."""

    hudi_version: Annotated[str, StringConstraints(max_length=64, pattern=HUDI_VERSION)] | None = None
    stopped: bool = Field(False, description="No writer is running", examples=[False])
    retry_conflicts: bool = Field(
        False, description="Every writer has `hoodie.write.num.retries.on.conflict.failures` of at least 1"
    )
    query_pruning_off: bool | None = Field(
        None,
        description="Hudi's `hoodie.bucket.index.query.pruning` is false wherever SQL reads the table. The first"
        " bucket expansion of a table that Spark SQL writes requires it. Left out of a PATCH, the stored value stays",
    )
    engines: Annotated[list[WriterEngine], Field(min_length=1)] | None = Field(
        None,
        description="All engines that write the table: `spark` (DataFrames), `spark-sql` (statements), `flink`."
        " Detected engines count too. In a PATCH, a list discards earlier detections; if the member is left out or"
        " null, the stored value stays.",
    )
    flink: FlinkIn | None = Field(None, description="Left out of a PATCH, the stored value stays; null removes it")
    kafka_connect_ended: Annotated[str, StringConstraints(pattern=INSTANT)] | None = Field(
        None,
        description="The last commit of Hudi's sink for Kafka Connect, which is gone for good: jobs may replace its"
        " file groups. Left out of a PATCH, the stored value stays; null removes it",
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        is_about_engines = bool(
            self.model_fields_set & {"engines", "flink", "kafka_connect_ended", "query_pruning_off"}
        )
        if (self.hudi_version is not None) == self.stopped and (self.stopped or not is_about_engines):
            raise ValueError('give either the version of the writers, as "hudi_version", or {"stopped": true}')
        if self.flink and self.engines is not None and WriterEngine.FLINK not in self.engines:
            raise ValueError("flink names a job, but engines does not include flink")
        return self

    def to_model(self, stored: Writers, now: datetime) -> Writers:
        """Returns the declaration merged with `stored`, the previous one."""
        declares_version = self.hudi_version is not None or self.stopped
        engines = stored.engines if self.engines is None else tuple(dict.fromkeys(self.engines))
        flink = self.flink.to_model() if self.flink else None
        ended = self.kafka_connect_ended
        return Writers(
            hudi_version=self.hudi_version if declares_version else stored.hudi_version,
            stopped=self.stopped if declares_version else stored.stopped,
            retry_conflicts=self.retry_conflicts if declares_version else stored.retry_conflicts,
            query_pruning_off=stored.query_pruning_off if self.query_pruning_off is None else self.query_pruning_off,
            engines=engines,
            flink=flink if "flink" in self.model_fields_set else stored.flink,
            kafka_connect_ended=ended if "kafka_connect_ended" in self.model_fields_set else stored.kafka_connect_ended,
            declared_at=now if declares_version else stored.declared_at,
            engines_at=stored.engines_at,
        )


class ReadersIn(Request):
    """The programs that read the table, such as Trino, Athena or Hive. Each contains a version of Hudi."""

    hudi_version: Annotated[str, StringConstraints(max_length=64, pattern=HUDI_VERSION)] | None = Field(
        None, description="The oldest version of Hudi among the readers"
    )
    reads_per_day: float | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="How often the whole table is read. Default: what lineage, event logs and consumers show",
        examples=[240.0],
    )


_TABLES = [
    {
        "base_path": "s3a://lake/orders",
        "index": {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]},
        "lock": {"provider": "filesystem"},
        "writers": {"hudi_version": "1.2.0", "engines": ["spark"]},
    },
    {
        "base_path": "s3a://lake/clicks",
        "writers": {
            "hudi_version": "1.2.0",
            "engines": ["flink"],
            "flink": {"rest_url": "http://flink-jobmanager:8081", "job": "clicks-ingest"},
        },
    },
]


OWNER_TEXT = "Who is responsible for the table: a team, a person, an address; for filters, policies and reports"
TAGS_TEXT = "Keys with values. Filters, policies and reports select tables by them. A value may be empty"


class TableIn(Request, json_schema_extra={"examples": _TABLES}):
    base_path: Annotated[
        str,
        StringConstraints(min_length=1, max_length=4096, pattern=NO_NUL),
        AfterValidator(without_secret),
    ] = Field(description="An absolute path or a URI (s3a://...)")
    name: Word | None = Field(None, description="Default: the name in hoodie.properties")
    index: BucketIndexIn | None = Field(
        None, description="The bucket index, which is verified on sampled record keys. Default: detected"
    )
    lock: LockIn = Field(default_factory=lambda: LockIn.model_validate({}))
    writers: WritersIn | None = Field(None, description="What is known about the table's writers")
    readers: ReadersIn | None = Field(None, description="What is known about the table's readers")
    hudi_options: Options = Field(default_factory=dict, description="Added to the Hudi client's options in every job")
    owner: Owner | None = Field(None, description=OWNER_TEXT, examples=["shop@example.com"])
    tags: Tags = Field(default_factory=dict, description=TAGS_TEXT)


_CHANGES = [
    {"writers": {"stopped": True}, "name": "orders"},
    {"writers": {"engines": ["spark", "spark-sql"]}},
    {"owner": "shop@example.com", "tags": {"team": "shop", "tier": "gold"}},
]


class TableChange(Request, json_schema_extra={"examples": _CHANGES}):
    """Members that are left out do not change. `null` sets `index`, `writers`, `readers` and `owner` to unknown, and
    other members to their defaults."""

    name: Word | None = None
    index: BucketIndexIn | None = None
    lock: LockIn | None = Field(None, description="The lock that the table's writers take; null for the default")
    writers: WritersIn | None = None
    readers: ReadersIn | None = None
    hudi_options: Options | None = Field(
        None, description="Replaces all options; a masked value stands for the stored one"
    )
    owner: Owner | None = Field(None, description=OWNER_TEXT, examples=["shop@example.com"])
    tags: Tags | None = Field(None, description="Replaces all tags")

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if "name" in self.model_fields_set and self.name is None:
            raise ValueError("must not be null")
        return self


class WritersStopped(Request):
    """Confirmation that the writers are stopped. Events contain `savepoint`, for the restart of the Flink job."""

    savepoint: Public | None = Field(
        None,
        description="The savepoint with which the Flink job was stopped",
        examples=["s3://lake/savepoints/savepoint-1f2e3d"],
    )
    restart: FlinkRestart = Field(
        FlinkRestart.FROM_SAVEPOINT,
        description="How the Flink job will be started again. Without a declared bucket index it must be"
        " `without-state`",
    )
