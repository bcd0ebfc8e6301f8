"""Checks plans before Hudi executes them, against pending plans, savepoints, and the existing files. Hudi 1.2 executes
any plan unchecked, whoever made it and whatever has happened since."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from jobs.contract import Problem
from jobs.errors import refuse
from jobs.format import plan_files
from jobs.format.file_names import parse_base_file_name
from jobs.format.plan_files import File, Group
from jobs.hudi.clean_plan import CleanPlan
from jobs.hudi.merging import forgotten_changes, history_of
from jobs.hudi.plan_paths import check_paths
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, Plan, pending_plans
from jobs.hudi.savepoints import savepoints_of
from jobs.hudi.table import HudiTable
from jobs.problems.plans import PLAN_UNREADABLE
from jobs.problems.tables import COLUMNS_CHANGED, SCHEMA_ON_READ_FORGOTTEN
from jobs.table_errors import PlanOfAnotherPathError


def check_compaction(table: HudiTable, instant: str) -> None:
    """Raises RefusedError if the plan reads files that are gone, or if schema on read has changed columns since the
    plan was made: the new files would have the new columns, but readers would look for the old ones, because the plan's
    instant is older (Hudi 1.2.0). Raises PathOutsideTableError for a path outside of the table."""
    history = history_of(table)
    later = sorted(name for name, version in history.changed().items() if version > int(instant))
    refuse([COLUMNS_CHANGED.because(", ".join(later[:5]), hint=f"Roll {instant} back.")] if later else [])
    forgotten = forgotten_changes(table, history)
    for plan in pending_plans(table, COMPACTION_ACTIONS):
        check_paths(table, plan)
        if plan.instant == instant:
            refuse(_problems(table, plan))
            if forgotten and _reads_older(plan, max(forgotten.values())):
                refuse([SCHEMA_ON_READ_FORGOTTEN.because(", ".join(sorted(forgotten)[:5]))])


def check_clustering(table: HudiTable, instant: str) -> None:
    """Raises RefusedError if the plan reads files that are gone, or file groups that were replaced or written since,
    and PathOutsideTableError for a path outside of the table."""
    for plan in pending_plans(table, CLUSTERING_ACTIONS):
        check_paths(table, plan)
        if plan.instant == instant:
            refuse(_problems(table, plan, _replaced(table)) or _of_later_writes(table, plan))


def unusable(table: HudiTable) -> Iterator[tuple[Plan, list[Problem]]]:
    """Yields the pending compactions and clusterings that cannot be executed, each with the reasons."""
    plans = list(pending_plans(table, COMPACTION_ACTIONS | CLUSTERING_ACTIONS))
    replaced = _replaced(table) if any(plan.action in CLUSTERING_ACTIONS for plan in plans) else set()
    for plan in plans:
        # A replacecommit without a plan is a writer's overwrite.
        if not plan.content and plan.action != "replacecommit":
            detail = f"instant {plan.instant} ({plan.action})"
            yield plan, [PLAN_UNREADABLE.because(detail)]
        elif problems := _problems(table, plan, replaced) or _of_later_writes(table, plan):
            yield plan, problems


def unusable_of(table: HudiTable, instants: Collection[str]) -> list[Problem]:
    """Returns the reasons why some of these pending plans cannot be executed."""
    return [problem for plan, problems in unusable(table) if plan.instant in instants for problem in problems]


def _reads_older(plan: Plan, version: int) -> bool:
    """Returns whether a plan reads base files of instants before this one."""
    names = [parse_base_file_name(name) for files in plan_files.read_by(plan.content).values() for _, name in files]
    return any(each and each.instant.isdigit() and int(each.instant) < version for each in names)


def _replaced(table: HudiTable) -> set[Group]:
    return {group for commit in table.commits() for group in commit.write.replaced}


def _of_later_writes(table: HudiTable, plan: Plan) -> list[Problem]:
    """Returns the refusal of a clustering plan whose file groups have rows that it does not read. A writer with
    `SparkAllowUpdateStrategy` writes to them, and in single-writer mode Hudi detects no conflict then. Writers with
    consistent hashing write such rows to the new file groups as well."""
    if plan.action not in CLUSTERING_ACTIONS or not plan.content or table.has_consistent_hashing():
        return []
    read = plan_files.read_by(plan.content)
    found = {
        group for commit in table.commits() if commit.write.instant > plan.instant for group in commit.write.written
    }
    for item in table.file_slices({partition for partition, _ in read}):
        files = {(item.partition, name) for name in (item.base_name, *item.log_files) if name}
        if not files <= read.get(item.key, files):
            found.add(item.key)
    return plan_files.overtaken(plan.instant, read, found)


def _problems(table: HudiTable, plan: Plan, replaced: Collection[Group] = ()) -> list[Problem]:
    """Returns the reasons against a plan. `replaced` are the file groups that clusterings must not touch any more."""
    try:
        check_paths(table, plan)
    except PlanOfAnotherPathError as error:
        return [error.problem()]
    groups = plan_files.read_by(plan.content)
    files = [file for each in groups.values() for file in each]
    problems = plan_files.overtaken(plan.instant, groups, replaced) if plan.action in CLUSTERING_ACTIONS else []
    return problems or plan_files.files_gone(plan.instant, files, _existing(table, files))


def check_cleans(table: HudiTable, new: CleanPlan | None = None) -> None:
    """Raises RefusedError if a pending clean, or the `new` one, deletes files that are needed.

    The needed files are those of the latest slices, of pending compactions and clusterings, and of savepoints.
    """
    cleans = {f"clean {plan.instant}": plan for plan in pending_plans(table, frozenset({"clean"}))}
    for plan in cleans.values():
        check_paths(table, plan)
    deleted = {where: plan_files.deleted_by(plan.content) | _dropped(table, plan) for where, plan in cleans.items()}
    latest = _latest(table, {partition for files in deleted.values() for partition, _ in files})
    if new:
        deleted["the new clean"] = frozenset(
            (partition, path.rpartition("/")[2]) for partition, paths in new.files.items() for path in paths
        )
        latest |= new.latest
    if not any(deleted.values()):
        return
    planned = {
        plan.instant: {file for files in plan_files.read_by(plan.content).values() for file in files}
        for plan in pending_plans(table, COMPACTION_ACTIONS | CLUSTERING_ACTIONS)
    }
    saved = {
        each.instant: {(partition, name) for partition, names in each.files.items() for name in names}
        for each in savepoints_of(table)
    }
    problems: list[Problem] = []
    for where, files in deleted.items():
        problems += plan_files.deletes_needed(where, files, planned=planned, saved=saved)
        problems += plan_files.deletes_latest(where, files, latest)
    refuse(problems)


def _latest(table: HudiTable, partitions: set[str]) -> set[File]:
    """Returns the files of the latest slices in these partitions."""
    found = set()
    for item in table.file_slices(partitions) if partitions else ():
        names = [*item.log_files, *([item.base_file] if item.base_file else [])]
        found |= {(item.partition, name.rpartition("/")[2]) for name in names}
    return found


def dropped_by_pending_cleans(table: HudiTable) -> frozenset[str]:
    """Returns the partitions whose folders pending cleans delete, with all files in them."""
    cleans = pending_plans(table, frozenset({"clean"}))
    return frozenset(partition for plan in cleans for partition in plan_files.partitions_dropped_by(plan.content))


def _dropped(table: HudiTable, clean: Plan) -> frozenset[File]:
    partitions = plan_files.partitions_dropped_by(clean.content)
    return frozenset((partition, name) for partition in partitions for name in table.files_in(partition))


def _existing(table: HudiTable, files: Iterable[File]) -> set[File]:
    """Returns the files in the partitions of `files`."""
    partitions = sorted({partition for partition, _ in files})
    return {(partition, name) for partition in partitions for name in table.files_in(partition)}
