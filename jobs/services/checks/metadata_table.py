"""Compares the metadata table with the files in the storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi import column_stats
from jobs.kinds.results import Cure
from jobs.protocol import metadata_files
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jobs.hudi.records import FileSlice


OUT_OF_STEP = "metadata-table-out-of-step"


def listing(examined: Examined) -> Iterator[Finding]:
    """Compares the latest file slices by the metadata table with those by listing the storage (Hudi #11535)."""
    if "files" not in examined.table.metadata_partitions:
        return
    by_metadata = _files(examined.slices)
    by_listing = _files(examined.listed_slices)
    missing, unknown = by_metadata - by_listing, by_listing - by_metadata - examined.unnamed
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
    if nobodys := _without_instant(examined, unknown):
        yield Finding(
            OUT_OF_STEP,
            title,
            {name: f"{name} is of no instant of the timeline or its archive" for name in nobodys},
            "Readers that list the storage see the rows of these files, others do not.",
            "A writer or a service went on after somebody had deleted the table and made it anew, or files were copied"
            " here. Compare their rows with the table's, and delete the files if they are of no use. A metadata table "
            "that is built anew would show their rows to all readers.",
        )
    if unknown := unknown - nobodys:
        yield Finding(
            OUT_OF_STEP,
            title,
            {name: f"{name} is not in the metadata table" for name in unknown},
            effect,
            "The metadata table is older than the table, or a writer committed without updating it. Stop the writers, "
            "and build it anew.",
            None if missing or nobodys else Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
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
    """Compares the statistics of some files and partitions with their values (Hudi #18754, #18755)."""
    files = column_stats.of_files(examined.table, examined.slices)
    partitions = column_stats.of_partitions(examined.table, examined.slices)
    effect = "A query with a filter on the column skips these places, although they have rows that it should return."
    # Wrong statistics of a file make the statistics of its partition wrong too, and a new metadata table would repeat
    # both.
    alike = {name: places for name, places in partitions.hiding.items() if name in files.hiding}
    if items := _items(files, files.hiding, "files") | _items(partitions, alike, "partitions"):
        yield Finding(
            "statistics-hide-rows",
            "Column statistics hide rows",
            items,
            effect,
            "Hudi records wrong statistics of columns with NaN and of values beyond 4 KB. Read with"
            " `hoodie.enable.data.skipping=false`, or index other columns"
            " (`hoodie.metadata.index.column.stats.column.list`).",
        )
    partial = {name: places for name, places in partitions.hiding.items() if name not in alike}
    if items := _items(files, files.lacking, "files") | _items(partitions, partitions.lacking | partial, "partitions"):
        yield Finding(
            "statistics-incomplete",
            "Statistics lack values of a column",
            items,
            f"{effect} Filters on two columns skip the files whose statistics lack one of them.",
            "A writer with other columns of statistics committed, such as Spark SQL with its defaults, or a compaction"
            " ended during a write. Read with `hoodie.enable.data.skipping=false` until the metadata table is built"
            " anew. Let all writers use the same `hoodie.metadata.index.column.stats.column.list`.",
            Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"}),
        )
    if items := _items(files, files.added, "files") | _items(partitions, partitions.added, "partitions"):
        yield Finding(
            "statistics-of-added-column",
            "Statistics lack a column that was added or renamed later",
            items,
            "Queries for rows without a value in the column (`IS NULL` with another filter, or a function of the"
            " column) skip these places, although they have such rows. If the column was renamed, so does any filter"
            " on it together with another filter.",
            "Hudi 1.2 takes a missing entry to mean that there is no such row. Read with"
            " `hoodie.enable.data.skipping=false`; or drop"
            " `column_stats` by an `index` job, and from the options of all writers. A new metadata table would be the"
            " same.",
        )


def _items(compared: column_stats.Compared, found: Mapping[str, Sequence[str]], places: str) -> dict[str, str]:
    return {
        f"{name} {places}": f"column '{name}' in {len(affected)} of the {compared.places} {places} that were compared"
        for name, affected in found.items()
    }


def _logs_in_flight(examined: Examined, unknown: set[str]) -> set[str]:
    """Returns the unknown files that are logs of writes in flight. Before table version 8 a log's name has the instant
    of its base file, so a listing shows it before its commit."""
    pending = {item.requested for item in examined.table.pending()}
    logs = examined.client.late_files
    return {name for name in unknown if ".log." in name and logs.written_only_by(pending, name)}


def _without_instant(examined: Examined, unknown: set[str]) -> set[str]:
    """Returns the unknown files whose instants are neither on the timeline nor in its archive."""
    instants: dict[str, set[str]] = {}
    for path in unknown:
        name = path.rpartition("/")[2]
        if parsed := parse_base_file_name(name) or parse_log_file_name(name):
            instants.setdefault(parsed.instant, set()).add(path)
    known = {item.requested for item in examined.instants}
    lost = [each for each in instants if each not in known and not examined.table.was_archived(each)]
    return {path for instant in lost for path in instants[instant]}


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
