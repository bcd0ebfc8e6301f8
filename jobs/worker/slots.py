"""The slots of a worker: threads, each of which takes and runs one job after another."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A slot that has been taken for this time counts as busy, so a submitted job need not wait for it.
SPARE_AFTER_SECONDS = 1.0


class Slots:
    """`number` threads that call `take(False)` until `takes_no_more`, and `spare` ones that call `take(True)`.

    A spare slot takes only jobs that a person has submitted, and only when all other slots have been taken for a while.
    So nobody has to wait for long jobs of policies.
    """

    def __init__(
        self,
        number: int,
        spare: int,
        *,
        take: Callable[[bool], object],
        takes_no_more: Callable[[], bool],
    ) -> None:
        self.number = number
        self._take, self._takes_no_more = take, takes_no_more
        self._taken_at: dict[int, float] = {}  # By thread.
        self._threads = [threading.Thread(target=self._serve, name=f"slot {n}", daemon=True) for n in range(number)]
        self._threads += [
            threading.Thread(target=self._serve_beside, name=f"spare slot {n}", daemon=True) for n in range(spare)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def is_any_alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def are_all_alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def join(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Records that the job of the calling slot begins, and that it ends."""
        self._taken_at[threading.get_ident()] = time.monotonic()
        try:
            yield
        finally:
            del self._taken_at[threading.get_ident()]

    def _serve(self) -> None:
        while not self._takes_no_more():
            self._take(False)

    def _serve_beside(self) -> None:
        while not self._takes_no_more():
            if self._are_taken():
                self._take(True)
            else:
                time.sleep(SPARE_AFTER_SECONDS / 4)

    def _are_taken(self) -> bool:
        taken_at = list(self._taken_at.values())
        return len(taken_at) == self.number and max(taken_at) < time.monotonic() - SPARE_AFTER_SECONDS
