"""`groundskeeper serve`: the HTTP server, the ticks and the local workers of one process."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import uvicorn

from jobs.logs import print_last_words
from service.model.errors import SettingsError
from service.model.garbage import collect_seldom
from service.model.task_health import TaskHealth
from service.runtime.connections import Connections
from service.runtime.http import AcceptErrors, BoundedHttp, only_probes
from service.runtime.ticks import Ticks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from starlette.types import ASGIApp

    from service.events.notifier import Notifier
    from service.events.replicas import ReplicaNotifications
    from service.runtime.connections import ConnectionLimits
    from service.runtime.dispatch import DispatchThread
    from service.runtime.local_worker import LocalWorkers
    from service.runtime.ticks import Tick

log = logging.getLogger(__name__)

_GRACE_SECONDS = 10
_READ_GRACE_SECONDS = 3.0
# After the server has ended, threads get this much time to end by themselves.
_LEAVE_SECONDS = 2.0
# After the server has ended, running ticks get this much time to end.
_TICK_SECONDS = 10.0
# How long a thread may keep the interpreter's lock while others wait for it. A call passes between threads several
# times; if the time were Python's default of 5 ms, the call would wait so long each time for every thread that polls
# tables.
SWITCH_SECONDS = 0.0005


class Daemon:
    """The service's process. It runs until a signal arrives, or until a thread ends that must not end."""

    def __init__(
        self,
        app: ASGIApp,
        listening: socket.socket,
        *,
        notifier: Notifier,
        ticks: list[Tick],
        workers: LocalWorkers,
        dispatch: DispatchThread,
        replicas: ReplicaNotifications | None = None,
        limits: ConnectionLimits | None = None,
        tasks: TaskHealth | None = None,
        on_end: Callable[[], None] = lambda: None,
        on_ready: Callable[[], None],
    ) -> None:
        self._socket = listening
        self._notifier = notifier
        self._workers = workers
        self._dispatch = dispatch
        self._replicas = replicas
        self._on_ready = on_ready
        self._on_end = on_end
        self._ticks = Ticks(ticks, notifier, tasks or TaskHealth())
        self._died: str | None = None
        self._stopping = threading.Lock()
        self._ended = threading.Event()
        # Without log_config and log_level the server uses the logging of the process.
        config = uvicorn.Config(
            app,
            http=partial(BoundedHttp, connections=Connections(limits), busy=only_probes(app)),  # type: ignore[arg-type]
            ws="none",
            # Headers of proxies are handled in `service.runtime.proxies`, because uvicorn would trust every process of
            # this machine.
            proxy_headers=False,
            log_config=None,
            log_level=None,
            access_log=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            server_header=False,
        )
        self._server = _Server(config, on_started=self._started, on_signal=self.stop)

    def run(self) -> int:
        """Runs the service until its end. Returns the exit code: 0 after a signal, 1 after a failure."""
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()  # `gc.freeze` would keep garbage for ever.
        collect_seldom()
        threading.excepthook = self._thread_died
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._ended.set()
            self._notifier.close()
            self._workers.stop()
            self._on_end()
            self._dispatch.join()
            self._ticks.end(_TICK_SECONDS)
        if self._died:
            print_last_words(self._died)
            return 1
        return 0

    def stop(self) -> None:
        """Stops the local workers and then the server, because workers still have to report. Returns at once."""
        if not self._stopping.acquire(blocking=False):
            return
        threading.Thread(target=self._wind_down, name="wind-down", daemon=True).start()

    def _started(self) -> None:
        self._ticks.start()
        self._dispatch.start()
        if self._replicas:
            self._replicas.start()
        self._workers.start(on_death=self._die)
        self._on_ready()

    def _wind_down(self) -> None:
        try:
            self._notifier.close()
            self._workers.stop()
        finally:
            self._server.end()
            # Requests that still wait for a storage after this time are answered with an error, before the server
            # aborts them.
            self._ended.wait(_READ_GRACE_SECONDS)
            self._on_end()

    def _thread_died(self, died: threading.ExceptHookArgs) -> None:
        name = died.thread.name if died.thread else "a thread"
        log.error("%s died", name, exc_info=died.exc_value)
        self._die(f"{name} died: {died.exc_value}")

    def _die(self, why: str) -> None:
        self._died = self._died or why
        self.stop()


class _Server(uvicorn.Server):
    """uvicorn's server, with a callback that is called once it listens. The daemon controls the order of stopping."""

    def __init__(
        self, config: uvicorn.Config, *, on_started: Callable[[], None], on_signal: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_started = on_started
        self._on_signal = on_signal
        self._signals = 0
        self._is_ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(AcceptErrors().handle)
        await super().startup(sockets=sockets)
        if self.started and not self.should_exit:
            self._on_started()

    async def main_loop(self) -> None:
        """Waits for `end`. The base class checks ten times a second, which takes a third of an idle service's CPU
        time."""
        self._loop = asyncio.get_running_loop()
        if not await self.on_tick(0):
            await self._is_ending.wait()

    def end(self) -> None:
        """Lets the server end its connections and stop. Any thread may call this."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop has ended already.
                self._loop.call_soon_threadsafe(self._is_ending.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        # The base class would raise the signal again at the end. A requested stop is a success, so it is not raised.
        self._signals += 1
        if self._signals == 1:
            self._on_signal()
        else:
            self.force_exit = True
            self.end()


def leave(code: int) -> NoReturn:
    """Ends the process, even if threads of requests still wait for a storage. Python would wait for these for ever,
    because FastAPI runs requests in threads of anyio, which are not daemon threads."""
    end = time.monotonic() + _LEAVE_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(max(0.0, end - time.monotonic()))
    if any(not each.daemon for each in threading.enumerate() if each is not threading.main_thread()):
        log.warning("The service ends while a request is still waiting.")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Raises SettingsError if the address is in use or does not belong to this machine."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # The protocol is named explicitly, because asyncio disables Nagle's algorithm only for sockets that name TCP.
        # Nagle's algorithm would delay the body of each answer by 40 ms, until the caller's kernel acknowledges the
        # head.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.listen(1024)
        except OSError:
            opened.close()
            raise
    except OSError as error:
        raise SettingsError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.", hint="Choose another one with --port."
        ) from error
    return opened


def url_of(listening: socket.socket) -> str:
    """Returns the URL of the socket for processes on this machine."""
    address: tuple[Any, ...] = listening.getsockname()
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0])  # noqa: S104 - compared, not bound to
    return f"http://[{host}]:{address[1]}" if ":" in host else f"http://{host}:{address[1]}"
