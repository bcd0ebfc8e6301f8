"""Finds missing parts of the table other than its data files."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.format.index_definitions import FILES
from jobs.hudi import index_note, merging
from jobs.hudi.metadata_table import FOLDER
from jobs.hudi.table import HudiTable
from jobs.kinds.results import Cure
from jobs.protocol import missing_parts
from jobs.services.checks import commits
from jobs.services.checks.finding import Examined, Finding, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.contract import Problem

INDEXES_UNBUILT = "indexes-unbuilt"

_TIMELINES = (".hoodie", ".hoodie/timeline")
_COMPLETED = re.compile(r"\d+(?:_\d+)?\.(?:delta|replace)?commit")

# `HoodieTableMetadata.SOLO_COMMIT_TIMESTAMP`, without its last digits.
_SOLO = "0" * 14
_INSTANT_DIGITS = 17
# `HoodieTableMetadataUtil.PARTITION_INITIALIZATION_TIME_SUFFIX`
_FIRST_BUILD = "010"

_REBUILD = Cure(kind=JobKind.METADATA_TABLE, params={"action": "rebuild"})


def metadata_table(examined: Examined) -> Iterator[Finding]:
    """Finds a metadata table that is missing or incomplete although hoodie.properties names it, and indexes that an
    interrupted rebuild has not built again."""
    table = examined.table
    effect = "Writers fail, readers that use the metadata table may find no rows, and jobs are refused."
    problems = missing_parts.of_metadata_table(table)
    for problem in problems:
        yield _finding(problem, effect, _REBUILD)
    if not problems and "files" in table.metadata_partitions:
        # The metadata table is a table itself, whose commits name its files.
        as_table = HudiTable(table.jvm, replace(table.declared, base_path=f"{table.base_path.rstrip('/')}/{FOLDER}"))
        for finding in commits.files(metadata := examined.of(as_table, table.metadata_partitions)):
            # Dropping an index removes its folder, but not the commits that name its files.
            dropped = _dropped(metadata)
            items = {
                path: text
                for path, text in finding.items.items()
                if path.partition("/")[0] in table.metadata_partitions and path.rpartition("/")[2] not in dropped
            }
            if not items:
                continue
            yield replace(
                finding,
                items=items,
                type=missing_parts.METADATA_TABLE_GONE,
                title="Files of the metadata table are gone",
                effect="Readers and jobs that use the metadata table miss files of the table, or fail.",
                hint="Stop the writers, and build the metadata table anew from the storage.",
                cure=_REBUILD,
            )
        yield from _without_files(metadata)

    if unbuilt := index_note.unbuilt(table):
        yield Finding(
            INDEXES_UNBUILT,
            "The metadata table was not built to the end",
            named(unbuilt.partitions),
            "Readers and writers work without these indexes: they list the storage, and look keys up in more files.",
            "A job is just building it, or died while building it. Stop the writers, and build it anew: its indexes "
            "and their definitions are noted in `.hoodie/.aux/groundskeeper.indexes`.",
            _REBUILD,
        )


def index_definitions(examined: Examined) -> Iterator[Finding]:
    """Finds indexes whose definitions are missing."""
    for problem in missing_parts.of_index_definitions(examined.table):
        yield _finding(problem, "Writers update such an index by guesses, or fail; jobs are refused.")


def partition_metadata(examined: Examined) -> Iterator[Finding]:
    """Finds partitions that readers miss if they list the storage."""
    for problem in missing_parts.of_partitions(examined.files):
        yield _finding(problem, "Readers that list the storage skip the partition, with all its rows.")


def properties(examined: Examined) -> Iterator[Finding]:
    """Finds a table without hoodie.properties that still has its backup file."""
    names = examined.table.files_in(".hoodie")
    if missing_parts.PROPERTIES not in names and missing_parts.BACKUP in names:
        yield Finding(
            "properties-only-as-backup",
            "Only the backup of hoodie.properties exists",
            {missing_parts.BACKUP: f".hoodie/{missing_parts.BACKUP}"},
            "Hudi uses the backup. Other readers find no table.",
            "A writer died while it changed the properties, or somebody deleted them. Copy "
            "`.hoodie/hoodie.properties.backup` to `.hoodie/hoodie.properties`; Hudi's next change of a property also "
            "restores it.",
        )


def table_type(examined: Examined) -> Iterator[Finding]:
    """Finds logs in the latest slices of a copy-on-write table."""
    if examined.table.is_merge_on_read:
        return
    logs = [f"{item.partition}/{name}".lstrip("/") for item in examined.listed_slices for name in item.log_files]
    if logs:
        yield Finding(
            "logs-on-copy-on-write",
            "A copy-on-write table has log files",
            named(logs),
            "Readers miss the rows of these logs, because they look for base files only. The next write to such a file"
            " group leaves them behind for good.",
            "Somebody changed `hoodie.table.type` in hoodie.properties from MERGE_ON_READ without a compaction. Stop"
            " the writers, change it back, and run a `compaction` of all logs before another change.",
        )


def merge_rules(examined: Examined) -> Iterator[Finding]:
    """Finds properties by which Hudi cannot find out how rows are merged."""
    for problem in merging.unclear(examined.table):
        yield _finding(
            problem,
            "Readers fail at file slices with logs, writers fail or merge otherwise; jobs that merge rows are refused.",
        )


def timeline_layout(examined: Examined) -> Iterator[Finding]:
    """Finds completed instants in the place where a timeline of another layout has them."""
    timeline = examined.table.timeline_path.rstrip("/")
    found = {
        folder: sum(bool(_COMPLETED.fullmatch(name)) for name in examined.table.files_in(folder))
        for folder in _TIMELINES
        if not timeline.endswith(f"/{folder}")
    }
    if left := {folder: f"{number} completed instants in {folder}" for folder, number in found.items() if number}:
        yield Finding(
            "timeline-of-another-layout",
            "The timeline is not where the table's properties say",
            left,
            "Readers see none of the rows of these instants, and the next writer begins an empty table.",
            "Somebody changed `hoodie.table.version` or `hoodie.timeline.layout.version` in hoodie.properties, or an"
            " upgrade or downgrade broke off. Stop the writers, and restore the earlier properties: `.hoodie/timeline`"
            " belongs to version 8 and later ones.",
        )


def _dropped(metadata: Examined) -> set[str]:
    """Returns the names of files of the metadata table from before their index was built anew, maybe with another
    number of file groups. The instant of such a commit is a small number, or an instant of the table with a suffix
    (`HoodieTableMetadataUtil.createIndexInitTimestamp`); smaller suffixes are those of compactions in table version 6,
    which replace the files of single file groups.
    """
    found: set[str] = set()
    written: dict[str, dict[str, set[str]]] = {}
    for commit in metadata.commits:
        instant, suffix = commit.write.instant, commit.write.instant[_INSTANT_DIGITS:]
        builds = instant.startswith(_SOLO) or suffix >= _FIRST_BUILD
        for partition, groups in commit.files.items():
            names = written.setdefault(partition, {})
            rewritten = groups.keys() if suffix else ()
            for file_id in [each for each in names if builds or each in rewritten]:
                found |= names.pop(file_id)
            for file_id, paths in groups.items():
                names.setdefault(file_id, set()).update(path.rpartition("/")[2] for path in paths)
    return found


def _without_files(metadata: Examined) -> Iterator[Finding]:
    """Finds indexes without a committed file, although each index has them from its first build on."""
    indexes = set(metadata.partitions or ()) - {FILES}
    if indexes and (empty := indexes - {item.partition for item in metadata.listed_slices}):
        yield Finding(
            missing_parts.METADATA_TABLE_GONE,
            "Indexes of the metadata table have no files",
            named(empty),
            "Jobs fail when they commit, and so do writers that have these indexes; others drop them.",
            "Hudi's own `rollback_to_savepoint` builds indexes that the table did not have, and takes their files back."
            " Stop the writers, and build the metadata table anew.",
            _REBUILD,
        )


def _finding(problem: Problem, effect: str, cure: Cure | None = None) -> Finding:
    return Finding(problem.type, problem.title, {problem.detail: problem.detail}, effect, problem.hint, cure)
