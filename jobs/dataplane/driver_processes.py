"""Runs small work in processes beside the driver, because a Spark job costs more than merging a few small files.

A file that crashes Arrow ends only such a process, not the worker with the jobs of its other slots. A server process
that has imported the data plane forks them.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jobs.dataplane.python_worker import MODULES, prepare_process
from jobs.storage.refusal import refusal_in
from jobs.storage_errors import error_of, hudi_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

# Work counts as small up to this many compressed bytes and pieces, which is about two CPU seconds.
MOST_BYTES, MOST_PIECES = 32 * 1024 * 1024, 64

_MOST_PROCESSES = 4
_LOOK_SECONDS = 0.5
_forks = multiprocessing.get_context("forkserver")


class ProcessDiedError(Exception):
    """A process of the pool has died, and the work of all its processes is lost."""


class _Pool:
    """The processes of this worker, shared by its slots. When one of them has died, a new pool replaces all."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._executor: ProcessPoolExecutor | None = None
        self._ours: Connection[Any, Any] | None = None

    def get(self) -> ProcessPoolExecutor:
        with self._guard:
            if self._executor is None:
                _forks.set_forkserver_preload(list(MODULES))
                most = min(os.cpu_count() or 1, _MOST_PROCESSES)
                # Only this process has the other end of the pipe, so the pipe is closed when this process ends in any
                # way.
                child_end, self._ours = _forks.Pipe(duplex=False)
                self._executor = ProcessPoolExecutor(most, mp_context=_forks, initializer=_begin, initargs=(child_end,))
            return self._executor

    def forget(self, broken: ProcessPoolExecutor) -> None:
        with self._guard:
            if self._executor is broken:
                self._executor = None
        broken.shutdown(wait=False)


_pool = _Pool()


def run_beside_driver(
    function: Callable[..., Found],
    pieces: Sequence[tuple[Any, ...]],
    checkpoint: Callable[[], None],
    done: Callable[[int], None] = lambda _: None,
) -> list[Found]:
    """Calls the function for the arguments of each piece, and returns the results in the order of the pieces; `done`
    gets the number of each piece that has ended. The function must be importable, and all that is passed picklable.

    `checkpoint` may end the work by raising. Then, as after any error, the call returns only when no process works on a
    piece any more. Raises ProcessDiedError, StorageRefusedError for an exception of the function that tells of a
    refusal, and HudiError for any other.
    """
    executor = _pool.get()
    try:
        futures = [executor.submit(_answered, function, piece) for piece in pieces]
        for number, future in enumerate(futures):
            future.add_done_callback(partial(_tell, done, number))
        try:
            waiting = set(futures)
            while waiting:
                checkpoint()
                _, waiting = wait(waiting, _LOOK_SECONDS, FIRST_COMPLETED)
        finally:
            for future in futures:
                future.cancel()
            wait(futures)
        answers = [future.result() for future in futures]
    except BrokenProcessPool as error:
        _pool.forget(executor)
        raise ProcessDiedError from error
    for answer in answers:
        if isinstance(answer, _Failure):
            refusal = refusal_in(answer.detail)
            raise error_of(refusal, answer.detail) if refusal else hudi_error(answer.detail)
    return [answer for answer in answers if not isinstance(answer, _Failure)]


def _tell(done: Callable[[int], None], number: int, _: object) -> None:
    done(number)


@dataclass(frozen=True)
class _Failure:
    """The exception that a function has raised, as text, because not every exception can be sent between processes."""

    detail: str


def _answered(function: Callable[..., Found], arguments: tuple[Any, ...]) -> Found | _Failure:
    try:
        return function(*arguments)
    except Exception as error:
        logger.exception("a piece of work has failed")
        return _Failure(f"{type(error).__name__}: {str(error) or error.__class__.__name__}"[:300])


def _begin(worker: Connection[Any, Any]) -> None:
    """Makes this process end together with the worker, because nobody would find what it writes later."""

    def watch() -> None:
        with suppress(EOFError, OSError):
            worker.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, name="worker watch", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare_process()
