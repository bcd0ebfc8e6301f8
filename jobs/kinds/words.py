"""Types that several kinds of jobs have in their parameters."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from jobs.job_params import CompactionEngine, OnActiveWriters
from jobs.kinds.parameters import Parameters, Spec

# Neither the databases nor the file systems accept the NUL character.
NO_NUL = r"^[^\x00]*$"
INSTANT = r"^[0-9]{14,20}$"
HIVE_NAME = r"^[A-Za-z0-9_]{1,128}$"
METASTORE_URIS = r"^thrift://[A-Za-z0-9.:\[\]_-]+(,thrift://[A-Za-z0-9.:\[\]_-]+)*$"

Word = Annotated[str, Spec(min_length=1, max_length=1024, pattern=NO_NUL)]
Instant = Annotated[str, Spec(pattern=INSTANT, examples=("20260101120000000",))]
# A space-filling curve has 62 bits for all columns together; hash fields and sort columns are a handful.
Names = Annotated[tuple[Word, ...], Spec(min_length=1, max_length=32, distinct=True)]
Codec = Literal["gzip", "snappy", "zstd"]
TableName = Annotated[Word, Spec("The table's name, typed in: rows are removed for good")]

PartitionPath = Annotated[str, Spec(max_length=4096, pattern=NO_NUL)]


class PartitionPrefix(msgspec.Struct, frozen=True):
    """All partitions whose path has this prefix."""

    prefix: Annotated[Word, Spec("Beginning of paths of partitions", examples=("region=eu/",))]


PartitionChoice = PartitionPath | PartitionPrefix
Partitions = Annotated[
    tuple[PartitionChoice, ...],
    Spec(
        'Partition paths as in storage; or `{"prefix": ...}` for all with that prefix. Default: all',
        min_length=1,
        max_length=10_000,
        examples=(["dt=2026-01-01", {"prefix": "dt=2025-"}],),
    ),
]

HAND_OVER_SECONDS = 3600
HandOverSeconds = Annotated[
    int,
    Spec(
        "On a table that Flink writes: how long to wait until it has been stopped (`writers-stopped`)."
        " After that the job fails, and nothing has changed",
        ge=1,
        le=7 * 86_400,
    ),
]

WAIT_SECONDS = 300
"""Default of the wait for a moment at which nobody writes."""
LOCK_SECONDS = 20

Plans = Annotated[tuple[Instant, ...], Spec(min_length=1, max_length=1000, examples=(["20260101120000000"],))]
PLANS = Spec("Pending plans: exactly these are executed, and none is scheduled")
TakeOver = Annotated[
    bool | None, Spec("Whether `plans` of a runner that sends no heartbeats, which must be dead, are executed too")
]
Parallelism = Annotated[int | None, Spec("Most tasks at once while `plans` are executed", ge=1, le=10_000)]


class ExecutesPlans(Parameters, frozen=True, kw_only=True):
    """Parameters of a job that executes pending plans that it is given, and makes no others."""

    plans: Annotated[Plans | None, PLANS] = None
    take_over: TakeOver = None


class ActiveWriterParams(Parameters, frozen=True, kw_only=True):
    """Parameters of a job that replaces file groups beside live writers."""

    on_active_writers: Annotated[
        OnActiveWriters,
        Spec(
            "What to do while a write is in flight at the moment of the commit: `wait` until none is, `fence` "
            "it (the write is rolled back, and its batch has to be written again), or `abort` the job"
        ),
    ] = OnActiveWriters.WAIT
    wait_seconds: Annotated[int, Spec("How long to wait for a moment to commit", ge=0, le=86_400)] = WAIT_SECONDS
    lock_seconds: Annotated[
        int, Spec("How long writers may be kept waiting while the job rewrites what they changed", ge=0, le=600)
    ] = LOCK_SECONDS
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS
    engine: Annotated[
        CompactionEngine | None,
        Spec(
            "Who merges file slices with logs before their rows are written. `auto`, the default: Arrow where"
            " its merge is proved to be equal to Hudi's, else Hudi's readers. `arrow`: refuse what is not proved."
            " `hudi`: always Hudi's readers"
        ),
    ] = None
