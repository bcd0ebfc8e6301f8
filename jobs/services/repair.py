"""Repair: recovers the rows of commits that wrote to replaced file groups, or to buckets by an old number.

Such rows are in files that no reader uses, or in wrong buckets; the files still exist, because cleaning is refused
while they are needed. Hudi reads the rows from there. The job compares these rows with the current table key by key.
Rows that would be the current version if they had been written correctly are written by Hudi's own upsert and delete,
under the table's lock. Misplaced rows are then removed by rewriting the wrong buckets. After the rows have been read
back, an empty commit names the repaired instants (`stale_writes.REPAIRED_KEY`). The instants that a job names are
repaired in any case. If a partition of one of these writes has a file group without a bucket, all writes to such file
groups are repaired, too. Beside named instants, a job repairs only proved stale writes (`Doubt`). A job that names no
instants repairs all stale writes, except those whose file groups an owner's overwrite replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from jobs.contract import Outcome, Result, WorkOrder, converted
from jobs.dataplane.rewrite_job import rewrite_slices
from jobs.dataplane.split_writer import Rewrite
from jobs.errors import DeletesLostError, FilesGoneError, RefusedError, StaleWriterError, WritersActiveError, refuse
from jobs.format.bucket_rules import BucketChange, BucketRules
from jobs.format.stale_writes import REPAIRED_KEY, REPAIRS_KEY, CompletedWrite, Group, StaleWrite
from jobs.format.written_file import WrittenFile
from jobs.hudi import history
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.history import Past
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import Commit, FileSlice
from jobs.hudi.stale_slices import lost_deletes
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.repair import RepairParams, RepairResult
from jobs.kinds.results import ReplacementResult
from jobs.kinds.words import ReplacingParams
from jobs.protocol import preflight, recovery
from jobs.protocol.file_group_change import Switch
from jobs.protocol.replacement import Replacement, Rewriter
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.protocol.stale_writer_watch import KnownInstants, StaleWriterWatch
from jobs.protocol.writers import Fenced, Writers
from jobs.services import (
    due_writes,
    groups_without_bucket,
    later_overwrites,
    remove_leftovers,
    stray_row_writes,
    stray_rows,
)
from jobs.services.checks import deletes as past_deletes
from jobs.services.checks import statements
from jobs.services.stray_rows import Decided, Misplaced
from jobs.services.unread_deletes import Proof

Replacing = TypeVar("Replacing", bound=ReplacementResult)


@dataclass
class Repaired:
    """The progress of a repair; the members are those of its result. `instants` are its commits."""

    repaired: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    rows: int = 0
    deletes: int = 0
    superseded: int = 0
    moved: int = 0
    deletes_without_rows: tuple[str, ...] = ()
    instants: tuple[str, ...] = ()

    def result(self) -> RepairResult:
        return converted(self, RepairResult, from_attributes=True)


def run(table: HudiTable, order: WorkOrder[RepairParams], context: JobContext) -> Result[RepairResult]:
    """Repairs stale writes, and `instants` with rows in wrong buckets; or, if `leftovers` is set, removes leftovers of
    dead writers. Raises `JobError`s."""
    context.step("planning")
    if order.params.leftovers:
        return remove_leftovers.run(table, order, context)
    suspects = order.params.instants or ()
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=due_writes.planned(table, order.params))
    lock = TableLock(table, order.job_id)
    repaired = repair_writes(table, lock, order, context, suspects)
    return Result(Outcome.SUCCEEDED, instants=repaired.instants, details=repaired.result())


def repair_writes(
    table: HudiTable, lock: TableLock, order: WorkOrder[RepairParams], context: JobContext, suspects: Sequence[str] = ()
) -> Repaired:
    """Repairs the table's stale writes; `suspects` are instants that may have used an old number of buckets."""
    refuse([*preflight.of_repair(table), *due_writes.not_recoverable(table, order.params, suspects)])
    # An attempt that died while it replaced file groups would block this one.
    recovery.remove_unfinished(table, lock, order, context)
    accepted = set(order.params.accepted or ())
    repair = _Repair(table, lock, order, context, repaired := Repaired())
    groups_without_bucket.renew_ranges(table, lock, order.params.wait_seconds, context)
    stale, left, commits = repair.drop_groups_without_bucket(suspects)
    groups = {write.instant: write.groups for write in stale}
    known = {commit.write.instant: commit.write for commit in commits}
    doubtful = [each for each in dict.fromkeys(suspects) if each in known and each not in groups]
    without_rows = past_deletes.without_rows(table, commits)
    waived = tuple(write.instant for write in left if write.instant in accepted)
    run_again = (*without_rows, *statements.unseen(table, commits))
    repaired.waived = waived = (*waived, *(each for each in run_again if each in accepted and each not in groups))
    repaired.left = tuple(write.instant for write in left if write.instant not in waived)
    if waived:
        with repair.lock_without_writers():
            repaired.instants += (stray_row_writes.mark(table, lock, {REPAIRED_KEY: ",".join(waived)}),)
    # A stale write may also have written to wrong buckets of a new partition, which has no replaced file group.
    written = {
        partition
        for instant in [*doubtful, *groups]
        for partition, file_id in known[instant].written
        if (partition, file_id) not in groups.get(instant, ())
    }
    # Misplaced rows are moved first, because recovering rows from replaced file groups marks the write as repaired.
    if written:
        repair.move_misplaced_rows(sorted(written), [known[each] for each in doubtful])
    for due in groups_without_bucket.rounds(table, stale):
        repair.recover_stale_rows(due)
    groups_without_bucket.release_files(table, lock, context)
    refuse(due_writes.not_harmless(table, repaired.cleared, commits))
    named = [each for each in order.params.instants or () if each in without_rows and each not in waived]
    if named:
        raise DeletesLostError(f"Deletes that have removed no row: {', '.join(named)}.")
    return repaired


