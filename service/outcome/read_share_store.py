"""Store of the tables that wait because their reads are among the few that may cost more
(`service.outcome.read_share`)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from service.db import schema
from service.outcome.read_share import CostlyTable, ReadShare

_s = schema.objective_states

_KEPT_FOR = timedelta(minutes=1)
# While the service runs, tables are checked at least every hour. A table whose last check is older than this does not
# count, so the service may be stopped for this long.
_KNOWN_FOR = timedelta(days=1)
_LOOKED_AT = _s.c.looked_at > sa.bindparam("since", type_=_s.c.looked_at.type)
_TOTALS = (
    sa.select(_s.c.level, sa.cast(sa.null(), sa.String).label("table_id"), sa.func.sum(_s.c.reads_per_day), sa.null())
    .where(_s.c.level.is_not(None), _LOOKED_AT)
    .group_by(_s.c.level)
)
_WAITING = sa.select(_s.c.level, _s.c.table_id, _s.c.reads_per_day, _s.c.price)
_WAITING = _WAITING.where(_s.c.price.is_not(None), _LOOKED_AT)
_READ = sa.union_all(_WAITING, _TOTALS)


@dataclass
class _Known:
    """The tables as they were last read from a database, with the changes by decisions of this process since then."""

    at: datetime
    shares: dict[str, ReadShare] = field(default_factory=dict)  # By level.


# Ranking very many tables takes long, so the tables that wait are kept for all decisions by a share of reads.
_known: WeakKeyDictionary[Engine, _Known] = WeakKeyDictionary()


def of_level(connection: Connection, level: str, now: datetime) -> ReadShare:
    """Returns the tables of a level that wait. They include other replicas' decisions after a minute at most."""
    known = _known.get(connection.engine)
    if known is None or abs(now - known.at) > _KEPT_FOR:
        known = _known[connection.engine] = _Known(now, _read(connection, now))
    return known.shares.setdefault(level, ReadShare(level))


def displaced(engine: Engine) -> list[str]:
    """Returns the ids of the tables that can no longer wait, and forgets that they wait. The caller should make
    decisions about them due at once."""
    known = _known.get(engine)
    if known is None:
        return []
    return [each for share in list(known.shares.values()) for each in share.displaced()]


def _read(connection: Connection, now: datetime) -> dict[str, ReadShare]:
    waiting: defaultdict[str, list[CostlyTable]] = defaultdict(list)
    totals: dict[str, float] = {}
    for level, table_id, reads, price in connection.execute(_READ, {"since": now - _KNOWN_FOR}):
        if table_id is None:
            totals[level] = reads
        else:
            waiting[level].append(CostlyTable(table_id, reads, price))
    return {level: ReadShare(level, reads, waiting[level]) for level, reads in totals.items()}
