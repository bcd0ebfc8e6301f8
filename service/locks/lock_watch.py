"""Checks the locks of tables whose jobs wait, so that no job takes a slot only to wait for a lock.

Three groups of locks are checked: the locks of the next jobs of each worker group, locks that an attempt found held or
could not reach, and locks that an earlier check found held. So the cost does not grow with the number of tables or the
length of the queue. Each check runs in a process with a time limit, and replicas share the checks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine

from jobs.contract import LOCK_UNAVAILABLE, TABLE_LOCKED, TableLock
from jobs.format.lock_providers import is_in_a_file, servers_of
from jobs.storage.permissions import Permissions
from service.access.errors import SecretUnreadableError
from service.access.secret_cipher import SecretCipher
from service.catalog import table_store
from service.catalog.registration import Registration
from service.catalog.table_secrets import opened
from service.db.engine import reading, writing
from service.events.notifier import Notifier
from service.lake.reader_pool import Readers
from service.lake.table_lock import LockFile, read_lock
from service.model.bounded_pool import BoundedPool
from service.model.clock import Clock
from service.model.errors import DatabaseUnavailableError, GroundskeeperError
from service.model.lock_state import LockState
from service.model.storage_errors import ReadersBusyError, ReadTimedOutError
from service.model.table_errors import TableNotFoundError
from service.queue import breaker_store, held_back_store, job_store, lease_store, lock_sighting_store, queue_statistics
from service.queue.lock_sighting import PATIENCE, LockSighting
from service.queue.lock_sighting_store import Watched

log = logging.getLogger(__name__)

NEXT = 8
"""Number of jobs of each worker group whose locks are checked before a worker takes the jobs."""

SELDOM = timedelta(seconds=30)
"""Time between two checks of a lock that the service cannot read."""

SILENT_FOR = timedelta(seconds=10)
"""A server that did not answer is not called again for this time, for any of its locks."""


@dataclass(frozen=True)
class LockWatchConfig:
    """`every` is the time between two checks of a lock. `at_once` is the number of checks that run at the same time."""

    every: timedelta = timedelta(seconds=2)
    at_once: int = 4
    storage_options: Mapping[str, str] | None = None
    lock_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class LocksChecked:
    """The number of locks that are watched, and the number of checks that this round has begun."""

    watched: int = 0
    begun: int = 0

    def __bool__(self) -> bool:
        """Returns whether a lock is watched. If not, the next round may wait (`service.runtime.ticks.Tick`)."""
        return self.watched > 0

    def __str__(self) -> str:
        return f"{self.watched} locks watched, {self.begun} checks begun"


class LockWatch:
    """Checks the locks. The processes of `readers` run the checks and limit their time."""

    def __init__(
        self,
        engine: Engine,
        notifier: Notifier,
        clock: Clock,
        config: LockWatchConfig,
        readers: Readers,
        *,
        cipher: SecretCipher,
        permissions: Permissions,
    ) -> None:
        self._engine = engine
        self._notifier = notifier
        self._clock = clock
        self._config = config
        self._readers = readers
        self._cipher = cipher
        self._permissions = permissions
        # The threads of the pool share this dictionary. No lock is needed, because each thread reads or writes one
        # item at a time.
        self._silent: dict[tuple[tuple[str, int], ...], tuple[datetime, LockFile]] = {}
        self._early: set[str] = set()
        self._waiting: set[str] = set()
        self.pool: BoundedPool[LockSighting] = BoundedPool(
            self._check, keys=lambda sighting: (sighting.table_id,), size=config.at_once
        )

    @property
    def remembers_any(self) -> bool:
        """Whether the last round has seen a waiting table. The next round may have to remove this table."""
        return bool(self._waiting or self._early)

    def run_once(self) -> LocksChecked:
        """Chooses the locks to watch, and begins the checks that are due, without waiting for them."""
        now = self._clock()
        with reading(self._engine) as connection:
            watched = lock_sighting_store.watched(connection)
            wanted = _wanted(connection, now, watched) | self._one_of_each_server(connection)
        if wanted == watched.keys() and all(each.next_look_at > now for each in watched.values()):
            return LocksChecked(len(wanted))
        with writing(self._engine) as connection:
            lock_sighting_store.forget(connection, watched.keys() - wanted)
            lock_sighting_store.watch(connection, wanted - watched.keys(), now)
            due = lock_sighting_store.claim(
                connection,
                now=now,
                next_look_at=now + self._config.every,
                limit=self.pool.capacity,
                without=self.pool.busy,
            )
        for sighting in due:
            self.pool.add(sighting)
        return LocksChecked(len(wanted), len(due))

    def _one_of_each_server(self, connection: Connection) -> set[str]:
        """Returns tables that have begun to wait, one for each lock server. Thus a server that does not answer is
        noticed before a worker takes a job of these tables."""
        if not self._config.lock_hosts:
            return set()
        waiting = held_back_store.waiting_for_lock(connection).keys()
        new, self._waiting = waiting - self._waiting, set(waiting)
        if new:
            of_servers = {_servers(lock): table_id for table_id, lock in table_store.locks(connection, new).items()}
            of_servers.pop((), None)
            self._early.update(of_servers.values())
        self._early &= waiting
        return set(self._early)

    def _check(self, before: LockSighting) -> None:
        table_id, now = before.table_id, self._clock()
        try:
            with reading(self._engine) as connection:
                table = table_store.get(connection, table_id)
            found = self._read(table, now)
            if found is not None:
                self._early.discard(table_id)
            if found is None or (found.state is before.state is LockState.FREE):
                return  # The claim has already set the time of the next check.
            with writing(self._engine) as connection:
                sighting = _sighting(connection, before, found, now)
                rest = self._config.every
                if found.state is LockState.UNKNOWN:
                    rest = max(rest, SILENT_FOR if found.is_silent else SELDOM)
                lock_sighting_store.record(connection, sighting, now + rest)
                is_over = before.holds_back and not sighting.holds_back
                if is_over:
                    _release(connection, table_id, self._clock())
            if is_over:
                log.info("The lock of table %s does not hold jobs up any more", table_id)
                self._notifier.notify()
            elif sighting.holds_back and not before.holds_back:
                log.info("Jobs of table %s wait for its lock, %s", table_id, sighting.held(now))
        except TableNotFoundError:
            pass  # The table was unregistered meanwhile.
        except DatabaseUnavailableError as error:
            log.warning("The lock of table %s: %s", table_id, error)
        except Exception:  # An error with one lock must not stop the other checks.
            log.exception("The check of the lock of table %s failed", table_id)

    def _read(self, table: Registration, now: datetime) -> LockFile | None:
        """Returns the lock. Returns None if no check was possible, because all readers were busy."""
        servers = _servers(table.lock)
        until, found = self._silent.get(servers, (now, None))
        if found is not None and now < until:
            return found
        found = self._read_now(table, now)
        if servers and found is not None:
            self._silent.pop(servers, None)
            if found.is_silent:
                self._silent[servers] = (now + SILENT_FOR, found)
        return found

    def _read_now(self, table: Registration, now: datetime) -> LockFile | None:
        try:
            lock = replace(table.lock, options=opened(self._cipher, table.lock.options))
            return self._readers.run(
                read_lock,
                table.base_path,
                lock,
                self._config.storage_options or {},
                self._permissions,
                now,
                lock_hosts=self._config.lock_hosts,
            )
        except ReadersBusyError:
            return None
        except ReadTimedOutError as error:
            return LockFile(LockState.UNKNOWN, detail=error.detail, is_silent=not is_in_a_file(table.lock.provider))
        except (GroundskeeperError, SecretUnreadableError) as error:
            return LockFile(LockState.UNKNOWN, detail=f"{error.title}. {error.detail}")


def _servers(lock: TableLock) -> tuple[tuple[str, int], ...]:
    try:
        return tuple(servers_of(lock))
    except ValueError:
        return ()


def _wanted(connection: Connection, now: datetime, watched: Mapping[str, Watched]) -> set[str]:
    """Returns the tables whose locks are watched now. Each of them has a waiting job that needs the lock."""
    first = {
        table_id
        for group in queue_statistics.groups(connection, now)
        for table_id in lease_store.tables_of_next(connection, now, group, NEXT)
    }
    held = {table_id for table_id, each in watched.items() if each.holds_back}
    near = held_back_store.waiting_for_lock(connection, first | held) if first | held else {}
    return near.keys() | held_back_store.tables_locked_out(connection)


def _sighting(connection: Connection, before: LockSighting, found: LockFile, now: datetime) -> LockSighting:
    state, token_since = found.state, None
    if found.expires_after is not None and found.id is not None:
        token_since = before.token_since if before.token == found.id else now
        if token_since is not None and now - token_since > found.expires_after:
            # The holder has not renewed the lock, so the next client that wants it takes it.
            state = LockState.FREE
    if found.job_id is not None and job_store.is_known(connection, found.job_id):
        # A worker of this service has left the lock. The next attempt of a job finds out whether it may remove the
        # lock.
        state = LockState.FREE
    is_held = state is LockState.HELD
    same = is_held and before.state is LockState.HELD and before.holder == found.holder
    errors = held_back_store.waiting_for_lock(connection, [before.table_id])
    since: datetime | None = None
    if is_held:
        since = found.since or (before.since if same else now)
    elif found.is_silent:
        since = (before.since if before.state is LockState.UNKNOWN else None) or now
    # A worker may reach a server that the service cannot reach, unless an attempt has just failed to reach it, too.
    is_away = found.is_silent and (errors.get(before.table_id) == LOCK_UNAVAILABLE or now - (since or now) < PATIENCE)
    return LockSighting(
        table_id=before.table_id,
        state=state,
        holds_back=is_held or is_away,
        looked_at=now,
        holder=found.holder if is_held else None,
        since=since,
        detail=found.detail,
        token=found.id if token_since else None,
        token_since=token_since,
    )


def _release(connection: Connection, table_id: str, now: datetime) -> None:
    """Makes jobs due that went back to the queue because of the lock."""
    for breaker in breaker_store.every(connection, now, [table_id]):
        if breaker.error is not None and breaker.error.type in (TABLE_LOCKED, LOCK_UNAVAILABLE):
            breaker_store.half_open(connection, table_id, now, kind=breaker.kind)
    held_back_store.make_locked_out_due(connection, table_id, now)
