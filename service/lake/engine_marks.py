"""By what it leaves in a table one tells which engine wrote it. Hudi (1.2) records that nowhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobs.contract import WriterEngine
from service.lake.engine_sighting import Mark
from service.lake.instant_metadata import FLINK_CHECKPOINT
from service.lake.table_config import META_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.lake.instant import Instant
    from service.lake.instant_metadata import InstantMetadata
    from service.lake.storage import Entry, Storage

# Records that carry their location, as the statements UPDATE and DELETE write them (`WriteOperationType`).
_PREPPED = frozenset({"UPSERT_PREPPED", "DELETE_PREPPED", "INSERT_PREPPED", "BULK_INSERT_PREPPED"})
# Spark and Java write the workload profile into the inflight file of these (`saveWorkloadProfileMetadataToInflight`).
# Of bulk inserts and overwrites nothing can be told: Spark leaves theirs empty too.
_PROFILED = frozenset({"UPSERT", "INSERT"})

_AUX = f"{META_FOLDER}/.aux"
# `ViewStorageProperties`: written whenever the coordinator of a Flink sink starts; `_<client id>` with several of them.
_VIEW_STORAGE = "view_storage_conf"
# Heartbeats of Flink's clients (`ClientIds`), and the checkpoints of those before 1.1 (`CkpMetadata`).
_FLINK_FOLDERS = (".ids", "ckp_meta")


def mark_of_commit(
    instant: Instant, metadata: InstantMetadata, written_at: datetime | None, *, has_empty_inflight: bool
) -> Mark | None:
    """Who made a completed instant; None if it does not show, as with most of Spark's. `written_at` is when its file
    was written. `has_empty_inflight`: its inflight file is there, and has no content."""
    at = written_at or _LONG_AGO
    if metadata.flink_checkpoint is not None:
        said = f"its extra metadata has {FLINK_CHECKPOINT}={metadata.flink_checkpoint}"
        return Mark(WriterEngine.FLINK, at, instant.requested_time, said)
    if metadata.operation in _PREPPED:
        return Mark(WriterEngine.SPARK_SQL, at, instant.requested_time, f"its operation is {metadata.operation}")
    if has_empty_inflight and metadata.operation in _PROFILED and instant.action in ("commit", "deltacommit"):
        said = f"its inflight file is empty, which only Flink leaves of an {metadata.operation}"
        return Mark(WriterEngine.FLINK, at, instant.requested_time, said)
    return None


def marks_of_table(storage: Storage) -> Iterator[Mark]:
    """What engines leave beside the timeline: one listing, and another one for each folder of Flink's there is."""
    for entry in storage.list(_AUX):
        if not entry.is_folder and entry.name.startswith(_VIEW_STORAGE):
            yield from _flink(entry, f"a Flink job began when {entry.path} was written")
        elif entry.is_folder and entry.name in _FLINK_FOLDERS:
            newest = max(storage.list(entry.path), key=lambda each: each.modified_at or _LONG_AGO, default=entry)
            yield from _flink(newest, f"Flink's clients write to {entry.path}")


def _flink(entry: Entry, evidence: str) -> Iterator[Mark]:
    yield Mark(WriterEngine.FLINK, entry.modified_at or _LONG_AGO, None, evidence)


_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
