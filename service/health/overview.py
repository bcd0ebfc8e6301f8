"""The tables that an overview shows, and their order. The functions are pure: the rows come from `overview_store`, the
problems and backlogs from `ProblemCache`."""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

import msgspec

from service.catalog.ownership import TableSelection
from service.db.page import not_a_cursor
from service.health.fleet_problems import FleetProblems
from service.health.problem import RANKS, HealthProblem, ProblemKind
from service.lake.table import TableType
from service.model.calls import calls


class Health(StrEnum):
    """The severity of the most serious problem of a table, or `healthy` without any."""

    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"
    HEALTHY = "healthy"


class TableState(StrEnum):
    """The state of a table. If several apply, the first one counts. `UNREADABLE`: polls fail. `UNPOLLED`: there was no
    poll yet. `BUSY`: workers hold jobs of the table."""

    UNREADABLE = "unreadable"
    UNPOLLED = "unpolled"
    BUSY = "busy"
    IDLE = "idle"


class Order(StrEnum):
    """The order of tables. `PROBLEMS`: the most serious first. `BACKLOG`: the most bytes of logs first. `RATIO`: the
    highest ratio of logs to base files first. `COMMIT`: the last commit first. `SILENT`: the longest without a commit
    first. `REGISTERED`: the newest first. Tables of equal rank are ordered by name."""

    PROBLEMS = "problems"
    NAME = "name"
    BACKLOG = "backlog"
    RATIO = "ratio"
    COMMIT = "commit"
    SILENT = "silent"
    REGISTERED = "registered"


class ListedTable(NamedTuple):
    """The fields of a table by which an overview selects and orders tables."""

    id: str
    name: str
    base_path: str
    registered_at: datetime
    state: TableState
    type: TableType | None = None
    owner: str | None = None
    tags: Mapping[str, str] = {}


@dataclass(frozen=True, eq=False)
class Listing:
    """All tables, at one moment."""

    tables: Sequence[ListedTable]


@dataclass(frozen=True)
class Filter:
    """A filter of tables. Empty collections select everything."""

    text: str = ""  # A part of the name or path. Upper and lower case do not differ.
    health: Collection[Health] = ()
    kinds: Collection[ProblemKind] = ()
    types: Collection[TableType] = ()
    states: Collection[TableState] = ()
    selection: TableSelection = field(default_factory=TableSelection)

    @property
    def is_open(self) -> bool:
        others = self.health or self.kinds or self.types or self.states
        return not (self.text.strip() or others) and self.selection.is_open


@dataclass(frozen=True)
class Selected:
    """A page of the tables that match."""

    tables: Sequence[ListedTable]
    total: int  # Number of tables without any filter.
    matching: int
    before: int  # Number of matching tables before this page.
    next_cursor: str | None


# Tables without a value to order by come last.
_LAST = 1e15
_Key = tuple[float, str, str]
_cursors = msgspec.json.Decoder(tuple[str, float, str, str])


def select(
    listing: Listing, known: FleetProblems, wanted: Filter, order: Order, *, limit: int, cursor: str | None = None
) -> Selected:
    """Returns a page. If a table is added or removed between two requests, no other table is repeated or skipped.
    Raises ParamsInvalidError."""
    keyed: Sequence[tuple[_Key, ListedTable]] = _in_order(listing, known, order)
    if not wanted.is_open:
        is_wanted = _matching(known, wanted)
        keyed = [each for each in keyed if is_wanted(each[1])]
    before = bisect_right(keyed, _parsed(cursor, order), key=itemgetter(0)) if cursor else 0
    shown = keyed[before : before + limit]
    has_more = len(keyed) > before + limit
    return Selected(
        tables=[table for _, table in shown],
        total=len(listing.tables),
        matching=len(keyed),
        before=before,
        next_cursor=_text(shown[-1][0], order) if has_more else None,
    )


def arrange(listing: Listing, known: FleetProblems) -> None:
    """Puts the tables into their usual order in advance, so that no caller waits for it."""
    _in_order(listing, known, Order.PROBLEMS)


# If there are very many tables, `listing` and `known` are cached, so several calls have the same arguments.
@lru_cache(maxsize=4)
def _in_order(listing: Listing, known: FleetProblems, order: Order) -> Sequence[tuple[_Key, ListedTable]]:
    return sorted(((_key(table, known, order), table) for table in calls.giving_way(listing.tables)), key=itemgetter(0))


def health(table_id: str, known: FleetProblems) -> Health:
    found = known.of_tables.get(table_id)
    return Health(found[0].severity.value) if found else Health.HEALTHY


def _matching(known: FleetProblems, wanted: Filter) -> Callable[[ListedTable], bool]:
    text = wanted.text.strip().casefold()
    kinds = set(wanted.kinds)
    return lambda table: (
        (not text or text in table.name.casefold() or text in table.base_path.casefold())
        and (not wanted.states or table.state in wanted.states)
        and (not wanted.types or table.type in wanted.types)
        and wanted.selection.selects(table.owner, table.tags)
        and (not wanted.health or health(table.id, known) in wanted.health)
        and (not kinds or any(each.kind in kinds for each in known.of_tables.get(table.id, ())))
    )


def _key(table: ListedTable, known: FleetProblems, order: Order) -> _Key:
    # A name may contain half of a surrogate pair, which no cursor can carry.
    name = table.name.casefold().encode(errors="replace").decode()
    return _number(table, known, order), name, table.id


def _number(table: ListedTable, known: FleetProblems, order: Order) -> float:
    """Returns a number by which tables are ordered, the smallest first."""
    backlog = known.backlogs.get(table.id)
    match order:
        case Order.NAME:
            return 0.0
        case Order.PROBLEMS:
            return _rank(known.of_tables.get(table.id, ()))
        case Order.BACKLOG:
            return -float(backlog.log_bytes) if backlog else _LAST
        case Order.RATIO:
            return _LAST if backlog is None or backlog.log_ratio is None else -backlog.log_ratio
        case Order.COMMIT:
            return -backlog.last_commit_at.timestamp() if backlog and backlog.last_commit_at else _LAST
        case Order.SILENT:
            return backlog.last_commit_at.timestamp() if backlog and backlog.last_commit_at else _LAST
        case Order.REGISTERED:
            return -table.registered_at.timestamp()


def _rank(problems: Sequence[HealthProblem]) -> float:
    """Returns the rank of a table: by its most serious problem, then by the number of problems of that severity.
    `problems` are ordered by severity."""
    if not problems:
        return _LAST
    worst = problems[0].severity
    # Most tables have problems of one severity only.
    is_only = problems[-1].severity is worst
    number = len(problems) if is_only else sum(each.severity is worst for each in problems)
    return RANKS[worst] * 1e6 - min(number, 10**5)


def _text(key: _Key, order: Order) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([order.value, *key])).decode().rstrip("=")


def _parsed(cursor: str, order: Order) -> _Key:
    try:
        of, number, name, table_id = _cursors.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError as error:
        raise not_a_cursor() from error
    if of != order.value:
        raise not_a_cursor()
    return number, name, table_id
