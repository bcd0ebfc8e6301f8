"""Repair: brings over the rows of commits that went to replaced file groups, or to buckets by an old number.

Such rows are in files that nobody reads, or in the wrong buckets; the files are still there, for nothing is cleaned as
long as they are needed. The rows are read from there by Hudi, held against the table as it is now, key by key, and what
would have won in time is written by Hudi's own upsert and delete, under the table's lock. Rows in wrong buckets are
then left out by rewriting those buckets. The commit says which instants it repaired (`stale_writes.REPAIRED_KEY`).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jobs.contract import Outcome, Result
from jobs.dataplane.rewrite_job import rewrite_slices
from jobs.dataplane.split_writer import Rewrite
from jobs.errors import DeletesLostError, FilesGoneError, RefusedError, StaleWriterError, WritersActiveError
from jobs.format.bucket_rules import BucketChange
from jobs.format.stale_writes import REPAIRED_KEY, stale_writes
from jobs.hudi import rows
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.stale_slices import copied, deleted_from_base_files, deleted_in_logs, lost_deletes
from jobs.protocol import preflight
from jobs.protocol.replacement import DEFAULT_WAIT_SECONDS, POLL_SECONDS, Replacement, ReplacementConfig
from jobs.protocol.stale_writer_watch import StaleWriterWatch
from jobs.protocol.writers import INGESTION, Writers, dead_writes
from jobs.services import stray_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from jobs.contract import WorkOrder
    from jobs.format.stale_writes import Group, StaleWrite
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.table import Commit, FileSlice, HudiTable, Instant
    from jobs.job_context import JobContext
    from jobs.protocol.replacement import Rewriter
    from jobs.protocol.stale_writer_watch import Before
    from jobs.protocol.switch import Switch
    from jobs.protocol.writers import Fenced


@dataclass
class Repaired:
    """`stale` are the instants whose rows were brought over, `cleared` those that had nothing wrong.

    `rows` were written once more, `deletes` deleted once more, `superseded` left as newer commits have them; `moved`
    rows were taken out of wrong buckets. `instants` are the commits of the repair.
    """

    stale: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    rows: int = 0
    deletes: int = 0
    superseded: int = 0
    moved: int = 0
    instants: tuple[str, ...] = field(default=())

    def details(self) -> dict[str, Any]:
        return {
            "repaired": list(self.stale),
            "cleared": list(self.cleared),
            "rows": self.rows,
            "deletes": self.deletes,
            "superseded": self.superseded,
            "moved": self.moved,
        }


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:
    """Repairs what is found to be stale, and what of `instants` lies in wrong buckets. Raises `JobError`s."""
    context.step("planning")
    commits = table.commits()
    stale = stale_writes(commit.write for commit in commits)
    problems = preflight.of_repair(table)
    suspects = tuple(order.params.get("instants") or ())
    if order.dry_run:
        details = {
            "refusals": [problem.to_json() for problem in problems],
            "stale": [write.instant for write in stale],
            "suspects": [instant for instant in suspects if instant not in {write.instant for write in stale}],
            "file_groups": sum(len(write.groups) for write in stale),
        }
        return Result(Outcome.SUCCEEDED, details=details)
    lock = TableLock(table, order.job_id)
    lock.break_stale()
    repaired = of(table, lock, order, context, suspects)
    return Result(Outcome.SUCCEEDED, instants=repaired.instants, details=repaired.details())


def of(
    table: HudiTable, lock: TableLock, order: WorkOrder, context: JobContext, suspects: Sequence[str] = ()
) -> Repaired:
    """Repairs the table's stale writes; `suspects` are instants that may have gone by an old number of buckets."""
    if problems := preflight.of_repair(table):
        raise RefusedError(problems)
    commits = table.commits()
    stale = stale_writes(commit.write for commit in commits)
    known = {commit.write.instant: commit for commit in commits}
    repaired = Repaired(stale=tuple(write.instant for write in stale))
    doubtful = [known[each] for each in dict.fromkeys(suspects) if each in known and each not in repaired.stale]
    if stale:
        _bring_over(table, lock, order, context, commits, stale, repaired)
    if doubtful:
        _move(table, lock, order, context, doubtful, repaired)
    return repaired


