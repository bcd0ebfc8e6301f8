"""Tests that long work pauses while calls are answered, and that a call never waits for itself."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from service.model.calls import Calls


def test_work_waits_between_its_items_until_calls_are_answered() -> None:
    calls, done = Calls(), list[int]()
    with ThreadPoolExecutor() as threads:
        with calls.answering():
            work = threads.submit(lambda: done.extend(calls.giving_way(range(250))))
            time.sleep(0.05)
            assert not work.done()
        work.result(1)
    assert done == [*range(250)]


def test_work_waits_for_a_limited_time_in_all() -> None:
    calls, end = Calls(), threading.Event()

    def answer() -> None:
        with calls.answering():
            end.wait(10)

    with ThreadPoolExecutor() as threads:
        threads.submit(answer)
        time.sleep(0.05)
        began = time.monotonic()
        assert len(list(calls.giving_way(range(10_000)))) == 10_000
        assert 0.4 < time.monotonic() - began < 3
        end.set()


def test_a_call_does_not_wait_for_itself() -> None:
    calls = Calls()
    with calls.answering():
        began = time.monotonic()
        calls.give_way(10)
        assert len(list(calls.giving_way(range(1000)))) == 1000
        assert time.monotonic() - began < 1