@dataclass(frozen=True)
class Watched:
    """The writes that did not know of a replacement of file groups: `fenced` before their commit, or `repaired` after
    it."""

    fenced: tuple[str, ...]
    repaired: Repaired

    @property
    def instants(self) -> tuple[str, ...]:
        return self.repaired.instants

    def result(self, found: Replacing) -> Replacing:
        """Returns the job's result with this outcome."""
        return found.having(fenced=self.fenced, repaired=self.repaired.repaired)


def after_switch(
    table: HudiTable,
    lock: TableLock,
    order: WorkOrder[ReplacingParams],
    context: JobContext,
    switch: Switch,
    *,
    before: KnownInstants,
    fenced: Fenced | None = None,
    seconds: float = 0.0,
) -> Watched:
    """Watches for stale writers for `seconds`, and repairs stale writes that have committed since `before`.

    Raises `StaleWriterError` when they cannot be repaired now: users must see that the table has a defect.
    """
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        writers = Writers(table, lock, client, fenced=fenced)
        watch = StaleWriterWatch(table, lock, writers, context, switch, before=before)
        found = watch.run(seconds) if seconds else watch.committed()
    if not found.instants:
        return Watched(tuple(writers.fenced), Repaired())
    repairing = order.having(RepairParams(wait_seconds=order.params.wait_seconds))
    try:
        return Watched(tuple(writers.fenced), repair_writes(table, lock, repairing, context, found.instants))
    except (DeletesLostError, FilesGoneError, RefusedError, WritersActiveError) as error:
        raise StaleWriterError(f"{', '.join(found.instants)}: {error}") from error


