from __future__ import annotations

import threading
import time

from service.observation.bounded_pool import BoundedPool


class Hands:
    """Works on names: those that begin with `slow` until they are let go."""

    def __init__(self, size: int, seconds: float = 60.0) -> None:
        self.let_go = threading.Event()
        self.done: list[str] = []
        self.late: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self._guard = threading.Lock()
        self.pool: BoundedPool[str] = BoundedPool(
            self._work,
            key=lambda name: name,
            size=size,
            seconds=seconds,
            on_late=self.late.append,
            on_idle=lambda: None,
        )

    def _work(self, name: str) -> None:
        with self._guard:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        if name.startswith("slow"):
            self.let_go.wait(30)
        with self._guard:
            self.at_once -= 1
            self.done.append(name)


def test_all_is_done_and_never_more_at_once_than_allowed() -> None:
    hands = Hands(3)
    for number in range(50):
        hands.pool.add(str(number))
    assert hands.pool.wait(10)
    assert sorted(hands.done, key=int) == [str(number) for number in range(50)]
    assert hands.most_at_once <= 3
    assert hands.pool.busy == frozenset()


def test_quick_work_is_done_one_after_the_other_and_work_that_waits_at_once() -> None:
    quick, slow = Hands(4), Hands(4)
    for number in range(50):
        quick.pool.add(str(number))
    assert quick.pool.wait(10)
    assert quick.most_at_once == 1
    for number in range(4):
        slow.pool.add(f"slow {number}")
    deadline = time.monotonic() + 10
    while slow.at_once < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    slow.let_go.set()
    assert slow.pool.wait(10)


def test_who_takes_too_long_is_told_once_and_replaced() -> None:
    hands = Hands(1, seconds=0.05)
    for name in ("slow", "quick"):
        hands.pool.add(name)
    time.sleep(0.1)
    for _ in range(3):
        hands.pool.check()
    assert hands.pool.wait(10)
    assert (hands.late, hands.done) == (["slow"], ["quick"])
    assert hands.pool.busy == {"slow"}
    hands.let_go.set()
    deadline = time.monotonic() + 10
    while hands.pool.busy:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    hands.pool.add("again")
    assert hands.pool.wait(10)


def test_those_that_hang_are_not_replaced_without_end() -> None:
    hands = Hands(1, seconds=0.0)
    for number in range(100):
        hands.pool.add(f"slow {number}")
    deadline = time.monotonic() + 20
    while hands.at_once < 65:
        hands.pool.check()
        time.sleep(0.001)
        assert time.monotonic() < deadline
    for _ in range(20):
        hands.pool.check()
        time.sleep(0.001)
    assert hands.at_once == 65
    hands.let_go.set()
    deadline = time.monotonic() + 20
    while hands.pool.busy:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(hands.done) == 100
