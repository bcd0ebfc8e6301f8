"""Types that several kinds of jobs have in their parameters."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from jobs.job_params import CompactionEngine, OnActiveWriters
from jobs.kinds.parameters import Parameters, Spec

# Databases and file systems do not accept the NUL character.
NO_NUL = r"^[^\x00]*$"
INSTANT = r"^[0-9]{14,20}$"
HIVE_NAME = r"^[A-Za-z0-9_]{1,128}$"
METASTORE_URIS = (
    r"^(thrift://[A-Za-z0-9.:\[\]_-]+(,thrift://[A-Za-z0-9.:\[\]_-]+)*"
    r"|glue(\+http)?://[A-Za-z0-9.:\[\]_-]+(/[0-9]{12})?)$"
)

Word = Annotated[str, Spec(min_length=1, max_length=1024, pattern=NO_NUL)]
Instant = Annotated[str, Spec(pattern=INSTANT, examples=("20260101120000000",))]
# Tables have few hash fields and sort columns, and a space-filling curve has only 62 bits for all its columns.
Names = Annotated[tuple[Word, ...], Spec(min_length=1, max_length=32, distinct=True)]
Codec = Literal["gzip", "snappy", "zstd"]
TableName = Annotated[Word, Spec("The table's name, as a confirmation, because rows are removed for good")]

PartitionPath = Annotated[str, Spec(max_length=4096, pattern=NO_NUL)]


class PartitionPrefix(msgspec.Struct, frozen=True):
    """All partitions whose path has this prefix."""

    prefix: Annotated[Word, Spec("Beginning of paths of partitions", examples=("region=eu/",))]


PartitionChoice = PartitionPath | PartitionPrefix
Partitions = Annotated[
    tuple[PartitionChoice, ...],
    Spec(
        'Partition paths as in storage; or `{"prefix": ...}` for all partitions with that prefix. Default: all',
        min_length=1,
        max_length=10_000,
        examples=(["dt=2026-01-01", {"prefix": "dt=2025-"}],),
    ),
]

HAND_OVER_SECONDS = 3600
HandOverSeconds = Annotated[
    int,
    Spec(
        "On a table that Flink writes: how long the job waits until somebody stops Flink and confirms it. If nobody"
        " does, the job fails (`writers-not-stopped`) and has changed nothing",
        ge=1,
        le=7 * 86_400,
    ),
]

WAIT_SECONDS = 300
"""Default seconds to wait for a moment without writes."""
LOCK_SECONDS = 20
ABANDONED_AFTER_SECONDS = 3600
"""Seconds after which a replacecommit that was requested, and has neither a heartbeat nor a plan, counts as abandoned
(`jobs.protocol.abandoned`)."""

Plans = Annotated[tuple[Instant, ...], Spec(min_length=1, max_length=1000, examples=(["20260101120000000"],))]
PLANS = Spec("Pending plans to execute. The job executes exactly these, and schedules none")
TakeOver = Annotated[
    bool | None,
    Spec(
        "Also execute `plans` that another process has begun without sending heartbeats. Set this only if that process"
        " is dead"
    ),
]
Parallelism = Annotated[
    int | None, Spec("Maximum number of concurrent tasks while `plans` are executed", ge=1, le=10_000)
]


class ExecutesPlans(Parameters, frozen=True, kw_only=True):
    """Parameters of a job that executes given pending plans and schedules none."""

    plans: Annotated[Plans | None, PLANS] = None
    take_over: TakeOver = None


class ReplacingParams(Parameters, frozen=True, kw_only=True):
    """Parameters of a job that replaces file groups beside live writers."""

    on_active_writers: Annotated[
        OnActiveWriters,
        Spec(
            "What to do if a write is in flight when the job wants to commit: `wait` until none is, `fence` the write "
            "(it is rolled back, and its batch has to be written again), or `abort` the job"
        ),
    ] = OnActiveWriters.WAIT
    wait_seconds: Annotated[int, Spec("How long to wait for a moment to commit", ge=0, le=86_400)] = WAIT_SECONDS
    lock_seconds: Annotated[
        int,
        Spec("How long writers may have to wait while the job rewrites slices that they have changed", ge=0, le=600),
    ] = LOCK_SECONDS


class ActiveWriterParams(ReplacingParams, frozen=True, kw_only=True):
    """Parameters of a job that replaces file groups and can let Arrow merge them."""

    engine: Annotated[
        CompactionEngine | None,
        Spec(
            "Who merges file slices with logs before their rows are written. `auto` (default): Arrow if its merge is"
            " proved to be equal to Hudi's, otherwise Hudi's readers. `arrow`: refuse slices for which this is not"
            " proved. `hudi`: always Hudi's readers"
        ),
    ] = None
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS
