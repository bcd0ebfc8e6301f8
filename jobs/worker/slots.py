"""The slots of a worker: threads, each of which takes and runs one job after another."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# A slot that has been taken for longer counts as busy, so submitted jobs do not wait for it.
SPARE_AFTER_SECONDS = 1.0


class Slots:
    """`number` and `spare` threads that call `take` until `takes_no_more`.

    At most `number` of them run or ask for jobs of policies. When each of these has had its job for a while, another
    one calls `take(True)`, which takes only jobs that a person has submitted. So a submitted job does not wait for long
    jobs of policies, and jobs of policies do not wait for long submitted jobs.
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
        self._guard = threading.Condition()
        self._asking: set[int] = set()  # Ids of the threads that ask for any job.
        self._taken: dict[int, _Taken] = {}  # The job of each thread, by the thread's id.
        self._has_worked = False
        names = [*(f"slot {n}" for n in range(number)), *(f"spare slot {n}" for n in range(spare))]
        self._threads = [threading.Thread(target=self._serve, name=name, daemon=True) for name in names]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def is_any_alive(self) -> bool:
        """Returns whether a thread has not ended. Threads that wait for a change see whether they shall take no
        more."""
        self._wake()
        return any(thread.is_alive() for thread in self._threads)

    def are_all_alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def join(self, seconds: float) -> None:
        self._wake()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    @contextlib.contextmanager
    def taken(self, *, is_submitted: bool) -> Iterator[None]:
        """Records that the job of the calling slot begins, and that it ends. After that `is_asking` tells whether the
        slot may ask for another job of any origin at once."""
        thread = threading.get_ident()
        with self._guard:
            asked = thread in self._asking
            self._asking.discard(thread)
            self._has_worked = True
            self._taken[thread] = _Taken(time.monotonic(), is_submitted)
            self._guard.notify_all()
        try:
            yield
        finally:
            with self._guard:
                del self._taken[thread]
                if asked and len(self._counted()) + len(self._asking) < self.number:
                    self._asking.add(thread)
                self._guard.notify_all()

    def have_worked(self) -> bool:
        """Returns whether a slot has had a job since the last call."""
        with self._guard:
            worked, self._has_worked = self._has_worked, bool(self._taken)
            return worked

    def is_asking(self) -> bool:
        """Returns whether the calling slot is one of those that ask for any job."""
        with self._guard:
            return threading.get_ident() in self._asking

    def _wake(self) -> None:
        with self._guard:
            self._guard.notify_all()

    def _serve(self) -> None:
        thread = threading.get_ident()
        while not self._takes_no_more():
            only_submitted = self._may_ask(thread)
            if only_submitted is None:
                continue
            try:
                self._take(only_submitted)
            finally:
                with self._guard:
                    self._asking.discard(thread)
                    self._guard.notify_all()

    def _may_ask(self, thread: int) -> bool | None:
        """Returns whether the thread may ask only for submitted jobs. None, after a wait for a change, if it may ask
        for none."""
        with self._guard:
            counted = self._counted()
            if len(counted) + len(self._asking) < self.number:
                self._asking.add(thread)
                return False
            # A thread that asks for any job gets a submitted one first.
            now = time.monotonic()
            if not self._asking and max(counted) <= now - SPARE_AFTER_SECONDS:
                return True
            # Besides a change, only the age of jobs lets the thread ask.
            ages = (each.since + SPARE_AFTER_SECONDS - now for each in self._taken.values())
            self._guard.wait(min((each for each in ages if each > 0), default=None))
            return None

    def _counted(self) -> list[float]:
        """Returns the start times of the jobs that count: those of policies, and submitted ones for a short time."""
        since = time.monotonic() - SPARE_AFTER_SECONDS
        return [each.since for each in self._taken.values() if not each.is_submitted or each.since > since]


@dataclass(frozen=True)
class _Taken:
    """A job in a slot. If nobody has submitted it, a policy has started it."""

    since: float
    is_submitted: bool
