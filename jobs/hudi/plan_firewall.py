"""Holds plans against the table before Hudi executes them: pending plans, savepoints, and the files that are there.

Hudi 1.2 executes a plan as it stands, whoever made it and whatever happened since.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from jobs.errors import RefusedError
from jobs.format import plan_files
from jobs.hudi.boundaries import check_paths
from jobs.hudi.jvm import translated
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, pending_plans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobs.contract import Problem
    from jobs.format.plan_files import File
    from jobs.hudi.table import HudiTable

_LISTED = re.compile(r"path=(.*?), length=")


def check_compaction(table: HudiTable, instant: str) -> None:
    """Raises RefusedError if the plan reads files that are gone, PathOutsideTableError for a path out of the table."""
    for plan in pending_plans(table, COMPACTION_ACTIONS):
        check_paths(table, plan)
        if plan.instant == instant:
            files = [file for each in plan_files.read_by(plan.content).values() for file in each]
            _refuse(plan_files.files_gone(instant, files, _there(table, files)))


def check_clustering(table: HudiTable, instant: str) -> None:
    """Raises RefusedError if the plan reads files that are gone, or file groups that were replaced since; errors for
    paths as above."""
    for plan in pending_plans(table, CLUSTERING_ACTIONS):
        check_paths(table, plan)
        if plan.instant == instant:
            groups = plan_files.read_by(plan.content)
            files = [file for each in groups.values() for file in each]
            replaced = {group for commit in table.commits() for group in commit.write.replaced}
            problems = plan_files.overtaken(instant, groups, replaced)
            _refuse(problems or plan_files.files_gone(instant, files, _there(table, files)))


def check_cleans(table: HudiTable, planned_now: Mapping[str, Iterable[str]]) -> None:
    """Raises RefusedError if a pending clean, or the one that is about to be planned, deletes files that are needed.

    `planned_now` are the paths that Hudi's planner finds, by partition path. Needed are the files of the latest slices,
    of pending compactions and clusterings, and of savepoints.
    """
    cleans = {f"clean {plan.instant}": plan for plan in pending_plans(table, frozenset({"clean"}))}
    for plan in cleans.values():
        check_paths(table, plan)
    deleted = {where: plan_files.deleted_by(plan.content) for where, plan in cleans.items()}
    deleted["the new clean"] = frozenset(
        (partition, path.rpartition("/")[2]) for partition, paths in planned_now.items() for path in paths
    )
    if not any(deleted.values()):
        return
    planned = {
        plan.instant: {file for files in plan_files.read_by(plan.content).values() for file in files}
        for plan in pending_plans(table, COMPACTION_ACTIONS | CLUSTERING_ACTIONS)
    }
    saved = _savepoints(table)
    latest = set()
    for item in table.file_slices():
        names = [*item.log_files, *([item.base_file] if item.base_file else [])]
        latest |= {(item.partition, name.rpartition("/")[2]) for name in names}
    problems: list[Problem] = []
    for where, files in deleted.items():
        problems += plan_files.deletes_needed(where, files, planned=planned, saved=saved)
        problems += plan_files.deletes_latest(where, files, latest)
    _refuse(problems)


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise RefusedError(problems)


def _there(table: HudiTable, files: Iterable[File]) -> set[File]:
    """Returns the files in the partitions of `files`. Lists each folder once."""
    found: set[File] = set()
    storage = table.meta.getStorage()
    for partition in sorted({partition for partition, _ in files}):
        with translated("listing the files of a plan"):
            folder = table.jvm.hudi.storage.StoragePath(f"{table.base_path}/{partition}".rstrip("/"))
            # One call for all, in the only form that Hudi's list has: "[StoragePathInfo{path=..., length=...}, ...]".
            listed = str(storage.listDirectEntries(folder).toString()) if storage.exists(folder) else ""
        found |= {(partition, path.rpartition("/")[2]) for path in _LISTED.findall(listed)}
    return found


def _savepoints(table: HudiTable) -> dict[str, set[File]]:
    """Returns the files of each savepoint, by its instant. Raises HudiError for one that cannot be read: what it saves
    is then unknown."""
    found: dict[str, set[File]] = {}
    with translated("reading the savepoints"):
        timeline = table.meta.reloadActiveTimeline()
        for item in table.jvm.items(timeline.getSavePointTimeline().filterCompletedInstants().getInstantsAsStream()):
            metadata = json.loads(str(timeline.readSavepointMetadata(item).toString()))
            partitions = (metadata.get("partitionMetadata") or {}).items()
            found[str(item.requestedTime())] = {
                (partition, str(name)) for partition, each in partitions for name in each.get("savepointDataFile") or ()
            }
    return found
