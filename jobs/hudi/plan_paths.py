"""Checks that the paths in pending plans lie in the table's folder (see `jobs.hudi.boundaries`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.hudi.plans import Plan, pending_plans
from jobs.hudi.table import HudiTable
from jobs.storage.location import is_inside
from jobs.table_errors import PlanOfAnotherPathError

# Parts of plans with free texts of writers, which are not paths.
_FREE = frozenset({"extraMetadata", "strategy"})
# The file whose columns a compaction or clustering reads beside a base file of meta fields alone
# (`HoodieCompactionOperation` and `HoodieSliceInfo`, 1.2.0), and the property with the folder of these files.
_SOURCE, _SOURCES = "bootstrapFilePath", "hoodie.bootstrap.base.path"


def check_plans(table: HudiTable, *actions: str) -> None:
    """Raises PlanOfAnotherPathError if a pending plan of these actions names a path outside of the table.

    Hudi would execute the plan, and delete files outside of the table for a clean or rollback.
    """
    for plan in pending_plans(table, frozenset(actions)):
        check_paths(table, plan)


def check_paths(table: HudiTable, plan: Plan) -> None:
    """Raises PlanOfAnotherPathError if the plan names a path outside of the table, except for one that it reads in the
    folder from which the table was bootstrapped."""
    sources = table.properties.get(_SOURCES)
    outside = [
        text
        for key, text in _texts(plan.content)
        if not is_inside(table.base_path, text) and not (key == _SOURCE and sources and is_inside(sources, text))
    ]
    if outside:
        raise PlanOfAnotherPathError(f"instant {plan.instant} ({plan.action}): {outside[0][:300]}")


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yields all texts, each with the member that has it, and the names of all members."""
    match value:
        case str():
            yield key, value
        case dict():
            for name, each in value.items():
                if name not in _FREE:
                    yield "", name
                    yield from _texts(each, name)
        case list():
            for each in value:
                yield from _texts(each, key)
