"""Rollback of one given instant: a pending one that nobody works on any more, or the latest completed write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.contract import Outcome, Problem, Result
from jobs.errors import HudiError, RefusedError
from jobs.format.file_names import parse_base_file_name
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import INGESTION, OVERWRITES
from jobs.protocol import preflight, recovery
from jobs.protocol.leftovers import is_leftover

if TYPE_CHECKING:
    from jobs.contract import WorkOrder
    from jobs.hudi.records import Commit, Instant
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

COMPACTIONS = frozenset({"compaction", "logcompaction"})


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:
    """Rolls back `instant`; for a completed one `table_name` must be the table's name.

    An attempt that died in the midst is continued: its rollback is on the timeline.
    """
    context.step("planning")
    lock = TableLock(table, order.job_id)
    if not order.dry_run:
        lock.break_stale()
    if done := recovery.already_completed(table, order):
        return done
    instant = str(order.params["instant"])
    if order.dry_run:
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            problems = _problems(table, client, order)
        details = {**_described(table, instant), "refusals": [problem.to_json() for problem in problems]}
        return Result(Outcome.SUCCEEDED, details=details)
    context.step("rolling back")
    with lock.held(context.checkpoint), WriteClient(table, UNDER_OUR_LOCK) as client:
        table.reload()
        if done := recovery.already_completed(table, order):
            return done
        begun = _begun(client, order)
        if not begun and (problems := _problems(table, client, order)):
            raise RefusedError(problems)
        details = _described(table, instant)
        rollback = begun or client.new_instant()
        context.instant(rollback)
        lock.verify()
        client.roll_back(instant, rollback)
        lock.verify()
        if table.state_of(rollback) != "COMPLETED" or table.state_of(instant) is not None:
            raise HudiError(f"The rollback {rollback} of {instant} has not completed.")
    return Result(Outcome.SUCCEEDED, instants=(rollback,), details=details)


def _begun(client: WriteClient, order: WorkOrder) -> str | None:
    """Returns the pending rollback of the instant by an earlier attempt of this job."""
    pending = client.pending_rollbacks()
    return next(
        (
            rollback
            for rollback, instant in pending.items()
            if rollback in order.earlier_instants and instant == order.params["instant"]
        ),
        None,
    )


def _described(table: HudiTable, instant: str) -> dict[str, Any]:
    item = _find(table, instant)
    commit = next((each for each in table.commits() if each.write.instant == instant), None)
    return {
        "instant": instant,
        "action": item.action if item else None,
        "state": item.state.lower() if item else None,
        "operation": commit.write.operation if commit else None,
        "file_groups": len(commit.write.written) if commit else None,
    }


def _find(table: HudiTable, instant: str) -> Instant | None:
    return next((item for item in table.instants() if item.requested == instant and item.action != "savepoint"), None)


def _problems(table: HudiTable, client: WriteClient, order: WorkOrder) -> list[Problem]:
    instant = str(order.params["instant"])
    item = _find(table, instant)
    problems = preflight.lock_not_provable(table)
    if item is None:
        return [*problems, Problem("no-such-instant", "The active timeline has no such instant", instant)]
    if item.state == "COMPLETED":
        return [*problems, *preflight.name_not_typed(table, order.params), *_of_completed(table, client, item, order)]
    return [*problems, *_of_pending(table, client, item, order)]


def _of_pending(table: HudiTable, client: WriteClient, item: Instant, order: WorkOrder) -> list[Problem]:
    if item.action in COMPACTIONS:
        return [
            Problem(
                "compaction-plan",
                "A compaction plan is not rolled back: logs that were written since refer to it",
                f"{item.requested} ({item.action}, {item.state.lower()})",
                "Run a `compaction` job, which executes it, whoever began it.",
            )
        ]
    if item.action not in {*INGESTION, "replacecommit", "clustering"}:
        return [
            Problem(
                "not-a-write",
                "Only writes and clustering plans are rolled back",
                f"{item.requested} ({item.action})",
                "A `cleaning` job finishes an interrupted clean, and rolls back dead writers.",
            )
        ]
    is_plan = item.state == "REQUESTED" and (item.action == "clustering" or table.is_clustering_plan(item.requested))
    if is_plan or is_leftover(table, client, item, writers_stopped=order.writers_stopped):
        return []
    return [
        Problem(
            "writer-active",
            "The writer of that instant may be alive",
            f"{item.requested} ({item.action}, {item.state.lower()})",
            "Stop it. A heartbeat expires two minutes after its writer died; for writers without one, PATCH the table "
            'with `{"writers": {"stopped": true}}`.',
            retriable=True,
        )
    ]


def _of_completed(table: HudiTable, client: WriteClient, item: Instant, order: WorkOrder) -> list[Problem]:
    commits = table.commits()
    commit = next((each for each in commits if each.write.instant == item.requested), None)
    if commit is None or not _is_plain(commit):
        operation = commit.write.operation if commit else item.action
        return [
            Problem(
                "not-a-plain-write",
                "Only commits that add rows are rolled back; this one rewrote or replaced file groups",
                f"{item.requested} ({operation})",
                "A `restore` to a savepoint undoes those as well.",
            )
        ]
    problems = []
    later = [each.write.instant for each in commits if _is_later(each, commit)]
    if later:
        problems.append(
            Problem(
                "not-the-latest",
                "Only the latest completed commit can be rolled back",
                ", ".join(later[:5]),
                "Roll back the later ones first, or restore a savepoint.",
            )
        )
    if pending := table.pending():
        names = ", ".join(f"{each.requested} ({each.action})" for each in pending[:5])
        title = "Something in flight may have read that commit's files"
        problems.append(Problem("writers-active", title, names, "Wait until it has ended.", retriable=True))
    if client.savepoints.find(item.requested):
        hint = "Delete the savepoint first (`savepoint` with `action: delete`)."
        problems.append(Problem("savepoint", "The commit has a savepoint", item.requested, hint))
    if table.may_have_flink and not (table.declared.writers_stopped or order.writers_stopped):
        problems.append(
            Problem(
                "flink-writer",
                "A running Flink job would not write these rows again",
                table.may_have_flink,
                'Stop it with a savepoint, and PATCH the table with `{"writers": {"stopped": true}}`.',
            )
        )
    return [*problems, *_of_metadata_table(table, client, item), *_of_files(client, commit)]


def _of_metadata_table(table: HudiTable, client: WriteClient, item: Instant) -> list[Problem]:
    """Hudi (1.2) finds it out only when the data files are gone (`HoodieBackedTableMetadataWriter.update`)."""
    if "files" not in table.metadata_partitions:
        return []
    compacted = client.archiver.metadata_compacted_at()
    if compacted is None or compacted < item.requested:
        return []
    detail = f"compacted at {compacted}"
    title = "The metadata table has been compacted since, and cannot go back"
    return [Problem("metadata-table-compacted", title, detail, "Restore a savepoint instead.")]


def _of_files(client: WriteClient, commit: Commit) -> list[Problem]:
    """The version before must still be there, or rows that the commit did not write would be lost with its files."""
    gone = []
    listed: dict[str, set[tuple[str, str]]] = {}
    for (partition, file_id), before in commit.previous.items():
        if before in {"null", "None", ""}:
            continue
        if partition not in listed:
            parsed = map(parse_base_file_name, client.archiver.files_left(partition))
            listed[partition] = {(each.file_id, each.instant) for each in parsed if each}
        names = {name.rpartition("/")[2] for name in commit.files.get(partition, {}).get(file_id, ())}
        has_base = any(not name.startswith(".") for name in names)
        if has_base and (file_id, before) not in listed[partition]:
            gone.append(f"{file_id} of {before} in partition '{partition}'")
    if not gone:
        return []
    title = "The versions before that commit have been cleaned"
    return [Problem("versions-gone", title, f"{len(gone)}, such as {gone[0]}")]


def _is_plain(commit: Commit) -> bool:
    """Returns whether a writer's rows are all that it brought: a repair's commit holds the rows of others."""
    write = commit.write
    return write.brings_rows and write.operation not in OVERWRITES and not (write.replaced or write.repaired)


def _is_later(each: Commit, than: Commit) -> bool:
    is_other = each.write.instant != than.write.instant
    return is_other and (each.completed > than.completed or each.write.instant > than.write.instant)
