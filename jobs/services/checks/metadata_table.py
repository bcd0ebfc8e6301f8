"""The metadata table beside the files that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.services.checks.finding import Cure, Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.hudi.records import FileSlice


def listing(examined: Examined) -> Iterator[Finding]:
    """Compares the latest file slices by the metadata table with those by listing the storage (Hudi #11535)."""
    if "files" not in examined.table.metadata_partitions:
        return
    by_metadata = _files(examined.slices)
    by_listing = _files(examined.listed_slices)
    missing, unknown = by_metadata - by_listing, by_listing - by_metadata - examined.strays
    if unknown and examined.table.version < 8:
        unknown -= _logs_in_flight(examined, unknown)
    title = "The metadata table does not list the files that are there"
    effect = "Readers with the metadata table miss rows, or fail at files that are gone."
    if missing:
        yield Finding(
            "metadata-table-out-of-step",
            title,
            {name: f"{name} is not in the storage" for name in missing},
            effect,
            "Files are gone, with their rows: put them back, or restore a savepoint. A `metadata_table` job would build"
            " a metadata table without them.",
        )
    if unknown:
        yield Finding(
            "metadata-table-out-of-step",
            title,
            {name: f"{name} is not in the metadata table" for name in unknown},
            effect,
            "The metadata table is older than the table, or a writer without it committed. Stop the writers, and build"
            " it anew.",
            None if missing else Cure(JobKind.METADATA_TABLE, {"action": "rebuild"}),
        )


def _logs_in_flight(examined: Examined, unknown: set[str]) -> set[str]:
    """Before table version 8 a log's name has the instant of its base file, so a listing shows it before its commit."""
    pending = {item.requested for item in examined.table.pending()}
    logs = examined.client.late_files
    return {name for name in unknown if ".log." in name and logs.written_only_by(pending, name)}


def _files(slices: list[FileSlice]) -> set[str]:
    names: set[str] = set()
    for item in slices:
        for name in (*item.log_files, *([item.base_file] if item.base_file else [])):
            names.add(f"{item.partition}/{name.rpartition('/')[2]}".lstrip("/"))
    return names
