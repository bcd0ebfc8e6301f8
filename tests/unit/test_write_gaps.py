from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from jobs.format.instants import wall_clock
from jobs.protocol.writers import NEVER, quiet_seconds, seconds_until_next_write

START = datetime(2026, 11, 21, 12, 0, 0)


def writes(*spans: tuple[float, float]) -> list[tuple[datetime, datetime]]:
    return [(START + timedelta(seconds=begin), START + timedelta(seconds=end)) for begin, end in spans]


@pytest.mark.parametrize(
    ("history", "now", "expected"),
    [
        pytest.param([], 0, NEVER, id="nobody ever wrote"),
        pytest.param([(0, 5)], 6, NEVER, id="one write has no rhythm"),
        pytest.param([(0, 5), (15, 20)], 21, 9.0, id="the gap of ten seconds has just begun"),
        pytest.param([(0, 5), (15, 20)], 29, 1.0, id="the gap is nearly over"),
        pytest.param([(0, 5), (15, 20)], 31, 0.0, id="the next write is overdue"),
        pytest.param([(0, 5), (15, 20)], 41, NEVER, id="the writer has stopped"),
        pytest.param([(0, 5), (5.5, 9), (9.6, 13)], 13.1, 0.4, id="back to back"),
        pytest.param([(0, 9), (3, 12), (6, 15)], 15.1, 0.0, id="overlapping writers leave no gap"),
        pytest.param([(0, 5), (25, 30), (40, 45)], 46, 9.0, id="the shortest gap counts"),
        pytest.param([(0, 5), (15, 20)], 20 + 601, NEVER, id="what was long ago does not count"),
        pytest.param([(0, 5), (15, 20)], 19, 10.0, id="a clock that lags behind the writer's"),
    ],
)
def test_seconds_until_the_next_write_are_estimated(
    history: list[tuple[float, float]], now: float, expected: float
) -> None:
    found = seconds_until_next_write(writes(*history), START + timedelta(seconds=now))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("now", "expected"), [(31, 11.0), (19, 0.0)], ids=["after it", "by a clock that lags"])
def test_seconds_since_the_last_write_are_measured(now: float, expected: float) -> None:
    assert quiet_seconds(writes((15, 20), (0, 5)), START + timedelta(seconds=now)) == expected
    assert quiet_seconds([], START) == NEVER


def test_instants_are_parsed_with_and_without_milliseconds() -> None:
    assert wall_clock("20261121093158911") == datetime(2026, 11, 21, 9, 31, 58, 911_000)
    assert wall_clock("20261121093158") == datetime(2026, 11, 21, 9, 31, 58)
