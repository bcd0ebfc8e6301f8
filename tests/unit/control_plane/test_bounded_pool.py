from __future__ import annotations

import threading
import time

from service.model.bounded_pool import BoundedPool


class NamePool:
    """Processes names. Names that begin with `slow` wait for the test's signal."""

    def __init__(self, size: int) -> None:
        self.let_go = threading.Event()
        self.done: list[str] = []
        self.idle = 0
        self.at_once = 0
        self.most_at_once = 0
        self._guard = threading.Lock()
        self.pool: BoundedPool[str] = BoundedPool(
            self._work, keys=lambda name: (name,), size=size, on_idle=self._on_idle
        )

    def _on_idle(self) -> None:
        self.idle += 1

    def _work(self, name: str) -> None:
        with self._guard:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        if name.startswith("slow"):
            self.let_go.wait(30)
        with self._guard:
            self.at_once -= 1
            self.done.append(name)


def test_all_items_are_processed_and_never_more_at_once_than_allowed() -> None:
    names = NamePool(3)
    for number in range(50):
        names.pool.add(str(number))
    assert names.pool.wait(60)
    assert sorted(names.done, key=int) == [str(number) for number in range(50)]
    assert names.most_at_once <= 3
    assert names.pool.busy == frozenset()
    assert names.idle >= 1


def test_quick_work_is_done_one_after_the_other() -> None:
    names = NamePool(4)
    for number in range(50):
        names.pool.add(str(number))
    assert names.pool.wait(60)
    assert names.most_at_once == 1


def test_a_remaining_part_of_an_item_is_processed_alone_while_its_names_stay_busy() -> None:
    busy: list[frozenset[str]] = []
    done: list[str] = []

    def work(names: str) -> list[str]:
        busy.append(pool.busy)
        if len(names) > 1:
            return list(names[1:])
        done.append(names)
        return []

    pool: BoundedPool[str] = BoundedPool(work, keys=list, size=2)
    pool.add("abc")
    assert pool.wait(60)
    assert sorted(done) == ["b", "c"]
    assert busy[0] == {"a", "b", "c"}
    assert "a" not in busy[1]
    assert {"b", "c"} & busy[1]
    assert pool.busy == frozenset()


def test_blocked_work_starts_at_once_and_reduces_the_free_capacity() -> None:
    names = NamePool(4)
    before = names.pool.capacity
    for number in range(4):
        names.pool.add(f"slow {number}")
    deadline = time.monotonic() + 60
    while names.at_once < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert names.pool.busy == {f"slow {number}" for number in range(4)}
    assert names.pool.capacity == before - 4
    assert not names.pool.wait(0.01)
    names.let_go.set()
    assert names.pool.wait(60)
    assert names.pool.capacity == before
