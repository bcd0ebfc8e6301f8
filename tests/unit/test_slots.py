from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from jobs.worker import slots
from jobs.worker.slots import Slots

if TYPE_CHECKING:
    import pytest


def test_a_spare_slot_takes_submitted_jobs_when_all_slots_have_been_busy_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slots, "SPARE_AFTER_SECONDS", 0.2)
    may_begin, may_end, ended = threading.Event(), threading.Event(), threading.Event()
    asked_beside: list[float] = []
    are_done = threading.Barrier(3)

    def take(only_submitted: bool) -> None:
        if only_submitted:
            asked_beside.append(time.monotonic())
            time.sleep(0.01)
            return
        may_begin.wait(60)
        with both.taken(is_submitted=False):
            may_end.wait(60)
        are_done.wait(60)
        ended.wait(60)

    both = Slots(2, 1, take=take, takes_no_more=ended.is_set)
    both.start()
    time.sleep(0.3)
    assert asked_beside == []
    taken = time.monotonic()
    may_begin.set()
    while not asked_beside and time.monotonic() < taken + 10:
        time.sleep(0.01)
    assert asked_beside[0] >= taken + 0.2
    may_end.set()
    are_done.wait(60)
    # The two slots are idle from now on, and so is the spare slot after its last job.
    time.sleep(0.1)
    number = len(asked_beside)
    time.sleep(0.2)
    assert len(asked_beside) == number
    ended.set()
    both.join(10)
    assert not both.is_any_alive()


def test_a_spare_slot_stands_in_for_one_that_has_what_somebody_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "SPARE_AFTER_SECONDS", 0.1)
    submitted_ends, ended = threading.Event(), threading.Event()
    asked: list[bool] = []
    are_submitted = iter([True, False])

    def take(only_submitted: bool) -> None:
        asked.append(only_submitted)
        if only_submitted:
            time.sleep(0.01)
            return
        is_submitted = next(are_submitted)
        with some.taken(is_submitted=is_submitted):
            (submitted_ends if is_submitted else ended).wait(60)

    some = Slots(1, 1, take=take, takes_no_more=ended.is_set)
    some.start()
    until = time.monotonic() + 60
    while len(asked) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert asked == [False, False]
    submitted_ends.set()
    while len(asked) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    # The first thread asks for submitted jobs only, because the second one runs the job of a policy.
    assert asked[2] is True
    ended.set()
    some.join(10)
    assert not some.is_any_alive()
