"""Builds an index of the metadata table as a writer of Hudi 1.2.0 does, drops it, or compares it with the rows.

The job waits for a moment without writes in flight and holds the table's lock from the plan until the index agrees with
the rows (`jobs.hudi.indexer` says why). A note in the storage says what is unfinished. If the worker dies, the next job
of this kind removes it, and builds the index from the beginning.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from jobs.contract import Outcome, Result, WorkOrder
from jobs.errors import LeaseLostError, WritersActiveError, refuse
from jobs.format.index_definitions import COLUMN_STATISTICS, FILES, PARTITION_STATISTICS
from jobs.hudi import column_stats, index_entries, indexer
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.index import IndexDifference, IndexParams, IndexResult
from jobs.kinds.results import WriterOption
from jobs.protocol import index_refusals, missing_parts
from jobs.protocol.writers import roll_back_dead
from jobs.services.checks import file_values
from jobs.services.index_cost import cost_of
from jobs.table_errors import IndexDiffersError, IndexTooSlowError

logger = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
_SHOWN = 3


def run(table: HudiTable, order: WorkOrder[IndexParams], context: JobContext) -> Result[IndexResult]:
    """Does what `action` says. Before a change it removes what an attempt that has died has left."""
    params = order.params
    if params.action == "verify":
        return _verify(table, order, context)
    context.step("planning")
    lock = TableLock(table, order.job_id)
    found = IndexResult()
    if not order.dry_run:
        found = found.having(undone=_settle(table, lock, context))
    names = index_refusals.partitions_of(table, params)
    is_build = params.action == "build"
    problems = (index_refusals.of_build if is_build else index_refusals.of_drop)(table, params)
    existing = table.metadata_partitions.intersection(names)
    slices = table.file_slices()
    found = found.having(
        partitions=names,
        nothing_to_do=not problems and (existing == set(names) if is_build else not existing),
        files=sum(item.number_of_files for item in slices),
        bytes=sum(item.bytes for item in slices),
    )
    if is_build and not problems:
        kept = index_refusals.wanted(table, params).keeping()
        found = found.having(writer_options=tuple(WriterOption(name=name, value=kept[name]) for name in kept))
    if order.dry_run:
        if is_build and not problems:
            cost, estimated = cost_of(table, slices, params)
            found = found.having(cost=cost, estimated_cost=estimated)
        shown = () if problems else indexer.shown(table)
        return Result(Outcome.SUCCEEDED, details=found.having(refusals=tuple(problems), indexes=shown))
    refuse(problems)
    if found.nothing_to_do:
        return Result(Outcome.SUCCEEDED, details=found.having(indexes=indexer.shown(table)))
    with _alone(table, lock, order, context):
        begun = time.monotonic()
        if is_build:
            with _for_at_most(table, context, params.lock_seconds):
                found = _build(table, lock, context, order, found)
        else:
            _drop(table, lock, context, sorted(existing))
        found = found.having(locked_seconds=round(time.monotonic() - begun, 3), indexes=indexer.shown(table))
    return Result(Outcome.SUCCEEDED, details=found)


def _verify(table: HudiTable, order: WorkOrder[IndexParams], context: JobContext) -> Result[IndexResult]:
    params = order.params
    if problems := missing_parts.missing(table):
        if order.dry_run:
            return Result(Outcome.SUCCEEDED, details=IndexResult(refusals=tuple(problems)))
        refuse(problems)
    names = table.metadata_partitions - {FILES}
    if params.index is not None:
        chosen = index_refusals.partitions_of(table, params)
        # Without a name all indexes of the type are compared.
        names &= {each for each in names if each in chosen or (not params.name and each.startswith(chosen))}
    found = IndexResult(indexes=indexer.shown(table), compared=tuple(sorted(names)))
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=found)
    context.step("comparing with the rows")
    differences = differing(table, names)
    if differences:
        # A writer may have committed during the comparison.
        table.reload()
        differences = [each for each in differing(table, names) if each in differences]
    return Result(Outcome.SUCCEEDED, details=found.having(differences=tuple(differences)))


def _build(
    table: HudiTable, lock: TableLock, context: JobContext, order: WorkOrder[IndexParams], found: IndexResult
) -> IndexResult:
    """Builds the index under the lock, and drops it again if anything fails."""
    params = order.params
    # Another job or a writer may have changed the indexes since the plan.
    refuse(index_refusals.of_build(table, params))
    names = [each for each in index_refusals.partitions_of(table, params) if each not in table.metadata_partitions]
    options = {"hoodie.metadata.enable": "true"}
    if params.file_groups:
        kind = "record.level" if params.index == index_refusals.PARTITIONED else "record"
        number = str(params.file_groups)
        options |= {f"hoodie.metadata.{kind}.index.{most}.filegroup.count": number for most in ("min", "max")}
    with WriteClient(table, UNDER_OUR_LOCK, options) as client:
        try:
            lock.verify()
            indexer.keep(table, names)
            context.step(f"building {', '.join(names)}")
            client.indexer.build(names, index_refusals.wanted(table, params))
            table.reload()
            context.step("comparing with the rows")
            _require_right(table, names)
            lock.verify()
            context.checkpoint()
        except Exception as error:
            _take_back(table, lock, context, error)
            raise
    indexer.forget(table)
    return found.having(compared=tuple(names))


def _drop(table: HudiTable, lock: TableLock, context: JobContext, names: Sequence[str]) -> None:
    context.step("dropping the index")
    refuse(index_refusals.of_indexing(table))
    lock.verify()
    indexer.keep(table, names)
    with context.undoing():
        _remove(table, names)
    lock.verify()


def _remove(table: HudiTable, names: Collection[str]) -> None:
    """Drops these indexes, complete or not, and deletes the note."""
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        client.indexer.drop(names)
    indexer.forget(table)


def _take_back(table: HudiTable, lock: TableLock, context: JobContext, error: Exception) -> None:
    """Removes the half-built index. If the lock is lost, leaves that to the next job."""
    if isinstance(error, LeaseLostError) or lock.is_lost():
        context.leaves("An index is half built: the next `index` job removes it.")
        return
    logger.warning("taking the index back: %s", error)
    with context.undoing():
        table.reload()
        if left := indexer.unfinished(table):
            _remove(table, left)


def _settle(table: HudiTable, lock: TableLock, context: JobContext) -> bool:
    """Finishes what an earlier attempt has left: keeps a complete index that agrees with the rows, and removes any
    other one. Returns whether it has removed one."""
    if not indexer.unfinished(table):
        return False
    context.step("removing an unfinished index")
    with context.undoing(), lock.held(context.checkpoint):
        table.reload()
        left = indexer.unfinished(table)
        if not left:
            return False
        if table.metadata_partitions.issuperset(left):
            try:
                _require_right(table, left)
            except IndexDiffersError as error:
                logger.warning("removing an index: %s", error.detail)
            else:
                indexer.forget(table)
                return False
        _remove(table, left)
    return True


@contextmanager
def _alone(table: HudiTable, lock: TableLock, order: WorkOrder[IndexParams], context: JobContext) -> Iterator[None]:
    """Holds the lock at a moment without any write or plan in flight."""
    deadline = time.monotonic() + order.params.wait_seconds
    while True:
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            roll_back_dead(table, lock, client, context.checkpoint)
        with lock.held(context.checkpoint):
            table.reload()
            pending = table.pending()
            if not pending:
                yield
                return
        named = ", ".join(f"{item.requested} ({item.action}, {item.state.lower()})" for item in pending[:_SHOWN])
        if time.monotonic() > deadline:
            raise WritersActiveError(f"In flight: {named}.")
        context.checkpoint(named)
        time.sleep(_PAUSE_SECONDS)


@contextmanager
def _for_at_most(table: HudiTable, context: JobContext, seconds: float) -> Iterator[None]:
    """Ends the attempt, and its Spark jobs, if the block takes longer."""
    spark = table.jvm.spark.sparkContext
    group = spark.getLocalProperty("spark.jobGroup.id")

    def end() -> None:
        context.end(IndexTooSlowError(f"after {seconds} s"))
        if group and not context.is_undoing:
            spark.cancelJobGroup(group)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _require_right(table: HudiTable, names: Collection[str]) -> None:
    """Raises IndexDiffersError unless these indexes are there and agree with the rows."""
    missing = set(names) - table.metadata_partitions
    if missing:
        raise IndexDiffersError(f"Hudi has not built {', '.join(sorted(missing))}")
    if differences := differing(table, names):
        detail = [
            f"{each.partition}: {', '.join((*each.hiding, *each.missing, *each.beyond)[:_SHOWN])}"
            for each in differences
        ]
        raise IndexDiffersError("; ".join(detail))


def differing(table: HudiTable, names: Collection[str]) -> Sequence[IndexDifference]:
    """Compares indexes with the rows, as an audit does."""
    slices = table.file_slices()
    compared = (
        [*index_entries.compare(table, slices, names), *file_values.compare(table, slices, names)] if names else []
    )
    found = [IndexDifference(partition=each.index, missing=each.missing, beyond=each.beyond) for each in compared]
    for partition, of_statistics, place in (
        (COLUMN_STATISTICS, column_stats.of_files, "file"),
        (PARTITION_STATISTICS, column_stats.of_partitions, "partition"),
    ):
        each = of_statistics(table, slices) if partition in names else column_stats.Compared()
        hiding = {**each.added, **each.lacking, **each.hiding}
        texts = [f"{name} in {len(places)} {place}s, such as {places[0]!r}" for name, places in hiding.items()]
        missing = tuple(f"{place} {name!r}" for name in each.unindexed[: index_entries.MOST_NAMED])
        if missing or texts:
            found.append(IndexDifference(partition=partition, missing=missing, hiding=tuple(texts), beyond=()))
    return found
