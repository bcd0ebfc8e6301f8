"""The state of a table's metadata table, from listings of its timeline and its folders."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from jobs.spec import Documented, Spec
from service.lake.commit import WRITING_ACTIONS
from service.lake.file_slices import Visibility, latest_slices
from service.lake.storage import Entry, Storage
from service.lake.table_config import TableConfig
from service.lake.timeline import MAX_FILES, Timeline, timeline_of
from service.model.errors import GroundskeeperError

log = logging.getLogger(__name__)

FOLDER = ".hoodie/metadata"
_EVERY = timedelta(minutes=5)
# Writers of Hudi compact the metadata table after this many commits (`hoodie.metadata.compact.max.delta.commits`).
_BY_WRITERS = 10
_MOST_MISSING = 20
_MOST_PARTITIONS = 100
# Instants that build partitions begin like this (`HoodieTableMetadata.SOLO_COMMIT_TIMESTAMP` and later ones).
_BUILT = "0000"
# Names with other characters are ignored, because Hudi does not write them, and they could be paths.
_NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class MetadataTableState(Documented):
    """The state of a table's metadata table. Sizes are in bytes, of the latest file slices. `commits` are the
    deltacommits since its last compaction, whose log files every reader and writer has to merge. `missing` are the
    first completed commits of the table that the metadata table lacks."""

    read_at: Annotated[datetime, Spec("When the metadata table was read", examples=("2026-01-01T12:00:05Z",))]
    commits: Annotated[int, Spec("Deltacommits since its last compaction", examples=(3,))] = 0
    base_files: Annotated[int, Spec("Base files (HFiles)", examples=(2,))] = 0
    base_bytes: Annotated[int, Spec("Their size", examples=(20480,))] = 0
    log_files: Annotated[int, Spec("Log files since its last compaction", examples=(6,))] = 0
    log_bytes: Annotated[int, Spec("Their size", examples=(40960,))] = 0
    pending: Annotated[int, Spec("Pending instants on its own timeline", examples=(0,))] = 0
    pending_since: Annotated[
        datetime | None, Spec("When the first pending instant was requested; null without any")
    ] = None
    missing: Annotated[
        tuple[str, ...], Spec("Completed commits of the table that the metadata table lacks", examples=([],))
    ] = ()
    until: Annotated[
        str, Spec("The latest completion of the table that `commits` counts", examples=("20260101120003000",))
    ] = ""


def metadata_table_of(
    storage: Storage, config: TableConfig, timeline: Timeline, known: MetadataTableState | None, now: datetime
) -> MetadataTableState | None:
    """Returns the state of the metadata table of the table with this `config` and `timeline`. The timeline must be read
    before this call.

    The folders of the metadata table are listed only every few minutes, or when writers may have compacted it.
    Meanwhile the table's new commits are added to the state `known`. Returns None if the table has no metadata table,
    or one that cannot be read: the poll goes on without it, and an audit names the damage.
    """
    if known is not None and config.metadata_partitions and now - known.read_at < _EVERY:
        since = _completions(timeline, after=known.until)
        if not since:
            return known
        if known.commits + len(since) < _BY_WRITERS:
            return replace(known, commits=known.commits + len(since), until=since[-1])
    try:
        return _read(storage, config, timeline, now)
    except GroundskeeperError as error:
        log.info("The metadata table of %s cannot be read: %s %s", storage.base_path, error.title, error.detail)
        return None


def _read(storage: Storage, config: TableConfig, timeline: Timeline, now: datetime) -> MetadataTableState | None:
    names = [name for name in config.metadata_partitions[:_MOST_PARTITIONS] if _NAME.fullmatch(name)]
    if not names:
        return None
    # A metadata table has the same layout as its table, because Hudi upgrades both together.
    found = storage.list(f"{FOLDER}/{config.timeline_path}", most=MAX_FILES)
    partitions = {name: storage.list(f"{FOLDER}/{name}") for name in names}
    listed = {entry.name: entry for entry in found if not entry.is_folder}
    own = timeline_of(listed)
    visibility = Visibility.of(own, config.timeline_layout)
    slices = [each for name, files in partitions.items() for each in latest_slices(name, files, visibility, {}).slices]
    completed = [each for each in own.instants if each.is_completed]
    # A compaction completes as a commit.
    compacted = max((each.requested_time for each in completed if each.action == "commit"), default="")
    deltas = [each for each in completed if each.action == "deltacommit"]
    pending = own.pending()
    return MetadataTableState(
        read_at=now,
        # A writer plans a compaction while its own commit is pending, and this commit completes later.
        commits=sum((each.completion_time or each.requested_time) > compacted for each in deltas),
        base_files=sum(each.base_file is not None for each in slices),
        base_bytes=sum(each.base_bytes for each in slices),
        log_files=sum(len(each.logs) for each in slices),
        log_bytes=sum(each.log_bytes for each in slices),
        pending=len(pending),
        pending_since=_first({each.requested_time for each in pending}, listed),
        missing=tuple(_missing(timeline, own))[:_MOST_MISSING],
        until=max(_completions(timeline), default=""),
    )


def _completions(timeline: Timeline, after: str = "") -> list[str]:
    """Returns the completion times later than `after` of the table's instants, in ascending order. Each of these
    instants has a deltacommit in the metadata table."""
    completed = (each.completion_time or each.requested_time for each in timeline.instants if each.is_completed)
    return sorted(each for each in completed if each > after)


def _first(pending: set[str], listed: Mapping[str, Entry]) -> datetime | None:
    """Returns the earliest modification time of the files of these instants."""
    times = [each.modified_at for name, each in listed.items() if name.partition(".")[0] in pending]
    return min((at for at in times if at), default=None)


def _missing(timeline: Timeline, own: Timeline) -> list[str]:
    """Returns the completed commits that the metadata table lacks. A writer that uses the metadata table completes each
    commit there first, so the missing ones come from writers that do not use it."""
    known = {each.requested_time for each in own.instants if each.is_completed}
    # A metadata table is built from a listing, which covers all commits until then. Instants before that may be
    # archived.
    begin = min((each for each in known if not each.startswith(_BUILT)), default=None)
    return [
        each.requested_time
        for each in timeline.instants
        if each.is_completed
        and each.action in WRITING_ACTIONS
        and begin is not None
        and each.requested_time > begin
        and each.requested_time not in known
    ]
