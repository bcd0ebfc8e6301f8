"""Checks the locks of the tables for `groundskeeper doctor`, through the API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from groundskeeper_client import calls
from groundskeeper_client.generated.models import ProblemKind
from service.cli.check import ABSENT, FAILED, OK, Check
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.health.locks import HELD_AFTER
from service.model.formatting import count, duration
from service.model.lock_state import LockState

MOST_TABLES = 50
_SECONDS = 30.0
_ON_SERVER = "on a server"
_ASK_WORKER = "Workers ask the servers of locks: groundskeeper jobs run cleaning TABLE --dry-run"


def check_locks(service: Connection) -> Iterator[Check]:
    """Yields a check for each table whose lock cannot be read, or whose lock's holder seems to be dead. If there is no
    such table, yields one check with the numbers. At most 50 tables are checked; those with a problem of the lock come
    first."""
    stuck, names, is_all = _tables(service)
    numbers, is_sound, until = dict.fromkeys(("free", "held", _ON_SERVER), 0), True, time.monotonic() + _SECONDS
    for table_id, name in names.items():
        if time.monotonic() > until:
            is_all = False
            break
        try:
            lock = service.send(calls.get_lock(table_id))
        except CommandError as error:
            if error.code is ExitCode.NOT_FOUND:
                continue  # The table was unregistered meanwhile.
            is_sound = False
            yield _unread(table_id, name, error)
            continue
        if fault := _fault(lock, is_awaited=table_id in stuck):
            is_sound = False
            yield Check("lock", FAILED, f"{name}: {fault}", f"groundskeeper lock show {table_id}")
        else:
            numbers[_ON_SERVER if lock["path"] is None else lock["state"]] += 1
    if is_sound:
        yield _sound(numbers, is_all=is_all)


def _tables(service: Connection) -> tuple[set[str], dict[str, str], bool]:
    """Returns the tables with a problem of the lock, the names of the tables to check, and whether these are all
    tables."""
    kinds = [ProblemKind.LOCK_AWAITED, ProblemKind.LOCK_HELD_LONG]
    problems = service.send(calls.list_problems(kind=kinds, limit=MOST_TABLES))["items"]
    page = service.send(calls.list_tables(limit=MOST_TABLES))
    stuck = {each["table_id"]: each["about"]["name"] for each in problems}
    every = {**stuck, **{table["id"]: table["name"] for table in page["items"]}}
    wanted = dict(list(every.items())[:MOST_TABLES])
    return set(stuck), wanted, page["next_cursor"] is None and len(wanted) == len(every)


def _sound(numbers: dict[str, int], *, is_all: bool) -> Check:
    total = sum(numbers.values())
    if not total:
        return Check("lock", ABSENT, "There is no table yet.")
    parts = ", ".join(f"{number} {state}" for state, number in numbers.items() if number)
    rest = "" if is_all else " These are not all tables; `groundskeeper problems` lists the problems of the others."
    return Check("lock", OK, f"Of {count(total, 'table')}: {parts}.{rest}", _ASK_WORKER if numbers[_ON_SERVER] else "")


def _unread(table_id: str, name: str, error: CommandError) -> Check:
    document = error.document
    text = f"{name}: {document['title']}. {document.get('detail') or ''}".strip()
    return Check("lock", FAILED, text, f"groundskeeper lock show {table_id}. {document.get('hint') or ''}".strip())


def _fault(lock: Json, *, is_awaited: bool) -> str | None:
    if lock["state"] == LockState.UNKNOWN:
        # If there is no path, the lock is on a server.
        return f"The lock cannot be read: {lock['detail']}" if lock["path"] else None
    if lock["state"] == LockState.FREE or _has_ended(lock) or _is_alive(lock):
        return None
    age = lock["age_seconds"]
    if age is None:
        return "Jobs wait for the lock, and its holder is unknown." if is_awaited else None
    if age < HELD_AFTER.total_seconds():
        return None
    return (
        f"The lock has been held for {duration(age)} by {lock['holder']}, and nothing shows that this holder is alive."
    )


def _has_ended(lock: Json) -> bool:
    """Returns whether the lock has ended, so that the next client may take it although its file still exists."""
    return lock["ends_at"] is not None and datetime.fromisoformat(lock["ends_at"]) <= datetime.now(UTC)


def _is_alive(lock: Json) -> bool:
    # If the service knows only when the lock ends, the holder counts as alive: a lock that has not ended was renewed.
    return (
        any(job["holds"] for job in lock["jobs"])
        or any(writer["is_alive"] and writer["job_id"] is None for writer in lock["writers"])
        or (lock["since"] is None and lock["ends_at"] is not None)
    )
