"""Tests the time after which a background task counts as stuck."""

from __future__ import annotations

from dataclasses import dataclass

from service.model.task_health import TaskHealth


@dataclass
class Moment:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_task_is_late_after_twice_its_interval_and_a_minute() -> None:
    now = Moment()
    tasks = TaskHealth(now)
    tasks.expect("plan", 2.0)
    tasks.expect("prune", 600.0)
    now.seconds += 64
    assert tasks.late() == []
    now.seconds += 1
    assert tasks.late() == ["plan (for 65 s)"]
    tasks.ended("plan")
    assert tasks.late() == []


def test_a_task_that_begins_later_is_late_later_the_first_time_only() -> None:
    now = Moment()
    tasks = TaskHealth(now)
    tasks.expect("recover", 3.0, first_after=100.0)
    now.seconds += 166
    assert tasks.late() == []
    tasks.ended("recover")
    now.seconds += 67
    assert tasks.late() == ["recover (for 67 s)"]


def test_a_task_fails_until_it_succeeds_and_a_run_without_the_database_tells_nothing() -> None:
    tasks = TaskHealth()
    tasks.expect("plan", 2.0)
    tasks.ended("plan")
    assert tasks.failing() == []
    tasks.ended("plan", fails=True)
    tasks.ended("plan")
    assert tasks.failing() == ["plan"]
    tasks.ended("plan", fails=False)
    assert tasks.failing() == []