@dataclass(frozen=True)
class Watched:
    """What became of writes that did not know of a switch: `fenced` before they could commit, or `repaired` after."""

    fenced: tuple[str, ...]
    repaired: Repaired

    @property
    def instants(self) -> tuple[str, ...]:
        return self.repaired.instants

    def details(self) -> dict[str, Any]:
        return {"fenced": list(self.fenced), "repaired": list(self.repaired.stale)}


def after_switch(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder,
    context: JobContext,
    switch: Switch,
    before: Before,
    *,
    fenced: Fenced | None = None,
    seconds: float = 0.0,
) -> Watched:
    """Watches for stale writers for so long, and repairs what they have committed since `before` all the same.

    Raises `StaleWriterError` when that cannot be repaired now: it is to be seen that the table is not as it should be.
    """
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        writers = Writers(table, lock, client, fenced=fenced)
        watch = StaleWriterWatch(table, lock, writers, context, switch, before)
        found = watch.run(seconds) if seconds else watch.committed()
    if not found.instants:
        return Watched(tuple(writers.fenced), Repaired())
    try:
        return Watched(tuple(writers.fenced), of(table, lock, order, context, found.instants))
    except (DeletesLostError, FilesGoneError, RefusedError, WritersActiveError) as error:
        raise StaleWriterError(f"{', '.join(found.instants)}: {error}") from error


def _bring_over(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder,
    context: JobContext,
    commits: Sequence[Commit],
    stale: Sequence[StaleWrite],
    repaired: Repaired,
) -> None:
    _drop_visible(table, lock, order, context, stale, repaired)
    context.step("reading the rows of stale writes")
    lost = {
        instant: count
        for instant, count in lost_deletes(stale, commits).items()
        if instant not in (order.params.get("accepted") or ())
    }
    instants = [write.instant for write in stale]
    with copied(table, stale, commits, f"groundskeeper-{order.job_id}") as merged:
        strays = stray_rows.latest(table, merged, instants)
        deletes = deleted_in_logs(table, stale, commits) + deleted_from_base_files(table, stale, commits, merged)
        with _moment(table, lock, order, context):
            context.step("writing the rows of stale writes")
            decided = stray_rows.decide(table, strays, deletes, commits)
            if decided.deletes is not None:
                repaired.instants += (rows.write(table, decided.deletes, "delete", {}),)
            lock.verify()
            marked = {REPAIRED_KEY: ",".join(each for each in instants if each not in lost)}
            repaired.instants += (rows.write(table, decided.upserts, "upsert", marked),)
            context.step("proving the repair")
            stray_rows.require_written(table, decided)
        repaired.rows, repaired.deletes = decided.upsert_count, decided.delete_count
        repaired.superseded = decided.superseded
    if lost:
        told = ", ".join(f"{count} of {instant}" for instant, count in lost.items())
        raise DeletesLostError(f"Deletes that are lost: {told}.")


def _drop_visible(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder,
    context: JobContext,
    stale: Sequence[StaleWrite],
    repaired: Repaired,
) -> None:
    """Takes the stale file groups that readers see out of use, as all others are.

    With two file groups in a bucket no writer can write, so whatever is in flight there will fail or is stale itself,
    and nothing is waited for. Nothing is lost if it ends here: the files stay, and the next attempt finds the writes
    stale.
    """
    groups = {group for write in stale for group in write.groups}
    if not any(item.key in groups for item in table.file_slices()):
        return
    dropped = _replacement(table, lock, order, context, groups, rewrite=lambda *_: [], whatever_writes=True).run()
    repaired.instants += (dropped.instant,)


