"""Computes the outlook and the expected cost of jobs on request. Concurrent callers in one process share an outlook."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection, Engine

from jobs.kinds.results import Work
from service.db.engine import reading
from service.model import priority
from service.model.calls import calls
from service.model.clock import Clock
from service.model.errors import DatabaseUnavailableError
from service.queue import cost_store, demand_store, outlook_store, worker_store
from service.queue.cost import Basis, Cost
from service.queue.cost_model import Learned
from service.queue.outlook import Goals, Outlook, outlook

log = logging.getLogger(__name__)

# At most this share of the time is spent on computing.
_SHARE = 0.05
_FRESH_SECONDS = 1.0
# If the last computation took no longer than this, the call waits for a new one.
_AT_ONCE_SECONDS = 0.005
_MOST_AGE = timedelta(seconds=10)
# A computation waits at most this long for the calls that are being answered.
_GIVEN_WAY_SECONDS = 1.0
# Up to this length of the queue, the outlook always includes a job that has just been submitted.
_SHORT = 50
_SHAPE_SECONDS = 3600.0


Key = TypeVar("Key", bound="Hashable")


class Planned(NamedTuple):
    """A job that could run. `work` is what the job would work on; None means the estimate by the last poll of the
    table."""

    table_id: str
    kind: str
    work: Work | None = None


class Forecaster:
    """Computes outlooks and expected costs; safe to use from several threads."""

    def __init__(self, goals: Goals | None = None) -> None:
        self.goals = goals or Goals()
        # Each lock lets in one thread at a time: to compute an outlook, to decide whether to renew it, and to use the
        # lessons. The last lock is held for single steps only, so that an expected cost does not wait for a whole
        # outlook.
        self._computing, self._renewing, self._learning = threading.Lock(), threading.Lock(), threading.Lock()
        self._last: Outlook | None = None
        self._began_at = self._ended_at = self._took = 0.0
        self._lessons = cost_store.Lessons()
        self._shapes_read_at: float | None = None

    def outlook(
        self,
        engine: Engine,
        clock: Clock,
        job_ids: Collection[str] = (),
        *,
        is_scaled: bool = False,
        most_age: timedelta = _MOST_AGE,
    ) -> Outlook:
        """Returns the last outlook. If it is old, a new one is computed in the background for later calls.

        If the queue is short, the call waits for a new outlook when the last one lacks one of these active jobs, or
        when an external scaler uses the outlook. If the queue is long, the call waits when the last outlook is older
        than `most_age`. Raises DatabaseUnavailableError."""
        asked = time.monotonic()
        if self._last is not None and len(self._last.jobs) < _SHORT:
            most_age = _MOST_AGE
        if not self._serves(clock(), job_ids, most_age, is_scaled=is_scaled):
            with self._computing:
                # Another call may have computed it meanwhile.
                if self._began_at < asked and not self._serves(clock(), job_ids, most_age, is_scaled=is_scaled):
                    self._compute(engine, clock())
        elif self._is_due() and self._renewing.acquire(blocking=False):
            if self._took < _AT_ONCE_SECONDS:
                self._renew(engine, clock)
            else:
                self._renew_later(engine, clock)
        assert self._last is not None
        return self._last

    def costs(self, engine: Engine, jobs: Mapping[Key, Planned]) -> dict[Key, Cost]:
        """Returns what `costs_by` returns. Raises DatabaseUnavailableError."""
        if not jobs:
            return {}
        with reading(engine) as connection:
            return self.costs_by(connection, jobs)

    def costs_by(self, connection: Connection, jobs: Mapping[Key, Planned]) -> dict[Key, Cost]:
        """Returns the expected cost of these jobs; there has to be at least one. Jobs of a kind about which nothing is
        learned yet are left out."""
        with self._learning:
            self._learn(connection)
            self._lessons.measure(connection, {each.table_id for each in jobs.values()})
            found = {
                key: self._lessons.expected(each.table_id, each.kind, dry_run=False, work=each.work)
                for key, each in jobs.items()
            }
        return {key: cost for key, cost in found.items() if cost.basis is not Basis.DEFAULT}

    def learned(self, engine: Engine) -> list[Learned]:
        """Returns what is learned about each kind. Raises DatabaseUnavailableError."""
        with reading(engine) as connection, self._learning:
            self._learn(connection)
            return self._lessons.model.learned()

    def _learn(self, connection: Connection) -> None:
        now = time.monotonic()
        if self._shapes_read_at is None or now - self._shapes_read_at > _SHAPE_SECONDS:
            self._lessons.look_up_shapes(connection)
            self._shapes_read_at = now
        self._lessons.go_on(connection)

    def _serves(self, now: datetime, job_ids: Collection[str], most_age: timedelta, *, is_scaled: bool) -> bool:
        last = self._last
        if last is None or not timedelta(0) <= now - last.as_of <= most_age:
            return False
        is_wanted_now = is_scaled or any(job_id not in last.jobs for job_id in job_ids)
        return len(last.jobs) >= _SHORT or not is_wanted_now

    def _is_due(self) -> bool:
        return time.monotonic() - self._ended_at > max(_FRESH_SECONDS, self._took / _SHARE)

    def _renew_later(self, engine: Engine, clock: Clock) -> None:
        try:
            threading.Thread(target=self._renew_behind_calls, args=(engine, clock), name="outlook", daemon=True).start()
        except RuntimeError:
            # No more threads can be started. The next call tries again.
            self._renewing.release()

    def _renew_behind_calls(self, engine: Engine, clock: Clock) -> None:
        priority.give_way()
        self._renew(engine, clock)

    def _renew(self, engine: Engine, clock: Clock) -> None:
        try:
            if self._took >= _AT_ONCE_SECONDS:
                calls.give_way(_GIVEN_WAY_SECONDS)
            with self._computing:
                self._compute(engine, clock())
        except DatabaseUnavailableError as error:
            log.warning("The outlook of the queue could not be computed: %s", error)
        except Exception:
            # The last outlook is kept. Once it is too old for a call, that call computes a new one and gets the error.
            log.exception("The outlook of the queue could not be computed")
        finally:
            self._renewing.release()

    def _compute(self, engine: Engine, now: datetime) -> None:
        began = time.monotonic()
        with reading(engine) as connection:
            with self._learning:
                self._learn(connection)
            learned = time.monotonic()
            queued, leased = outlook_store.queued(connection, now), outlook_store.leased(connection)
            with self._learning:
                ids = {each.table_id for each in queued} | {each.table_id for each in leased}
                self._lessons.measure(connection, ids)
                costs = self._lessons.of_rows(queued, leased)
            is_all = len(queued) < outlook_store.MOST_QUEUED
            self._last = outlook(
                queued,
                leased,
                outlook_store.used(connection),
                worker_store.every(connection),
                costs,
                numbers=Counter(each.worker_group for each in queued)
                if is_all
                else demand_store.count_queued(connection),
                goals=self.goals,
                now=now,
            )
        self._began_at, self._ended_at = began, time.monotonic()
        self._took = self._ended_at - learned
