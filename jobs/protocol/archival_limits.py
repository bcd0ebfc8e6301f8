"""Limits of archival: instants that must stay on the active timeline, because somebody still reads them there.

Hudi's archiver (1.2) has limits of its own (pending instants, savepoints, replaced files, the metadata table's last
compaction) but never reports which one applied (Hudi #9478). The other limits are ours: commits that the service has
not announced yet, incidents and consumers; rollbacks, while files of the rolled-back writes may still appear; recent
replacements, which are needed to find writes to replaced file groups (`jobs.format.stale_writes`); and the positions
from which streaming writers resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from msgspec import UNSET, structs

from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.instants import wall_clock
from jobs.format.stream_positions import newest_positions
from jobs.hudi import merging
from jobs.hudi.client import WriteClient
from jobs.hudi.records import WRITES, Commit, Instant
from jobs.hudi.table import HudiTable
from jobs.kinds.archival import ArchivalLimit, ArchivalParams
from jobs.protocol import index_refusals

# A writer that still knows the replaced file groups may resume within this time.
RECENT = timedelta(hours=24)
# A stream that resumes later may miss a part of its source anyway: Kafka keeps messages for seven days by default.
RESUMED = timedelta(days=7)
_HISTORIES, _HISTORY = ".hoodie/.schema", re.compile(r"(\d+)(?:_\d+)?\.schemacommit", re.ASCII)
_CLEANED = frozenset({"cleaning", "replaced-files", "late-files"})
"""Types of limits that a cleaning removes."""


def completed_commits(instants: Iterable[Instant]) -> list[str]:
    """Returns the requested times of the completed commits, which are what Hudi's archiver counts."""
    return sorted(item.requested for item in instants if item.state == "COMPLETED" and item.action in WRITES)


def limits(table: HudiTable, client: WriteClient, params: ArchivalParams) -> list[ArchivalLimit]:
    """Returns all limits, the earliest first. `params` may have the limits of the service: `seen`, `keep`, and
    `consumers`."""
    instants, commits = table.instants(), table.commits()
    found = [
        *_of_timeline(instants),
        *_of_metadata_table(table, client, instants),
        *_of_cleaning(client),
        *_of_replacements(table, commits),
        *_of_streams(table, instants, commits),
        *_of_schema_on_read(table, instants),
        *_of_rollbacks(table, client),
        *_of_service(instants, params),
    ]
    if refused := index_refusals.of_cleaning(table):
        hint = refused[0].hint
        found = [structs.replace(each, remedy=hint) if each.type in _CLEANED else each for each in found]
    return sorted(found, key=lambda each: (each.instant, each.type))


def _of_timeline(instants: Sequence[Instant]) -> Iterator[ArchivalLimit]:
    pending = min((item for item in instants if item.state != "COMPLETED"), key=_requested, default=None)
    if pending:
        yield ArchivalLimit(
            "pending-instant",
            pending.requested,
            f"{pending.action} {pending.requested} is {pending.state.lower()}",
            "Let it end, execute its plan, or roll it back.",
        )
    savepoints = [item.requested for item in instants if item.action == "savepoint" and item.state == "COMPLETED"]
    if savepoints:
        yield ArchivalLimit(
            "savepoint",
            min(savepoints),
            f"{len(savepoints)} savepoint(s), the first at {min(savepoints)}",
            "Delete savepoints that are no longer needed (`savepoint` with `action: delete`).",
        )


def _of_metadata_table(table: HudiTable, client: WriteClient, instants: Sequence[Instant]) -> Iterator[ArchivalLimit]:
    """Yields the limit of the metadata table, whose timeline refers to instants since its last compaction."""
    if "files" not in table.metadata_partitions:
        return
    compacted = client.metadata_table.compacted_at()
    since = _first_completed_after(instants, compacted or "")
    if since:
        yield ArchivalLimit(
            "metadata-table",
            since,
            f"the metadata table was last compacted at {compacted}" if compacted else "it was never compacted",
            "Writers compact it after every tenth delta commit of it (`hoodie.metadata.compact.max.delta.commits`).",
        )


def _of_cleaning(client: WriteClient) -> Iterator[ArchivalLimit]:
    """Yields the limit of cleaning: an incremental clean begins where the last one ended."""
    if kept := client.archiver.cleaned_up_to():
        yield ArchivalLimit(
            "cleaning", kept, f"the last clean kept the files of {kept} and later", "Run a `cleaning` job."
        )