def _move(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder,
    context: JobContext,
    doubtful: Sequence[Commit],
    repaired: Repaired,
) -> None:
    """Takes rows out of buckets that are not theirs: first they are written to the right ones, then left out there."""
    context.step("looking for rows in wrong buckets")
    partitions = sorted({partition for commit in doubtful for partition, _ in commit.write.written})
    instants = [commit.write.instant for commit in doubtful]
    wrong = stray_rows.misplaced(table, partitions)
    if not wrong.groups:
        repaired.cleared += tuple(instants)
        return
    with _moment(table, lock, order, context):
        context.step("writing rows to the right buckets")
        wrong = stray_rows.misplaced(table, partitions)
        decided = stray_rows.decide(table, wrong.rows, [], table.commits(), is_visible=True)
        lock.verify()
        repaired.instants += (rows.write(table, decided.upserts, "upsert", {}),)
    repaired.rows += decided.upsert_count
    repaired.moved += wrong.rows.count()
    _leave_out(table, lock, order, context, wrong.groups, instants, repaired)
    repaired.stale += tuple(instants)


def _leave_out(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder,
    context: JobContext,
    groups: frozenset[tuple[str, str]],
    instants: Sequence[str],
    repaired: Repaired,
) -> None:
    """Rewrites these file groups without the rows that belong elsewhere."""
    rules, index = table.bucket_rules(), table.declared.index
    if rules is None or index is None:
        raise AssertionError("only tables with a bucket index have rows in wrong buckets")

    def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        work = Rewrite(storage_of(table), instant, index.hash_fields, leaves_others_out=True)
        return rewrite_slices(table, work, chosen, everything, BucketChange(rules, rules), context)

    extra = {REPAIRED_KEY: ",".join(instants)}
    replaced = _replacement(table, lock, order, context, groups, rewrite=rewrite, extra=extra).run()
    repaired.instants += (replaced.instant,)


def _replacement(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder,
    context: JobContext,
    groups: Collection[Group],
    *,
    rewrite: Rewriter,
    extra: Mapping[str, str] | None = None,
    whatever_writes: bool = False,
) -> Replacement:
    def choose(slices: list[FileSlice]) -> list[FileSlice]:
        return [item for item in slices if item.key in groups]

    params = {"wait_seconds": _wait_seconds(order)}
    retry = table.declared.writers_retry_conflicts
    config = ReplacementConfig.of("CLUSTER", params, writers_retry=retry, whatever_writes=whatever_writes)
    return Replacement(table, config, context, lock, choose=choose, rewrite=rewrite, extra=extra)


@contextmanager
def _moment(table: HudiTable, lock: TableLock, order: WorkOrder, context: JobContext) -> Iterator[None]:
    """The table's lock at a moment at which nobody's write is hit by ours. Raises `WritersActiveError`."""
    seconds = _wait_seconds(order)
    deadline = time.monotonic() + seconds
    context.step("waiting for writers to finish")
    while True:
        with lock.held(context.checkpoint):
            in_the_way = _in_the_way(table)
            if not in_the_way:
                yield
                return
        if time.monotonic() > deadline:
            names = ", ".join(f"{item.requested} ({item.action})" for item in in_the_way)
            raise WritersActiveError(f"After {seconds:.0f} s: still in flight: {names}.")
        context.checkpoint()
        time.sleep(POLL_SECONDS)


def _in_the_way(table: HudiTable) -> list[Instant]:
    """All that is in flight, but for writes that are tried again by themselves when they conflict with ours."""
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        dead = set(dead_writes(table, client))
    in_flight = [item for item in table.pending() if item.requested not in dead]
    if not table.declared.writers_retry_conflicts:
        return in_flight
    return [item for item in in_flight if item.action not in INGESTION]


def _wait_seconds(order: WorkOrder) -> float:
    return float(order.params.get("wait_seconds", DEFAULT_WAIT_SECONDS))
