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


def check_plans(table: HudiTable, *actions: str) -> None:
    """Raises PlanOfAnotherPathError if a pending plan of these actions names a path outside of the table.

    Hudi would execute the plan, and delete files outside of the table for a clean or rollback.
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
