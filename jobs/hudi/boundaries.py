"""The boundaries of a table: whatever its own files name must lie in its folder.

Anybody who may write a table may write its metadata, and a worker may have more rights than that writer. Hudi (1.2)
follows every path that it finds there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.hudi.jvm import translated
from jobs.hudi.plans import pending_plans
from jobs.storage.location import is_inside, link_out
from jobs.table_errors import PathOutsideTableError, PlanOfAnotherPathError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobs.hudi.plans import Plan
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
    """Raises PlanOfAnotherPathError if a pending plan of these actions names a path outside of the table.

    Hudi executes pending plans, and deletes the files that a clean or a rollback names by absolute paths.
    """
    for plan in pending_plans(table, frozenset(actions)):
        check_paths(table, plan)


def check_paths(table: HudiTable, plan: Plan) -> None:
    """Raises PlanOfAnotherPathError if the plan names a path outside of the table."""
    outside = [text for text in _texts(plan.content) if not is_inside(table.base_path, text)]
    if outside:
        raise PlanOfAnotherPathError(f"instant {plan.instant} ({plan.action}): {outside[0][:300]}")


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
