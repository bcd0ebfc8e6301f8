"""Compaction: log files become base files."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind, Problem
from jobs.job_params import CompactionEngine
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Spec
from jobs.kinds.results import (
    Count,
    KeyProof,
    Many,
    Maybe,
    Part,
    PlansResult,
    Reasons,
    ResultReason,
    SomeInstant,
    Text,
    Texts,
    WorkLeft,
)
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


class WithheldPlan(ResultReason, frozen=True, kw_only=True):
    """A plan that was not executed, with the reason"""

    instant: Annotated[SomeInstant, Spec("The plan")]


class EngineOfPlan(Part, frozen=True, kw_only=True):
    """Who executed a plan"""

    instant: Annotated[SomeInstant, Spec("The plan")]
    engine: Annotated[str, Spec("Who executed it: arrow or hudi", examples=("arrow",))]
    reasons: Annotated[tuple[Problem, ...], Spec("Why it was Hudi's executor")]


class CompactionResult(PlansResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Their size in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows")] = UNSET
    key_digest: Annotated[Text, Spec("Digest of all record keys: equal for equal sets of keys")] = UNSET
    file_groups: Annotated[Count, Spec("File groups with logs")] = UNSET
    log_files: Annotated[Count, Spec("Log files")] = UNSET
    log_bytes: Annotated[Count, Spec("Their size in bytes")] = UNSET
    pending_plans: Annotated[Texts, Spec("Plans that were pending")] = UNSET
    left: Annotated[Maybe[WorkLeft], Spec("What is left to the next job")] = UNSET
    withheld_plans: Annotated[Many[WithheldPlan], Spec("Why plans of others were not executed")] = UNSET
    proof: Annotated[Maybe[KeyProof], Spec("The comparison of the rows before and after")] = UNSET
    engines: Annotated[Many[EngineOfPlan], Spec("Who executed each plan")] = UNSET
    engine: Annotated[Text, Spec("Who would execute a plan, as far as is known before; only of a dry run")] = UNSET
    engine_reasons: Annotated[Reasons, Spec("Why it would be Hudi's executor; only of a dry run")] = UNSET

    @property
    def leaves_work(self) -> bool | None:
        return bool(self.left.file_groups and self.file_groups) if self.left else None


KIND = Kind(
    JobKind.COMPACTION,
    "Compaction",
    "Co",
    "Merges log files into new base files.",
    CompactionParams,
    policy=Policy(30, "When log files are merged into base files", {"commits": 10}),
    rewrites=True,
    needs_every_partition=True,
    result=CompactionResult,
)
