"""Tests the order of problems: the most serious first, and among equals the oldest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from service.health import problems
from service.health.problem import About, HealthProblem, ObjectType, ProblemKind, Severity


def problem(random: Random) -> HealthProblem:
    table = f"tbl_{random.randrange(10**9):016x}"
    return HealthProblem(
        kind=random.choice(list(ProblemKind)),
        severity=random.choice(list(Severity)),
        about=About(ObjectType.TABLE, table, table),
        since=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(10)),
        title="",
        detail="",
        consequence="",
        remedy="",
        command="",
    )


@pytest.mark.parametrize(("known", "new"), [(0, 0), (0, 3), (3, 0), (50, 1), (500, 20), (10, 300)])
def test_more_problems_get_the_places_that_sorting_all_would_give_them(known: int, new: int) -> None:
    random = Random(known + new)
    ordered = problems.in_order([problem(random) for _ in range(known)])
    more = [problem(random) for _ in range(new)]
    assert problems.with_more(ordered, more) == problems.in_order([*ordered, *more])
    assert len(ordered) == known
