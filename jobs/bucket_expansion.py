"""Bucket expansion by multiple rehash: bucket i of N becomes i, i+N, ..., i+(k-1)N, without a shuffle.

A row's bucket is `hash % N`, so with kN buckets it can only stay in i or move to one of the children: each slice is
read once and written k times by one task, and no other slice is touched (RFC-29, "multiple rehash"). The commit is a
BUCKET_RESCALE replacecommit, and the hashing config of the same instant starts to count when it completes: data and
number of buckets change in one atomic step, for every writer of Hudi 1.1 and later, whatever its own options say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import recovery, refusals
from jobs.contract import Outcome, Problem, Result
from jobs.errors import RefusedError
from jobs.hudi import hashing_config
from jobs.replacement import Replacement, Terms
from jobs.rewrite import Rewrite, Routes, Source
from jobs.rewrite_job import rewrite_slices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobs.bucket_rules import BucketRules
    from jobs.contract import Plan
    from jobs.hudi.table import FileSlice, HudiTable
    from jobs.report import Report
    from jobs.rewrite import WrittenFile
    from jobs.settling import Buckets


# Longer than a default writer sleeps between two tries to get the lock (5 s), with which its start may be delayed.
DEFAULT_SETTLE_SECONDS = 15.0


@dataclass(frozen=True)
class Expansion:
    """What is to be done: the rules before and after, and the partitions that change."""

    current: BucketRules
    new: BucketRules
    partitions: tuple[str, ...]
    slices: tuple[FileSlice, ...]

    def chosen(self, slices: Sequence[FileSlice]) -> list[FileSlice]:
        """Of all slices those whose partition gets more buckets, also in partitions that came since the plan."""
        return [
            item for item in slices if self.new.buckets_of(item.partition) != self.current.buckets_of(item.partition)
        ]

    def is_stale(self, touched: Buckets) -> bool:
        """Whether a write that touches these buckets may still go by the old numbers.

        A write by the new numbers shows itself by a bucket that did not exist before. One that touches none of them is
        taken for stale: with more than a handful of rows it is, and with fewer it cannot be told.
        """
        changed = {
            partition: buckets
            for partition, buckets in touched.items()
            if self.new.buckets_of(partition) != self.current.buckets_of(partition)
        }
        return bool(changed) and not any(
            bucket >= self.current.buckets_of(partition) for partition, buckets in changed.items() for bucket in buckets
        )

    def source(self, item: FileSlice) -> Source:
        old, new = self.current.buckets_of(item.partition), self.new.buckets_of(item.partition)
        bucket = int(item.file_id[:8])
        if new % old:
            raise RefusedError([refusals.not_a_multiple(item.partition, old, new)])
        base_file = item.base_file if not item.log_files else None
        return Source(item.partition, item.file_id, bucket, new, tuple(range(bucket, new, old)), base_file)

    def routes(self, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> Routes:
        sources = {(item.partition, int(item.file_id[:8])): self.source(item) for item in chosen}
        known = frozenset((item.partition, int(item.file_id[:8])) for item in everything)
        return Routes(sources, known, {partition: self.current.buckets_of(partition) for partition, _ in known})


def run(table: HudiTable, plan: Plan, report: Report) -> Result:
    """Expands the buckets, or with `dry_run` tells what that would mean. Raises `JobError`s; see `Replacement`."""
    report.step("planning")
    if done := recovery.settle_replacement(table, plan, report):
        return done
    expansion, problems = _planned(table, plan)
    if plan.dry_run:
        return Result(Outcome.SUCCEEDED, details=_dry_run(expansion, problems))
    if problems or expansion is None:
        raise RefusedError(problems)

    def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        index = table.declared.index
        hash_fields = index.hash_fields if index else ()
        work = Rewrite(table.base_path, instant, hash_fields, codec=plan.params.get("codec"))
        routes = expansion.routes(chosen, everything)
        return rewrite_slices(table, work, list(routes.sources.values()), routes, report)

    replaced = Replacement(
        table,
        Terms.of("BUCKET_RESCALE", plan.params, settle_seconds=_settle_seconds(plan)),
        report,
        owner=plan.job_id,
        choose=expansion.chosen,
        rewrite=rewrite,
        before_commit=lambda instant: hashing_config.write(table, expansion.current, expansion.new, instant),
        is_stale=expansion.is_stale,
    ).run()
    return Result(
        Outcome.SUCCEEDED,
        instants=(replaced.instant,),
        details={
            **replaced.measured(),
            "buckets": _numbers(expansion),
            "partitions": len({item.partition for item in replaced.slices}),
            "rules": str(expansion.new),
        },
    )


def _settle_seconds(plan: Plan) -> float:
    """Writers that are stopped need not be watched."""
    return 0.0 if plan.table.writers_stopped else float(plan.params.get("settle_seconds", DEFAULT_SETTLE_SECONDS))


def _planned(table: HudiTable, plan: Plan) -> tuple[Expansion | None, list[Problem]]:
    slices = table.file_slices()
    current = table.bucket_rules()
    problems = refusals.of_data_plane(table, slices, own_instants=plan.earlier_instants)
    if current is None:
        return None, problems
    existing = sorted({item.partition for item in slices})
    wanted = plan.params.get("partitions")
    missing = [partition for partition in wanted or () if partition not in existing]
    if missing:
        problems.append(
            Problem(
                "partition-unknown",
                "Some of the partitions do not exist",
                ", ".join(f"'{partition}'" for partition in missing[:10]),
                "Give partition paths as they stand in storage, such as `dt=2026-01-01` or `2026-01-01`.",
            )
        )
    partitions = tuple(partition for partition in existing if wanted is None or partition in wanted)
    new = _new_rules(current, plan.params, partitions)
    problems += refusals.of_bucket_number(table, current, new, partitions)
    return Expansion(current, new, partitions, tuple(slices)), problems


def _new_rules(current: BucketRules, params: Mapping[str, Any], partitions: Sequence[str]) -> BucketRules:
    number, factor = params.get("num_buckets"), params.get("factor")
    if params.get("partitions") is None:
        return current.whole_table(num_buckets=number, factor=factor)
    return current.only(
        {partition: number or current.buckets_of(partition) * (factor or 1) for partition in partitions}
    )


def _numbers(expansion: Expansion) -> list[int]:
    """[before, after], of the partition with the most buckets."""
    partitions = expansion.partitions or ("",)
    return [
        max(expansion.current.buckets_of(partition) for partition in partitions),
        max(expansion.new.buckets_of(partition) for partition in partitions),
    ]


def _dry_run(expansion: Expansion | None, problems: Sequence[Problem]) -> dict[str, Any]:
    details: dict[str, Any] = {"refusals": [problem.to_json() for problem in problems]}
    if expansion is None:
        return details
    chosen = expansion.chosen(expansion.slices)
    bytes_to_read = sum(item.bytes for item in chosen)
    return details | {
        "buckets": _numbers(expansion),
        "rules": {"before": str(expansion.current), "after": str(expansion.new)},
        "partitions": len(expansion.partitions),
        "files": sum(1 + len(item.log_files) for item in chosen),
        "file_groups": {
            "before": len(chosen),
            # Of a number that is refused there are no children to count.
            "after": None if problems else sum(len(expansion.source(item).children) for item in chosen),
        },
        "bytes": bytes_to_read,
        "estimated_cost": {"bytes_read": bytes_to_read, "bytes_written": bytes_to_read, "tasks": len(chosen)},
    }
