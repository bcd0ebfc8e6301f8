"""Clustering: orders rows, so that queries skip files and row groups; or only merges small files.

Tables without a bucket index are clustered by Hudi's own plan and execution (`hudis_clustering`). Hudi 1.2 cannot
cluster a simple-bucket table: with the index options it fails half way and blocks the writers, without them it destroys
the bucket layout. For such tables the rows are ordered inside each bucket instead: same buckets, new file groups.
`Replacement` commits both forms of clustering.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from jobs.clustering_refusals import NOTHING_TO_MERGE, refusal
from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.dataplane.rewrite_job import rewrite_slices
from jobs.dataplane.split_writer import Rewrite
from jobs.errors import refuse
from jobs.format.bucket_rules import BucketChange, Selection
from jobs.format.written_file import WrittenFile
from jobs.hudi import merging, rows
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.clustering import ClusteringParams, ClusteringResult, GivenClusteringParams
from jobs.kinds.results import EstimatedCost, FileGroupNumbers, KindResult
from jobs.problems.bucket_indexes import BUCKET_INDEX_NOT_REGISTERED
from jobs.problems.tables import COLUMN_NOT_SORTABLE, COLUMN_UNKNOWN
from jobs.protocol import (
    adoption,
    older_hudi,
    preflight,
    recovery,
    repeated_file_ids,
    unique_keys,
    writer_engines,
)
from jobs.protocol.file_group_change import Switch
from jobs.protocol.replacement import Replacement
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.services import delegated_clustering, hudis_clustering, joining, repair, rewrite_engines
from jobs.services.group_rewrite import HOLDING
from jobs.services.held_groups import Held
from jobs.services.rewrite_engines import RewriteEngines

# Avro types without an order.
_NESTED = frozenset({"record", "array", "map"})


def run(
    table: HudiTable, order: WorkOrder[ClusteringParams | GivenClusteringParams], context: JobContext
) -> Result[KindResult]:
    """Orders rows by the columns `sort_by` in the order `layout`, in all partitions or in `partitions`. Raises
    `RefusedError` for columns that are unknown or have no order, and for partitions that do not exist.

    Inside buckets, rows that an expansion by `expansion_factor` will separate go to different row groups, which the
    expansion then copies. Without either parameter the job merges small files. If `plans` are given, it executes
    exactly these.
    """
    context.step("planning")
    params = order.params
    if isinstance(params, GivenClusteringParams):
        return delegated_clustering.run(table, order.having(params), context, looks_bucketed=_looks_bucketed(table))
    return _cluster(table, order.having(params), context)


def _cluster(table: HudiTable, order: WorkOrder[ClusteringParams], context: JobContext) -> Result[KindResult]:
    params = order.params
    sort_by, layout, apart = params.sort_by or (), params.layout, params.expansion_factor or 1
    selection = None if params.partitions is None else Selection.of(params.partitions)
    slices = table.file_slices()
    chosen = _selected(selection, slices)
    problems = _columns(table, sort_by)
    problems += preflight.unknown_partitions(selection, {item.partition for item in slices})
    in_buckets = table.declared.index is not None
    # A clustering inside buckets is refused while any plan is pending.
    held = Held.of(table, chosen, HOLDING if not in_buckets else frozenset())
    if lasting := _lasting_refusal(table, order):
        # An earlier attempt was refused for the same reason, so it has left no work to finish.
        problems.append(lasting)
    elif done := recovery.settle_replacement(table, order, context):
        return done
    elif in_buckets:
        problems += preflight.of_data_plane(table, slices, own_instants=order.earlier_instants)
        problems += rewrite_engines.refusals(table, order, chosen)
        problems += writer_engines.of_running_flink(table, order)
    else:
        problems += preflight.columns_left_out(table)
        problems += [*preflight.of_lock(table), *older_hudi.against_merging_by_hudi(table, chosen)]
        problems += [*preflight.columns_changed(table, chosen), *rows.not_readable(table)]
        problems += merging.against_clustering_by_hudi(table, chosen)
        problems += writer_engines.of_running_flink(table, order)
        problems += [*held.refusals(table), *repeated_file_ids.refusals(table, chosen)]
    if order.dry_run:
        planned = held.free if sort_by or in_buckets else hudis_clustering.mergeable(held.free)
        if not (in_buckets or problems):
            problems += unique_keys.refusals(table, {item.partition for item in planned})
        is_idle = not (planned or problems)
        found = _dry_run(planned, problems, in_buckets=in_buckets).having(notes=held.notes(), nothing_to_do=is_idle)
        if in_buckets:
            found = rewrite_engines.forecast(found, table, order, chosen)
        elif planned and not sort_by:
            found = joining.forecast(found, table, order, planned)
        return Result(Outcome.SUCCEEDED, details=found)
    refuse(problems)
    if in_buckets and not chosen:
        none = FileGroupNumbers(before=0, after=0)
        idle = ClusteringResult(file_groups=none, bytes_written=0, nothing_to_do=True, inside_buckets=True)
        return Result(Outcome.SUCCEEDED, details=idle)
    if in_buckets:
        return _inside_buckets(table, order, context, selection, sort_by=sort_by, curve=layout.value, apart=apart)
    partitions = None if selection is None else sorted({item.partition for item in chosen})
    done = hudis_clustering.run(table, order, context, sort_by=sort_by, layout=layout, partitions=partitions)
    return replace(done, details=done.details.having(notes=held.notes())) if held.number else done


def _lasting_refusal(table: HudiTable, order: WorkOrder[ClusteringParams]) -> Problem | None:
    """Returns the reason if no attempt at this job can ever succeed."""
    in_buckets = table.declared.index is not None
    if refused := refusal(order.params, has_index=in_buckets):
        return refused
    if not in_buckets and table.has_consistent_hashing():
        return preflight.consistent_hashing()
    if in_buckets or not _looks_bucketed(table):
        return None
    if adopted := adoption.latest(table):
        index, instant = adopted
        buckets = f"{index.num_buckets} buckets by {', '.join(index.hash_fields)}"
        return BUCKET_INDEX_NOT_REGISTERED.because(f"{instant} has adopted {buckets}")
    return None if order.params.sort_by else NOTHING_TO_MERGE


def _selected(selection: Selection | None, slices: Sequence[FileSlice]) -> list[FileSlice]:
    return [item for item in slices if selection is None or item.partition in selection]


def _inside_buckets(
    table: HudiTable,
    order: WorkOrder[ClusteringParams],
    context: JobContext,
    selection: Selection | None,
    *,
    sort_by: tuple[str, ...],
    curve: str,
    apart: int,
) -> Result[ClusteringResult]:
    index = table.declared.index
    rules = table.bucket_rules()
    if index is None or rules is None:
        raise AssertionError("only tables with a bucket index are clustered inside their buckets")

    def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        work = Rewrite(storage_of(table), instant, index.hash_fields, sort_by=sort_by, curve=curve, apart=apart)
        stay = BucketChange(rules, rules)
        return engines.rewrite(
            chosen,
            lambda merging: rewrite_slices(table, work, chosen, everything, stay, context=context, merging=merging),
        )

    engines = RewriteEngines(table, order)
    config = ReplacementConfig.of(order.params, may_leave_out=True, rules=rules)
    lock = TableLock(table, order.job_id)
    replaced = Replacement(table, config, context, lock, choose=partial(_selected, selection), rewrite=rewrite).run()
    switch = Switch(replaced.file_groups)
    watched = repair.after_switch(table, lock, order, context, switch, before=replaced.before, fenced=replaced.fenced)
    done = watched.result(replaced.measured(ClusteringResult)).having(merged=engines.merged, inside_buckets=True)
    return Result(Outcome.SUCCEEDED, instants=(replaced.instant, *watched.instants), details=done)


def _looks_bucketed(table: HudiTable) -> bool:
    """Returns whether all file ids begin with a bucket number, because the index may not be declared. One in 4000
    random file ids also begins with such a number."""
    ids = [item.file_id for item in table.file_slices()]
    return bool(ids) and all(each.startswith("00") and each[:8].isdigit() and each[8:9] == "-" for each in ids)


def _columns(table: HudiTable, sort_by: tuple[str, ...]) -> list[Problem]:
    fields = {field["name"]: field["type"] for field in json.loads(table.schema())["fields"]}
    unknown = [name for name in sort_by if name not in fields]
    nested = [name for name in sort_by if name in fields and _is_nested(fields[name])]
    problems = []
    if unknown:
        problems.append(
            COLUMN_UNKNOWN.because(", ".join(unknown), hint=f"Its columns are {', '.join(sorted(fields))}.")
        )
    if nested:
        problems.append(COLUMN_NOT_SORTABLE.because(", ".join(nested)))
    return problems


def _is_nested(avro_type: Any) -> bool:
    if isinstance(avro_type, list):
        return any(_is_nested(branch) for branch in avro_type)
    return isinstance(avro_type, dict) and avro_type.get("type") in _NESTED


def _dry_run(slices: Sequence[FileSlice], problems: Sequence[Problem], *, in_buckets: bool) -> ClusteringResult:
    total = sum(item.bytes for item in slices)
    return ClusteringResult(
        refusals=tuple(problems),
        inside_buckets=in_buckets,
        files=sum(item.number_of_files for item in slices),
        file_groups=FileGroupNumbers(before=len(slices), after=len(slices) if in_buckets else None),
        bytes=total,
        estimated_cost=EstimatedCost(bytes_read=total, bytes_written=total, tasks=len(slices)),
    )
