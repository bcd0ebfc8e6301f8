"""The files in Hudi's plans, and the problems of a plan in the current state of the table. The plans are
`HoodieCompactionPlan`, `HoodieClusteringPlan` and `HoodieCleanerPlan` of Hudi 1.2.0. A file is (partition path, file
name)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from jobs.contract import Problem
from jobs.problems.plans import (
    CLEAN_DELETES_FILES_OF_PLAN,
    CLEAN_DELETES_FILES_OF_SAVEPOINT,
    CLEAN_DELETES_LATEST_FILES,
    PLAN_FILES_GONE,
    PLAN_OVERTAKEN,
)

File = tuple[str, str]
Group = tuple[str, str]
PlanContent = Mapping[str, Any]
"""The JSON form of a plan's Avro record."""

_NAMED = 5


def read_by(plan: PlanContent) -> dict[Group, frozenset[File]]:
    """Returns the files that a compaction or clustering plan reads, by file group: (partition path, file id)."""
    found: dict[Group, frozenset[File]] = {}
    for group, each in _slices(plan):
        names = [each.get("dataFilePath"), *(each.get("deltaFilePaths") or ())]
        found[group] = frozenset((group[0], _name(name)) for name in names if name)
    return found


def base_files(plan: PlanContent) -> dict[Group, str]:
    """Returns the paths, relative to the base path, of the base files that a plan reads."""
    return {
        group: f"{group[0]}/{_name(path)}".lstrip("/")
        for group, each in _slices(plan)
        if (path := each.get("dataFilePath"))
    }


def slices_of(plan: PlanContent) -> dict[Group, str]:
    """Returns the instants of the file slices that a compaction plan reads."""
    return {group: each["baseInstantTime"] for group, each in _slices(plan) if each.get("baseInstantTime")}


def _slices(plan: PlanContent) -> Iterator[tuple[Group, Mapping[str, Any]]]:
    groups = plan.get("inputGroups") or ()
    for each in chain(plan.get("operations") or (), *(group.get("slices") or () for group in groups)):
        yield (each.get("partitionPath") or "", each.get("fileId") or ""), each


def deleted_by(plan: PlanContent) -> frozenset[File]:
    """Returns the files that a clean plan deletes, except those of partitions that it drops."""
    by_partition = plan.get("filePathsToBeDeletedPerPartition") or {}
    dropped = partitions_dropped_by(plan)
    return frozenset(
        (partition, _name(info["filePath"]))
        for partition, infos in by_partition.items()
        if partition not in dropped
        for info in infos
    )


def partitions_dropped_by(plan: PlanContent) -> frozenset[str]:
    """Returns the partitions whose folders a clean plan deletes."""
    return frozenset(plan.get("partitionsToBeDeleted") or ())


def files_gone(instant: str, files: Iterable[File], there: Collection[File]) -> list[Problem]:
    """Returns the refusal of a plan that reads missing files, because their rows would be lost (Hudi #10964)."""
    gone = sorted(set(files) - set(there))
    if not gone:
        return []
    return [PLAN_FILES_GONE.because(f"instant {instant}: {_first_few(gone)}")]


def overtaken(instant: str, groups: Iterable[Group], replaced: Collection[Group]) -> list[Problem]:
    """Returns the refusal of a clustering plan whose file groups have been replaced or written since it was made. If
    such a plan were executed, it would bring back rows that an overwrite has removed (Hudi #18829, #19074), or lose the
    new ones.
    """
    gone = sorted(set(groups) & set(replaced))
    if not gone:
        return []
    return [PLAN_OVERTAKEN.because(f"instant {instant}: {_first_few(gone)}")]


def deletes_needed(
    where: str, deleted: Collection[File], *, planned: Mapping[str, Collection[File]], saved: Mapping[str, set[File]]
) -> list[Problem]:
    """Returns the refusals of a clean that deletes needed files (Hudi #19290). `planned` and `saved` are the files of
    pending plans and of savepoints, by instant."""
    by_plans = [
        CLEAN_DELETES_FILES_OF_PLAN.because(f"{where} deletes, of plan {instant}: {_first_few(needed)}")
        for instant, needed in _common(deleted, planned)
    ]
    by_savepoints = [
        CLEAN_DELETES_FILES_OF_SAVEPOINT.because(f"{where} deletes, of savepoint {instant}: {_first_few(needed)}")
        for instant, needed in _common(deleted, saved)
    ]
    return by_plans + by_savepoints


def _common(deleted: Collection[File], needed: Mapping[str, Collection[File]]) -> Iterator[tuple[str, list[File]]]:
    for instant, files in needed.items():
        if common := sorted(set(deleted) & set(files)):
            yield instant, common


def deletes_latest(where: str, deleted: Collection[File], latest: Collection[File]) -> list[Problem]:
    """Returns the refusal of a clean that deletes files of the latest file slices, which every reader reads."""
    needed = sorted(set(deleted) & set(latest))
    if not needed:
        return []
    return [CLEAN_DELETES_LATEST_FILES.because(f"{where}: {_first_few(needed)}")]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _first_few(items: Collection[tuple[str, str]]) -> str:
    named = ", ".join("/".join(part for part in item if part) for item in list(items)[:_NAMED])
    return f"{named} and {len(items) - _NAMED} more" if len(items) > _NAMED else named
