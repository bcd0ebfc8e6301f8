"""The state that a running job shares with its worker: its progress, and the reason for which it must end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobs.contract import WAITS_FOR
from jobs.errors import JobError, LeaseLostError
from jobs.tracing import Steps

logger = logging.getLogger(__name__)


class JobContext:
    """One running job: its thread writes the progress, and the thread that keeps the lease writes the reason to end.

    `step`, `instant` and `checkpoint` raise `CancelledError`, `TimedOutError` or `LeaseLostError` when the attempt must
    end, so a job calls none of them where it must not be interrupted. `name` is the name of the attempt in the log;
    `on_instant` runs for each new instant and returns when the service has stored it.
    """

    def __init__(self, name: str = "job", *, on_instant: Callable[[], None] = lambda: None) -> None:
        self._name = name
        self._on_instant = on_instant
        self._count_bytes: Callable[[], int] = lambda: 0
        self.current_step = ""
        self.waits_for = ""
        self.bytes_total = 0
        self.instants: list[str] = []
        self.left_behind: list[str] = []
        self.must_end: JobError | None = None
        self.is_undoing = False
        self.steps = Steps()

    # -- for the job

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        """Begins a step of the protocol, such as `planning`; the step will read `bytes_total` bytes of input.

        If the same step begins again, as at each check of a wait, its time is not reset."""
        self.checkpoint()
        if name == self.current_step and not bytes_total:
            return
        logger.info("%s: %s", self._name, name)
        self.steps.begin(name)
        self.current_step, self.bytes_total, self._count_bytes = name, bytes_total, lambda: 0

    def watch_bytes(self, count: Callable[[], int]) -> None:
        """Registers `count`, which returns the bytes of the step's input read so far."""
        self._count_bytes = count

    def instant(self, instant: str) -> None:
        """Records an instant that the job has put on the timeline; returns when the service has stored it."""
        self.instants.append(instant)
        self._on_instant()
        self.checkpoint()

    def checkpoint(self, waits_for: str = "") -> None:
        """Returns at once while the attempt may go on. `waits_for` is shown beside the step until the next call."""
        if waits_for and not self.waits_for:
            logger.info("%s: %s: waits for %s", self._name, self.current_step, waits_for)
        self.waits_for = waits_for
        if self.must_end is not None:
            raise self.must_end

    def leaves(self, what: str) -> None:
        """Adds a sentence to the job's problem that tells the owner what could not be undone."""
        self.left_behind.append(what)

    @contextmanager
    def undoing(self) -> Iterator[None]:
        """Lets an attempt that was cancelled or timed out run Spark jobs inside the block, to leave nothing behind.

        Raises `LeaseLostError` when another attempt holds the job, because that attempt undoes it as well.
        """
        if isinstance(self.must_end, LeaseLostError):
            raise self.must_end
        self.is_undoing = True
        try:
            yield
        finally:
            self.is_undoing = False

    # -- for the worker

    def shown_step(self) -> str:
        """Returns the step, and if it waits, the reason."""
        return f"{self.current_step}{WAITS_FOR}{self.waits_for}" if self.waits_for else self.current_step

    def bytes_done(self) -> int:
        """Returns the bytes of the step's input read so far."""
        return min(self._count_bytes(), self.bytes_total)

    def end(self, reason: JobError) -> None:
        """Makes the job end. The first reason is kept, unless the lease is lost, which replaces any other reason."""
        is_lost = isinstance(reason, LeaseLostError)
        if self.must_end is None or (is_lost and not isinstance(self.must_end, LeaseLostError)):
            logger.warning("%s ends: %s", self._name, reason.title)
            self.must_end = reason
