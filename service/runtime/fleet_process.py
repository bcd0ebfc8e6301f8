"""A separate process for work that covers very many tables: decisions, the search for problems, and the answers that
show all tables.

Python runs one thread of a process at a time. This work takes a quarter of a processor core, and in the same process
every other call would take several times as long.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any, Concatenate, ParamSpec, TypeVar

from jobs import tracing
from jobs.logs import LogFormat, configure, current_format
from service.access.secret_cipher import SecretCipher
from service.api import overview
from service.catalog import table_store
from service.db.engine import open_engine, reading
from service.events.database import Database
from service.health import problem_rounds
from service.health.problem_rounds import Round
from service.health.result_cache import FEW
from service.lake.reader_pool import end_with_parent
from service.metrics.installation import Installation
from service.metrics.monitoring import Monitoring
from service.metrics.table_series import Chosen
from service.model import priority
from service.model.calls import calls
from service.model.errors import FleetUnavailableError, GroundskeeperError
from service.model.garbage import collect_seldom
from service.queue.forecaster import Forecaster
from service.queue.outlook import Goals
from service.runtime.process import SWITCH_SECONDS
from service.runtime.settings import FLEET_CONNECTIONS
from service.scheduling import scheduler
from service.scheduling.scheduler import SchedulerConfig, SchedulerResult

log = logging.getLogger(__name__)

P = ParamSpec("P")
P0 = TypeVar("P0")
T = TypeVar("T")

_CALL_SECONDS = 60.0
# If the process ended just after its start, it is not started again before this time has passed.
_RESTART_SECONDS = 5.0
_THREADS = 16
_BACKGROUND_THREADS = 4

_forks = multiprocessing.get_context("forkserver")


class _ProcessEndedError(Exception):
    """The process ended before it answered."""


@dataclass(frozen=True)
class _Settings:
    """The data from which the process makes an `Installation` like that of the service."""

    database: str = field(repr=False)
    cipher: SecretCipher = field(repr=False)
    goals: Goals
    chosen: Chosen

    @classmethod
    def of(cls, here: Installation) -> _Settings:
        database = here.database
        url = database.engine.url.render_as_string(hide_password=False)
        return cls(url, database.cipher, here.monitoring.forecaster.goals, here.chosen)


class FleetProcess:
    """Calls functions with the `Installation`: in a separate process if there are more than `few` tables, otherwise in
    the calling thread. The process is started at the first call, and again if it has ended. Thread-safe."""

    def __init__(self, here: Installation, *, few: int = FEW) -> None:
        self._here = here
        self._few = few
        self._is_large: bool | None = None
        self._guard = threading.Lock()
        self._child: _Child | None = None
        self._started_at = 0.0
        self._is_closed = False

    def prepare(self) -> None:
        """Starts the process if it is needed, so that the first call need not wait for its start."""
        try:
            if self._grows():
                self._living()
        except GroundskeeperError as error:
            # The first call tries again, and reports the error if it persists.
            log.warning("The process for all tables cannot be started: %s", error)

    def run(self, function: Callable[Concatenate[Installation, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function. The function must be importable, and its arguments picklable. If the process ends
        meanwhile, the function is called once more in a new process.

        Raises a GroundskeeperError that the function raises, FleetUnavailableError, or DatabaseUnavailableError.
        """
        if self._is_large is None:
            self._grows()
        return self._run(_CALL_SECONDS, function, *args, **kwargs)

    def find_problems(self, every: timedelta) -> None:
        """Runs a round of `problem_rounds`. Raises the errors of `run`."""
        self._grows()
        found = self._background(_find_problems, every)
        if found and (found.opened or found.resolved):
            self._here.database.notifier.notify()

    def plan(self, config: SchedulerConfig) -> None:
        """Runs a round of `scheduler`. Raises the errors of `run`."""
        found = self._background(_plan, config)
        if found and found.has_events:
            self._here.database.notifier.notify()

    def close(self) -> None:
        """Ends the process. Calls that wait for it raise FleetUnavailableError."""
        with self._guard:
            self._is_closed = True
            child, self._child = self._child, None
        if child:
            child.end()

    def _grows(self) -> bool:
        """Returns whether the process is needed. If it was needed once, it stays until the service ends."""
        if not self._is_large:
            with reading(self._here.database.engine) as connection:
                self._is_large = table_store.number(connection) > self._few
        return self._is_large

    def _background(self, function: Callable[[Installation, P0], T], argument: P0) -> T | None:
        """Calls a function for which nobody waits. Returns None if the service stops meanwhile."""
        try:
            return self._run(None, function, argument)
        except FleetUnavailableError:
            if self._is_closed:
                return None
            raise

    def _run(
        self,
        seconds: float | None,
        function: Callable[Concatenate[Installation, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        if not self._is_large:
            return function(self._here, *args, **kwargs)
        is_call = seconds is not None
        work = (is_call, self._here.database.clock(), function, args, kwargs)
        try:
            reply = self._living().call(work, seconds)
        except _ProcessEndedError:
            try:
                reply = self._living().call(work, seconds)
            except _ProcessEndedError as error:
                raise FleetUnavailableError("The process that computes the answer ended twice.") from error
        found = pickle.loads(reply)  # noqa: S301 - our own child wrote it
        if isinstance(found, GroundskeeperError):
            raise found
        result: T = found
        return result

    def _living(self) -> _Child:
        with self._guard:
            if self._is_closed:
                raise FleetUnavailableError("The service is about to stop.")
            if self._child is None or self._child.has_ended:
                if self._child is not None and time.monotonic() - self._started_at < _RESTART_SECONDS:
                    raise FleetUnavailableError("The process that computes the answer has just ended.")
                self._started_at = time.monotonic()
                self._child = _Child.start(_Settings.of(self._here), self._here.database.clock())
            return self._child


def _find_problems(installation: Installation, every: timedelta) -> Round:
    database = installation.database
    cache = installation.monitoring.problems
    return problem_rounds.run_once(database.engine, database.notifier, database.clock, every=every, cache=cache)


def _plan(installation: Installation, config: SchedulerConfig) -> SchedulerResult:
    return scheduler.run_once(installation.database, config, installation.monitoring.forecaster)


class _Child:
    """The process, as its parent sees it. A thread receives the replies."""

    def __init__(self, process: ForkServerProcess, connection: Connection[Any, Any]) -> None:
        self._process = process
        self._connection = connection
        self._sending = threading.Lock()
        self._guard = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[bytes]] = {}
        self.has_ended = False
        threading.Thread(target=self._receive, name="fleet replies", daemon=True).start()

    @classmethod
    def start(cls, settings: _Settings, now: datetime) -> _Child:
        ours, theirs = _forks.Pipe()
        level = logging.getLogger().getEffectiveLevel()
        process = _forks.Process(
            target=_serve, args=(theirs, settings, now, level, current_format()), name="fleet", daemon=True
        )
        try:
            process.start()
        except OSError as error:
            raise FleetUnavailableError(f"The process that computes the answer cannot be started: {error}.") from error
        # The parent closes its copy of the child's end, because otherwise it would go on waiting for replies after the
        # child has died.
        theirs.close()
        return cls(process, ours)

    def call(self, work: tuple[Any, ...], seconds: float | None) -> bytes:
        number, reply = next(self._numbers), Future[bytes]()
        message = pickle.dumps((number, *work))
        with self._guard:
            if self.has_ended:
                raise _ProcessEndedError
            self._waiting[number] = reply
        # If the process has ended, the thread that receives replies notices this.
        with contextlib.suppress(OSError), self._sending:
            self._connection.send_bytes(message)
        try:
            return reply.result(seconds)
        except FutureTimeoutError as error:
            raise FleetUnavailableError(f"The answer took longer than {seconds:g} seconds.") from error
        finally:
            with self._guard:
                self._waiting.pop(number, None)

    def end(self) -> None:
        self._process.kill()
        self._process.join(1)

    def _receive(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                number, reply = pickle.loads(self._connection.recv_bytes())  # noqa: S301 - our own child wrote it
                with self._guard:
                    waiting = self._waiting.get(number)
                if waiting is not None:
                    waiting.set_result(reply)
        with self._guard:
            self.has_ended = True
            waiting_for, self._waiting = list(self._waiting.values()), {}
        for each in waiting_for:
            each.set_exception(_ProcessEndedError())
        self._connection.close()


class _FollowingClock:
    """A clock that follows the parent's clock. The parent sends its time with each call."""

    def __init__(self, now: datetime) -> None:
        self.follow(now)

    def __call__(self) -> datetime:
        sent_at, at = self._received
        return sent_at + timedelta(seconds=time.monotonic() - at)

    def follow(self, now: datetime) -> None:
        self._received = now, time.monotonic()


def _serve(
    connection: Connection[Any, Any], settings: _Settings, now: datetime, log_level: int, log_format: LogFormat
) -> None:
    """Answers calls until the service closes the connection. Runs in the child."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure(log_format, log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    collect_seldom()
    clock = _FollowingClock(now)
    tracing.start("groundskeeper", version("groundskeeper"), None, os.environ)
    engine = open_engine(settings.database, connections=FLEET_CONNECTIONS, gives_way=True)
    database = Database(engine, clock, cipher=settings.cipher)
    installation = Installation(database, Monitoring(forecaster=Forecaster(settings.goals)), settings.chosen)
    sending = threading.Lock()

    def answer(number: int, is_call: bool, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        with calls.answering() if is_call else contextlib.nullcontext():
            reply = _reply(partial(function, installation, *args, **kwargs))
        with contextlib.suppress(OSError), sending:
            connection.send_bytes(pickle.dumps((number, reply)))

    threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="call")
    background = ThreadPoolExecutor(_BACKGROUND_THREADS, "background", initializer=priority.give_way)
    threads.submit(overview.prepare, installation)
    begun = set()
    with contextlib.suppress(EOFError, OSError):
        while True:
            number, is_call, sent_at, function, *given = connection.recv()
            clock.follow(sent_at)
            # Calls wait for the results of the first round.
            is_urgent = is_call or function not in begun
            begun.add(function)
            (threads if is_urgent else background).submit(answer, number, is_call, function, *given)
    os._exit(0)


def _reply(work: Callable[[], Any]) -> bytes:
    """Returns the encoded result of the work, or the error that the work raises, so that the parent can read both."""
    try:
        return pickle.dumps(work())
    except GroundskeeperError as error:
        return pickle.dumps(error)
    except Exception as error:
        log.exception("Work that covers all tables failed")
        return pickle.dumps(GroundskeeperError(f"{type(error).__name__}; the log of the service has more."))
