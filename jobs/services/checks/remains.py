"""Finds what dead writers and services have left: instants, markers, locks and hashing configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.hudi import dangling_configs
from jobs.hudi.lock import TableLock
from jobs.hudi.savepoints import of_repairs, savepoints_of
from jobs.kinds.results import Cure
from jobs.problems.undoing import FINISH_ROLLBACK
from jobs.protocol import abandoned, index_refusals, leftovers, pending_rollbacks
from jobs.protocol.writers import dead_writes
from jobs.services.checks.finding import Examined, Finding, named

if TYPE_CHECKING:
    from collections.abc import Iterator


def writes(examined: Examined) -> Iterator[Finding]:
    """Finds pending instants of dead writers."""
    if dead := dead_writes(examined.table, examined.client):
        requested = abandoned.requests(examined.table)
        is_refused = bool(index_refusals.of_cleaning(examined.table))
        yield Finding(
            "dead-write",
            "Writes whose writers are dead are pending",
            {each: f"{each} was requested and never begun" if each in requested else each for each in dead},
            "Nothing newer is archived, and services wait for them.",
            f"{'A rollback of each' if is_refused else 'A cleaning'} takes these writes back, and so does the next"
            " writer with `hoodie.clean.failed.writes.policy=LAZY`.",
            Cure(kind=JobKind.ROLLBACK, params={"instant": min(dead)}) if is_refused else Cure(kind=JobKind.CLEANING),
        )


def rollbacks(examined: Examined) -> Iterator[Finding]:
    """Finds rollbacks that stay pending, and those without a plan."""
    if all(item.action != "rollback" for item in examined.table.pending()):
        return
    if old := pending_rollbacks.unfinished(examined.table, examined.client):
        yield Finding(
            "rollback-unfinished",
            "Rollbacks were begun, and nobody finishes them",
            {rollback: f"{rollback} of {instant}" for rollback, instant in old.items()},
            "Some files of the instant may be gone, and others still be there. Nothing newer is archived, and jobs wait"
            " for the rollback.",
            f"The process that rolled back has failed or died. {FINISH_ROLLBACK}",
            Cure(kind=JobKind.ROLLBACK, params={"instant": min(old.values())}),
        )
    if empty := pending_rollbacks.old(examined.table, examined.client.empty_rollbacks()):
        yield Finding(
            "rollback-plan-empty",
            "The file of a rollback's plan is empty",
            named(empty),
            "Nobody can execute the rollback, which has changed nothing. Nothing newer is archived, and jobs that"
            " replace file groups wait for it in vain.",
            "A client died while it wrote the plan, or the machine of a local disk lost its power. Delete the file"
            " `<instant>.rollback.requested` on the timeline; Hudi also deletes it with its next rollback.",
        )


def markers(examined: Examined) -> Iterator[Finding]:
    """Finds markers of instants that ended long ago."""
    if old := leftovers.old_markers(examined.table, examined.client):
        yield Finding(
            "markers-left",
            "Markers of writes that have ended were left behind",
            named(old),
            "The markers cost storage. If the same instant were ever used again, a rollback by markers would delete "
            "the wrong files.",
            "Nothing needs these markers. A repair with `leftovers` removes them.",
            Cure(kind=JobKind.REPAIR, params={"leftovers": True}),
        )


def lock(examined: Examined) -> Iterator[Finding]:
    """Finds a lock that its holder left when it died."""
    if left := TableLock(examined.table, "diagnosis").left_behind():
        yield Finding(
            "lock-left",
            "The table's lock was left by a holder that is dead",
            {"lock": left},
            "No writer can begin or commit.",
            "If a job of Groundskeeper left the lock, the next job that needs it removes it. Otherwise make sure that "
            "no writer is alive, and delete `.hoodie/lock`.",
        )


def savepoints(examined: Examined) -> Iterator[Finding]:
    """Finds the savepoints of repairs that have ended without removing them."""
    if held := of_repairs(examined.table):
        yield Finding(
            "savepoint-of-repair-left",
            "A savepoint that a repair made is still there",
            named(held),
            "Rows that the repair took out of use may not be written yet, and the files of the savepoint are not"
            " cleaned.",
            "If no repair is running, run one: it writes the rows, and removes the savepoint.",
            Cure(kind=JobKind.REPAIR),
        )


def saved_files(examined: Examined) -> Iterator[Finding]:
    """Finds files that savepoints need, and the storage does not have. Hudi's `create_savepoint` takes no lock, so a
    clean that is checked at the same moment deletes files of the new savepoint (Hudi 1.2.0,
    `BaseHoodieWriteClient.savepoint`)."""
    table, gone = examined.table, {}
    for each in savepoints_of(table):
        for partition, names in each.files.items():
            for name in names - (examined.files.get(partition) or table.files_in(partition)):
                path = f"{partition}/{name}".lstrip("/")
                gone[path] = f"{path} of {each.instant}"
    if gone:
        yield Finding(
            "savepoint-files-gone",
            "Files of a savepoint are gone",
            gone,
            "A restore to this savepoint is refused. Reads of the table as it was then fail or miss rows.",
            "A clean ran while the savepoint was made without this service, or somebody deleted the files. Put them"
            " back from a copy; else delete the savepoint, and make another one.",
        )


def configs(examined: Examined) -> Iterator[Finding]:
    """Finds hashing configs whose replacecommit never completed."""
    if dangling := dangling_configs.dangling(examined.table):
        yield Finding(
            "hashing-config-dangling",
            "A hashing config is in force although its expansion was not committed",
            named(dangling),
            "Writers hash by a number of buckets that the files do not have: rows get duplicated.",
            "Stop the writers. A repair with `leftovers` removes the config if no row was written by it. Otherwise the"
            " finding `rows-in-wrong-bucket` of an audit that reads the rows names the commits for a repair.",
            Cure(kind=JobKind.REPAIR, params={"leftovers": True}),
        )
