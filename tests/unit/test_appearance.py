"""The order in which a timeline's files appeared shows which clock is wrong, unless the table was copied."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from jobs.format import appearance
from jobs.format.appearance import appearances, inversions
from jobs.format.instants import instant_of

BEGIN = datetime(2026, 1, 1, 12)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def milliseconds(at: datetime) -> int:
    return round((at - datetime(1970, 1, 1)) / timedelta(milliseconds=1))


class Timeline:
    """The files of a timeline by name with their times. Each commit takes 1.5 s, and begins 3 s after the previous
    one."""

    def __init__(self, *, version: int = 9) -> None:
        self.version = version
        self.now = BEGIN
        self.files: dict[str, int] = {}

    def write(self, requested: datetime, completed: datetime, offset: timedelta = 0 * SECOND) -> str:
        instant = instant_of(requested + offset)
        self.files[f"{instant}.commit.requested"] = milliseconds(requested) + 5
        self.files[f"{instant}.inflight"] = milliseconds(requested) + 90
        ends = f"_{instant_of(completed + offset)}" if self.version >= 8 else ""
        self.files[f"{instant}{ends}.commit"] = milliseconds(completed) + 20
        return instant

    def commit(self, offset: timedelta = 0 * SECOND, *, seconds: float = 1.5) -> str:
        self.now += 3 * SECOND
        return self.write(self.now, self.now + timedelta(seconds=seconds), offset)

    def late(self) -> set[str]:
        return {each.instant for each in inversions(appearances(self.files))}

    def copied(self, names: list[str], *, each: float) -> Timeline:
        copy = Timeline(version=self.version)
        at = milliseconds(BEGIN + 24 * HOUR)
        copy.files = {name: at + round(number * each * 1000) for number, name in enumerate(names)}
        return copy


def test_the_shortcut_for_ascending_times_has_the_result_of_the_full_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(7)
    timelines = []
    for _ in range(400):
        timeline = Timeline(version=chance.choice([6, 9]))
        for _ in range(chance.randint(2, 9)):
            offset = chance.choice([0, 0, 0, 0, -60, 60, -10]) * SECOND
            timeline.commit(offset, seconds=chance.choice([0.5, 1.5, 10, 30]))
        for name in chance.sample(list(timeline.files), chance.choice([0, 0, 1, 3])):
            timeline.files[name] += chance.randint(-40_000, 40_000)
        timelines.append(timeline)
    found = [timeline.late() for timeline in timelines]
    monkeypatch.setattr(appearance, "_ascend", lambda _seen: False)
    assert found == [timeline.late() for timeline in timelines]
    assert 20 < sum(map(bool, found)) < 380


def test_an_instant_that_appears_later_but_is_requested_earlier_is_found_as_late() -> None:
    timeline = Timeline()
    for _ in range(4):
        timeline.commit()
    ahead = timeline.commit()
    timeline.now += 1 * SECOND
    behind = timeline.commit(-5.5 * SECOND, seconds=5)
    timeline.now += 5 * SECOND
    for _ in range(3):
        timeline.commit()
    timeline.files[f"{ahead}.commit.requested"] += 5598
    assert timeline.late() == {behind}


@pytest.mark.parametrize("version", [6, 9])
def test_writers_of_one_clock_are_in_order(version: int) -> None:
    timeline = Timeline(version=version)
    for number in range(30):
        timeline.commit(seconds=0.8 + number % 3)
        if number % 5 == 0:  # Every fifth commit runs beside a long one, which begins before it and ends much later.
            at = timeline.now
            timeline.write(at + 0.2 * SECOND, at + 14 * SECOND)
    assert timeline.late() == set()


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("offset", [-8 * HOUR, -60 * SECOND, -10 * SECOND])
def test_a_writer_whose_clock_is_behind_is_named(version: int, offset: timedelta) -> None:
    timeline = Timeline(version=version)
    behind = set()
    for _ in range(6):
        timeline.commit()
        timeline.commit()
        behind.add(timeline.commit(offset))
    assert timeline.late() == behind


@pytest.mark.parametrize("version", [6, 9])
def test_after_a_commit_of_a_clock_that_is_ahead_the_others_are_late(version: int) -> None:
    timeline = Timeline(version=version)
    timeline.commit()
    timeline.commit()
    ahead = timeline.commit(10 * 60 * SECOND)
    timeline.commit(10 * 60 * SECOND)
    later = {timeline.commit(), timeline.commit()}
    assert timeline.late() == later - {ahead}


@pytest.mark.parametrize("each", [0.0, 0.002, 0.05, 0.7])
@pytest.mark.parametrize("version", [6, 9])
def test_the_times_of_a_copy_say_nothing(version: int, each: float) -> None:
    timeline = Timeline(version=version)
    for number in range(40):
        timeline.commit(seconds=1 + number % 4)
    names = sorted(timeline.files)
    assert timeline.copied(names, each=each).late() == set()
    assert timeline.copied(names[::-1], each=each).late() == set()
    for seed in range(20):
        random.Random(seed).shuffle(names)
        assert timeline.copied(names, each=each).late() == set(), seed


def test_after_a_copy_new_commits_count() -> None:
    timeline = Timeline()
    for _ in range(20):
        timeline.commit()
    names = sorted(timeline.files)
    random.Random(1).shuffle(names)
    copy = timeline.copied(names, each=0.05)
    copy.now = BEGIN + 25 * HOUR
    for _ in range(8):
        copy.commit()
    assert copy.late() == set()
    behind = {copy.commit(-HOUR), copy.commit(-HOUR)}
    assert copy.late() == behind


def test_storages_with_times_in_whole_seconds_are_understood() -> None:
    timeline = Timeline()
    for _ in range(10):
        timeline.commit()
    behind = {timeline.commit(-60 * SECOND), timeline.commit(-60 * SECOND)}
    timeline.files = {name: at // 1000 * 1000 for name, at in timeline.files.items()}
    assert timeline.late() == behind
