"""Compaction: log files become base files."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.job_params import CompactionEngine
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Spec
from jobs.kinds.words import Codec, ExecutesPlans, Partitions


class CompactionParams(ExecutesPlans, frozen=True, kw_only=True):
    """Without `plans`: executes all pending plans, and schedules a plan for the rest; or as much of both as
    `limit_bytes`, `limit_file_groups` and `partitions` allow."""

    limit_bytes: Annotated[
        int | None,
        Spec(
            "Bytes of base and log files to read at most, the newest partitions first; but one file group, or"
            " one pending plan, in any case. The result says what is `left`",
            ge=1,
            lt=2**53,
        ),
    ] = None
    limit_file_groups: Annotated[
        int | None,
        Spec(
            "File groups to compact at most, in the same order. Together with `limit_bytes` both limits hold",
            ge=1,
            le=1_000_000,
        ),
    ] = None
    partitions: Partitions | None = None
    engine: Annotated[
        CompactionEngine | None,
        Spec(
            "Who executes a plan. `auto`, the default: Arrow, several times as fast, where its merge is proved"
            " to be equal to Hudi's, else Hudi's own executor; the result says of each plan which it was, and why."
            " `arrow`: refuse what is not proved. `hudi`: always Hudi's own"
        ),
    ] = None
    codec: Annotated[
        Codec | None, Spec("Compression of the new base files. Default: as the file that each of them replaces")
    ] = None

    def __post_init__(self) -> None:
        limits = (self.limit_bytes, self.limit_file_groups, self.partitions)
        if self.plans and any(each is not None for each in limits):
            raise ValueError("plans are executed whole: give either plans, or limits and partitions")


KIND = Kind(
    JobKind.COMPACTION,
    "Compaction",
    "Co",
    "Merges log files into new base files.",
    CompactionParams,
    policy=Policy(30, "When log files are merged into base files", {"commits": 10}),
    rewrites=True,
    needs_every_partition=True,
)
