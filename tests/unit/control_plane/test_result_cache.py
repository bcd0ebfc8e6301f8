"""Tests that a slow value is computed again before the last one is too old."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from service.health import result_cache
from service.health.result_cache import MOST_AGE, ResultCache

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class _Time:
    """The clock and the monotonic time, which pass only as the test says."""

    def __init__(self) -> None:
        self.passed = 1000.0

    def monotonic(self) -> float:
        return self.passed

    def clock(self) -> datetime:
        return BEGIN + timedelta(seconds=self.passed)


class _Timer:
    """Runs the function at once, in the thread of the caller."""

    def __init__(self, _seconds: float, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
        self.name, self.daemon = "", True
        self._function, self._arguments = function, arguments

    def start(self) -> None:
        self._function(*self._arguments)


@pytest.mark.parametrize("took", [0.5, 3.0, 8.0, 15.0])
def test_no_caller_waits_for_a_value_that_takes_long(took: float, monkeypatch: pytest.MonkeyPatch) -> None:
    time, engine = _Time(), sa.create_engine("sqlite://")
    waited: list[float] = []

    def compute(_engine: sa.Engine, now: datetime) -> datetime:
        time.passed += took
        return now

    monkeypatch.setattr(result_cache, "time", time)
    monkeypatch.setattr(result_cache, "threading", SimpleNamespace(Timer=_Timer, Lock=threading.Lock))
    value = ResultCache("value", compute, tables=lambda _: 19_500)
    first = value.get(engine, time.clock)
    computed = {first}
    for _ in range(600):
        time.passed += 1
        before = time.passed
        last = value.get(engine, time.clock)
        assert time.clock() - last <= MOST_AGE + timedelta(seconds=took)
        if last in computed:
            continue
        computed.add(last)
        # A call computes the value itself only if the last one is too old.
        if time.passed > before:
            waited.append(before)
    assert waited == []
    # The values are renewed, but not all the time.
    assert 3 < len(computed) < 600 / took


def test_a_value_is_computed_in_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    time, engine = _Time(), sa.create_engine("sqlite://")
    computed = 0

    def compute(_engine: sa.Engine, now: datetime) -> datetime:
        nonlocal computed
        computed += 1
        time.passed += 0.2
        return now

    monkeypatch.setattr(result_cache, "time", time)
    monkeypatch.setattr(result_cache, "threading", SimpleNamespace(Timer=_Timer, Lock=threading.Lock))
    value = ResultCache("value", compute, tables=lambda _: 19_500, share=0.01)
    for _ in range(600):
        time.passed += 1
        value.get(engine, time.clock)
    assert 25 < computed < 32