@dataclass(frozen=True)
class _Repair:
    """One repair, and its progress so far."""

    table: HudiTable
    lock: TableLock
    order: WorkOrder[RepairParams]
    context: JobContext
    repaired: Repaired

    def lock_without_writers(self) -> AbstractContextManager[None]:
        return stray_row_writes.lock_without_writers(
            self.table, self.lock, self.order.params.wait_seconds, self.context
        )

    def past(self, instants: Iterable[str], *, replacing: bool = False) -> Past:
        due = {*instants, *(self.order.params.accepted or ())}
        return history.past_since(self.table, due, replacing=replacing)

    def drop_groups_without_bucket(
        self, named: Collection[str]
    ) -> tuple[list[StaleWrite], list[StaleWrite], Sequence[Commit]]:
        """Takes file groups without a bucket out of use. Returns the stale writes to repair, and the others, and all
        commits that were considered."""
        table, seconds = self.table, self.order.params.wait_seconds
        # A writer that goes on may make further file groups without a bucket meanwhile.
        while True:
            stale, left, commits = due_writes.chosen(table, named, self.order.params.accepted or ())
            refuse([*later_overwrites.hidden_by_themselves(stale), *groups_without_bucket.of_other_rows(table, stale)])
            refuse(preflight.of_recovered_rows(table) if stale else [])
            if not groups_without_bucket.are_visible(table, stale):
                return stale, left, commits
            # Rows that cannot be read have to be found now: until a file group is out of use, readers still see its
            # rows.
            self.context.step("checking the rows of stale writes")
            with groups_without_bucket.read(table, stale, commits, self.order.job_id):
                pass
            dropped = groups_without_bucket.drop_visible(table, self.lock, seconds, self.context, stale)
            self.repaired.instants += dropped
            table.reload()

    def recover_stale_rows(self, stale: Sequence[StaleWrite]) -> None:
        self.context.step("reading the rows of stale writes")
        table, commits = self.table, self.past(write.instant for write in stale).commits
        stale = groups_without_bucket.with_late_writes(stale, commits)
        lost = {
            instant: count
            for instant, count in lost_deletes(stale, commits).items()
            if instant not in (self.order.params.accepted or ())
        }
        instants = [write.instant for write in stale]
        dropped = groups_without_bucket.dropped(stale, commits)
        with groups_without_bucket.read(table, stale, commits, self.order.job_id) as (merged, deletes):
            strays = stray_rows.written_by(table, merged, instants)
            later = past_deletes.Later(table, instants, commits)
            with self.lock_without_writers():
                self.context.step("writing the rows of stale writes")
                stray_row_writes.require_completed(table, instants)
                past = self.past(instants)
                commits = past.commits
                alive, deletes = later_overwrites.left(strays, deletes, commits, instants)
                alive = stray_rows.without_deleted(table, alive, later.read(instants, commits))
                decided = stray_rows.decide(table, alive, deletes, commits, dropped=dropped)
                in_doubt = self.prove(decided, past, later)
                marked = {REPAIRED_KEY: ",".join(each for each in instants if each not in lost)}
                self.repaired.instants += stray_row_writes.write(table, self.lock, self.context, decided, extra=marked)
            partitions = {path for write in stale for path, _ in write.groups}
            in_vain = past_deletes.without_rows_after(commits, instants, partitions)
            self._count(decided, sorted({*in_vain, *in_doubt}))
            self.repaired.superseded += decided.superseded + stray_rows.fewer_keys(strays, alive)
        self.repaired.repaired += tuple(instants)
        if lost:
            counts = ", ".join(f"{count} of {instant}" for instant, count in lost.items())
            raise DeletesLostError(f"Lost deletes: {counts}.")

    def move_misplaced_rows(self, partitions: Sequence[str], doubtful: Sequence[CompletedWrite]) -> None:
        """Moves rows to their buckets: writes the rows to the right buckets, then rewrites the wrong buckets without
        them. `doubtful` are commits that may have written to wrong buckets. Keys that these commits deleted there are
        deleted in the right buckets."""
        self.context.step("finding rows in wrong buckets")
        table = self.table
        instants = [write.instant for write in doubtful]
        seen = table.instants()
        wrong = stray_rows.misplaced(table, partitions)
        commits = self.past([*instants, *wrong.instants]).commits
        deletes = past_deletes.misplaced(table, doubtful, commits)
        if not wrong.groups and not deletes:
            self.repaired.cleared += tuple(instants)
            return
        later = past_deletes.Later(table, wrong.instants, commits)
        with self.lock_without_writers():
            self.context.step("writing rows to the right buckets")
            if table.instants() != seen:
                wrong = stray_rows.misplaced(table, partitions)
            past = self.past([*instants, *wrong.instants])
            commits = past.commits
            alive = stray_rows.without_deleted(table, wrong.rows, later.read(wrong.instants, commits))
            decided = stray_rows.decide(table, alive, deletes, commits, apart=wrong.places)
            in_doubt = self.prove(decided, past, later, wrong)
            # Without rows in wrong buckets no file group is rewritten, so this write marks the repair.
            extra = None if wrong.groups else {REPAIRED_KEY: ",".join(instants)}
            written = stray_row_writes.write(table, self.lock, self.context, decided, extra=extra, apart=wrong.places)
            self.repaired.instants += written
        partitions_of_rows = {path for path, _ in wrong.groups}
        in_vain = past_deletes.without_rows_after(commits, wrong.instants, partitions_of_rows)
        self._count(decided, sorted({*in_vain, *in_doubt}))
        self.repaired.moved += wrong.count
        if wrong.groups:
            self._leave_out(wrong, instants)
        self.repaired.repaired += tuple(instants)

    def prove(
        self, decided: Decided, past: Past, later: past_deletes.Later, wrong: Misplaced | None = None
    ) -> list[str]:
        """Raises RefusedError if rows may have been deleted since then. Returns the accepted commits that may have
        deleted some."""
        accepted, stale = self.order.params.accepted or (), wrong.instants if wrong else ()
        proof = Proof(self.table, past, later.unread, accepted, stale)
        return proof.require(decided, apart=wrong.places if wrong else None)

    def _count(self, decided: Decided, deletes_without_rows: Collection[str]) -> None:
        self.repaired.rows += decided.upsert_count
        self.repaired.deletes += decided.delete_count
        if decided.upsert_count:
            known = dict.fromkeys((*self.repaired.deletes_without_rows, *deletes_without_rows))
            self.repaired.deletes_without_rows = tuple(known)

    def _leave_out(self, wrong: Misplaced, instants: Sequence[str]) -> None:
        """Rewrites the file groups without these rows. What writers add meanwhile is kept, also in wrong buckets."""
        table, rules, index = self.table, self.table.bucket_rules(), self.table.declared.index
        if rules is None or index is None:
            raise AssertionError("only tables with a bucket index have rows in wrong buckets")

        def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
            work = Rewrite(storage_of(table), instant, index.hash_fields, leaves_out=wrong.instants)
            return rewrite_slices(table, work, chosen, everything, BucketChange(rules, rules), context=self.context)

        extra = {REPAIRS_KEY: ",".join(instants), **({REPAIRED_KEY: ",".join(instants)} if instants else {})}
        replaced = self._replacement(wrong.groups, rewrite, extra, rules).run()
        self.repaired.instants += (replaced.instant,)

    def _replacement(
        self,
        groups: Collection[Group],
        rewrite: Rewriter,
        extra: Mapping[str, str],
        rules: BucketRules | None = None,
    ) -> Replacement:
        def choose(slices: list[FileSlice]) -> list[FileSlice]:
            return [item for item in slices if item.key in groups]

        config = ReplacementConfig(
            wait_seconds=self.order.params.wait_seconds,
            writers_retry=self.table.declared.writers_retry_conflicts,
            rules=rules,
        )
        return Replacement(
            self.table, config, self.context, self.lock, choose=choose, rewrite=rewrite, extra=lambda _: extra
        )
