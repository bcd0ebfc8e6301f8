"""The interface through which a running job reports progress and learns that it must stop."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class JobContext(Protocol):
    """The worker's side of a running job.

    `step`, `instant` and `checkpoint` raise `CancelledError`, `TimedOutError` or `LeaseLostError` when the attempt must
    end, so a job calls none of them where it must not be interrupted.
    """

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        """Begins a step of the protocol, such as `planning`; the step will read `bytes_total` bytes of input."""

    def watch_bytes(self, count: Callable[[], int]) -> None:
        """Registers `count`, which returns the bytes of the step's input read so far."""

    def instant(self, instant: str) -> None:
        """Records an instant that the job has put on the timeline; returns when the service has stored it."""

    def checkpoint(self) -> None:
        """Returns at once while the attempt may go on."""

    def undoing(self) -> AbstractContextManager[None]:
        """Lets an attempt that was cancelled or timed out run Spark jobs inside the block, to leave nothing behind.

        Raises `LeaseLostError` when another attempt holds the job, because that attempt undoes it as well.
        """


class SilentContext:
    """Reports to no service and never stops the job; for use without a service."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.instants: list[str] = []

    def step(self, name: str, *, bytes_total: int = 0) -> None:  # noqa: ARG002 - the protocol has it
        self.steps.append(name)

    def watch_bytes(self, count: Callable[[], int]) -> None:
        pass

    def instant(self, instant: str) -> None:
        self.instants.append(instant)

    def checkpoint(self) -> None:
        pass

    def undoing(self) -> AbstractContextManager[None]:
        return nullcontext()
