"""Budgets that the tables of a pattern or of a worker group share, and whether they are spent today."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from service.db.documents import AtOnce
from service.policies import policy_registry, store
from service.policies.objective import BudgetSettings
from service.policies.policy import PatternPolicy, TableLevel
from service.policies.precedence import PATTERN, TABLE, Effective, Subject
from service.queue import attempt_figures

_DAY = timedelta(days=1)
_LEVELS = AtOnce(store.EVERY, store.OF_TABLES)
_WORKER_HOURS = "worker_hours_per_day"
_UNITS = {"gb_hours_per_day": "GB-hours", _WORKER_HOURS: "worker-hours"}
MEMBERS = {"gb_hours_per_day": "gb_seconds", _WORKER_HOURS: "seconds"}
"""The members of a budget, and the figure of attempts that is compared with each."""

Key = tuple[str, str]
"""The owner of a budget, which is a level of a policy or a worker group; and the member of the budget."""


@dataclass(frozen=True)
class SharedBudget:
    """The budget of a level of a policy or of a worker group: what its `tables` may cost together in a day."""

    level: str
    settings: Mapping[str, Any]
    tables: Collection[str]

    @property
    def carry_over_days(self) -> int:
        days: int = self.settings.get("carry_over_days", BudgetSettings.carry_over_days)
        return days

    @property
    def keys(self) -> list[Key]:
        return [(self.level, member) for member in MEMBERS if self.settings.get(member) is not None]

    @property
    def whose(self) -> str:
        return "the table" if self.level.startswith(TABLE) else f"the tables of {self.level}"

    def overspent(self, member: str, of_today: float, before: float) -> str | None:
        """Returns a clause if the budget is spent; None otherwise. `of_today` is what jobs have taken today, in hours.
        `before` is what jobs took in the last `carry_over_days` before today. The unspent rest of these days may be
        spent today."""
        allowed = self.settings[member] + max(0.0, self.carry_over_days * self.settings[member] - before)
        if of_today < allowed:
            return None
        return f"{self.whose} have taken {of_today:.3g} {_UNITS[member]} today, {allowed:.3g} allowed"


@dataclass(frozen=True)
class Budgets:
    """The spent budgets: a clause for each level of a policy and member of the budget. The day ends at `ends_at`."""

    spent: Mapping[Key, str] = field(default_factory=dict)
    ends_at: datetime | None = None

    def over(self, effective: Effective, table_id: str) -> str | None:
        """Returns the clause about a spent budget of the table; None if no budget of the table is spent."""
        return next((self.spent[each] for each in keys(effective, table_id) if each in self.spent), None)


def keys(effective: Effective, table_id: str) -> Iterator[Key]:
    """Yields the budgets for which a table counts."""
    for member in MEMBERS:
        level = effective.sources.get(f"budget.{member}", "")
        yield (_own(table_id) if level == TABLE else level, member)
    yield (_of_group(effective.policy.worker_group), _WORKER_HOURS)


def of_levels(
    patterns: Sequence[PatternPolicy], own: Mapping[str, TableLevel], subjects: Mapping[str, Subject]
) -> Iterator[SharedBudget]:
    """Yields the budgets of patterns, and those of single tables. `subjects` has all tables."""
    for each in patterns:
        if settings := each.settings.get("budget"):
            tables = {table_id for table_id, subject in subjects.items() if subject.matches(each.pattern)}
            yield SharedBudget(f"{PATTERN}{each.pattern}", settings, tables)
    for table_id, level in own.items():
        if settings := level.settings.get("budget"):
            yield SharedBudget(_own(table_id), settings, {table_id})


def of_groups(worker_hours: Mapping[str, float], groups: Mapping[str, str]) -> Iterator[SharedBudget]:
    """Yields the budgets of worker groups. `worker_hours` has the hours that each group may take in a day, and `groups`
    the worker group of each table."""
    tables: dict[str, set[str]] = {group: set() for group in worker_hours}
    for table_id, group in groups.items():
        if group in tables:
            tables[group].add(table_id)
    for group, hours in worker_hours.items():
        yield SharedBudget(_of_group(group), {_WORKER_HOURS: hours}, tables[group])


def read(
    connection: Connection,
    now: datetime,
    table_ids: Collection[str],
    worker_hours_by_group: Mapping[str, float] | None = None,
) -> Budgets:
    """Returns the spent budgets of all patterns, of the own levels of these tables, and of worker groups.
    `worker_hours_by_group` has the hours that each group may take in a day."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    patterns, own = _LEVELS.read(connection, {"of_tables": list(table_ids)})
    used = _Used(connection)
    found: list[SharedBudget] = []
    if worker_hours_by_group:
        # Only tables with figures count, because merging the policies of all tables would take long.
        first_day = today - BudgetSettings.carry_over_days * _DAY
        busy = {**used.of(today, today + 2 * _DAY), **used.of(first_day, today)}
        policies = policy_registry.effective_of_all(connection, patterns, busy)
        groups = {table_id: effective.policy.worker_group for table_id, (_, effective) in policies.items()}
        found += of_groups(worker_hours_by_group, groups)
    are_shared = any(each.settings.get("budget") for each in patterns)
    subjects = policy_registry.subjects(connection) if are_shared else {}
    found += of_levels(patterns, own, subjects)
    if not found:
        return Budgets()
    spent: dict[Key, str] = {}
    for each in found:
        for level, member in each.keys:
            place = attempt_figures.NAMES.index(MEMBERS[member])
            of_today, before = (
                _sum(amounts, each.tables, place)
                for amounts in (
                    used.of(today, today + 2 * _DAY),
                    used.of(today - each.carry_over_days * _DAY, today),
                )
            )
            if clause := each.overspent(member, of_today, before):
                spent[level, member] = clause
    return Budgets(spent, today + _DAY)


def _of_group(name: str) -> str:
    return f"worker group '{name}'"


def _own(table_id: str) -> str:
    return f"{TABLE} {table_id}"


@dataclass
class _Used:
    """Reads the figures of periods by table id, each period once."""

    connection: Connection
    known: dict[tuple[datetime, datetime], dict[str, tuple[float, ...]]] = field(default_factory=dict)

    def of(self, since: datetime, until: datetime) -> dict[str, tuple[float, ...]]:
        if (since, until) not in self.known:
            found = attempt_figures.sums(self.connection, since, until, by_kind=False) if since < until else []
            self.known[since, until] = {each.table_id: tuple(each.amounts) for each in found}
        return self.known[since, until]


def _sum(used: Mapping[str, tuple[float, ...]], tables: Collection[str], place: int) -> float:
    """Returns the sum over the tables, in hours."""
    return sum(amounts[place] for table_id, amounts in used.items() if table_id in tables) / 3600
