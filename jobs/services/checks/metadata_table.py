"""Compares the metadata table with the files in the storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import column_stats
from jobs.kinds.results import Cure
from jobs.protocol import metadata_files
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.hudi.records import FileSlice


OUT_OF_STEP = "metadata-table-out-of-step"


def listing(examined: Examined) -> Iterator[Finding]:
    """Compares the latest file slices by the metadata table with those by listing the storage (Hudi #11535)."""
    if "files" not in examined.table.metadata_partitions:
        return
    by_metadata = _files(examined.slices)
    by_listing = _files(examined.listed_slices)
    missing, unknown = by_metadata - by_listing, by_listing - by_metadata - examined.strays
    if unknown and examined.table.version < WITH_COMPLETION_TIMES:
        unknown -= _logs_in_flight(examined, unknown)
    title = "The metadata table does not list the files that are there"
    effect = "Readers that use the metadata table miss rows, or fail at files that do not exist."
    if missing:
        yield Finding(
            OUT_OF_STEP,
            title,
            {name: f"{name} is not in the storage" for name in missing},
            effect,
            "Files with rows are missing: put them back, or restore a savepoint. A `metadata_table` job would build a "
            "metadata table without them.",
        )
    if unknown:
        yield Finding(
            OUT_OF_STEP,
            title,
            {name: f"{name} is not in the metadata table" for name in unknown},
            effect,
            "The metadata table is older than the table, or a writer committed without updating it. Stop the writers, "
            "and build it anew.",
            None if missing else Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
        )


def files(examined: Examined) -> Iterator[Finding]:
    """Reads the base files of the metadata table. Hudi notices a damaged one only when somebody needs its entries."""
    found = metadata_files.damaged(examined.table, examined.table.metadata_partitions)
    if found:
        yield Finding(
            metadata_files.DAMAGED,
            "Files of the metadata table are damaged",
            {path: f"{path}: {reason}" for path, reason in found.items()},
            "Readers and writers that look something up in such a file fail, or find nothing.",
            "The storage, or a copy of the table, has damaged them. Stop the writers, and build the metadata table anew"
            " from the storage.",
            Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
        )


def statistics(examined: Examined) -> Iterator[Finding]:
    """Compares the column statistics of some files with their values (Hudi #18754, #18755)."""
    compared = column_stats.compare(examined.table, examined.slices)
    if compared.hiding:
        yield Finding(
            "statistics-hide-rows",
            "Column statistics hide rows",
            {
                column: f"column '{column}' in {len(files)} of the {compared.files} files that were compared"
                for column, files in compared.hiding.items()
            },
            "A query with a filter on the column skips these files, although they have rows that it should return.",
            "Hudi records wrong statistics of columns with NaN and of values beyond 4 KB. Read with"
            " `hoodie.enable.data.skipping=false`, or index other columns"
            " (`hoodie.metadata.index.column.stats.column.list`).",
        )


def _logs_in_flight(examined: Examined, unknown: set[str]) -> set[str]:
    """Returns the unknown files that are logs of writes in flight. Before table version 8 a log's name has the instant
    of its base file, so a listing shows it before its commit."""
    pending = {item.requested for item in examined.table.pending()}
    logs = examined.client.late_files
    return {name for name in unknown if ".log." in name and logs.written_only_by(pending, name)}


def differing_partitions(examined: Examined) -> set[str]:
    """Returns the partition paths whose latest slices differ by the metadata table and by listing."""
    by_metadata, by_listing = _files(examined.slices), _files(examined.listed_slices)
    return {path.rpartition("/")[0] for path in by_metadata ^ by_listing}


def _files(slices: list[FileSlice]) -> set[str]:
    names: set[str] = set()
    for item in slices:
        for name in (*item.log_files, *([item.base_file] if item.base_file else [])):
            names.add(f"{item.partition}/{name.rpartition('/')[2]}".lstrip("/"))
    return names
