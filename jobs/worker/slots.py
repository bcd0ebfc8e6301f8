"""The slots of a worker: threads, each of which takes and runs one job after another."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A slot that has been taken for this time counts as busy, so a submitted job need not wait for it.
SPARE_AFTER_SECONDS = 1.0


class Slots:
    """`number` threads that call `take(False)` until `takes_no_more`, and `spare` ones that call `take(True)`.

    A spare slot takes a job only when all other slots have been taken for a while, and only one that a person has
    submitted. So nobody has to wait for long jobs of policies. While such a job has one of the other slots, the spare
    slot stands in for that slot and takes any job. So policies do not have to wait for long submitted jobs either.
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
        self._taken: dict[int, _Taken] = {}  # By thread.
        self._threads = [threading.Thread(target=self._serve, name=f"slot {n}", daemon=True) for n in range(number)]
        self._spare = [
            threading.Thread(target=self._serve_beside, name=f"spare slot {n}", daemon=True) for n in range(spare)
        ]
        self._threads += self._spare

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
    def taken(self, *, is_submitted: bool) -> Iterator[None]:
        """Records that the job of the calling slot begins, and that it ends."""
        thread = threading.current_thread()
        self._taken[threading.get_ident()] = _Taken(time.monotonic(), is_submitted, thread in self._spare)
        try:
            yield
        finally:
            del self._taken[threading.get_ident()]

    def _serve(self) -> None:
        while not self._takes_no_more():
            self._take(False)

    def _serve_beside(self) -> None:
        while not self._takes_no_more():
            taken = list(self._taken.values())
            since = [each.since for each in taken if not each.is_spare]
            if len(since) == self.number and max(since) < time.monotonic() - SPARE_AFTER_SECONDS:
                own = sum(not each.is_submitted for each in taken)
                self._take(own >= self.number)
            else:
                time.sleep(SPARE_AFTER_SECONDS / 4)


@dataclass(frozen=True)
class _Taken:
    """A job in a slot. If nobody has submitted it, a policy has started it."""

    since: float
    is_submitted: bool
    is_spare: bool
