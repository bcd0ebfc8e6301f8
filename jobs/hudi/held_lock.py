"""Makes Hudi (1.2.0) check the table's lock once more right before it creates or completes an instant.

A worker may be suspended in the midst of a call of Hudi's client: while a clean deletes, or between the commits of the
metadata table and of the table. When it goes on, others may have taken its lock and completed the same instant. Hudi
only checks that the inflight file exists, and would complete the instant once more. Hudi takes the times of all
instants, also those of the metadata table, from the table's clock (`jobs.hudi.instant_generators`), so the clock checks
the lock. The storage checks it before each other change (`jobs.hudi.held_storage`), and so does the file system of
Parquet files (`jobs.hudi.held_files`). The classes for these checks are in `jobs.hudi.held_locks`. The lock is not
checked again while the last proof is younger than `FRESH_SECONDS`, because no lock is taken from a client that was
silent for so short a time.

Files that take long are written without the lock, for a pending instant. Then the same places check that the instant is
still ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from jobs.errors import JobError
from jobs.hudi.jvm import translated

FRESH_SECONDS = 2.0
AWAY_SECONDS = 30.0
"""Within this time the storage, or a lock's server, restarts, or its cluster elects a new leader."""
PAUSE_SECONDS = 0.5
_LONGEST_CALL = 10_000  # milliseconds
_SETTLED = "Another attempt, or another client, has settled it or has begun it anew."


@contextmanager
def proved_again(
    locks: Any, why_lost: Callable[[], str | None], user: Any = None
) -> Iterator[Callable[[str | None], None]]:
    """Makes the clocks and storages of tables ask `why_lost` before they give a time to a user of the lock, or change a
    file for this user. The user is by default the calling thread. If the answer is not None, Hudi's call fails with a
    `LockLostError` that has it. Call this function when the lock was just taken. `locks` is the JVM's `HeldLocks`.

    Tasks of Spark may go on for longer than the block. They then wait until the yielded function is called. Its
    argument is None if the lock was ours until the end of the block, or else the reason why it was not; in this case
    the tasks change nothing more.
    """
    with translated("noting who holds the table's lock"):
        held = locks.hold(user, int(FRESH_SECONDS * 1000))
    # The lock was just taken, so nobody can take it from us before the first question is answered.
    with _answered(held, why_lost, FRESH_SECONDS):
        yield partial(_judge, held)


@contextmanager
def instant_held(locks: Any, is_ours: Callable[[], bool]) -> Iterator[None]:
    """Makes Spark's tasks of the block, in the driver's JVM, ask `is_ours` before they make, complete or change a file.
    If the answer is False, or the block has ended, they fail with a `CommitLostError`. In a thread that holds the
    table's lock this does nothing, because the tasks then ask for the proof of the lock."""
    with translated("noting who works for an instant"):
        held = locks.holdInstant(int(FRESH_SECONDS * 1000))
    if held is None:
        yield
        return
    with _answered(held, lambda: why_not(is_ours, _SETTLED, AWAY_SECONDS), 0.0):
        yield


def why_not(holds: Callable[[], bool], otherwise: str, seconds: float) -> str | None:
    """Returns None if `holds`, else why it does not count as ours. Tries for this many seconds to find out."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return None if holds() else otherwise
        except JobError as error:
            if time.monotonic() > deadline:
                return f"Nobody knows whether it is still ours: {error.detail}"
        time.sleep(PAUSE_SECONDS)


@contextmanager
def _answered(held: Any, why_lost: Callable[[], str | None], after: float) -> Iterator[None]:
    """Answers the questions of the JVM in another thread, which begins after this many seconds."""
    ended = threading.Event()
    answering = threading.Thread(target=_answer, args=(held, why_lost, ended, after), name="lock proof", daemon=True)
    answering.start()
    try:
        yield
    finally:
        ended.set()
        # If the JVM is gone, the thread ends by itself.
        with suppress(JobError, OSError), translated("noting the end of what was held"):
            held.end()
        answering.join()


@contextmanager
def set_aside(locks: Any) -> Iterator[None]:
    """Lets the calling thread try to take another lock as if it held none, so that it may create the file of that lock.
    If the block fails, the thread goes on under the lock that it held before."""
    with translated("setting a held lock aside"):
        aside = locks.setAside()
    try:
        yield
    except BaseException:
        with suppress(JobError, OSError), translated("going on under the held lock"):
            locks.takeBack(aside)
        raise


def _judge(held: Any, lost: str | None) -> None:
    with suppress(JobError, OSError), translated("noting whether the table's lock was lost"):
        held.judge(lost)


def _answer(held: Any, why_lost: Callable[[], str | None], ended: threading.Event, after: float) -> None:
    # Most locks are held for a shorter time. A suspended worker has waited long enough when it goes on.
    if ended.wait(after):
        return
    with suppress(JobError, OSError), translated("proving the table's lock"):
        while not ended.is_set():
            if held.isAsked(_LONGEST_CALL):
                held.answer(why_lost())
