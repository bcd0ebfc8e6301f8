"""Bucket rescale: expansion from N to kN buckets, contraction from kN to N, and change from N to any M, without a
shuffle.

A row's bucket is `hash % N`. If there are kN buckets instead, a row of bucket i can only stay there or move to one of
i+N, ..., i+(k-1)N. So one task reads each slice once and writes it k times, and no other slice is touched (RFC-29,
"multiple rehash"). A contraction is the inverse: one task reads the k slices of a new bucket and writes one. The module
`rehash_job` has the general case. The commit is a replacecommit, and the hashing config of the same instant takes
effect when it completes: data and number of buckets change in one atomic step, for every writer of Hudi 1.1 and later,
whatever its own options are. (Hudi finds a config by its instant, not by the operation of the commit:
`PartitionBucketIndexHashingConfig`, 1.1 and 1.2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jobs.contract import JobKind, Outcome, Problem, Result, WorkOrder
from jobs.dataplane import rehash_ways
from jobs.dataplane.rehash_job import Rehash, families_of
from jobs.dataplane.rehash_ways import WayCost
from jobs.dataplane.split_writer import Rewrite
from jobs.errors import RefusedError
from jobs.format.bucket_rules import BucketChange, Scale, Selection
from jobs.format.stale_writes import RESCALED_KEY, Group
from jobs.format.written_file import WrittenFile
from jobs.hudi import hashing_config
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.bucket_count import BucketCountParams, BucketCountResult, RehashWay
from jobs.kinds.bucket_expansion import BucketRulesChange, MultipleParams, RescaleParams, RescaleResult
from jobs.kinds.results import EstimatedCost, FileGroupNumbers, KindResult
from jobs.problems.rescales import NO_FILE_GROUPS
from jobs.protocol import preflight, recovery, writer_engines
from jobs.protocol.file_group_change import Switch
from jobs.protocol.replacement import Replacement
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.protocol.stale_writer_watch import KnownInstants
from jobs.services import repair, rewrite_engines
from jobs.services.rewrite_engines import RewriteEngines


@dataclass(frozen=True)
class Rescale:
    """The planned rescale: the numbers before and after, and the partitions and slices when it was planned."""

    buckets: BucketChange
    partitions: tuple[str, ...] = ()
    slices: tuple[FileSlice, ...] = ()

    def chosen(self, slices: Sequence[FileSlice]) -> list[FileSlice]:
        """Returns the slices whose partition gets another number, including partitions created since the planning."""
        return [item for item in slices if self.buckets.is_for(item.partition)]

    def family(self, partition: str, file_id: str) -> tuple[str, str]:
        """Returns the set of file groups that are rewritten together (see `BucketChange.family`)."""
        return partition, str(self.buckets.family(partition, int(file_id[:8])))


def run(table: HudiTable, order: WorkOrder[RescaleParams], context: JobContext) -> Result[KindResult]:
    """Rescales the buckets; a dry run only describes the rescale. Raises the `JobError`s of `Replacement.run`."""
    context.step("planning")
    if done := recovery.settle_replacement(table, order, context):
        return done if order.dry_run else _settled(table, order, context, done)
    scale = _scale(order)
    form = BucketCountResult if scale.to_any else RescaleResult
    rescale, problems = _planned(table, order, scale)
    if order.dry_run:
        ways = _ways(table, order, rescale) if rescale and not problems else []
        planned = _dry_run(rescale, problems, ways, form).having(warnings=_warnings(table))
        chosen = rescale.chosen(rescale.slices) if rescale else []
        return Result(Outcome.SUCCEEDED, details=rewrite_engines.forecast(planned, table, order, chosen))
    if problems or rescale is None:
        raise RefusedError(problems)
    buckets, engines = rescale.buckets, RewriteEngines(table, order)
    hash_fields = table.declared.index.hash_fields if table.declared.index else ()
    ways = _ways(table, order, rescale)

    def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        work = Rewrite(storage_of(table), instant, hash_fields, codec=order.params.codec)
        return engines.rewrite(
            chosen,
            lambda merging: Rehash(table, work, everything, buckets, context, merging).rewrite(
                chosen, ways[0].way, ways[0].outputs
            ),
        )

    settle_seconds = _settle_seconds(order)
    lock = TableLock(table, order.job_id)
    replaced = Replacement(
        table,
        ReplacementConfig.of(
            order.params,
            needs_pause=settle_seconds > 0,
            writers_retry=table.declared.writers_retry_conflicts,
            rules=buckets.old,
        ),
        context,
        lock,
        choose=rescale.chosen,
        rewrite=rewrite,
        before_commit=lambda outcome: hashing_config.write(table, buckets.old, buckets.new, outcome.instant),
        extra=lambda _: {RESCALED_KEY: str(buckets.new)},
        unit=rescale.family,
    ).run()
    written = ((file.partition, file.bucket) for file in replaced.written)
    switch = _switch(table, replaced.instant, replaced.file_groups, buckets, written)
    watched = repair.after_switch(
        table, lock, order, context, switch, before=replaced.before, fenced=replaced.fenced, seconds=settle_seconds
    )
    found = watched.result(replaced.measured(form)).having(
        merged=engines.merged,
        buckets=_numbers(rescale),
        partitions=len({item.partition for item in replaced.slices}),
        rules=str(buckets.new),
        **({"way": ways[0].way.value} if scale.to_any else {}),
    )
    return Result(Outcome.SUCCEEDED, instants=(replaced.instant, *watched.instants), details=found)


def _settle_seconds(order: WorkOrder[RescaleParams]) -> float:
    """Returns the seconds to watch writers; stopped writers need not be watched."""
    return 0.0 if order.table.writers_stopped else float(order.params.settle_seconds)


def _settled(
    table: HudiTable, order: WorkOrder[RescaleParams], context: JobContext, done: Result[KindResult]
) -> Result[KindResult]:
    """Finishes an attempt that died after its commit: writers that started since then may be stale."""
    (instant,) = done.instants
    earlier, now = hashing_config.rules_before(table, instant), table.bucket_rules()
    if not earlier or now is None:
        return done
    existing = ((item.partition, item.bucket) for item in table.file_slices())
    switch = _switch(table, instant, table.replaced_by(instant), BucketChange(earlier[0], now), existing)
    watched = repair.after_switch(
        table,
        TableLock(table, order.job_id),
        order,
        context,
        switch,
        before=KnownInstants.of_commit(instant, table.commits(), table.instants()),
        seconds=_settle_seconds(order),
    )
    found = watched.result(RescaleResult(found_completed=instant))
    return replace(done, instants=(*done.instants, *watched.instants), details=found)


def _switch(
    table: HudiTable,
    instant: str,
    replaced: frozenset[Group],
    buckets: BucketChange,
    found: Iterable[tuple[str, int]],
) -> Switch:
    """Returns the change of buckets that a commit makes, as the watch for stale writers needs it. After the commit at
    least the `found` buckets have file groups."""
    hash_fields = table.declared.index.hash_fields if table.declared.index else ()
    return Switch(
        replaced,
        buckets,
        _complete(buckets, found),
        hashing_config.rules_before(table, instant),
        hashes_keys=set(table.record_key_fields) <= set(hash_fields),
    )


def _complete(buckets: BucketChange, found: Iterable[tuple[str, int]]) -> frozenset[str]:
    """Returns the contracted partitions in which each bucket is among the found ones (partition path, bucket)."""
    by_partition: dict[str, set[int]] = {}
    for partition, bucket in found:
        by_partition.setdefault(partition, set()).add(bucket)
    return frozenset(
        partition
        for partition, ids in by_partition.items()
        if buckets.contracts(partition) and ids.issuperset(range(buckets.new.buckets_of(partition)))
    )


def _scale(order: WorkOrder[RescaleParams]) -> Scale:
    params = order.params
    if isinstance(params, MultipleParams):
        return Scale(params.num_buckets, params.factor, contracts=order.kind is JobKind.BUCKET_CONTRACTION)
    return Scale(params.num_buckets, to_any=True)


def _ways(table: HudiTable, order: WorkOrder[RescaleParams], rescale: Rescale) -> list[WayCost]:
    """Returns the cost of each way of the rewrite; the first way is the one to take."""
    chosen = rescale.chosen(rescale.slices)
    families = [family.size for family in families_of(chosen, rescale.buckets)]
    ways = rehash_ways.costs(families, table.jvm.spark.sparkContext.defaultParallelism)
    asked = order.params.way if isinstance(order.params, BucketCountParams) else "auto"
    return sorted(ways, key=lambda each: each.way != asked)


def _planned(table: HudiTable, order: WorkOrder[RescaleParams], scale: Scale) -> tuple[Rescale | None, list[Problem]]:
    slices = table.file_slices()
    current = table.bucket_rules()
    problems = preflight.of_data_plane(table, slices, own_instants=order.earlier_instants)
    problems += writer_engines.of_running_flink(table, order) + writer_engines.of_sql_statements(table)
    if current is None:
        return None, problems
    if not slices:
        return None, [*problems, NO_FILE_GROUPS.because()]
    existing = sorted({item.partition for item in slices})
    wanted = order.params.partitions
    selection = None if wanted is None else Selection.of(wanted)
    problems += preflight.unknown_partitions(selection, existing)
    partitions = tuple(partition for partition in existing if selection is None or partition in selection)
    new = current.whole_table(scale) if selection is None else current.only(selection, scale)
    buckets = BucketChange(current, new)
    problems += preflight.of_bucket_number(table, buckets, partitions, scale)
    rescale = Rescale(buckets, partitions, tuple(slices))
    return rescale, problems + rewrite_engines.refusals(table, order, rescale.chosen(slices))


def _numbers(rescale: Rescale) -> tuple[int, int]:
    """Returns the numbers before and after of the partition with the most buckets."""
    partitions = rescale.partitions or ("",)
    return (
        max(rescale.buckets.old.buckets_of(partition) for partition in partitions),
        max(rescale.buckets.new.buckets_of(partition) for partition in partitions),
    )


def _warnings(table: HudiTable) -> tuple[str, ...]:
    """Returns sentences for the owner about facts that the job cannot determine."""
    if table.declared.writers_engines or table.declared.writers_stopped:
        return ()
    return (
        "The table's writers are not declared (`writers.engines`), and it has no marks of Flink or Spark SQL. A Flink"
        f" job must be stopped before this, and Spark SQL needs {writer_engines.PRUNING}=false from then on.",
    )


def _dry_run(
    rescale: Rescale | None, problems: Sequence[Problem], ways: Sequence[WayCost], form: type[RescaleResult]
) -> RescaleResult:
    if rescale is None:
        return form(refusals=tuple(problems))
    chosen = rescale.chosen(rescale.slices)
    bytes_to_read = sum(item.bytes for item in chosen)
    # If the number of buckets is refused, new buckets cannot be counted.
    families = [] if problems else [(item.partition, rescale.buckets.children(*_place(item))) for item in chosen]
    after = len({(partition, child) for partition, children in families for child in children})
    planned = form(
        refusals=tuple(problems),
        buckets=_numbers(rescale),
        rules=BucketRulesChange(before=str(rescale.buckets.old), after=str(rescale.buckets.new)),
        partitions=len({item.partition for item in chosen}),
        files=sum(1 + len(item.log_files) for item in chosen),
        file_groups=FileGroupNumbers(before=len(chosen), after=None if problems else after),
        bytes=bytes_to_read,
        estimated_cost=EstimatedCost(bytes_read=bytes_to_read, bytes_written=bytes_to_read, tasks=len(chosen)),
    )
    if not ways:
        return planned
    first = ways[0]
    cost = EstimatedCost(bytes_read=first.bytes_read, bytes_written=first.bytes_written, tasks=first.tasks)
    planned = planned.having(estimated_cost=cost)
    if form is not BucketCountResult:
        return planned
    least = min(way.cost for way in ways) or 1.0
    found = tuple(
        RehashWay(
            way=each.way.value,
            bytes_read=each.bytes_read,
            bytes_written=each.bytes_written,
            tasks=each.tasks,
            cost=round(each.cost / least, 2),
        )
        for each in sorted(ways, key=lambda each: each.cost)
    )
    return planned.having(way=first.way.value, ways=found)


def _place(item: FileSlice) -> tuple[str, int]:
    return item.partition, item.bucket
