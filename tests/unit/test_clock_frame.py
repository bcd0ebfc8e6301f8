"""Tests how the files of a timeline determine the clock of a table's instants."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.format.clock_frame import ClockFrame, Stamped, appeared_before, frame_of, latest_of
from jobs.format.instants import instant_of

START = datetime(2026, 11, 25, 12)
HOURS, MINUTES, SECONDS = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def commit(
    begun: datetime, offset: timedelta, *, took: float = 8.0, late: float = 0.2, version: int = 9
) -> list[Stamped]:
    """Returns the files of a write that began at this time in UTC, by a clock that is `offset` from UTC."""
    ended, delay = begun + took * SECONDS, late * SECONDS
    requested, completed = instant_of(begun + offset), instant_of(ended + offset)
    name = f"{requested}_{completed}" if version >= 8 else requested
    return [
        Stamped(f"{requested}.deltacommit.requested", begun + delay),
        Stamped(f"{requested}.deltacommit.inflight", begun + SECONDS + delay),
        Stamped(f"{name}.deltacommit", ended + delay),
    ]


def commits(*offsets: timedelta, version: int = 9, every: timedelta = MINUTES) -> list[Stamped]:
    return [
        file
        for number, offset in enumerate(offsets)
        for file in commit(START + number * every, offset, version=version)
    ]


def frame_of_files(files: list[Stamped], version: int = 9) -> ClockFrame:
    return frame_of(files, version=version, ingestion="deltacommit")


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    ("offset", "zone"),
    [
        (timedelta(), timedelta()),
        (-8 * HOURS, -8 * HOURS),
        (5.5 * HOURS, 5.5 * HOURS),
        (5.75 * HOURS, 5.75 * HOURS),
        (-10 * MINUTES, timedelta()),
        (-8 * HOURS - MINUTES, -8 * HOURS),
        (10 * MINUTES, timedelta()),
    ],
)
def test_the_offset_of_one_clock_is_measured_in_any_zone(version: int, offset: timedelta, zone: timedelta) -> None:
    frame = frame_of_files(commits(offset, offset, offset, version=version), version)

    assert frame.offset is not None
    assert abs(frame.offset - offset) < SECONDS
    assert frame.zone == zone
    assert abs(frame.skew - (offset - zone)) < SECONDS
    assert frame.disagreement is None
    assert frame.samples == 3
    assert frame.behind(START + 3 * MINUTES) == timedelta()


@given(
    offset=st.integers(-14 * 3600, 14 * 3600),
    late=st.lists(st.floats(0.0, 3.0), min_size=2, max_size=20),
)
def test_the_frame_is_never_ahead_of_the_writers_clock(offset: int, late: list[float]) -> None:
    files = [
        file
        for number, seconds in enumerate(late)
        for file in commit(START + number * MINUTES, offset * SECONDS, late=seconds)
    ]
    frame = frame_of_files(files)

    assert frame.offset is not None
    assert frame.slowest is not None
    assert frame.slowest <= frame.offset <= offset * SECONDS
    assert frame.disagreement is None


@pytest.mark.parametrize("version", [6, 9])
def test_commits_of_two_clocks_in_turn_show_that_the_clocks_disagree(version: int) -> None:
    frame = frame_of_files(commits(*[timedelta(), -90 * SECONDS] * 4, version=version), version)

    assert frame.disagreement is not None
    assert abs(frame.disagreement.apart - 90 * SECONDS) < SECONDS
    assert frame.disagreement.since - START < 2 * MINUTES


@pytest.mark.parametrize("version", [6, 9])
def test_a_clock_that_was_set_counts_as_one_clock_with_its_new_time(version: int) -> None:
    forward = frame_of_files(commits(*[-HOURS] * 4, *[timedelta()] * 4, version=version), version)
    assert forward.disagreement is None
    assert forward.offset is not None
    assert abs(forward.offset) < SECONDS
    assert forward.since is not None
    assert forward.since - START >= 4 * MINUTES

    back = frame_of_files(commits(*[timedelta()] * 4, *[-HOURS] * 2, version=version), version)
    assert back.disagreement is None
    # The writer's instants precede those on the timeline until the hour is over.
    now = START + 6 * MINUTES
    assert 50 * MINUTES < back.behind(now) < HOURS
    assert back.behind(now + HOURS) == timedelta()


@pytest.mark.parametrize("version", [6, 9])
def test_a_clock_that_was_set_back_is_known_for_two_days(version: int) -> None:
    forward = commits(*[-HOURS] * 4, *[timedelta()] * 4, version=version)
    assert frame_of_files(forward, version).set_back is None
    slightly = commits(*[timedelta()] * 3, -(MINUTES + 2 * SECONDS), version=version)
    assert frame_of_files(slightly, version).set_back is None

    files = commits(*[timedelta()] * 4, *[-HOURS] * 3, version=version)
    back = frame_of_files(files, version).set_back
    assert back is not None
    assert back.instant == instant_of(START + 4 * MINUTES - HOURS)
    assert back.by == 59 * MINUTES
    assert back.since - START - 4 * MINUTES < SECONDS
    assert back.instants == 3

    healed = [commit(START + hours * HOURS, timedelta(), version=version) for hours in (20, 40, 60)]
    assert frame_of_files([*files, *healed[0], *healed[1]], version).set_back == back
    assert frame_of_files([*files, *chain(*healed)], version).set_back is None


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("seed", range(20))
def test_a_copied_table_shows_no_clock_but_its_last_instant_is_known(version: int, seed: int) -> None:
    chance = random.Random(seed)
    files = commits(*[-8 * HOURS] * 6, version=version, every=chance.choice([10 * SECONDS, HOURS]))
    chance.shuffle(files)
    copied_at = START + 30 * HOURS
    copies = [Stamped(file.name, copied_at + number * timedelta(milliseconds=7)) for number, file in enumerate(files)]
    frame = frame_of_files(copies, version)

    assert frame.disagreement is None
    assert frame.set_back is None
    assert frame.behind(copied_at + SECONDS) == timedelta()
    assert frame.latest is not None
    # The computed frame is never ahead of the writers' clock.
    assert frame.offset is None or frame.offset <= -8 * HOURS

    later = frame_of_files([*copies, *commit(copied_at + HOURS, -8 * HOURS, version=version)], version)
    assert later.offset is not None
    assert abs(later.offset + 8 * HOURS) < SECONDS
    assert later.disagreement is None


def test_the_latest_moment_of_a_metadata_table_is_found_among_its_longer_and_special_instants() -> None:
    of_index, of_compaction = "20260101100000001010.deltacommit", "20260101100000003_20260101100000004.commit"
    names = ["00000000000000010_20260101090000000.deltacommit", of_index, "hoodie.properties", ".x.crc", "history"]
    assert latest_of(names) == datetime(2026, 1, 1, 10, 0, 0, 1000)
    assert latest_of([*names, of_compaction]) == datetime(2026, 1, 1, 10, 0, 0, 4000)
    assert latest_of(["hoodie.properties"]) is None


def test_modification_times_in_whole_seconds_also_show_the_clock() -> None:
    files = [Stamped(file.name, file.written.replace(microsecond=0)) for file in commits(*[5.5 * HOURS] * 4)]
    frame = frame_of_files(files)

    assert frame.offset is not None
    assert frame.slowest is not None
    assert abs(frame.offset - 5.5 * HOURS) <= SECONDS
    assert frame.slowest <= 5.5 * HOURS


def test_a_late_file_makes_no_second_clock() -> None:
    files = [
        *commits(*[timedelta()] * 5),
        *commit(START + 6 * MINUTES, timedelta(), late=9),
        *commit(START + 7 * MINUTES, timedelta()),
    ]
    frame = frame_of_files(files)

    assert frame.disagreement is None
    assert frame.offset is not None
    assert abs(frame.offset) < SECONDS


def test_an_instant_that_appears_later_but_has_an_earlier_time_is_found() -> None:
    ours = START + HOURS
    plan = Stamped(f"{instant_of(ours)}.compaction.requested", ours + 0.2 * SECONDS)
    before, later = commit(ours - MINUTES, timedelta()), commit(ours + MINUTES, timedelta())
    stepped = commit(ours + MINUTES, -10 * MINUTES)

    def earlier_instants(files: list[Stamped]) -> list[str]:
        return appeared_before(files, instant_of(ours), ingestion="deltacommit", tolerance=5 * SECONDS)

    assert earlier_instants([plan, *before, *later]) == []
    assert earlier_instants([plan, *before, *later, *stepped]) == [stepped[0].name, stepped[2].name]
    # A write that was in flight when ours began has an earlier instant than ours. Such an instant is no fault.
    assert earlier_instants([plan, *commit(ours - MINUTES, timedelta(), took=120)]) == []
    # An upgrade of the table writes the files of completed instants anew.
    anew = [Stamped(each.name, ours + MINUTES + number * SECONDS / 50) for number, each in enumerate(before)]
    assert earlier_instants([plan, *anew, *later]) == []
    assert earlier_instants([plan, *anew, *later, *stepped]) == [stepped[0].name, stepped[2].name]


def test_results_say_zone_and_skew() -> None:
    assert frame_of_files(commits(*[-8 * HOURS - MINUTES] * 3)).to_json() == {
        "utc_offset_seconds": -28860.2,
        "zone_seconds": -28800,
        "ahead_seconds": -60.2,
        "since": "2026-11-25T12:00:08Z",
        "samples": 3,
        "disagreement": None,
        "set_back": None,
    }


def test_without_commits_nothing_is_known() -> None:
    assert frame_of_files([]) == ClockFrame()
    assert frame_of_files([]).to_json()["utc_offset_seconds"] is None
    assert (
        frame_of_files(
            [Stamped("20261125120000000.clean.requested", START), Stamped("hoodie.properties", START)]
        ).offset
        is None
    )
