"""Rollback of one given instant: a pending one that nobody works on any more, or the latest completed write."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.contract import Problem, Result, WorkOrder
from jobs.errors import HudiError, WritersActiveError
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.stream_positions import undone_queries
from jobs.hudi.client import WriteClient
from jobs.hudi.records import COMPACTION, INGESTION, OVERWRITES, Commit, Instant
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.results import KindResult
from jobs.kinds.rollback import RollbackParams, RollbackResult
from jobs.problems.undoing import (
    COMPACTION_PLAN,
    FLINK_WRITER,
    LOG_COMPACTION,
    METADATA_TABLE_COMPACTED,
    NO_SUCH_INSTANT,
    NOT_A_PLAIN_WRITE,
    NOT_A_WRITE,
    NOT_THE_LATEST,
    SAVEPOINT,
    VERSIONS_GONE,
    WITHOUT_HEARTBEAT,
    WRITER_ACTIVE,
)
from jobs.protocol import abandoned, pending_rollbacks, preflight
from jobs.protocol.leftovers import is_leftover
from jobs.services.undoing import Attempt, undo


def run(table: HudiTable, order: WorkOrder[RollbackParams], context: JobContext) -> Result[KindResult]:
    """Rolls back `instant`; for a completed one `table_name` must be the table's name.

    An attempt that has died is continued by the next one, because its rollback is on the timeline.
    """
    return undo(table, order, context, problems=_problems, describe=_described, execute=_roll_back)


def _roll_back(attempt: Attempt[RollbackParams]) -> str:
    table, client, lock = attempt.table, attempt.client, attempt.lock
    instant = attempt.order.params.instant
    attempt.context.step("rolling back")
    rollback = _begun(table, client, attempt.order) or client.new_instant()
    attempt.context.instant(rollback)
    lock.verify()
    client.roll_back(instant, rollback)
    lock.verify()
    if table.state_of(rollback) != "COMPLETED" or table.state_of(instant) is not None:
        raise HudiError(f"The rollback {rollback} of {instant} has not completed.")
    return rollback


def _begun(table: HudiTable, client: WriteClient, order: WorkOrder[RollbackParams]) -> str | None:
    """Returns the pending rollback of the instant by an earlier attempt of this job, or one that nobody works on."""
    own = {each: instant for each, instant in client.pending_rollbacks().items() if each in order.earlier_instants}
    begun = own | pending_rollbacks.unfinished(table, client)
    return next((rollback for rollback, instant in begun.items() if instant == order.params.instant), None)


def _described(attempt: Attempt[RollbackParams]) -> RollbackResult:
    table, instant = attempt.table, attempt.order.params.instant
    item = _find(table, instant)
    commits = table.commits()
    commit = next((each for each in commits if each.write.instant == instant), None)
    kept = [each.extra for each in commits if each is not commit]
    return RollbackResult(
        instant=instant,
        action=item.action if item else None,
        state=item.state.lower() if item else None,
        operation=commit.write.operation if commit else None,
        file_groups=len(commit.write.written) if commit else None,
        streams=undone_queries([commit.extra], kept) if commit else (),
    )


def _find(table: HudiTable, instant: str) -> Instant | None:
    return next((item for item in table.instants() if item.requested == instant and item.action != "savepoint"), None)


def _problems(attempt: Attempt[RollbackParams]) -> list[Problem]:
    table, client, order = attempt.table, attempt.client, attempt.order
    instant = order.params.instant
    item = _find(table, instant)
    begun = _begun(table, client, order)
    if begun in order.earlier_instants:
        return []
    problems = preflight.lock_not_provable(table)
    if begun and (item is None or item.state != "COMPLETED"):
        return problems
    if item is None:
        return [*problems, NO_SUCH_INSTANT.because(instant)]
    if item.state == "COMPLETED":
        return [
            *problems,
            *preflight.name_not_typed(table, order.params.table_name),
            *_of_completed(table, client, item, order, begun),
        ]
    return [*problems, *_of_pending(table, client, item, order)]


def _of_pending(table: HudiTable, client: WriteClient, item: Instant, order: WorkOrder) -> list[Problem]:
    if item.action == "logcompaction":
        return [LOG_COMPACTION.because(f"{item.requested} ({item.state.lower()})")]
    if item.action == COMPACTION:
        return [COMPACTION_PLAN.because(f"{item.requested} ({item.action}, {item.state.lower()})")]
    if item.action not in {*INGESTION, "replacecommit", "clustering"}:
        return [NOT_A_WRITE.because(str(item))]
    is_plan = item.state == "REQUESTED" and (item.action == "clustering" or table.is_clustering_plan(item.requested))
    if is_plan or is_leftover(table, client, item, writers_stopped=order.writers_stopped):
        return []
    has_heartbeat = client.has_heartbeat(item.requested)
    found = f"{item.requested} ({item.action}, {item.state.lower()}{'' if has_heartbeat else ', no heartbeat'})"
    hint = abandoned.hint_about(table, [item]) or WITHOUT_HEARTBEAT
    return [WRITER_ACTIVE.because(found, hint=None if has_heartbeat else hint)]


def _of_completed(
    table: HudiTable, client: WriteClient, item: Instant, order: WorkOrder, begun: str | None
) -> list[Problem]:
    commits = table.commits()
    commit = next((each for each in commits if each.write.instant == item.requested), None)
    if commit is None or not (_is_plain(commit) or commit.write.hidden_by_itself):
        operation = commit.write.operation if commit else item.action
        return [NOT_A_PLAIN_WRITE.because(f"{item.requested} ({operation})")]
    problems = []
    later = [each.write.instant for each in commits if _is_later(each, commit)]
    if later:
        problems.append(NOT_THE_LATEST.because(", ".join(later[:5])))
    if pending := table.pending(without=begun):
        names = ", ".join(map(str, pending[:5]))
        problems.append(
            WritersActiveError.because(
                names,
                title="Something in flight may have read that commit's files",
                hint="Wait until it has ended.",
                retriable=True,
            )
        )
    if client.savepoints.find(item.requested):
        problems.append(SAVEPOINT.because(item.requested, title="The commit has a savepoint"))
    if table.may_have_flink and not (table.declared.writers_stopped or order.writers_stopped):
        problems.append(FLINK_WRITER.because(table.may_have_flink))
    return [*problems, *_of_metadata_table(table, client, item), *_of_files(table, commit)]


def _of_metadata_table(table: HudiTable, client: WriteClient, item: Instant) -> list[Problem]:
    """Refuses a rollback that the metadata table cannot follow. Hudi (1.2) checks this only after it has deleted the
    data files (`HoodieBackedTableMetadataWriter.update`)."""
    if "files" not in table.metadata_partitions:
        return []
    compacted = client.metadata_table.compacted_at()
    if compacted is None or compacted < item.requested:
        return []
    detail = f"compacted at {compacted}"
    return [METADATA_TABLE_COMPACTED.because(detail)]


def _of_files(table: HudiTable, commit: Commit) -> list[Problem]:
    """Refuses a rollback if the previous file versions are gone: the commit's files are then the only copies of rows
    that it did not change."""
    gone = []
    listed: dict[str, set[tuple[str, str]]] = {}
    for (partition, file_id), before in commit.previous.items():
        if before in {"null", "None", ""}:
            continue
        if partition not in listed:
            parsed = map(parse_base_file_name, table.files_in(partition))
            listed[partition] = {(each.file_id, each.instant) for each in parsed if each}
        names = {name.rpartition("/")[2] for name in commit.files.get(partition, {}).get(file_id, ())}
        has_base = any(not name.startswith(".") for name in names)
        if has_base and (file_id, before) not in listed[partition]:
            gone.append(f"{file_id} of {before} in partition '{partition}'")
    gone += _replaced_without_files(table, commit)
    if not gone:
        return []
    return [VERSIONS_GONE.because(f"{len(gone)}, such as {gone[0]}")]


def _replaced_without_files(table: HudiTable, commit: Commit) -> Iterator[str]:
    """Yields the file groups that the commit replaced and that have no files left from other commits."""
    left: dict[str, set[str]] = {}
    for partition, file_id in sorted(commit.write.replaced):
        if partition not in left:
            groups = commit.files.get(partition, {}).values()
            of_commit = {path.rpartition("/")[2] for paths in groups for path in paths}
            parsed = (parse_base_file_name(n) or parse_log_file_name(n) for n in table.files_in(partition) - of_commit)
            left[partition] = {each.file_id for each in parsed if each}
        if file_id not in left[partition]:
            yield f"{file_id} in partition '{partition}'"


def _is_plain(commit: Commit) -> bool:
    """Returns whether the commit has only the rows of its own writer. A commit of a repair also has the rows of
    others."""
    write = commit.write
    return write.brings_rows and write.operation not in OVERWRITES and not (write.replaced or write.repaired)


def _is_later(each: Commit, than: Commit) -> bool:
    is_other = each.write.instant != than.write.instant
    return is_other and (each.completed > than.completed or each.write.instant > than.write.instant)
