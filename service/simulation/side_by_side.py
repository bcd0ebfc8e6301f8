"""Calls two functions at the same time, on two processor cores."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from service.lake.reader_pool import end_with_parent

T = TypeVar("T")


def both(first: Callable[[], T], second: Callable[[], T]) -> tuple[T, T]:
    """Returns both results. `first` is called in a forked process, but only if this process has no other threads: the
    forked process would keep the locks of these threads for ever. `first` must not use a connection, and its result
    must be picklable."""
    if threading.active_count() > 1 or len(os.sched_getaffinity(0)) < 2:
        return first(), second()
    source, target = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(source)
        _answer(first, target, parent)
    os.close(target)
    try:
        with os.fdopen(source, "rb") as pipe:
            other = second()
            reply = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    # If the memory is too small for both processes, only the child is killed, and this process computes its result.
    return (pickle.loads(reply) if status == 0 else first()), other  # noqa: S301 - our own child wrote it


def _answer(function: Callable[[], object], target: int, parent: int) -> None:
    """Writes the result, and ends this process without running the code that its parent runs at its end."""
    status = 1
    try:
        end_with_parent()
        # The parent may have ended before.
        if os.getppid() == parent:
            with os.fdopen(target, "wb") as pipe:
                pickle.dump(function(), pipe)
            status = 0
    finally:
        os._exit(status)
