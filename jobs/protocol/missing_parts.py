"""Finds missing parts of a table that Hudi needs besides the data files, before a job fails because of them. The checks
write nothing. Such parts may have been deleted by hand: `hoodie.properties` still names the metadata table's partitions
and the file with the definitions of indexes (`HoodieTableConfig`, 1.2.0). A table without its metadata table can be
read by listing, but each of Hudi's write clients fails after it has written its files. If only a part of the metadata
table is missing, readers may find no rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from jobs.contract import JobKind, Problem
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.hudi.indexes import definitions
from jobs.hudi.metadata_table import FOLDER
from jobs.hudi.table import HudiTable
from jobs.kinds.registry import KINDS
from jobs.problems.tables import INDEX_DEFINITIONS_GONE, PARTITION_METADATA_GONE
from jobs.table_errors import MetadataTableGoneError

PROPERTIES, BACKUP = "hoodie.properties", "hoodie.properties.backup"
PARTITION_METADATA = ".hoodie_partition_metadata"
METADATA_TABLE_GONE = MetadataTableGoneError.type

COMPLETED = re.compile(r"(\d+)(?:_\d+)?\.(?:delta)?commit")
"""Names of the files of completed commits, with their requested times."""
_DEFINED = ("secondary_index_", "expr_index_")
_NAMED = 5
_PROPERTIES = f"{FOLDER}/.hoodie"
_TIMELINE = f"{FOLDER}/.hoodie/timeline"


def missing(table: HudiTable, kind: JobKind | None = None) -> list[Problem]:
    """Returns the missing parts that every job needs, and those that jobs of this kind need in addition. Takes a few
    requests, whatever the size of the table. Checks twice, because a writer may just be building a part."""
    found = list(_missing(table, kind))
    if found:
        table.reload()
        found = list(_missing(table, kind))
    return found


def _missing(table: HudiTable, kind: JobKind | None) -> Iterator[Problem]:
    yield from of_metadata_table(table)
    if table.indexes_of_keys and set(table.indexes_of_keys) - definitions(table).keys():
        yield from of_index_definitions(table)
    if kind and KINDS[kind].needs_every_partition and "files" not in table.metadata_partitions:
        written = {partition for commit in table.commits() for partition in commit.files}
        yield from of_partitions({each: table.files_in(each) for each in written - set(table.partitions())})


def of_metadata_table(table: HudiTable) -> list[Problem]:
    """Returns the refusal if the metadata table lacks one of its folders, its properties, its timeline or its files."""
    if not table.metadata_partitions:
        return []
    of_files = f"{FOLDER}/files"
    names = {path: set(each) for path, each in table.entries_of([FOLDER, _PROPERTIES, _TIMELINE, of_files]).items()}
    partitions, inside = names[FOLDER], names[_PROPERTIES]
    if not partitions:
        return [_metadata_table_gone(f"There is no {FOLDER}.")]
    instants = inside | names[_TIMELINE]
    gone = [f"{FOLDER}/{name}" for name in sorted(table.metadata_partitions - partitions)]
    if not inside & {PROPERTIES, BACKUP}:
        gone.append(f"{FOLDER}/.hoodie/{PROPERTIES}")
    if not any(COMPLETED.fullmatch(name) for name in instants):
        gone.append(f"the instants of {FOLDER}")
    if "files" in partitions & table.metadata_partitions and not _has_data(names[of_files]):
        gone.append(f"the files of {FOLDER}/files")
    return [_metadata_table_gone(f"Missing: {', '.join(gone)}.")] if gone else []


def timeline_of_metadata(table: HudiTable) -> set[str]:
    """Returns the names of the files on the metadata table's timeline, and of its properties beside them. The timeline
    has a folder of its own since table version 8."""
    return table.files_in(_PROPERTIES) | table.files_in(_TIMELINE)


def _metadata_table_gone(detail: str) -> Problem:
    return MetadataTableGoneError(detail).problem()


def of_index_definitions(table: HudiTable) -> list[Problem]:
    """Returns the refusal if definitions of indexes are missing: the columns of secondary and expression indexes, and
    whether a record index is global or partitioned."""
    indexes, defined = table.metadata_partitions - {"files"}, definitions(table).keys()
    path = table.properties.get("hoodie.table.index.defs.path")
    # Secondary and expression indexes always have definitions, other indexes only since Hudi 1.0. Hudi reads a missing
    # file like an empty one.
    gone = {name for name in indexes - defined if name.startswith(_DEFINED) or (path and not defined)}
    if not gone:
        return []
    return [
        INDEX_DEFINITIONS_GONE.because(f"{path or '.hoodie/.index_defs/index.json'}, for {', '.join(sorted(gone))}")
    ]


def of_folders(table: HudiTable) -> list[Problem]:
    """Lists all folders of the table, and returns the refusals of `of_partitions` for them."""
    found: dict[str, Collection[str]] = {}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        entries = table.entries_in(folder)
        found[folder] = [name for name, entry in entries.items() if not entry.is_folder]
        below = [name for name, entry in entries.items() if entry.is_folder and name != ".hoodie"]
        waiting += [f"{folder}/{name}".lstrip("/") for name in below]
    return of_partitions(found)


def of_partitions(listed: Mapping[str, Collection[str]]) -> list[Problem]:
    """Returns the refusal of partitions that readers miss if they list the storage. `listed` has the names of the files
    by folder."""
    found = sorted(
        folder
        for folder, names in listed.items()
        if _has_data(names) and not any(name.startswith(PARTITION_METADATA) for name in names)
    )
    if not found:
        return []
    named = ", ".join(f"'{each}'" if each else "the table's own folder" for each in found[:_NAMED])
    return [
        PARTITION_METADATA_GONE.because(f"{len(found)} partitions, such as {named}" if len(found) > _NAMED else named)
    ]


def _has_data(names: Collection[str]) -> bool:
    return any(parse_base_file_name(name) or parse_log_file_name(name) for name in names)
