"""The logs of jobs, as their workers send them. The newest lines of a job are kept for as long as the job."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.contract import MOST_LOG_LINES, LogLevel, LogLine
from service.db import schema
from service.db.page import not_a_cursor

MOST_BYTES = 1024 * 1024
"""The largest size of one job's log. The oldest lines of a larger log are dropped."""

# Bytes that a line takes in addition to its text.
_BYTES_OF_LINE = 100
_l = schema.job_log_lines
_IN_ORDER = (_l.c.attempt, _l.c.number)


@dataclass(frozen=True)
class StoredLine:
    """A line of the log of a job. `attempt` is the number of the attempt that wrote it."""

    at: datetime
    level: LogLevel
    logger: str
    message: str
    attempt: int


@dataclass(frozen=True)
class LogPage:
    """Lines of a log, the oldest first."""

    items: Sequence[StoredLine]
    position: str  # The cursor behind the last line, where later lines will follow.
    next_cursor: str | None  # The same position if there are more lines already, else None.


def append(connection: Connection, job_id: str, attempt: int, lines: Sequence[LogLine]) -> None:
    """Adds the lines that were not stored before. The caller has made sure that this attempt holds the job."""
    if not lines:
        return
    last = connection.execute(
        sa.select(_l.c.attempt, _l.c.number, _l.c.bytes_so_far)
        .where(_l.c.job_id == job_id)
        .order_by(*(each.desc() for each in _IN_ORDER))
        .limit(1)
    ).one_or_none()
    number = last.number if last and last.attempt == attempt else -1
    total = last.bytes_so_far if last else 0
    rows = []
    for line in lines:
        if line.number <= number:
            continue
        number, total = line.number, total + len(line.message.encode()) + _BYTES_OF_LINE
        rows.append(
            {
                "job_id": job_id,
                "attempt": attempt,
                "number": number,
                "at": line.at,
                "level": _number_of(line.level),
                "logger": line.logger,
                "message": line.message,
                "bytes_so_far": total,
            }
        )
    if rows:
        connection.execute(_l.insert(), rows)
    if total > MOST_BYTES:
        connection.execute(_l.delete().where(_l.c.job_id == job_id, _l.c.bytes_so_far <= total - MOST_BYTES))


def page(
    connection: Connection, job_id: str, *, limit: int, cursor: str | None = None, level: LogLevel = LogLevel.DEBUG
) -> LogPage:
    """Returns the lines of this level and above. Raises ParamsInvalidError for a wrong cursor."""
    after = _parsed(cursor) if cursor else (0, -1)
    query = (
        sa.select(_l)
        .where(_l.c.job_id == job_id, _l.c.level >= _number_of(level))
        .where(sa.or_(_l.c.attempt > after[0], sa.and_(_l.c.attempt == after[0], _l.c.number > after[1])))
        .order_by(*_IN_ORDER)
        .limit(limit + 1)
    )
    rows = connection.execute(query).all()
    shown = rows[:limit]
    position = f"{shown[-1].attempt}.{shown[-1].number}" if shown else cursor or f"{after[0]}.{after[1]}"
    return LogPage([_line(row) for row in shown], position, position if len(rows) > limit else None)


def whole(connection: Connection, job_id: str, level: LogLevel = LogLevel.DEBUG) -> LogPage:
    """Returns all lines of this level and above. `MOST_BYTES` limits their number."""
    return page(connection, job_id, limit=MOST_BYTES // _BYTES_OF_LINE + MOST_LOG_LINES, level=level)


def _line(row: sa.Row[Any]) -> StoredLine:
    return StoredLine(row.at, LogLevel(logging.getLevelName(row.level)), row.logger, row.message, row.attempt)


def _number_of(level: LogLevel) -> int:
    return logging.getLevelNamesMapping()[level.value]


def _parsed(cursor: str) -> tuple[int, int]:
    """Returns the attempt and the number of a line."""
    attempt, dot, number = cursor.partition(".")
    parts = (attempt, number.removeprefix("-"))
    if not dot or not all(each.isascii() and each.isdigit() and len(each) < 10 for each in parts):
        raise not_a_cursor()
    return int(attempt), int(number)
