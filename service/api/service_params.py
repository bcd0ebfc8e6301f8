"""The parameters of the table services: compaction, cleaning, clustering, bucket expansion and contraction."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, StringConstraints, Tag, model_validator
from typing_extensions import TypedDict

from jobs.job_params import CleaningPolicy, ClusteringLayout, CompactionEngine, OnActiveWriters, TtlStrategy
from jobs.kinds.words import HAND_OVER_SECONDS
from service.api.patterns import INSTANT
from service.api.requests import Names, PartitionPath, Request, Word

Instant = Annotated[str, StringConstraints(pattern=INSTANT), Field(examples=["20260101120000000"])]
_Plans = Annotated[
    list[Instant],
    Field(
        min_length=1,
        max_length=1000,
        description="Pending plans: exactly these are executed, and none is scheduled",
        examples=[["20260101120000000"]],
    ),
]


_TakeOver = Annotated[
    bool | None, Field(description="With `plans`: also those of a runner that sends no heartbeats, which must be dead")
]
_Parallelism = Annotated[int | None, Field(ge=1, le=10_000, description="With `plans`: most tasks at once")]


class _ExecutesPlans(Request):
    plans: _Plans | None = None
    take_over: _TakeOver = None


class PartitionPrefix(Request):
    prefix: Word = Field(examples=["region=eu/"])


# The form that was sent selects the model that validates it, so that a mistake is reported once, in the caller's names.
_PartitionChoice = Annotated[
    Annotated[PartitionPath, Tag("<path>")] | Annotated[PartitionPrefix, Tag("<prefix>")],
    Discriminator(lambda given: "<prefix>" if isinstance(given, dict | PartitionPrefix) else "<path>"),
]


class PrefixOfPolicy(TypedDict):
    """As `PartitionPrefix`, in a level of a policy, which is stored as it was sent."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way

    prefix: Annotated[Word, Field(examples=["region=eu/"])]


ChoiceOfPolicy = Annotated[
    Annotated[PartitionPath, Tag("<path>")] | Annotated[PrefixOfPolicy, Tag("<prefix>")],
    Discriminator(lambda given: "<prefix>" if isinstance(given, dict) else "<path>"),
]
_Partitions = Annotated[
    list[_PartitionChoice],
    Field(
        min_length=1,
        max_length=10_000,
        description='Partition paths as in storage; or `{"prefix": ...}` for all with that prefix. Default: all',
        examples=[["dt=2026-01-01", {"prefix": "dt=2025-"}]],
    ),
]


class CompactionParams(_ExecutesPlans):
    """Without `plans`: executes all pending plans, and schedules a plan for the rest; or as much of both as
    `limit_bytes`, `limit_file_groups` and `partitions` allow."""

    limit_bytes: int | None = Field(
        None,
        ge=1,
        lt=2**53,
        description="Bytes of base and log files to read at most, the newest partitions first; but one file group, or"
        " one pending plan, in any case. The result says what is `left`",
    )
    limit_file_groups: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="File groups to compact at most, in the same order. Together with `limit_bytes` both limits hold",
    )
    partitions: _Partitions | None = None
    engine: CompactionEngine | None = Field(
        None,
        description="Who executes a plan. `auto`, the default: Arrow, several times as fast, where its merge is proved"
        " to be equal to Hudi's, else Hudi's own executor; the result says of each plan which it was, and why. `arrow`:"
        " refuse what is not proved. `hudi`: always Hudi's own",
    )
    codec: Literal["gzip", "snappy", "zstd"] | None = Field(
        None, description="Compression of the new base files. Default: as the file that each of them replaces"
    )

    @model_validator(mode="after")
    def _plans_have_their_size(self) -> Self:
        limits = (self.limit_bytes, self.limit_file_groups, self.partitions)
        if self.plans and any(each is not None for each in limits):
            raise ValueError("plans are executed whole: give either plans, or limits and partitions")
        return self


HandOverSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=7 * 86_400,
        description="On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`)."
        " After that the job fails, and nothing has changed",
    ),
]


