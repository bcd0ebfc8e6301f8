"""Clustering: rows are sorted, or small files merged."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.job_params import ClusteringLayout
from jobs.kinds.kind import Kind, Policy, WorksOn
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Flag, KeyProof, Maybe, ReplacementResult, Texts
from jobs.kinds.words import PLANS, ActiveWriterParams, Names, Parallelism, Partitions, Plans, TakeOver


class ClusteringParams(ActiveWriterParams, frozen=True, kw_only=True):
    """Without `sort_by` and `expansion_factor` the job merges small files; a table with a bucket index refuses that."""

    sort_by: Annotated[Names | None, Spec("Columns, the most important one first")] = None
    layout: Annotated[ClusteringLayout, Spec("How `sort_by` orders the rows")] = ClusteringLayout.LINEAR
    expansion_factor: Annotated[
        int | None,
        Spec(
            "Prepares a table with a bucket index for an expansion by this factor, or by one that divides it. Rows "
            "that the expansion will separate go to different row groups, each ordered by `sort_by`; the expansion "
            "then copies whole row groups without decoding them. The effect lasts until the files are rewritten, for "
            "example by a compaction",
            ge=2,
            le=16,
        ),
    ] = None
    partitions: Partitions | None = None

    def __post_init__(self) -> None:
        if self.sort_by is None and self.layout is not ClusteringLayout.LINEAR:
            raise ValueError("a layout other than linear needs sort_by")


class GivenClusteringParams(Parameters, frozen=True, kw_only=True):
    """Executes Hudi's own plans; refused on a table with a bucket index, whose layout they would break."""

    plans: Annotated[Plans, PLANS]
    take_over: TakeOver = None
    parallelism: Parallelism = None


class ClusteringResult(ReplacementResult, frozen=True, kw_only=True):
    plans: Annotated[Texts, Spec("Plans that were executed")] = UNSET
    completed_before: Annotated[Texts, Spec("Plans that had completed before the job")] = UNSET
    gone: Annotated[Texts, Spec("Plans that do not exist any more")] = UNSET
    scheduled: Annotated[Flag, Spec("Always false, because a job with `plans` schedules none")] = UNSET
    inside_buckets: Annotated[Flag, Spec("Whether rows were ordered inside each bucket")] = UNSET
    proof: Annotated[Maybe[KeyProof], Spec("The comparison of the rows before and after")] = UNSET

    @property
    def has_gained(self) -> bool | None:
        return False if self.nothing_to_do is True else None


KIND = Kind(
    JobKind.CLUSTERING,
    "Clustering",
    "Cl",
    "Sorts the rows (inside each bucket, if the table has a bucket index), or merges small files.",
    ClusteringParams,
    {"params": {"sort_by": ["city"], "layout": "linear"}},
    delegated_plans=GivenClusteringParams,
    policy=Policy(60, "When rows are ordered or small files merged", {"sort_by": ["city"]}),
    rewrites=True,
    stops_flink=True,
    needs_every_partition=True,
    audited=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    works_on=WorksOn.EVERYTHING,
    result=ClusteringResult,
)
