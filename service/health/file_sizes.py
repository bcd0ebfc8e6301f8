"""Problems of a table's files: buckets that are too large or uneven, and small files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from jobs.contract import JobKind
from service.health.next_step import show_table, start
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.lake.snapshot import PartitionState
from service.model.formatting import count, size
from service.scheduling.bucket_expansion import factor_for
from service.scheduling.decision import Verdict
from service.scheduling.writer_hazard import OBSTACLES

_MIB = 1024**2

TOO_LARGE = Definition(
    ProblemKind.BUCKET_TOO_LARGE,
    Severity.WARNING,
    "A bucket is larger than the policy allows",
    "Each compaction rewrites the whole bucket in one task, which gets slower and needs more memory with each commit.",
    "Expand the buckets: the job moves each row to its new bucket without a shuffle.",
)

SKEWED = Definition(
    ProblemKind.BUCKETS_SKEWED,
    Severity.NOTICE,
    "The buckets are uneven",
    "One task of each write and each compaction takes much longer than all others.",
    "More buckets do not help. Look for a key that most rows share, or create a new table whose index hashes fields "
    "that have more values.",
)

_INSTEAD = {
    "uneven-keys": SKEWED.remedy,
    **dict.fromkeys(OBSTACLES, "First remove the obstacle that the finding names."),
}
"""Remedies for tables where an expansion would be refused, by the code of the policy's decision."""

SKEW = 4.0
"""Buckets are uneven if the largest bucket has at least this many times the mean size of all."""

SKEW_BYTES = 256 * _MIB
"""If the largest bucket is smaller, uneven buckets do not matter."""

SMALL_FILES = Definition(
    ProblemKind.SMALL_FILES,
    Severity.NOTICE,
    "Most files are small",
    "Queries open many files for little data, and listings take longer.",
    "Cluster the table, which merges the small files, or let the table's policy do so (`clustering.small_file_share`).",
)

SMALL_SHARE = 0.5
"""Small base files are a problem from this share on, unless the policy sets another share."""

MANY_FILES = 100
"""If a table has fewer small files, they do not matter."""


def too_large(table: TableFacts, _now: datetime) -> HealthProblem | None:
    allowed = table.policy.bucket_expansion.max_bucket_bytes
    large = table.snapshot.large if table.snapshot else None
    if table.snapshot is None or not table.is_readable or large is None or large.largest_bucket_bytes <= allowed:
        return None
    decision = table.decisions.get(JobKind.BUCKET_EXPANSION)
    remedy = _INSTEAD.get(decision.code) if decision is not None else None
    params: Mapping[str, object] = {"factor": factor_for(large.largest_bucket_bytes, allowed)}
    of_policy = decision is not None and decision.verdict in (Verdict.SUGGEST, Verdict.WAIT)
    if decision is not None and of_policy and decision.params:
        params = decision.params
    bucket = f"bucket {large.largest_bucket} of {large.place}"
    finding = f"{bucket} has {size(large.largest_bucket_bytes)}, {size(allowed)} are allowed"
    is_explained = decision is not None and decision.because.startswith(finding)
    because = decision.because if decision is not None and is_explained else finding
    return TOO_LARGE.of(
        table.about,
        decision.first_at if decision is not None and is_explained else table.snapshot.taken_at,
        f"{because[0].upper()}{because[1:]}.",
        {**_of(large), "allowed_bytes": allowed},
        step=show_table(table.id)
        if remedy
        else start(table.id, "Expand the buckets", JobKind.BUCKET_EXPANSION, params),
        remedy=remedy,
    )


def skewed(table: TableFacts, _now: datetime) -> HealthProblem | None:
    found = table.snapshot.skewed if table.snapshot else None
    if table.snapshot is None or not table.is_readable or found is None or found.largest_bucket_bytes < SKEW_BYTES:
        return None
    mean = (found.base_bytes + found.log_bytes) / max(found.num_buckets, 1)
    skew = found.largest_bucket_bytes / mean if mean else 0.0
    if skew < SKEW:
        return None
    return SKEWED.of(
        table.about,
        table.snapshot.taken_at,
        f"Bucket {found.largest_bucket} of {found.place} has {size(found.largest_bucket_bytes)}, {skew:.1f} times the"
        f" mean of its {found.num_buckets} buckets.",
        {**_of(found), "skew": round(skew, 2)},
        step=show_table(table.id),
    )


def small_files(table: TableFacts, _now: datetime) -> HealthProblem | None:
    """Returns None for a table with a bucket index, because its files cannot be merged: each bucket is one file
    group."""
    snapshot = table.snapshot
    if snapshot is None or not table.is_readable or snapshot.num_buckets:
        return None
    totals = snapshot.totals
    if totals.mergeable_files < MANY_FILES:
        return None
    clustering = table.policy.clustering
    share = clustering.small_file_share or SMALL_SHARE
    if totals.mergeable_files < share * totals.base_files:
        return None
    params: dict[str, object] = {}
    if clustering.sort_by:
        params = {"sort_by": list(clustering.sort_by), "layout": clustering.layout.value}
    return SMALL_FILES.of(
        table.about,
        snapshot.since_clustering.at or snapshot.first_commit_at or snapshot.taken_at,
        f"{totals.mergeable_files} of {count(totals.base_files, 'base file')} are smaller than"
        f" {size(snapshot.small_file_bytes)} and could be merged.",
        {
            "small_files": totals.mergeable_files,
            "base_files": totals.base_files,
            "small_file_bytes": snapshot.small_file_bytes,
            "clustering_enabled": clustering.enabled,
        },
        step=start(table.id, "Cluster", JobKind.CLUSTERING, params),
    )


def _of(partition: PartitionState) -> dict[str, str | int | None]:
    return {
        "partition": partition.path,
        "bucket": partition.largest_bucket,
        "bucket_bytes": partition.largest_bucket_bytes,
        "num_buckets": partition.num_buckets,
    }
