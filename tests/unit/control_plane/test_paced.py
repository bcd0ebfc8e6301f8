"""Tests a value that is computed once and returned to all callers for a while."""

from __future__ import annotations

import threading
import time
from itertools import count

import pytest

from service.model.paced import Paced


@pytest.mark.parametrize("beyond", [0.0, 60.0])
def test_a_recent_value_serves_while_the_next_one_is_computed(beyond: float) -> None:
    numbers, may_go_on = count(), threading.Event()
    may_go_on.set()

    def make() -> int:
        may_go_on.wait(10)
        return next(numbers)

    shared = Paced(make, "test", rest=lambda _: 0.0, beyond=beyond)
    assert shared.latest().result() == 0
    may_go_on.clear()
    during = shared.latest()
    assert during.done() is bool(beyond)
    may_go_on.set()
    assert during.result() == (0 if beyond else 1)
    until = time.monotonic() + 10
    while shared.latest().result() == 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert shared.latest().result() > 0
