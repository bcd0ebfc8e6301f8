"""Cleaning: deletes file versions that no reader may need any more, by Hudi's own cleaner."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jobs.contract import CleaningPolicy, Outcome, Problem, Result
from jobs.errors import RefusedError
from jobs.format.stale_writes import hits, stale_writes
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.lock_bridge import lent
from jobs.hudi.options import LOCKED_WITHOUT_ROLLBACKS, UNDER_OUR_LOCK
from jobs.protocol.writers import INGESTION, roll_back_dead, sweep_all

if TYPE_CHECKING:
    from jobs.contract import WorkOrder
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

WAIT_SECONDS, POLL_SECONDS = 60.0, 0.5
_IN_FLIGHT = "stale-write-in-flight"
# A query that is running reads the version before the latest: with fewer, it would lose files under its feet.
_LEAST = {
    CleaningPolicy.KEEP_LATEST_COMMITS: 1,
    CleaningPolicy.KEEP_LATEST_BY_HOURS: 1,
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: 2,
}
_RETAINED = {
    CleaningPolicy.KEEP_LATEST_COMMITS: "hoodie.clean.commits.retained",
    CleaningPolicy.KEEP_LATEST_BY_HOURS: "hoodie.clean.hours.retained",
    CleaningPolicy.KEEP_LATEST_FILE_VERSIONS: "hoodie.clean.fileversions.retained",
}


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:
    """Cleans by `policy`, keeping `retain` commits, hours or file versions; a dry run lists what would be deleted."""
    context.step("planning")
    policy = CleaningPolicy(order.params.get("policy", CleaningPolicy.KEEP_LATEST_COMMITS))
    retain = int(order.params.get("retain", 10))
    problems = _problems(policy, retain) + _still_needed(table)
    if not order.dry_run and [problem.type for problem in problems] == [_IN_FLIGHT]:
        problems = _when_it_has_ended(table, context)
    if problems and not order.dry_run:
        raise RefusedError(problems)
    options = {"hoodie.clean.policy": policy.value, _RETAINED[policy]: str(retain)}
    lock = TableLock(table, order.job_id)
    rolled_back: list[str] = []
    if not order.dry_run:
        lock.break_stale()
        context.step("rolling back dead writers")
        # Failed writes keep files that nothing will need; only those of writers that are sure to be dead are undone.
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            rolled_back = roll_back_dead(table, lock, client, context.checkpoint)
    with lent(table, lock, context.checkpoint), WriteClient(table, LOCKED_WITHOUT_ROLLBACKS, options) as client:
        found = {} if problems else client.files_to_clean()
        files = [path for paths in found.values() for path in paths]
        details: dict[str, Any] = {
            "policy": policy.value,
            "retain": retain,
            "partitions": len(found),
            "files": len(files),
            "bytes": _size(table, files),
        }
        if order.dry_run:
            cost = {"deletes": len(files)}
            refused = [problem.to_json() for problem in problems]
            return Result(
                Outcome.SUCCEEDED,
                details={**details, "paths": files[:1000], "estimated_cost": cost, "refusals": refused},
            )
        # Without a metadata table they would come back as rows when their rollback leaves the active timeline.
        late_files = sweep_all(table, client)
        context.step("deleting")
        # Also when nothing is to be deleted: a clean that an earlier attempt left half done is finished here.
        summary = client.clean()
    details |= {"rolled_back": rolled_back, "late_files_deleted": late_files}
    if summary is None:
        return Result(Outcome.SUCCEEDED, details={**details, "files_deleted": 0})
    details |= {"files_deleted": summary.deleted_files, "failed_deletes": summary.failed_deletes}
    return Result(Outcome.SUCCEEDED, instants=(summary.instant,), details=details)


def _problems(policy: CleaningPolicy, retain: int) -> list[Problem]:
    least = _LEAST[policy]
    if retain >= least:
        return []
    return [
        Problem(
            "retain-too-small",
            "Cleaning must leave at least one version before the latest",
            f"{policy.value} with retain {retain}",
            f"Retain at least {least}: readers that are running still need that version.",
        )
    ]


def _when_it_has_ended(table: HudiTable, context: JobContext) -> list[Problem]:
    """A write that was in flight when file groups were replaced mostly fails for it, and soon."""
    context.step("waiting for a write to replaced file groups")
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        problems = _still_needed(table)
        if [problem.type for problem in problems] != [_IN_FLIGHT] or time.monotonic() > deadline:
            return problems
        context.checkpoint()
        time.sleep(POLL_SECONDS)


def _still_needed(table: HudiTable) -> list[Problem]:
    """What a stale write wrote lies in files that are out of use, and can be brought over from nowhere else.

    Hudi's cleaner deletes all files of a file group that was replaced (`CleanPlanner.getReplacedFilesEligibleToClean`),
    also those of a write in flight that goes there.
    """
    commits = table.commits()
    stale = stale_writes(commit.write for commit in commits)
    replaced = {group for commit in commits for group in commit.write.replaced}
    in_flight = [item.requested for item in table.pending() if item.action in INGESTION] if replaced else []
    touched = {instant: table.touched(instant) for instant in in_flight}
    going_there = [instant for instant, where in touched.items() if where and hits(where.keys, replaced)]
    if going_there:
        return [
            Problem(
                _IN_FLIGHT,
                "A write in flight goes to file groups that were replaced; cleaning could delete what it writes",
                ", ".join(going_there),
                "Wait until it has ended; what it commits is repaired then.",
                retriable=True,
            )
        ]
    if not stale:
        return []
    return [
        Problem(
            "stale-write-committed",
            "The table has commits whose rows went to file groups that had been replaced; cleaning could delete them",
            ", ".join(f"{write.instant} ({write.operation})" for write in stale[:5]),
            "Run a `repair` job first, which brings these rows over.",
        )
    ]


def _size(table: HudiTable, files: list[str]) -> int | None:
    """Bytes of the files, where they lie on a storage that Arrow knows; None elsewhere."""
    try:
        return storage_of(table).size(files)
    except (RefusedError, OSError):
        return None
