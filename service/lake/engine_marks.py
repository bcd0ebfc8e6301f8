"""Identifies the engines that write a table by the marks that they leave. Hudi (1.2) does not record the engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from jobs.contract import WriterEngine
from jobs.format import flink_marks
from service.lake.engine_sighting import Mark
from service.lake.instant import Instant
from service.lake.instant_metadata import InstantMetadata
from service.lake.storage import Entry, Storage
from service.lake.table_config import META_FOLDER

# The statements UPDATE and DELETE use these operations, which take records with a known location
# (`WriteOperationType`).
_PREPPED = frozenset({"UPSERT_PREPPED", "DELETE_PREPPED", "INSERT_PREPPED", "BULK_INSERT_PREPPED"})
_AUX = f"{META_FOLDER}/.aux"
# Folders of the heartbeats of Flink's clients (`ClientIds`), and of the checkpoints of clients before 1.1
# (`CkpMetadata`).
_FLINK_FOLDERS = (".ids", "ckp_meta")


def mark_of_commit(
    instant: Instant, metadata: InstantMetadata, written_at: datetime | None, *, has_empty_inflight: bool
) -> Mark | None:
    """Returns the mark of the engine that made a completed instant. Returns None if the engine left no mark, as in most
    instants of Spark.

    `written_at` is the modification time of the instant's file. `has_empty_inflight` says that its inflight file exists
    and is empty.
    """
    at = written_at or _LONG_AGO
    if metadata.flink_checkpoint is not None:
        evidence = f"its extra metadata has {flink_marks.CHECKPOINT}={metadata.flink_checkpoint}"
        return Mark(WriterEngine.FLINK, at, instant.requested_time, evidence)
    if metadata.operation in _PREPPED:
        return Mark(WriterEngine.SPARK_SQL, at, instant.requested_time, f"its operation is {metadata.operation}")
    is_profiled = metadata.operation in flink_marks.PROFILED and instant.action in ("commit", "deltacommit")
    if has_empty_inflight and is_profiled:
        evidence = f"its inflight file is empty, and only Flink leaves it empty for {metadata.operation}"
        return Mark(WriterEngine.FLINK, at, instant.requested_time, evidence)
    return None


def marks_of_table(storage: Storage) -> Iterator[Mark]:
    """Yields the marks outside the timeline. Costs one listing, and one more for each Flink folder."""
    for entry in storage.list(_AUX):
        if not entry.is_folder and entry.name.startswith(flink_marks.VIEW_STORAGE):
            yield from _flink(entry, f"a Flink job started when {entry.path} was written")
        elif entry.is_folder and entry.name in _FLINK_FOLDERS:
            newest = max(storage.list(entry.path), key=lambda each: each.modified_at or _LONG_AGO, default=entry)
            yield from _flink(newest, f"Flink clients write to {entry.path}")


def _flink(entry: Entry, evidence: str) -> Iterator[Mark]:
    yield Mark(WriterEngine.FLINK, entry.modified_at or _LONG_AGO, None, evidence)


_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
