"""The ticks of the service: tasks that run again and again, each in a thread of its own.

While the service is idle, only one thread wakes each second. To wake a thread takes ten times as long as to ask SQLite
whether its tick would find something.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.events.notifier import Notifier
from service.model.errors import DatabaseUnavailableError
from service.model.task_health import TaskHealth

log = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0


@dataclass(frozen=True)
class Tick:
    """A task that runs every `seconds`, first after `first_after` seconds if that is longer.

    The task also runs as soon as `notified` is set; `run_once` clears `notified`. A run with a false result has found
    nothing to do: the next one waits for `idle_seconds`, if given, or until the service's notifier is called. A run for
    which `is_due` is false would find nothing, and is left out.
    """

    name: str
    seconds: float
    run_once: Callable[[], object]
    first_after: float = 0.0
    notified: threading.Event | None = None
    idle_seconds: float = 0.0
    is_due: Callable[[], bool] = lambda: True


@dataclass(eq=False)
class _Running:
    """A tick with the event for which its thread waits. `next_at` is on the monotonic clock."""

    tick: Tick
    wake: threading.Event
    next_at: float
    is_busy: bool = False


class Ticks:
    """The threads of the ticks. A tick that fails is tried again at its next time. `tasks` knows of each tick whether
    it fails and when it last ended."""

    def __init__(self, ticks: Sequence[Tick], notifier: Notifier, tasks: TaskHealth) -> None:
        self._ticks = ticks
        self._notifier = notifier
        self._tasks = tasks
        self._running: list[_Running] = []
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()

    def start(self) -> None:
        now = time.monotonic()
        for tick in self._ticks:
            self._tasks.expect(tick.name, tick.seconds + tick.idle_seconds, first_after=tick.first_after)
            if tick.notified:
                running = _Running(tick, tick.notified, now)
            elif tick.idle_seconds:
                running = _Running(tick, self._notifier.event(), now)
            else:
                running = _Running(tick, threading.Event(), now + max(tick.seconds, tick.first_after))
            self._running.append(running)
            self._start(self._keep, tick.name, running)
        self._start(self._beat, "ticks")

    def end(self, seconds: float) -> None:
        """Starts no more runs, and waits so long for those that have begun."""
        self._ended.set()
        for each in self._running:
            each.wake.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _start(self, target: Callable[..., None], name: str, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _beat(self) -> None:
        """Wakes the threads whose time has come, and whose ticks may find something."""
        every = min([_BEAT_SECONDS, *(_rest(each) for each in self._ticks)])
        while True:
            now = time.monotonic()
            for each in self._running:
                if each.is_busy or now < each.next_at:
                    continue
                each.next_at = now + _rest(each.tick)
                if each.tick.is_due():
                    each.wake.set()
                else:
                    self._tasks.ended(each.tick.name)
            if self._ended.wait(every):
                return

    def _keep(self, running: _Running) -> None:
        """Runs a tick whenever it is woken."""
        tick = running.tick
        while running.wake.wait() and not self._ended.is_set():
            running.is_busy, began = True, time.monotonic()
            if tick.notified is None:
                running.wake.clear()  # before the run, which may not see a later change
            has_failed, found = self._run(tick)
            if tick.idle_seconds or (tick.notified and has_failed):
                self._ended.wait(tick.seconds)
            if tick.idle_seconds and found:
                running.wake.set()
            running.next_at = began + _rest(tick)
            running.is_busy = False

    def _run(self, tick: Tick) -> tuple[bool, bool]:
        """Runs the tick once; returns whether it failed, and whether it found something to do."""
        found: object = None
        fails = False
        try:
            # Whoever calls the notifier does not know of this tick; who wakes the others has asked already.
            found = tick.run_once() if not tick.idle_seconds or tick.is_due() else False
        except DatabaseUnavailableError as error:
            # The database may be available at the next run; meanwhile /readyz reports that it is not.
            log.warning("%s: %s", tick.name, error)
            self._tasks.ended(tick.name)
            return True, False
        except Exception:
            log.exception("%s failed", tick.name)
            fails = True
        self._tasks.ended(tick.name, fails=fails)
        return fails, not fails and (found is None or bool(found))


def _rest(tick: Tick) -> float:
    """Returns the seconds between two runs that find nothing."""
    return tick.idle_seconds or tick.seconds
