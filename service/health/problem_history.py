"""Counts the problems that opened and ended in a period, by their events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import sqlalchemy as sa
from sqlalchemy import Connection

from jobs.spec import Documented, Spec
from service.db import schema
from service.events.event import EventType
from service.health import problem_store

_e = schema.events


@dataclass(frozen=True)
class KindCount(Documented):
    """Problems of one kind."""

    kind: Annotated[str, Spec("The kind of problem", examples=("lock-awaited",))]
    opened: Annotated[int, Spec("Problems of this kind that opened", examples=(40,))]
    resolved: Annotated[int, Spec("Problems of this kind that ended", examples=(38,))]


@dataclass(frozen=True)
class ProblemCounts(Documented):
    """Counts of a period's problems. Each problem counts once, however many messages reported it."""

    opened: Annotated[int, Spec("Problems that opened or became more serious, each once", examples=(41,))]
    resolved: Annotated[int, Spec("Problems that ended", examples=(39,))]
    open: Annotated[int, Spec("Problems that are open now", examples=(2,))]
    kinds: Annotated[Sequence[KindCount], Spec("Counts by kind, the most frequent kind first")]


def counts(
    connection: Connection, since: datetime, until: datetime, within: Container[str] | None = None
) -> ProblemCounts:
    """Returns the counts of a period. `within` are the ids of the tables whose problems count. If it is None, all
    problems count, even those that are not about a table."""
    kind, *episode = (_e.c.data[("problem", name)].as_string() for name in ("kind", "id", "opened_at"))
    # A problem that becomes more serious has a second event, but counts once.
    number_of = sa.func.count(sa.distinct(episode[0].concat(episode[1])))
    query = (
        sa.select(_e.c.table_id, _e.c.type, kind, number_of)
        .where(schema.EVENT_IS_OF_PROBLEM, _e.c.at >= since, _e.c.at < until)
        .group_by(_e.c.table_id, _e.c.type, kind)
    )
    found: dict[str, Counter[str]] = {EventType.PROBLEM_OPENED: Counter(), EventType.PROBLEM_RESOLVED: Counter()}
    for table_id, type_, name, number in connection.execute(query):
        if within is None or table_id in within:
            found[type_][name] += number
    opened, resolved = found[EventType.PROBLEM_OPENED], found[EventType.PROBLEM_RESOLVED]
    standing = problem_store.by_table(connection)
    names = sorted({*opened, *resolved}, key=lambda each: (-opened[each], each))
    return ProblemCounts(
        opened.total(),
        resolved.total(),
        sum(number for table_id, number in standing.items() if within is None or table_id in within),
        [KindCount(each, opened[each], resolved[each]) for each in names],
    )
