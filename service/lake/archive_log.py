"""The history before table version 8: log files in which each archival has a block of Avro records (Hudi 1.2.0
`ArchivedTimelineV1`, `HoodieArchivedMetaEntry`).

Each state of an instant is a separate record. An archival first closes its log file, and then deletes the instants from
the active timeline. So a block that is cut off comes from an archival that failed or has not ended.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import fastavro
import msgspec

from jobs.errors import NotProvedError
from jobs.format.log_blocks import BlockType, Header, avro_content, blocks_of, read_content
from service.lake.archived import MOST_INSTANTS, Archived, Found
from service.lake.avro_file import parsed_schema
from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import Name, metadata_of
from service.lake.storage import MAX_METADATA_BYTES, Entry, Storage
from service.lake.table_config import TableConfig
from service.model.storage_errors import FileDamagedError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa


log = logging.getLogger(__name__)

_FILE = re.compile(r"\.commits_\.archive\.\d+_[\d-]+", re.ASCII)
_CLOCKS_DIFFER = timedelta(days=1)
_LENGTH = 4
_FIELDS = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
}


class _Entry(msgspec.Struct, rename="camel"):
    commit_time: Name = ""
    action_type: Name = ""
    action_state: Name = ""


def archived_since(storage: Storage, config: TableConfig, since: str) -> tuple[Found, bool]:
    """Returns the archived instants that were requested at `since` or later, and whether all files that may contain
    such instants could be read to their ends. Raises StorageError."""
    found: Found = {}
    is_whole = True
    for entry in _files(storage, config, since):
        try:
            with storage.open(entry.path) as file:
                for archived in _instants(file, since, f"{storage.base_path}/{entry.path}"):
                    found[archived.instant.requested_time, archived.instant.action] = archived
                    if len(found) > MOST_INSTANTS:
                        raise StorageError(f"{storage.base_path} has more than {MOST_INSTANTS} archived instants")
        except (NotProvedError, FileDamagedError) as error:
            log.warning("Archived instants cannot be read: %s/%s: %s", storage.base_path, entry.path, error.detail)
            is_whole = False
    return found, is_whole


def _files(storage: Storage, config: TableConfig, since: str) -> Iterator[Entry]:
    """Yields the log files that may contain instants requested at `since` or later. The files' modification times
    decide, because an instant is archived after it was requested. The names of the files tell nothing."""
    at = config.moment(since)
    for entry in storage.list(config.archive_path):
        if _FILE.fullmatch(entry.name) is None or entry.is_folder:
            continue
        if at is None or entry.modified_at is None or entry.modified_at >= at - _CLOCKS_DIFFER:
            yield entry


def _instants(file: pa.NativeFile, since: str, where: str) -> Iterator[Archived]:
    """Yields the completed instants in a log file. Raises NotProvedError, FileDamagedError and StorageError."""
    for block in blocks_of(file, file.size()):
        if block.kind is not BlockType.AVRO_DATA:
            continue
        if block.length > MAX_METADATA_BYTES:
            raise FileDamagedError(f"{where} has a block of more than {MAX_METADATA_BYTES} bytes")
        count, at = avro_content(file, block)
        content = bytes(read_content(file, block))
        try:
            schema = parsed_schema(block.header.get(Header.SCHEMA, "").encode())
            for _ in range(count):
                length = int.from_bytes(content[at : at + _LENGTH], "big")
                record = content[at + _LENGTH : at + _LENGTH + length]
                at += _LENGTH + length
                if (archived := _archived(record, schema, since, where)) is not None:
                    yield archived
        except StorageError:
            raise
        except Exception as error:  # fastavro may raise any exception for invalid bytes.
            raise FileDamagedError(f"{where} is damaged: {type(error).__name__}: {error}") from error


def _archived(record: bytes, schema: Any, since: str, where: str) -> Archived | None:
    """Returns the instant of a record; None if the record is about an earlier state, or its instant is before
    `since`."""
    decoded: Any = fastavro.schemaless_reader(io.BytesIO(record), schema, None)
    entry = msgspec.convert(decoded, _Entry)
    if entry.action_state.lower() != InstantState.COMPLETED or entry.commit_time < since:
        return None
    metadata = metadata_of(entry.action_type, decoded.get(_FIELDS.get(entry.action_type, "")), where)
    return Archived(Instant(entry.commit_time, entry.action_type, InstantState.COMPLETED), metadata)
