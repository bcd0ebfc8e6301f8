"""The ticks of the service: tasks that run again and again.

APScheduler runs the ticks that only depend on the time. Each of the others has a thread, and one further thread wakes
these when there may be something to do. While the service is idle, only that one thread wakes, each second and at a
notification. Asking SQLite whether a tick would find something takes a tenth of the time of waking the tick's thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from service.events.notifier import Notifier
from service.model.errors import DatabaseUnavailableError
from service.model.task_health import TaskHealth

log = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0
# Pause after a notification, so that many notifications at once cause only one check.
_TOGETHER_SECONDS = 0.02
# If the wall clock and the monotonic clock differ by this much more than before, the wall clock was set.
_SET_SECONDS = 1.0


@dataclass(frozen=True)
class Tick:
    """A task that runs every `seconds`, first after `first_after` seconds if that is longer.

    The task also runs as soon as `notified` is set; `run_once` clears `notified`. If a run has a false result, it has
    found nothing to do. If `idle_seconds` is given, the next run then comes after this time, or when the service's
    notifier is called. If `is_due` returns False, a run would find nothing, and is left out.
    """

    name: str
    seconds: float
    run_once: Callable[[], object]
    first_after: float = 0.0
    notified: threading.Event | None = None
    idle_seconds: float = 0.0
    is_due: Callable[[], bool] | None = None

    @property
    def follows_time(self) -> bool:
        """Whether only the time determines when the task runs."""
        return self.is_due is None and self.notified is None and not self.idle_seconds

    def may_find(self) -> bool:
        return self.is_due is None or self.is_due()


@dataclass(eq=False)
class _Running:
    """A tick with the event for which its thread waits. `next_at` is on the monotonic clock."""

    tick: Tick
    wake: threading.Event
    next_at: float
    is_busy: bool = False
    is_asked: bool = False  # Whether there was a notification while it was busy.
    looked_at: float = -math.inf  # When it was last checked whether the tick may find something.


class Ticks:
    """Runs the ticks. A tick that fails is tried again at its next time. `tasks` records for each tick whether it
    fails, and when it last ended."""

    def __init__(self, ticks: Sequence[Tick], notifier: Notifier, tasks: TaskHealth) -> None:
        self._ticks = ticks
        self._tasks = tasks
        self._running: list[_Running] = []
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()
        self._guard = threading.Lock()
        self._notified = notifier.event(self._may_find)
        self._wall_offset = time.time() - time.monotonic()
        self._scheduler = BackgroundScheduler(timezone="UTC")
        for tick in (tick for tick in ticks if tick.follows_time):
            every = _Every(tick.seconds, first_after=tick.first_after)
            self._scheduler.add_job(
                partial(self._run, tick),
                every,
                id=tick.name,
                name=tick.name,
                next_run_time=datetime.now(UTC) + every.most,
                max_instances=1,
                misfire_grace_time=None,
            )

    def start(self) -> None:
        now = time.monotonic()
        for tick in self._ticks:
            self._tasks.expect(tick.name, tick.seconds + tick.idle_seconds, first_after=tick.first_after)
            if tick.follows_time:
                continue
            if tick.notified:
                running = _Running(tick, tick.notified, now)
            elif tick.idle_seconds:
                running = _Running(tick, threading.Event(), now)
            else:
                running = _Running(tick, threading.Event(), now + max(tick.seconds, tick.first_after))
            self._running.append(running)
            self._start(self._keep, tick.name, running)
        self._scheduler.start()
        self._start(self._beat, "ticks")

    def end(self, seconds: float) -> None:
        """Starts no more runs, and waits at most `seconds` for those that have begun."""
        self._ended.set()
        self._notified.set()
        for each in self._running:
            each.wake.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self._scheduler.running:
            self._scheduler.shutdown(wait=time.monotonic() < until)

    def _may_find(self) -> bool:
        """Whether a tick that waits for notifications may find something."""
        return any(tick.idle_seconds and tick.may_find() for tick in self._ticks)

    def _start(self, target: Callable[..., None], name: str, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _beat(self) -> None:
        """Wakes the threads whose time has come, and whose ticks may find something."""
        every = min([_BEAT_SECONDS, *(_rest(each.tick) for each in self._running)])
        following = time.monotonic() + every
        is_notified = False
        while not self._ended.is_set():
            now = time.monotonic()
            soonest = following = following if now < following else now + every
            for each in self._running:
                with self._guard:
                    if is_notified and each.tick.idle_seconds:
                        each.is_asked = each.is_busy
                        each.next_at = min(each.next_at, each.looked_at + each.tick.seconds)
                    is_due = not each.is_busy and now >= each.next_at
                if is_due:
                    self._look(each, now)
                if each.tick.idle_seconds and not each.is_busy:
                    soonest = min(soonest, each.next_at)
            self._keep_near()
            is_notified = self._notified.wait(max(0.0, soonest - time.monotonic()))
            if is_notified and not self._ended.wait(_TOGETHER_SECONDS):
                self._notified.clear()

    def _look(self, running: _Running, now: float) -> None:
        running.looked_at, running.next_at = now, now + _rest(running.tick)
        if running.tick.may_find():
            running.wake.set()
        else:
            self._tasks.ended(running.tick.name)

    def _keep_near(self) -> None:
        """If the wall clock was set, moves the next time of each tick that is too far in the future to one interval
        from now. APScheduler waits for times of that clock, which are far away after it was set back."""
        offset = time.time() - time.monotonic()
        if abs(offset - self._wall_offset) < _SET_SECONDS:
            return
        self._wall_offset = offset
        for job in self._scheduler.get_jobs():
            latest = datetime.now(UTC) + job.trigger.most
            if job.next_run_time > latest:
                job.modify(next_run_time=latest)

    def _keep(self, running: _Running) -> None:
        """Runs a tick whenever it is woken."""
        tick = running.tick
        while running.wake.wait() and not self._ended.is_set():
            running.is_busy, began = True, time.monotonic()
            if tick.notified is None:
                # Cleared before the run, because the run may not see a change that comes while it lasts.
                running.wake.clear()
            has_failed, found = self._run(tick)
            if tick.idle_seconds or (tick.notified and has_failed):
                self._ended.wait(tick.seconds)
            with self._guard:
                if tick.idle_seconds and (found or running.is_asked):
                    running.wake.set()
                running.looked_at, running.next_at = time.monotonic(), began + _rest(tick)
                running.is_busy = running.is_asked = False

    def _run(self, tick: Tick) -> tuple[bool, bool]:
        """Runs the tick once; returns whether it failed, and whether it found something to do."""
        found: object = None
        fails = False
        try:
            # The notifier wakes this thread without asking `may_find`; for other ticks, the thread that wakes them has
            # asked.
            found = tick.run_once() if not tick.idle_seconds or tick.may_find() else False
        except DatabaseUnavailableError as error:
            # The database may be available again at the next run. Meanwhile /readyz reports that it is not.
            log.warning("%s: %s", tick.name, error)
            self._tasks.ended(tick.name)
            return True, False
        except Exception:
            log.exception("%s failed", tick.name)
            fails = True
        self._tasks.ended(tick.name, fails=fails)
        return fails, not fails and (found is None or bool(found))


class _Every(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """A trigger that fires one interval after the current time. APScheduler's own trigger adds the interval to the last
    time, so after the clock was set forward by years, it would go through all missed times."""

    def __init__(self, seconds: float, *, first_after: float) -> None:
        self._interval = timedelta(seconds=seconds)
        self.most = timedelta(seconds=max(seconds, first_after))

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:  # noqa: ARG002
        return now + self._interval


def _rest(tick: Tick) -> float:
    """Returns the seconds between two runs that find nothing."""
    return tick.idle_seconds or tick.seconds
