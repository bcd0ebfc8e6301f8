"""What others are told of the looks at tables: commits that are news, and tables that cannot be looked at.

Called last in the transaction in which a look is recorded; ring the bell afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.model.announcement import commit_published, table_recovered, table_unhealthy
from service.store import outbox, tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Problem
    from service.model.commit import Commit
    from service.model.watch import Watch

UNHEALTHY_AFTER = 3
"""So many looks in a row have to fail until others are told: storages have their moments."""


def of_look(connection: Connection, watch: Watch, commits: Sequence[Commit], now: datetime) -> None:
    """`watch` still counts the looks that failed before this one."""
    news = [commit for commit in commits if commit.is_news]
    is_back = watch.failures >= UNHEALTHY_AFTER
    if not news and not is_back:
        return
    table = tables.get(connection, watch.table_id)
    events = [table_recovered(table, now)] if is_back else []
    outbox.publish(connection, [*events, *(commit_published(commit, table) for commit in news)], now=now)


def of_failure(connection: Connection, table_id: str, failures: int, problem: Problem, now: datetime) -> None:
    """`failures` looks in a row have failed, this one among them."""
    if failures == UNHEALTHY_AFTER:
        outbox.publish(connection, [table_unhealthy(tables.get(connection, table_id), problem, now)], now=now)
