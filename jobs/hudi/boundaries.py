"""The boundaries of a table: whatever its own files name must lie in its folder.

Anybody who may write a table may write its metadata, and a worker may have more rights than that writer. Hudi (1.2)
follows every path that it finds there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jobs.errors import JobError, PathOutsideTableError
from jobs.hudi.jvm import translated
from jobs.storage.location import is_inside, link_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobs.hudi.table import HudiTable

# Parts of plans that are no paths: values of a writer's own.
_FREE = frozenset({"extraMetadata", "strategy"})


def inside(base_path: str, path: str, where: str) -> str:
    """Returns the path. Raises PathOutsideTableError if it leads out of the table; `where` says what contains it."""
    if not is_inside(base_path, path):
        raise PathOutsideTableError(f"{where}: {path[:300]}")
    return path


def relative(path: str, where: str) -> str:
    """Returns a path that must be relative to the table. Raises PathOutsideTableError."""
    if path.startswith("/"):
        raise PathOutsideTableError(f"{where}: {path[:300]}")
    return inside("/", path, where)


def check_folders(table: HudiTable) -> None:
    """Raises PathOutsideTableError if a property or a link takes a part of `.hoodie` elsewhere."""
    with translated("reading the table's folders"):
        meta = table.meta
        paths = [meta.getTimelinePath(), meta.getArchivePath(), meta.getIndexDefinitionPath()]
        named = [str(path if isinstance(path, str) else path.toString()) for path in paths]
    for path in named:
        inside(table.base_path, path, "hoodie.properties")
    check_links(table.base_path, [".hoodie"])


def check_links(base_path: str, folders: Iterable[str]) -> None:
    """Raises PathOutsideTableError if one of these folders of a local table, or anything in it, is a link that leads
    out of the table."""
    for folder in folders:
        if link := link_out(base_path, folder):
            raise PathOutsideTableError(f"a link: {link[:300]}")


def check_plans(table: HudiTable, *actions: str) -> None:
    """Raises PathOutsideTableError if a pending plan of these actions names a path outside of the table.

    Hudi executes pending plans, and deletes the files that a clean or a rollback names by absolute paths.
    """
    for pending in _pending(table, actions):
        plan: Any = {}
        instant = str(pending.requestedTime())
        # A plan that cannot be read cannot be executed either.
        with suppress(JobError), translated(f"reading the plan of {instant}", expected=JobError):
            plan = json.loads(_plan(table, pending))
        for text in _texts(plan):
            inside(table.base_path, text, f"the plan of {instant}")


def _pending(table: HudiTable, actions: Iterable[str]) -> list[Any]:
    with translated("reading the timeline"):
        timeline = table.meta.reloadActiveTimeline().filterInflightsAndRequested()
        items = list(table.jvm.items(timeline.getInstantsAsStream()))
        return [item for item in items if str(item.getAction()) in actions]


def _plan(table: HudiTable, pending: Any) -> str:
    """Returns the plan as JSON; empty for a replacecommit without one."""
    hudi, meta = table.jvm.hudi, table.meta
    utils = hudi.common.util
    match str(pending.getAction()):
        case "clean":
            return str(utils.CleanerUtils.getCleanerPlan(meta, pending).toString())
        case "rollback":
            return str(hudi.table.action.rollback.RollbackUtils.getRollbackPlan(meta, pending).toString())
        case "compaction":
            return str(utils.CompactionUtils.getCompactionPlan(meta, str(pending.requestedTime())).toString())
        case _:
            found = utils.ClusteringUtils.getClusteringPlan(meta, pending)
            return str(found.get().getRight().toString()) if found.isPresent() else "{}"


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, each in value.items():
                if key not in _FREE:
                    yield key
                    yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
