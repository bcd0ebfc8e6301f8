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

from jobs import refusals, stray_rows
from jobs.base_files import Rewrite
from jobs.bucket_rules import BucketChange
from jobs.contract import Outcome, Result
from jobs.errors import RefusedError, WritersActiveError
from jobs.hudi import rows
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.stale_slices import copied, deleted_from_base_files, deleted_in_logs
from jobs.replacement import DEFAULT_WAIT_SECONDS, POLL_SECONDS, Replacement, Terms
from jobs.rewrite_job import rewrite_slices
from jobs.stale_writes import REPAIRED_KEY, stale_writes
from jobs.writers import INGESTION, dead_writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.base_files import WrittenFile
    from jobs.contract import Plan
    from jobs.hudi.table import Commit, FileSlice, HudiTable, Instant
    from jobs.report import Report
    from jobs.stale_writes import StaleWrite


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


def run(table: HudiTable, plan: Plan, report: Report) -> Result:
    """Repairs what is found to be stale, and what of `instants` lies in wrong buckets. Raises `JobError`s."""
    report.step("planning")
    commits = table.commits()
    stale = stale_writes(commit.write for commit in commits)
    problems = refusals.of_repair(table)
    suspects = tuple(plan.params.get("instants") or ())
    if plan.dry_run:
        details = {
            "refusals": [problem.to_json() for problem in problems],
            "stale": [write.instant for write in stale],
            "suspects": [instant for instant in suspects if instant not in {write.instant for write in stale}],
            "file_groups": sum(len(write.groups) for write in stale),
        }
        return Result(Outcome.SUCCEEDED, details=details)
    lock = TableLock(table, plan.job_id)
    lock.break_stale()
    repaired = of(table, lock, plan, report, suspects)
    return Result(Outcome.SUCCEEDED, instants=repaired.instants, details=repaired.details())


def of(table: HudiTable, lock: TableLock, plan: Plan, report: Report, suspects: Sequence[str] = ()) -> Repaired:
    """Repairs the table's stale writes; `suspects` are instants that may have gone by an old number of buckets."""
    if problems := refusals.of_repair(table):
        raise RefusedError(problems)
    commits = table.commits()
    stale = stale_writes(commit.write for commit in commits)
    known = {commit.write.instant: commit for commit in commits}
    doubtful = [known[instant] for instant in dict.fromkeys(suspects) if instant in known]
    repaired = Repaired(stale=tuple(write.instant for write in stale))
    if stale:
        _bring_over(table, lock, plan, report, commits, stale, repaired)
    if doubtful:
        _move(table, lock, plan, report, doubtful, repaired)
    return repaired


def _bring_over(
    table: HudiTable,
    lock: TableLock,
    plan: Plan,
    report: Report,
    commits: Sequence[Commit],
    stale: Sequence[StaleWrite],
    repaired: Repaired,
) -> None:
    report.step("reading the rows of stale writes")
    instants = [write.instant for write in stale]
    with copied(table, stale, commits, f"groundskeeper-{plan.job_id}") as merged:
        strays = stray_rows.latest(table, merged, instants)
        deletes = deleted_in_logs(table, stale, commits) + deleted_from_base_files(table, stale, commits, merged)
        with _moment(table, lock, plan, report):
            report.step("writing the rows of stale writes")
            decided = stray_rows.decide(table, strays, deletes, commits)
            if decided.deletes is not None:
                repaired.instants += (rows.write(table, decided.deletes, "delete", {}),)
            lock.verify()
            marked = {REPAIRED_KEY: ",".join(instants)}
            repaired.instants += (rows.write(table, decided.upserts, "upsert", marked),)
        repaired.rows, repaired.deletes = decided.upsert_count, decided.delete_count
        repaired.superseded = decided.superseded
        report.step("proving the repair")
        stray_rows.require_written(table, decided)


def _move(
    table: HudiTable, lock: TableLock, plan: Plan, report: Report, doubtful: Sequence[Commit], repaired: Repaired
) -> None:
    """Takes rows out of buckets that are not theirs: first they are written to the right ones, then left out there."""
    report.step("looking for rows in wrong buckets")
    partitions = sorted({partition for commit in doubtful for partition, _ in commit.write.written})
    instants = [commit.write.instant for commit in doubtful]
    wrong = stray_rows.misplaced(table, partitions)
    if not wrong.groups:
        repaired.cleared += tuple(instants)
        return
    with _moment(table, lock, plan, report):
        report.step("writing rows to the right buckets")
        wrong = stray_rows.misplaced(table, partitions)
        decided = stray_rows.decide(table, wrong.rows, [], table.commits(), is_visible=True)
        lock.verify()
        repaired.instants += (rows.write(table, decided.upserts, "upsert", {}),)
    repaired.rows += decided.upsert_count
    repaired.moved += _leave_out(table, lock, plan, report, wrong.groups, instants, repaired)
    repaired.stale += tuple(instants)


def _leave_out(
    table: HudiTable,
    lock: TableLock,
    plan: Plan,
    report: Report,
    groups: frozenset[tuple[str, str]],
    instants: Sequence[str],
    repaired: Repaired,
) -> int:
    """Rewrites these file groups without the rows that belong elsewhere; how many those were."""
    rules, index = table.bucket_rules(), table.declared.index
    if rules is None or index is None:
        raise AssertionError("only tables with a bucket index have rows in wrong buckets")

    def choose(slices: list[FileSlice]) -> list[FileSlice]:
        return [item for item in slices if item.key in groups]

    def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        work = Rewrite(storage_of(table), instant, index.hash_fields, leaves_others_out=True)
        return rewrite_slices(table, work, chosen, everything, BucketChange(rules, rules), report)

    before = rows.current(table).count()
    replaced = Replacement(
        table,
        Terms.of(
            "CLUSTER", {"wait_seconds": _wait_seconds(plan)}, writers_retry=table.declared.writers_retry_conflicts
        ),
        report,
        lock,
        choose=choose,
        rewrite=rewrite,
        extra={REPAIRED_KEY: ",".join(instants)},
    ).run()
    repaired.instants += (replaced.instant,)
    return before - rows.current(table).count()


@contextmanager
def _moment(table: HudiTable, lock: TableLock, plan: Plan, report: Report) -> Iterator[None]:
    """The table's lock at a moment at which nobody's write is hit by ours. Raises `WritersActiveError`."""
    seconds = _wait_seconds(plan)
    deadline = time.monotonic() + seconds
    report.step("waiting for writers to finish")
    while True:
        with lock.held(report.checkpoint):
            in_the_way = _in_the_way(table)
            if not in_the_way:
                yield
                return
        if time.monotonic() > deadline:
            names = ", ".join(f"{item.requested} ({item.action})" for item in in_the_way)
            raise WritersActiveError(f"After {seconds:.0f} s: still in flight: {names}.")
        report.checkpoint()
        time.sleep(POLL_SECONDS)


def _in_the_way(table: HudiTable) -> list[Instant]:
    """All that is in flight, but for writes that are tried again by themselves when they conflict with ours."""
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        dead = set(dead_writes(table, client))
    in_flight = [item for item in table.pending() if item.requested not in dead]
    if not table.declared.writers_retry_conflicts:
        return in_flight
    return [item for item in in_flight if item.action not in INGESTION]


def _wait_seconds(plan: Plan) -> float:
    return float(plan.params.get("wait_seconds", DEFAULT_WAIT_SECONDS))
