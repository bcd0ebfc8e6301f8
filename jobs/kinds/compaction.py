"""Compaction: log files become base files."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind, Problem
from jobs.job_params import CompactionEngine
from jobs.kinds.kind import Kind, Policy, WorksOn
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
    """Without `plans` the job executes all pending plans, and then schedules and executes a plan for the rest.
    `limit_bytes`, `limit_file_groups` and `partitions` restrict both."""

    limit_bytes: Annotated[
        int | None,
        Spec(
            "Maximum bytes of base and log files to read, the newest partitions first. At least one file group or"
            " pending plan is compacted, whatever its size. The result says what is `left`",
            ge=1,
            lt=2**53,
        ),
    ] = None
    limit_file_groups: Annotated[
        int | None,
        Spec(
            "Maximum number of file groups to compact, in the same order. If `limit_bytes` is set too, both limits"
            " apply",
            ge=1,
            le=1_000_000,
        ),
    ] = None
    partitions: Partitions | None = None
    engine: Annotated[
        CompactionEngine | None,
        Spec(
            "Who executes a plan. `auto` (default): Arrow, which is several times as fast, if its merge is proved to be"
            " equal to Hudi's; otherwise Hudi's executor. The result has the engine and the reasons for each plan."
            " `arrow`: refuse plans for which this is not proved. `hudi`: always Hudi's executor"
        ),
    ] = None
    codec: Annotated[
        Codec | None, Spec("Compression of the new base files. Default: the codec of the file that each one replaces")
    ] = None

    def __post_init__(self) -> None:
        limits = (self.limit_bytes, self.limit_file_groups, self.partitions)
        if self.plans and any(each is not None for each in limits):
            raise ValueError("a plan cannot be divided: give either plans, or limits and partitions")


class WithheldPlan(ResultReason, frozen=True, kw_only=True):
    """A plan that was not executed, with the reason"""

    instant: Annotated[SomeInstant, Spec("The plan")]


class EngineOfPlan(Part, frozen=True, kw_only=True):
    """Who executed a plan"""

    instant: Annotated[SomeInstant, Spec("The plan")]
    engine: Annotated[str, Spec("Who executed it: arrow or hudi", examples=("arrow",))]
    reasons: Annotated[tuple[Problem, ...], Spec("Why Hudi executed it")]


class CompactionResult(PlansResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows")] = UNSET
    key_digest: Annotated[Text, Spec("Digest of all record keys: equal for equal sets of keys")] = UNSET
    file_groups: Annotated[Count, Spec("File groups with logs")] = UNSET
    log_files: Annotated[Count, Spec("Log files")] = UNSET
    log_bytes: Annotated[Count, Spec("Size of these log files in bytes")] = UNSET
    bytes_written: Annotated[Count, Spec("Bytes of the new base files")] = UNSET
    pending_plans: Annotated[Texts, Spec("Plans that were pending")] = UNSET
    left: Annotated[Maybe[WorkLeft], Spec("Work that is left to the next job")] = UNSET
    withheld_plans: Annotated[Many[WithheldPlan], Spec("Plans of others that were not executed, with the reasons")] = (
        UNSET
    )
    proof: Annotated[Maybe[KeyProof], Spec("The comparison of the rows before and after")] = UNSET
    engines: Annotated[Many[EngineOfPlan], Spec("Who executed each plan")] = UNSET
    engine: Annotated[
        Text, Spec("The engine that would execute a plan, as far as the dry run can tell; only in a dry run")
    ] = UNSET
    engine_reasons: Annotated[Reasons, Spec("Why Hudi would execute it; only in a dry run")] = UNSET

    @property
    def input_bytes(self) -> object:
        return self.bytes

    @property
    def amounts(self) -> dict[str, object]:
        return {"log_files": self.log_files, "log_bytes": self.log_bytes}

    @property
    def has_gained(self) -> bool | None:
        return False if self.nothing_to_do is True else bool(self.log_files) or None

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
    works_on=WorksOn.LOGGED,
    result=CompactionResult,
)
