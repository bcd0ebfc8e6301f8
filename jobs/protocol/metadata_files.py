"""Finds damaged base files (HFiles) of the metadata table. Hudi does not read the files here, because its JVM may still
have their blocks in a cache."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from jobs.errors import JobError
from jobs.format import hfile
from jobs.format.file_names import parse_base_file_name
from jobs.hudi.hadoop import storage_of
from jobs.hudi.metadata_table import FOLDER
from jobs.hudi.table import HudiTable
from jobs.protocol import missing_parts
from jobs.table_errors import MetadataTableError

DAMAGED = "metadata-table-damaged"
_FILES_AT_ONCE = 8


def damaged(table: HudiTable, partitions: Collection[str]) -> dict[str, str]:
    """Returns the paths of the latest base files in these partitions of the metadata table that are damaged, each with
    the reason. Reads the files. The files of pending instants may not be complete, and are left out."""
    instants = missing_parts.timeline_of_metadata(table)
    completed = {match[1] for name in instants if (match := missing_parts.COMPLETED.fullmatch(name))}
    pending = {name.partition(".")[0] for name in instants if name.endswith((".requested", ".inflight"))} - completed
    latest: dict[str, tuple[str, str]] = {}  # Instant and path by file group.
    for partition in partitions:
        for name in table.files_in(f"{FOLDER}/{partition}"):
            parsed = parse_base_file_name(name)
            if parsed and parsed.extension == "hfile" and parsed.instant not in pending:
                candidate = (parsed.instant, f"{FOLDER}/{partition}/{name}")
                group = f"{partition}/{parsed.file_id}"
                latest[group] = max(latest.get(group, candidate), candidate)
    storage = storage_of(table)

    def examined(path: str) -> tuple[str, str | None]:
        try:
            with storage.open_file(f"{table.base_path.rstrip('/')}/{path}", whole=True) as file:
                return path, hfile.damage(file)
        except FileNotFoundError:
            return path, None  # A writer has cleaned it meanwhile.
        except OSError as error:
            raise MetadataTableError(f"reading {path}: {str(error)[:300]}") from error

    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        found = pool.map(examined, sorted(path for _, path in latest.values()))
        return {path: reason for path, reason in found if reason}


def lists_wrongly(table: HudiTable) -> bool:
    """Returns whether the metadata table cannot list the table's files, because parts of it are missing or damaged."""
    if missing_parts.of_metadata_table(table):
        return True
    try:
        return bool(damaged(table, {"files"} & table.metadata_partitions))
    except JobError:
        return False
