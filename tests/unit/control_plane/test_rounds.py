"""The time after which a background task counts as standing still."""

from __future__ import annotations

from dataclasses import dataclass

from service.model.rounds import Rounds


@dataclass
class Moment:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_task_is_late_after_twice_its_interval_and_a_minute() -> None:
    now = Moment()
    rounds = Rounds(now)
    rounds.expect("plan", 2.0)
    rounds.expect("prune", 600.0)
    now.seconds += 64
    assert rounds.late() == []
    now.seconds += 1
    assert rounds.late() == ["plan (for 65 s)"]
    rounds.ended("plan")
    assert rounds.late() == []


def test_a_task_that_begins_later_is_late_later_the_first_time_only() -> None:
    now = Moment()
    rounds = Rounds(now)
    rounds.expect("recover", 3.0, first_after=100.0)
    now.seconds += 166
    assert rounds.late() == []
    rounds.ended("recover")
    now.seconds += 67
    assert rounds.late() == ["recover (for 67 s)"]


def test_a_task_fails_until_it_succeeds_and_a_run_without_the_database_tells_nothing() -> None:
    rounds = Rounds()
    rounds.expect("plan", 2.0)
    rounds.ended("plan")
    assert rounds.failing() == []
    rounds.ended("plan", fails=True)
    rounds.ended("plan")
    assert rounds.failing() == ["plan"]
    rounds.ended("plan", fails=False)
    assert rounds.failing() == []
