"""Tests that a result of a computation about times stays the same until the moment that the computation has noted."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from service.health.problems import of_table
from service.health.validity import NEVER, TrackedTime
from service.model.formatting import duration, steady_for
from tests.unit.control_plane.snapshots import NOW, ago
from tests.unit.control_plane.table_facts import everything_wrong

if TYPE_CHECKING:
    from service.health.problem import HealthProblem

MINUTE = timedelta(minutes=1)


def without_seconds(problem: HealthProblem) -> HealthProblem:
    """Leaves out figures in seconds, which change all the time; the texts show only the largest unit of a duration."""
    return replace(problem, evidence={k: v for k, v in problem.evidence.items() if not k.endswith("_seconds")})


@pytest.mark.parametrize("seconds", [-3, 0, 0.5, 59, 60, 61, 119, 120, 3599, 3600, 7199, 7200, 86_399, 86_400, 172_800])
def test_a_duration_has_the_same_text_until_the_computed_moment_of_change(seconds: float) -> None:
    steady = steady_for(seconds)
    assert steady > 0
    assert duration(seconds + steady - 0.001) == duration(seconds)


def test_a_comparison_notes_when_its_outcome_changes() -> None:
    present = TrackedTime.of(NOW)
    assert present - ago(minutes=10) < timedelta(hours=1)
    assert present.valid_until == NOW + 50 * MINUTE
    assert present - 10 * MINUTE < NOW - 9 * MINUTE
    assert present.valid_until == NOW + MINUTE
    present.start()
    assert present.valid_until == NEVER
    assert present - ago(hours=3) >= timedelta(hours=3)
    assert present.valid_until - NOW < timedelta(seconds=1)
    present.start()
    assert present - ago(hours=5) > timedelta(hours=3)
    assert present.valid_until == NEVER
    assert present < NOW + MINUTE
    assert present.valid_until == NOW + MINUTE


@pytest.mark.parametrize("place", range(len(everything_wrong().tables)))
def test_the_problems_of_a_table_stay_the_same_until_the_noted_moment(place: int) -> None:
    chance = random.Random(place)
    facts, now = everything_wrong().tables[place], NOW
    for _ in range(60):
        present = TrackedTime.of(now)
        found = [without_seconds(each) for each in of_table(facts, present, set()).problems]
        assert found == [without_seconds(each) for each in of_table(facts, now, set()).problems]
        until = min(present.valid_until, now + timedelta(days=9))
        for later in (now + (until - now) * chance.random() * 0.99, until - timedelta(microseconds=1)):
            assert [without_seconds(each) for each in of_table(facts, later, set()).problems] == found
        now = until + timedelta(seconds=chance.choice([0, 0, 1, 100, 10_000]))