def _of_replacements(table: HudiTable, commits: Sequence[Commit]) -> Iterator[ArchivalLimit]:
    replacing = sorted((each for each in commits if each.write.replaced), key=lambda each: each.write.instant)
    recent = [each for each in replacing if table.now() - wall_clock(each.completed or each.write.instant) < RECENT]
    if recent:
        instant = recent[0].write.instant
        hours = int(RECENT.total_seconds() // 3600)
        yield ArchivalLimit(
            "recent-replacement", instant, f"{instant} replaced file groups less than {hours} hours ago"
        )
    listed: dict[str, set[str]] = {}
    for each in replacing:
        for partition, file_id in sorted(each.write.replaced):
            if partition not in listed:
                listed[partition] = set(map(_file_id, table.files_in(partition)))
            if file_id in listed[partition]:
                instant = each.write.instant
                reason = f"files that {instant} replaced are still there, and would count again"
                yield ArchivalLimit("replaced-files", instant, reason, "Run a `cleaning` job.")
                return


def _of_streams(table: HudiTable, instants: Sequence[Instant], commits: Sequence[Commit]) -> Iterator[ArchivalLimit]:
    """Yields the commits with the last positions of streams. A stream that does not find its last position starts over,
    and writes rows twice or out of order. Each commit of a stream has the stream's next position, so the last position
    is archived only if other writers go on committing after it. A `restore` or `rollback` drops later positions. So
    the last position up to each savepoint, and up to the last commit but one, stays as well."""
    written = sorted(each.write.instant for each in commits)
    saved = {each.requested for each in instants if each.action == "savepoint" and each.state == "COMPLETED"}
    found: set[tuple[str, tuple[str, str]]] = set()
    ends = dict.fromkeys(written[-2:], table.now()) | {each: wall_clock(each) for each in saved}
    for end, moment in ends.items():
        newest = newest_positions((each.write.instant, each.extra) for each in commits if each.write.instant <= end)
        found |= {(instant, of) for of, instant in newest.items() if moment - wall_clock(instant) < RESUMED}
    for instant, (key, query) in sorted(found):
        of_query = f" of query {query[:100]}" if query else ""
        reason = f"{instant} has the position{of_query} from which a stream goes on (`{key}`)"
        remedy = f"The position is kept for {RESUMED.days} days, or as long as a savepoint needs it."
        yield ArchivalLimit("stream-position", instant, reason, remedy)


def _of_schema_on_read(table: HudiTable, instants: Sequence[Instant]) -> Iterator[ArchivalLimit]:
    """Yields the latest commit with the history of the schema. Hudi (1.2.0) ignores the history in a commit that has
    left the active timeline, and without a history readers find no values in renamed columns
    (`FileBasedInternalSchemaStorageManager.getValidInstants`). Compactions write no history."""
    if not merging.has_schema_on_read(table):
        return
    written = {match[1] for name in table.files_in(_HISTORIES) if (match := _HISTORY.fullmatch(name))}
    if found := written.intersection(completed_commits(instants)):
        latest = max(found)
        reason = f"{latest} has the history of the schema, by which files from before a change of columns are read"
        yield ArchivalLimit(
            "schema-on-read", latest, reason, "The next commit of a writer with schema on read has it, too."
        )


def _of_rollbacks(table: HudiTable, client: WriteClient) -> Iterator[ArchivalLimit]:
    """Yields the limit of rollbacks. If a rolled-back write and its rollback were both archived, readers would see
    files that the write has left."""
    late = set(client.late_files.rolled_back_but_writing())
    if "files" not in table.metadata_partitions:
        rolled_back = client.late_files.rolled_back()
        found = client.late_files.files_of(rolled_back).items()
        late |= {instant for instant, files in found if client.late_files.exist(instant, files)}
    if late:
        reason = f"{min(late)} was rolled back, and its writer may have left files"
        yield ArchivalLimit("late-files", min(late), reason, "Run a `cleaning` job, which removes them.")


def _of_service(instants: Sequence[Instant], params: ArchivalParams) -> Iterator[ArchivalLimit]:
    if (seen := params.seen) is not UNSET:
        at = _completed_at(instants, seen)
        if since := _first_completed_after(instants, at):
            reason = (
                f"the service has seen commits up to {seen}"
                if at
                else "the last commit that the service has seen is gone"
            )
            yield ArchivalLimit("not-announced", since, reason)
    for each in params.consumers:
        at = _completed_at(instants, each.instant)
        later = _first_completed_after(instants, at) if at else None
        # The consumer may read the table as of that instant, and all later commits.
        needed = min(filter(None, (each.instant, later)))
        yield ArchivalLimit("consumer", needed, f"consumer '{each.name}' has seen commits up to {each.instant}")
    yield from params.keep


def _completed_at(instants: Iterable[Instant], requested: str | None) -> str:
    """Returns when this commit completed; empty if it is not on the timeline. A savepoint has the requested time of its
    commit."""
    return next((item.completed for item in instants if item.requested == requested and item.action in WRITES), "")


def _first_completed_after(instants: Iterable[Instant], moment: str) -> str | None:
    """Returns the earliest requested time of the commits that completed after this time."""
    after = (item for item in instants if item.action in WRITES and item.state == "COMPLETED")
    return min((item.requested for item in after if item.completed > moment), default=None)


def _file_id(name: str) -> str:
    parsed = parse_base_file_name(name) or parse_log_file_name(name)
    return parsed.file_id if parsed else ""


def _requested(item: Instant) -> str:
    return item.requested
