"""Makes Hudi (1.2.0) look at the table's lock once more right before it makes an instant or completes one.

A worker may be suspended in the midst of a call of Hudi's client: while a clean deletes, or between the commits of the
metadata table and of the table. When it goes on, others may have taken its lock and completed the same instant. Hudi
only looks whether the inflight file exists, and would complete the instant once more. All times that Hudi gives to
instants, also in the metadata table, come from the table's clock (`jobs.hudi.instant_generators`). So the clock asks
whether the lock is still ours before it gives a time. The storage (`jobs.hudi.held_storage`) asks before each other
change. The classes that they ask are those of `jobs.hudi.held_locks`. Nothing is asked while the last proof is younger
than `FRESH_SECONDS`, because nobody takes a lock from a client that has been silent for so short a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from jobs.errors import JobError
from jobs.hudi.jvm import translated

FRESH_SECONDS = 2.0
_LONGEST_CALL = 10_000  # milliseconds


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
    ended = threading.Event()
    answering = threading.Thread(target=_answer, args=(held, why_lost, ended), name="lock proof", daemon=True)
    answering.start()
    try:
        yield partial(_judge, held)
    finally:
        ended.set()
        # If the JVM is gone, the thread ends by itself.
        with suppress(JobError, OSError), translated("noting that the table's lock is free"):
            held.end()
        answering.join()


@contextmanager
def set_aside(locks: Any) -> Iterator[None]:
    """Lets the calling thread try to take another lock, whose file it may create, as if it held none. If the block
    fails, the thread goes on under the lock that it held before."""
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


def _answer(held: Any, why_lost: Callable[[], str | None], ended: threading.Event) -> None:
    # Most locks are held for a shorter time. A suspended worker has waited long enough when it goes on.
    if ended.wait(FRESH_SECONDS):
        return
    with suppress(JobError, OSError), translated("proving the table's lock"):
        while not ended.is_set():
            if held.isAsked(_LONGEST_CALL):
                held.answer(why_lost())
