"""Child processes that read tables, so that a damaged or malicious table can crash or block a child, but never the
service.

Parsers of untrusted bytes may crash the interpreter (a recursive Avro schema does), loop without releasing the
interpreter's lock, or take all memory. A storage may never answer. A process can be limited and killed; a thread
cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import multiprocessing
import os
import pickle
import resource
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any, ParamSpec, Protocol, TypeVar

from jobs.logs import LogFormat, configure, current_format
from service.model.errors import GroundskeeperError
from service.model.garbage import collect_seldom
from service.model.storage_errors import ReaderCrashedError, ReadersBusyError, ReadTimedOutError, StorageError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_MIB = 1024 * 1024
_MAX_REPLY_BYTES = 256 * _MIB
# A child that has used more memory than this ends after its call.
_MAX_KEPT_BYTES = 512 * _MIB
_START_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>

_forks = multiprocessing.get_context("forkserver")


def preload(*modules: str) -> None:
    """Names the modules that are already imported in each child. A server process forks the children. It starts
    together with this process's first child, and then imports these modules. Without a call of `preload`, the server
    process imports only this module."""
    _forks.set_forkserver_preload([__name__, *modules])


preload()


@dataclass(frozen=True)
class ReaderLimits:
    """The limits of children. `seconds` is the time of one call, `memory_bytes` the writable memory of a child. At most
    `queued` calls wait for a child, each for `seconds` at most. Children with a `niceness` above 0 give way to the
    service."""

    seconds: float = 30.0
    memory_bytes: int = 1024 * _MIB
    queued: int = 64
    niceness: int = 0


class Readers(Protocol):
    """Runs functions that read tables: a `ReaderPool`, or `InProcess`."""

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class InProcess:
    """Runs functions in the calling thread."""

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)


class ReaderPool(AbstractContextManager["ReaderPool"]):
    """Runs functions in at most `size` child processes. A child runs one call at a time, and later calls reuse it.

    Children are forked when they are needed (see `preload`). A child that crashes or exceeds the time limit is killed,
    and the next call gets a new child. Thread-safe.
    """

    def __init__(self, size: int, limits: ReaderLimits | None = None) -> None:
        self._limits = limits or ReaderLimits()
        self._slots = threading.BoundedSemaphore(size)
        self._queue = threading.BoundedSemaphore(size + self._limits.queued)
        self._guard = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._is_closed = False

    def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls `function` in a child. The function must be importable, its arguments and its result picklable.

        If the function raises a GroundskeeperError, this error is raised; if it raises another exception, StorageError
        is raised. Also raises ReadTimedOutError, ReaderCrashedError, and ReadersBusyError if no child is free in time.
        """
        return self._run(self._limits.seconds, function, *args, **kwargs)

    def _run(self, seconds: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._queue.acquire(blocking=False):
            raise ReadersBusyError
        try:
            if not self._slots.acquire(timeout=self._limits.seconds):
                raise ReadersBusyError
            try:
                child = self._take()
                try:
                    reply = child.call((function, args, kwargs), seconds)
                except BaseException:
                    self._drop(child)
                    raise
                self._give_back(child)
            finally:
                self._slots.release()
        finally:
            self._queue.release()
        if isinstance(reply, GroundskeeperError):
            raise reply
        result: T = reply
        return result

    def isolated(self, function: Callable[P, T], seconds: float | None = None) -> Callable[P, T]:
        """Returns a function that runs `function` in a child, as `run` does. The time limit is `seconds` if that is
        less than the pool's limit."""
        return partial(self._run, min(seconds or self._limits.seconds, self._limits.seconds), function)

    def close(self) -> None:
        """Kills all children. Calls that wait for a child raise ReaderCrashedError."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
            for child in self._busy:
                # The thread that waits for the child's reply notices that the child has ended, and closes the
                # connection.
                child.process.kill()
        for child in idle:
            child.kill()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> _Child:
        with self._guard:
            child = self._idle.pop() if self._idle else None
        # The child is started without holding the lock, because a fork may take seconds, and other calls must be able
        # to end meanwhile.
        child = child or _Child.start(self._limits)
        with self._guard:
            if not self._is_closed:
                self._busy.add(child)
                return child
        child.kill()
        raise ReaderCrashedError("The service is about to stop.")

    def _give_back(self, child: _Child) -> None:
        with self._guard:
            self._busy.discard(child)
            if not self._is_closed and not child.is_grown:
                self._idle.append(child)
                return
        child.kill()

    def _drop(self, child: _Child) -> None:
        with self._guard:
            self._busy.discard(child)
        child.kill()


@dataclass(eq=False)
class _Child:
    process: ForkServerProcess
    connection: Connection[Any, Any] = field(repr=False)
    is_grown: bool = False

    @classmethod
    def start(cls, limits: ReaderLimits) -> _Child:
        ours, theirs = _forks.Pipe()
        level = logging.getLogger().getEffectiveLevel()
        process = _forks.Process(
            target=_serve, args=(theirs, limits, level, current_format()), name="reader", daemon=True
        )
        process.start()
        # The parent closes its copy of the child's end, because otherwise it would go on waiting for a reply after the
        # child has died.
        theirs.close()
        child = cls(process, ours)
        # The call's time begins after the fork, because a fork takes seconds on a busy machine.
        try:
            child.receive(_START_SECONDS)
        except BaseException:
            child.kill()
            raise
        return child

    def call(self, work: tuple[Any, ...], seconds: float) -> Any:
        with contextlib.suppress(OSError):  # If the child has ended, the next line notices that.
            self.connection.send(work)
        return self.receive(seconds)

    def receive(self, seconds: float) -> Any:
        try:
            if not self.connection.poll(seconds):
                raise ReadTimedOutError(f"Reading the table took longer than {seconds:g} seconds.")
            message = self.connection.recv_bytes(_MAX_REPLY_BYTES)
            reply, self.is_grown = pickle.loads(message)  # noqa: S301 - our own child wrote it
            return reply
        except (EOFError, OSError) as error:
            self.process.join(1)
            raise ReaderCrashedError(f"The process that read the table ended {_ending(self.process)}.") from error

    def kill(self) -> None:
        self.process.kill()
        self.process.join(1)
        self.connection.close()


def _ending(process: ForkServerProcess) -> str:
    code = process.exitcode
    if code is None or code >= 0:
        return f"with exit code {code}"
    return f"by {signal.Signals(-code).name}"


def _serve(connection: Connection[Any, Any], limits: ReaderLimits, log_level: int, log_format: LogFormat) -> None:
    """Answers calls until the service closes the connection. Runs in the child."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(limits.niceness)
    # The data segment is limited, not the address space, because each thread reserves address space that it never uses.
    resource.setrlimit(resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    configure(log_format, log_level)
    # httpx would log each request to HDFS at the level INFO.
    logging.getLogger("httpx").setLevel(max(log_level, logging.WARNING))
    collect_seldom()
    with contextlib.suppress(EOFError, OSError):
        connection.send_bytes(_reply(None))  # ready
        while True:
            function, args, kwargs = connection.recv()
            connection.send_bytes(_answer(function, args, kwargs))


def _answer(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    try:
        return _reply(function(*args, **kwargs))
    except GroundskeeperError as error:
        return _reply(error)
    except Exception as error:  # A damaged table may cause any exception in a parser.
        log.exception("A table could not be read")
        return _reply(StorageError(f"The table could not be read: {type(error).__name__}: {error}"[:1000]))


def _reply(result: object) -> bytes:
    """Returns the encoded result, and whether the process has grown too much. Memory that reading a large table took is
    released late or never."""
    is_grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > _MAX_KEPT_BYTES
    return pickle.dumps((result, is_grown))


def end_with_parent() -> None:
    """Lets the kernel kill this process when the fork server ends, which ends together with the service. A child that
    waits for a storage would not notice this end."""
    with contextlib.suppress(OSError, AttributeError):  # The call exists only on Linux.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
