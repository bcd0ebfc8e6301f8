"""Tests the turns that threads take to write to SQLite."""

import threading
import time

from service.db.turns import Turns, is_call


class Threads:
    """Threads that take one turn each after the main thread gives up the lock; `order` has their names in the order of
    turns."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.order: list[str] = []
        self._threads: list[threading.Thread] = []

    def ask(self, *names: str) -> None:
        """Starts threads, and waits until each waits for its turn. Threads whose name begins with `call` are calls."""
        for name in names:
            started = threading.Thread(target=self._take, args=(name,))
            started.start()
            self._threads.append(started)
            while self.turns.waiting < len(self._threads):
                time.sleep(0.001)

    def join(self) -> None:
        for each in self._threads:
            each.join(10)

    def _take(self, name: str) -> None:
        is_call.set(name.startswith("call"))
        with self.turns:
            self.order.append(name)


def test_calls_go_before_other_threads_and_each_in_the_order_of_arrival() -> None:
    threads = Threads()
    with threads.turns:
        threads.ask("poll 1", "call 1", "poll 2", "call 2")
    threads.join()
    assert threads.order == ["call 1", "call 2", "poll 1", "poll 2"]


def test_a_flood_of_calls_lets_others_write_now_and_then() -> None:
    threads = Threads()
    with threads.turns:
        threads.ask("poll", *(f"call {number}" for number in range(30)))
    threads.join()
    assert threads.order.index("poll") == 20


def test_a_thread_that_has_its_turn_may_take_it_again() -> None:
    threads = Threads()
    with threads.turns:
        with threads.turns:
            threads.ask("poll")
        assert threads.order == []
    threads.join()
    assert threads.order == ["poll"]
