"""Bucket resize: splits and merges buckets of consistent hashing by Hudi's own plan and execution (1.2.0), committed by
`Replacement`.

The new hashing metadata are written with the lock held, right before the commit. A worker that is killed leaves

- before the metadata: a pending replacecommit, whose files the next attempt removes;
- between metadata and commit: the same, and metadata that Hudi ignores while the instant is pending. They are removed
  before the instant (`hashing_metadata.forget`);
- after the commit: a complete resize. Hudi's next reader of the metadata, or the next attempt, confirms them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import WritersActiveError, refuse
from jobs.format.bucket_rules import Selection
from jobs.format.stale_writes import Group
from jobs.hudi import hashing_metadata, merging, rows
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.bucket_resize import BucketResizeParams, BucketResizeResult
from jobs.kinds.results import KindResult
from jobs.problems.bucket_resizes import (
    HASH_FIELDS_NOT_PROVED,
    HASHING_METADATA_NOT_SOUND,
    NO_CONSISTENT_HASHING,
)
from jobs.problems.tables import BASE_FILES_NOT_PARQUET
from jobs.protocol import older_hudi, preflight, recovery, unique_keys, writer_engines
from jobs.protocol.file_group_change import Switch
from jobs.protocol.replacement import Replacement
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.protocol.stale_writer_watch import KnownInstants
from jobs.protocol.writers import alone
from jobs.services import repair, resize_plan
from jobs.services.checks import consistent_hashing
from jobs.services.checks.consistent_hashing import Placed
from jobs.services.checks.finding import Examined
from jobs.services.group_rewrite import HOLDING
from jobs.services.held_groups import Held
from jobs.services.resize_plan import ResizePlan

logger = logging.getLogger(__name__)


def run(table: HudiTable, order: WorkOrder[BucketResizeParams], context: JobContext) -> Result[KindResult]:
    """Splits and merges buckets. Raises the `JobError`s of `Replacement.run`, and RowsDifferError."""
    context.step("planning")
    problems = _of_table(table)
    if problems:
        return _refused(order, problems)
    if done := recovery.settle_replacement(table, order, context):
        return done if order.dry_run else _settled(table, order, context, done)
    slices = table.file_slices()
    selection = None if order.params.partitions is None else Selection.of(order.params.partitions)
    held = Held.of(table, [item for item in slices if selection is None or item.partition in selection], HOLDING)
    problems += preflight.unknown_partitions(selection, {item.partition for item in slices})
    problems += [*_of_writers(table, order, held), *_of_metadata(table)]
    due = resize_plan.due(held.free, order.params)
    if problems:
        return _refused(order, problems)
    if dangling := hashing_metadata.dangling(table):
        # Hudi's plan would confirm these metadata, also in a dry run.
        if order.dry_run:
            note = f"The job first removes hashing metadata that never completed: {', '.join(dangling)}."
            return _refused(order, [], BucketResizeResult(notes=(note, *held.notes())))
        _remove_dangling(table, order, context)
    with resize_plan.client(table, order.params, due) as client:
        try:
            plan = resize_plan.make(table, client, order, context) if due else None
        except WritersActiveError as error:
            if not order.dry_run:
                raise
            return _refused(order, [], BucketResizeResult(notes=(error.detail, *held.notes())))
        if plan is None:
            idle = BucketResizeResult(nothing_to_do=True, split=0, merged_away=0, notes=held.notes())
            return Result(Outcome.SUCCEEDED, details=idle)
        problems += [*_of_rows(table, plan.read_rows()), *unique_keys.refusals(table, plan.partitions)]
        if order.dry_run or problems:
            notes = (*_of_statements(table), *held.notes())
            return _refused(order, problems, plan.forecast(table.file_slices()).having(notes=notes))
        return _resize(table, order, context, plan)


def _remove_dangling(table: HudiTable, order: WorkOrder[BucketResizeParams], context: JobContext) -> None:
    """Removes metadata that Hudi does not follow yet. A write in flight may begin to follow them."""
    context.step("cleaning up after an earlier attempt")
    lock, wait = TableLock(table, order.job_id), ReplacementConfig.of(order.params).wait_seconds
    with WriteClient(table, UNDER_OUR_LOCK) as client, alone(table, lock, client, wait, context.checkpoint):
        table.reload()
        for instant in hashing_metadata.dangling(table):
            logger.warning("removing the hashing metadata of %s, which never completed", instant)
            hashing_metadata.forget(table, instant)


def _settled(
    table: HudiTable, order: WorkOrder[BucketResizeParams], context: JobContext, done: Result[KindResult]
) -> Result[KindResult]:
    """Finishes an attempt that died after its commit: confirms its metadata, and repairs stale writes since then."""
    (instant,) = done.instants
    if hashing_metadata.dangling(table):
        _remove_dangling(table, order, context)
    replaced = table.replaced_by(instant)
    partitions = {each for each, _ in replaced} or {item.partition for item in table.file_slices()}
    with resize_plan.client(table, order.params) as client:
        client.clusterings.confirm_hashing(sorted(partitions))
    before = KnownInstants.of_commit(instant, table.commits(), table.instants())
    lock = TableLock(table, order.job_id)
    watched = repair.after_switch(table, lock, order, context, Switch(replaced), before=before)
    found = watched.result(BucketResizeResult(found_completed=instant))
    return replace(done, instants=(*done.instants, *watched.instants), details=found)


def _resize(
    table: HudiTable, order: WorkOrder[BucketResizeParams], context: JobContext, plan: ResizePlan
) -> Result[KindResult]:
    lock = TableLock(table, order.job_id)
    replaced = Replacement(
        table,
        # Hudi checks writers of a bucket index for conflicts with each instant that began after theirs. The check reads
        # the number of a bucket from file ids, and fails with a NumberFormatException at the file ids of hash ranges
        # (1.2.0).
        ReplacementConfig.of(order.params, may_leave_out=True, beside_plans=True, starts_alone=True),
        context,
        lock,
        choose=plan.choose,
        rewrite=plan.rewrite,
        before_commit=plan.save,
        unit=plan.unit,
    ).run()
    plan.confirm(replaced)
    switch = Switch(replaced.file_groups)
    watched = repair.after_switch(table, lock, order, context, switch, before=replaced.before, fenced=replaced.fenced)
    done = plan.counted(watched.result(replaced.measured(BucketResizeResult)), replaced)
    return Result(Outcome.SUCCEEDED, instants=(replaced.instant, *watched.instants), details=done)


def _refused(
    order: WorkOrder[BucketResizeParams], problems: Sequence[Problem], found: BucketResizeResult | None = None
) -> Result[KindResult]:
    """Returns the result of a dry run; raises RefusedError in a job."""
    if not order.dry_run:
        refuse(problems)
    details = (found or BucketResizeResult()).having(refusals=tuple(problems))
    return Result(Outcome.SUCCEEDED, details=details)


# -- refusals


def _of_table(table: HudiTable) -> list[Problem]:
    if not table.has_consistent_hashing():
        return [NO_CONSISTENT_HASHING.because()]
    problems: list[Problem] = []
    if table.properties.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET":
        problems.append(BASE_FILES_NOT_PARQUET.because())
    problems += preflight.columns_changed(table, table.file_slices())
    return [*problems, *preflight.columns_left_out(table), *preflight.of_lock(table), *rows.not_readable(table)]


def _of_writers(table: HudiTable, order: WorkOrder[BucketResizeParams], held: Held) -> Iterator[Problem]:
    yield from older_hudi.against_merging_by_hudi(table, held.free)
    yield from merging.against_clustering_by_hudi(table, held.free)
    yield from writer_engines.of_flink_with_ranges(table.may_have_flink)
    if older_hudi.without_hashing_config(table):
        # Hudi before 1.1 may start an instant without the table's lock, and read the ranges just before they change.
        yield from preflight.writers_not_stopped(table, order)
    yield from held.refusals(table)


def _of_statements(table: HudiTable) -> list[str]:
    """Returns the note for owners who use Spark SQL (`jobs.services.checks.statements` says why)."""
    evidence = writer_engines.evidence_of_statements(table)
    if evidence is None:
        return []
    return [
        f"{evidence}: after a resize, also one by Hudi, or after a compaction, statements have no effect in sessions"
        " with the options of the index, unless these set hoodie.spark.sql.optimized.writes.enable=false."
    ]


def _of_metadata(table: HudiTable) -> list[Problem]:
    with ExitStack() as opened:
        examined = Examined(table, opened)
        found = [*consistent_hashing.metadata(examined), *consistent_hashing.out_of_use(examined)]
    # The job itself removes metadata that were never committed and that Hudi does not follow.
    damages = [each for each in found if each.type != consistent_hashing.UNCOMMITTED]
    return [HASHING_METADATA_NOT_SOUND.because(f"{each.type}: {each.detail}") for each in damages]


def _of_rows(table: HudiTable, placed: Mapping[Group, Placed]) -> list[Problem]:
    if found := consistent_hashing.misplaced(placed):
        named = ", ".join(f"{number} in '{partition}'" for partition, number in list(found.items())[:5])
        return [HASHING_METADATA_NOT_SOUND.because(f"rows-in-wrong-hash-range: {named}")]
    if hashing_metadata.has_guessed_fields(table) and not consistent_hashing.confirms_fields(placed):
        return [HASH_FIELDS_NOT_PROVED.because(f"the record key is {', '.join(table.record_key_fields)}")]
    return []
