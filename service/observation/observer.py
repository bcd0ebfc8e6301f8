"""Watches all tables: claims the due ones and polls them in a bounded pool."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from random import Random

from sqlalchemy import Engine

from jobs.logs import log_context
from service.catalog import watch_store
from service.catalog.watch import Watch
from service.db.engine import may_find, reading, writing
from service.delivery import outbox
from service.events.notifier import Notifier
from service.model.backoff import BackOff
from service.model.bounded_pool import BoundedPool
from service.model.clock import Clock
from service.model.errors import DatabaseUnavailableError, GroundskeeperError
from service.model.storage_errors import PollFailedError
from service.model.table_errors import TableNotFoundError
from service.observation import poll_events
from service.observation.poll import FindQuiet, PollResult, ReadFirst, ReadTable, poll_table, record_first
from service.observation.poll_requests import PollRequests

log = logging.getLogger(__name__)

# A round ends after this time, even if polls end as fast as tables are claimed; otherwise it would count as stuck.
_ROUND_SECONDS = 10.0
# One transaction claims at most this many tables, so that other writers do not wait for long.
_CLAIMED_AT_ONCE = 200
# One call of a reader checks at most this many tables, one after the other, so that the calls themselves cost little.
_TOGETHER = 25
# A table may be polled earlier, by up to this part of the interval, if another table is due. So fewer claims and calls
# of a reader are made, which cost ten times as much as the poll of an unchanged table. After a while, all tables to
# which nobody writes are polled together.
_EARLY = 0.05
# One call of a reader reads at most this many tables for the first time. One transaction records their polls.
_NEW_TOGETHER = 10
# A table whose polls fail is checked at this interval, so that its recovery is noticed within a minute. The check is
# cheap.
_DIGEST_SECONDS = 40.0
# Share of the interval that is random, so that tables which were registered together are not always polled together.
_SPREAD = 0.1


@dataclass(frozen=True)
class ObserverConfig:
    """The settings of polls."""

    poll_seconds: float = 60.0  # Interval between polls of a table without poll requests.
    at_once: int = 8  # Tables that are polled at the same time.
    # Seconds between failing polls of a table, as long as no file of the table changes.
    backoff: BackOff = field(default_factory=lambda: BackOff(first=5.0, most=3600.0))


@dataclass(frozen=True)
class _Failed:
    seen: str  # The `FilesDigest` of the table right before the poll.
    until: datetime  # When the next poll is due. An earlier poll of an unchanged table would only fail again.


@dataclass(frozen=True)
class Observed:
    """Counts since the last round: tables that were claimed, found unchanged, found changed, or failed; and new
    commits."""

    claimed: int = 0
    unchanged: int = 0
    changed: int = 0
    failed: int = 0
    commits: int = 0

    def __str__(self) -> str:
        return (
            f"{self.claimed} claimed, {self.unchanged} unchanged, {self.changed} changed with {self.commits} commits,"
            f" {self.failed} failed"
        )


class Observer:
    """Polls all tables. After a poll that found something or failed, listeners are notified, outside any transaction.
    `on_new_schema` is called for tables whose columns have changed."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        rng: Random,
        poll_requests: PollRequests,
        config: ObserverConfig,
        *,
        read: ReadTable,
        first: ReadFirst,
        quiet: FindQuiet,
        files_digest: Callable[[str], str],
        notifier: Notifier,
        on_new_schema: Callable[[str], None] = lambda _table_id: None,
    ) -> None:
        self._on_new_schema = on_new_schema
        self._files_digest = files_digest
        self._failed_as: dict[str, _Failed] = {}
        self._engine = engine
        self._clock = clock
        self._rng = rng
        self._poll_requests = poll_requests
        self._config = config
        self._read = read
        self._first = first
        self._quiet = quiet
        self._notifier = notifier
        self._guard = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.pool: BoundedPool[Sequence[Watch]] = BoundedPool(
            self._poll_together,
            keys=lambda watches: [watch.table_id for watch in watches],
            size=config.at_once,
            on_idle=self._on_idle,
        )
        self._has_more = False
        self._are_many = False  # Whether the last claim had enough tables that were due.

    def run_once(self) -> Observed:
        """Claims due tables as far as the pool has capacity, and returns the counts since the last round.

        Polls run in the background. The next round runs on schedule. It runs earlier if the pool is idle and more
        tables are due, and at once if this round took long.
        """
        self._poll_requests.notified.clear()
        until = time.monotonic() + _ROUND_SECONDS
        while portions := self._claim():
            for watches in portions:
                self._count(claimed=len(watches))
                self.pool.add(watches)
            if time.monotonic() > until:
                self._poll_requests.notified.set()
                break
        with self._guard:
            counts, self._counts = self._counts, Counter()
        return Observed(**counts)

    def _claim(self) -> list[Sequence[Watch]]:
        now = self._clock()
        busy = self.pool.busy
        limit = min(self.pool.capacity, _CLAIMED_AT_ONCE)
        requested = set(islice(self._poll_requests.wanted() - busy, limit))
        insisted = self._poll_requests.insisted() & requested
        self._has_more = not limit
        if not limit:
            return []
        if not requested and not self._is_any_due(now):
            return []
        seconds = self._config.poll_seconds * (1 + _SPREAD * (self._rng.random() - 0.5))
        due_by = now
        if not self._are_many:
            due_by, limit = now + timedelta(seconds=_EARLY * self._config.poll_seconds), min(limit, _TOGETHER)
        with writing(self._engine, quietly=True) as connection:
            ids = watch_store.claim(
                connection,
                now=due_by,
                next_poll_at=now + timedelta(seconds=seconds),
                limit=limit,
                requested=requested,
                insisted=insisted,
                without=busy,
                failing_again_at=now + timedelta(seconds=min(seconds, _DIGEST_SECONDS)),
            )
            # For few tables, a transaction takes longer than reading their watches.
            claimed = watch_store.claimed(connection, ids) if 0 < len(ids) <= _TOGETHER else []
        if len(ids) > _TOGETHER:
            with reading(self._engine) as connection:
                claimed = watch_store.claimed(connection, ids)
        for table_id in insisted:
            self._failed_as.pop(table_id, None)
        self._has_more = len(ids) == limit
        self._are_many = len(ids) >= _TOGETHER
        # If capacity is left, a requested table that was not claimed is not registered, or another replica has claimed
        # it.
        done = {*ids} | (set() if self._has_more else requested)
        for table_id in done:
            self._poll_requests.taken(table_id)
        return _portions(claimed, requested)

    def _is_any_due(self, now: datetime) -> bool:
        if not may_find(self._engine, watch_store.ANY_DUE, now=now):
            return False
        if self._engine.dialect.name == "sqlite":
            return True
        with reading(self._engine) as connection:
            return watch_store.is_any_due(connection, now)

    def _on_idle(self) -> None:
        # An idle pool alone does not cause a round, because each round would claim one table and cost a transaction.
        if self._has_more or self._poll_requests.wanted():
            self._poll_requests.notified.set()

    def _poll_together(self, watches: Sequence[Watch]) -> list[Sequence[Watch]]:
        """Polls those of the tables that have not changed. Returns the others in portions to be polled. A table that
        has changed, or may keep others waiting, is a portion of its own. The tables that the reader had no time for
        stay together, in two halves for two readers."""
        if len(watches) == 1:
            self._poll(watches[0])
            return []
        done: Collection[str] = ()
        reached = len(watches)
        try:
            reached, done = self._poll_new(watches) if watches[0].looked_at is None else self._quiet_among(watches)
        except GroundskeeperError as error:
            # One of the tables makes a reader hang or crash. Polls of single tables find out which one.
            log.info("%d tables cannot be checked together: %s %s", len(watches), error.title, error.detail)
        except Exception:
            log.exception("%d tables cannot be polled together", len(watches))
        middle = (reached + len(watches) + 1) // 2
        halves = [each for each in (watches[reached:middle], watches[middle:]) if each]
        return [(watch,) for watch in watches[:reached] if watch.table_id not in done] + halves

    def _quiet_among(self, watches: Sequence[Watch]) -> tuple[int, Collection[str]]:
        """Returns how many of the tables the reader had time for, and which of them are unchanged."""
        found = self._quiet(watches, self._clock())
        quiet = {watch.table_id for watch, is_quiet in zip(watches, found, strict=False) if is_quiet}
        self._count(unchanged=len(quiet))
        return len(found), quiet

    def _poll_new(self, watches: Sequence[Watch]) -> tuple[int, Collection[str]]:
        """Returns how many of the tables the reader had time for, and the tables whose first polls were recorded."""
        found = self._first(watches, self._clock())
        results = record_first(self._engine, [each for each in found if each is not None], self._clock())
        for each in results:
            self._polled(each)
        if results:
            self._notifier.notify()
        return len(found), {each.table_id for each in results}

    def _polled(self, result: PollResult) -> None:
        self._count(changed=1, commits=len(result.commits)) if result.changed else self._count(unchanged=1)
        if any(commit.schema_changed for commit in result.commits):
            self._on_new_schema(result.table_id)

    def _poll(self, watch: Watch) -> None:
        with log_context(table_id=watch.table_id):
            seen = self._seen(watch) if watch.failures else None
            if seen is not None and self._would_fail_again(watch, seen):
                return
            try:
                result = poll_table(self._engine, self._clock, watch, self._read)
                self._failed_as.pop(watch.table_id, None)
                if result.changed or watch.failures:
                    self._notifier.notify()
                self._polled(result)
            except TableNotFoundError:
                self._failed_as.pop(watch.table_id, None)  # The table was unregistered meanwhile.
            except DatabaseUnavailableError as error:
                log.warning("Table %s: %s", watch.table_id, error)
            except GroundskeeperError as error:
                self._failed(watch, error, seen)
            except Exception as error:  # An error with one table must not stop the others.
                log.exception("The poll of table %s failed", watch.table_id)
                self._failed(watch, PollFailedError(f"{type(error).__name__}: {error}"), seen)

    def _seen(self, watch: Watch) -> str:
        """Returns the `FilesDigest` of a table before a poll that may fail."""
        try:
            return self._files_digest(watch.base_path)
        except GroundskeeperError as error:
            return error.type

    def _would_fail_again(self, watch: Watch, seen: str) -> bool:
        failed = self._failed_as.get(watch.table_id)
        return failed is not None and failed.seen == seen and self._clock() < failed.until

    def _failed(self, watch: Watch, error: GroundskeeperError, seen: str | None) -> None:
        """Records a failed poll. `seen` is the `FilesDigest` of the table before the poll."""
        self._count(failed=1)
        level = logging.INFO if watch.failures else logging.WARNING
        log.log(level, "Table %s cannot be polled: %s %s", watch.table_id, error.title, error.detail)
        delay = self._config.backoff.delay(watch.failures + 1, self._rng)
        now, problem = self._clock(), error.problem()
        if seen is not None:
            self._failed_as[watch.table_id] = _Failed(seen, now + delay)
        soon = timedelta(seconds=min(delay.total_seconds(), _DIGEST_SECONDS))
        try:
            with writing(self._engine) as connection:
                failures = watch_store.record_failure(
                    connection, watch.table_id, error=problem, now=now, next_poll_at=now + soon
                )
                events = poll_events.of_failed_poll(connection, watch.table_id, failures, problem, now)
                outbox.publish(connection, events, now=now)
            self._notifier.notify()
        except DatabaseUnavailableError as unavailable:
            log.warning("Table %s: %s", watch.table_id, unavailable)

    def _count(self, **more: int) -> None:
        with self._guard:
            self._counts.update(more)


def _portions(claimed: Sequence[Watch], requested: Collection[str]) -> list[Sequence[Watch]]:
    """Divides claimed tables into portions. Tables that were never polled share portions, and so do tables that are
    probably unchanged. A requested table, or one whose polls fail, is a portion of its own. Such portions come first,
    because somebody may wait for them."""
    alone = [each for each in claimed if each.table_id in requested or each.failures]
    separate = {each.table_id for each in alone}
    new = [each for each in claimed if each.looked_at is None and each.table_id not in separate]
    rest = [each for each in claimed if each.looked_at is not None and each.table_id not in separate]
    return [(each,) for each in alone] + [
        each[at : at + most]
        for each, most in ((new, _NEW_TOGETHER), (rest, _TOGETHER))
        for at in range(0, len(each), most)
    ]