class PartitionTtlParams(Request):
    days_retain: int = Field(ge=1, le=36_500, description="Partitions that are older are dropped", examples=[90])
    strategy: TtlStrategy = Field(
        TtlStrategy.KEEP_BY_TIME,
        description="`KEEP_BY_TIME`: days since the last modification, also by a table service that rewrites files; "
        "`KEEP_BY_CREATION_TIME`: days since the commit that created the partition",
    )
    partitions: _Partitions | None = None
    limit_partitions: int = Field(
        100, ge=1, le=1000, description="Partitions to drop at most, the oldest first. The result says what is `left`"
    )
    wait_seconds: int = Field(
        300, ge=0, le=86_400, description="How long to wait for a moment at which nobody writes to these partitions"
    )
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class CleaningParams(_ExecutesPlans):
    parallelism: _Parallelism = None
    policy: CleaningPolicy = Field(CleaningPolicy.KEEP_LATEST_COMMITS, description="What `retain` counts")
    retain: int = Field(10, ge=1, le=1_000_000, description="Commits, hours or file versions to keep")


class _BesideWriters(Request):
    """Parameters of a job that replaces file groups beside live writers."""

    on_active_writers: OnActiveWriters = Field(
        OnActiveWriters.WAIT,
        description="What to do while a write is in flight at the moment of the commit: `wait` until none is, `fence` "
        "it (the write is rolled back, and its batch has to be written again), or `abort` the job",
    )
    wait_seconds: int = Field(300, ge=0, le=86_400, description="How long to wait for a moment to commit")
    lock_seconds: int = Field(
        20, ge=0, le=600, description="How long writers may be kept waiting while the job rewrites what they changed"
    )
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS
    engine: CompactionEngine | None = Field(
        None,
        description="Who merges file slices with logs before their rows are written. `auto`, the default: Arrow where"
        " its merge is proved to be equal to Hudi's, else Hudi's readers. `arrow`: refuse what is not proved. `hudi`:"
        " always Hudi's readers",
    )


_ExpansionFactor = Annotated[
    int | None,
    Field(
        ge=2,
        le=16,
        description="Prepares a table with a bucket index for an expansion by this factor, or by one that divides it:"
        " rows that it will separate lie in different row groups, each ordered by `sort_by`, and the expansion copies"
        " these without decoding them. Lasts until the files are written again, as by a compaction",
    ),
]


class ClusteringParams(_BesideWriters):
    """Without `sort_by` and `expansion_factor`: merges small files, on a table without a bucket index."""

    sort_by: Names | None = Field(None, description="Columns, the most important one first")
    layout: ClusteringLayout = Field(ClusteringLayout.LINEAR, description="How `sort_by` orders the rows")
    expansion_factor: _ExpansionFactor = None
    partitions: _Partitions | None = None

    @model_validator(mode="after")
    def _a_curve_has_columns(self) -> Self:
        if self.sort_by is None and self.layout is not ClusteringLayout.LINEAR:
            raise ValueError("a layout other than linear needs sort_by")
        return self


class GivenClusteringParams(Request):
    """Executes Hudi's own plans; refused on a table with a bucket index, whose layout they would break."""

    plans: _Plans
    take_over: _TakeOver = None
    parallelism: _Parallelism = None


def _form_of_clustering(given: Any) -> str:
    has_plans = isinstance(given, GivenClusteringParams) or (isinstance(given, dict) and "plans" in given)
    return "<plans>" if has_plans else "<sort>"


Clustering = Annotated[
    Annotated[ClusteringParams, Tag("<sort>")] | Annotated[GivenClusteringParams, Tag("<plans>")],
    Discriminator(_form_of_clustering),
]


class _RescaleParams(_BesideWriters):
    num_buckets: int | None
    factor: int | None
    partitions: Annotated[list[_PartitionChoice], Field(min_length=1, max_length=10_000)] | None = Field(
        None,
        description='Partition paths as in storage; or `{"prefix": ...}` for all with that prefix, including later '
        "ones. Default: the whole table",
    )
    settle_seconds: int = Field(
        15, ge=1, le=600, description="How long the job watches afterwards for writers that still use the old number"
    )
    codec: Literal["gzip", "snappy", "zstd"] | None = Field(
        None, description="Compression of the new files. Default: the table's"
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.num_buckets is None) == (self.factor is None):
            raise ValueError("give exactly one of num_buckets and factor")
        return self


class BucketExpansionParams(_RescaleParams):
    """Exactly one of `num_buckets` and `factor`."""

    num_buckets: int | None = Field(
        None, ge=2, le=1_000_000, description="The new number, a multiple of the current one"
    )
    factor: int | None = Field(None, ge=2, le=8, description="The new number as a multiple of the current one")


class BucketContractionParams(_RescaleParams):
    """Exactly one of `num_buckets` and `factor`."""

    num_buckets: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="The new number, a divisor of the current one; partitions that have it are left alone",
    )
    factor: int | None = Field(
        None, ge=2, le=1024, description="The current number as a multiple of the new one, in each of the partitions"
    )
