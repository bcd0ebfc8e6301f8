"""Writes the rows of stale writes to the table, and reads them back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import CommitUndoneError, JobError, StaleWriterError, refuse
from jobs.format.stale_writes import REPAIRS_KEY, runs_of
from jobs.hudi import merging, rows
from jobs.hudi.client import WriteClient
from jobs.hudi.jvm import translated
from jobs.hudi.keyed_writes import keyed_write_options
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import INGESTION, REPLACE, Instant
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.problems.tables import COLUMNS_CHANGED
from jobs.protocol import preflight
from jobs.protocol.writers import alone
from jobs.services.stray_rows import INSTANT, KEY, Decided, without

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def lock_without_writers(table: HudiTable, lock: TableLock, seconds: float, context: JobContext) -> Iterator[None]:
    """Holds the table's lock at a moment when no write in flight conflicts with ours, after the writes of dead writers
    were rolled back, among them those of earlier attempts. Raises `WritersActiveError`."""
    context.step("waiting for writers to finish")
    with (
        WriteClient(table, UNDER_OUR_LOCK) as client,
        alone(table, lock, client, seconds, context.checkpoint, blocking=partial(_blocking, table)),
    ):
        yield


def require_completed(table: HudiTable, instants: Collection[str]) -> None:
    """Raises CommitUndoneError if one of these writes is neither completed nor archived: somebody has rolled the write
    back, or has deleted the table and made it anew. Its rows are not wanted any more."""
    completed = {item.requested for item in table.instants() if item.state == "COMPLETED"}
    if undone := [each for each in instants if each not in completed and not table.was_archived(each)]:
        raise CommitUndoneError(", ".join(undone))


def _blocking(table: HudiTable) -> list[Instant]:
    """Returns the instants in flight, except for writes that retry by themselves when they conflict with ours."""
    if not table.declared.writers_retry_conflicts:
        return table.pending()
    return [item for item in table.pending() if item.action not in INGESTION]


def write(
    table: HudiTable,
    lock: TableLock,
    context: JobContext,
    decided: Decided,
    *,
    extra: Mapping[str, str] | None = None,
    apart: DataFrame | None = None,
) -> tuple[str, ...]:
    """Writes the rows under their stored keys, reads them back, and then commits `extra`, if any; returns the instants.
    Rows at the places `apart` are ignored. The lock must be held. Raises StaleWriterError if the rows read back
    are wrong, after undoing these commits, and RefusedError if columns have been renamed since the rows were read."""
    # Spark SQL's `ALTER TABLE` needs no lock, so columns may have been renamed since the rows were read.
    table.reload()
    refuse(preflight.columns_changed(table, table.file_slices()))
    changed = merging.history_of(table).changed()
    with WriteClient(table, UNDER_OUR_LOCK, keyed_write_options(table)) as client:
        lock.verify()
        written = []
        if decided.deletes is not None:
            for repairs, part in _runs(table, decided.deletes, decided.deleted_by):
                written.append(client.keyed_writes.delete(part, repairs, decided.delete_records))
        if decided.upsert_count:
            for repairs, part in _runs(table, decided.upserts, decided.written_by):
                written.append(client.keyed_writes.upsert(part, repairs))
        context.step("verifying the repair")
        table.reload()
        try:
            later = dict(merging.history_of(table).changed().items() - changed.items())
            refuse([COLUMNS_CHANGED.because(", ".join(sorted(later)))] if later else [])
            require_written(table, decided, apart)
        except JobError:
            for instant in reversed(written):
                client.roll_back(instant, client.new_instant())
            raise
        if extra:
            lock.verify()
            written.append(client.keyed_writes.mark(extra))
    return tuple(written)


def _runs(table: HudiTable, frame: DataFrame, instants: Sequence[str]) -> Iterator[tuple[Mapping[str, str], DataFrame]]:
    """Yields the rows of each commit to make, with its extra metadata. All rows of a commit count as written at one
    instant (`dated`), so one commit takes the rows of several instants only if no other write began between them."""
    others = [item.requested for item in table.instants() if item.action in INGESTION or item.action == REPLACE]
    for run in runs_of(instants, others):
        yield {REPAIRS_KEY: ",".join(run)}, frame.where(F.col(INSTANT).isin(list(run))).drop(INSTANT)


def mark(table: HudiTable, lock: TableLock, extra: Mapping[str, str]) -> str:
    """Makes a commit without rows but with this extra metadata. The lock must be held."""
    with WriteClient(table, UNDER_OUR_LOCK, keyed_write_options(table)) as client:
        lock.verify()
        return client.keyed_writes.mark(extra)


def require_written(table: HudiTable, decided: Decided, apart: DataFrame | None = None) -> None:
    """Verifies by the stored keys that each written row exists unchanged and once, and that no deleted key exists. Rows
    at the places `apart` (`Misplaced`) are ignored.

    The lock must still be held, because other writers may change any row. Raises `StaleWriterError`.
    """
    with translated("verifying the repair"):
        columns = [name for name in decided.upserts.columns if name not in (*KEY, INSTANT)]
        wanted = decided.upserts.select(*KEY, F.to_json(F.struct(*columns)).alias("wanted"))
        found = without(rows.current(table), apart).select(*KEY, F.to_json(F.struct(*columns)).alias("found"))
        differs = F.col("found").isNull() | (F.col("wanted") != F.col("found"))
        sums = (F.count("*"), F.count(F.when(differs, True)))
        (joined, wrong), *_ = wanted.join(found, KEY, "left").agg(*sums).collect()
        twice = joined - decided.upsert_count
        left = decided.deletes.join(found, KEY, "left_semi").count() if decided.deletes is not None else 0
    if wrong or twice or left:
        raise StaleWriterError(f"after the repair {wrong} rows differ, {twice} exist twice, {left} are not deleted")
