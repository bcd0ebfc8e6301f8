"""Budgets that the tables of a pattern or of a worker group share, and whether they are spent today."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from service.policies import policy_registry, store
from service.policies.objective import BudgetSettings
from service.policies.precedence import PATTERN, TABLE, Effective
from service.queue import attempt_figures

_DAY = timedelta(days=1)
# The members of a budget: the figure that counts against each, and its unit.
_WORKER_HOURS = "worker_hours_per_day"
_MEMBERS = {"gb_hours_per_day": ("gb_seconds", "GB-hours"), _WORKER_HOURS: ("seconds", "worker-hours")}


@dataclass(frozen=True)
class Budgets:
    """The spent budgets: a clause for each level of a policy and member of the budget. The day ends at `ends_at`."""

    spent: Mapping[tuple[str, str], str] = field(default_factory=dict)
    ends_at: datetime | None = None

    def over(self, effective: Effective, table_id: str) -> str | None:
        """Returns the clause about a spent budget of the table; None if no budget of the table is spent."""
        for member in _MEMBERS:
            level = effective.sources.get(f"budget.{member}", "")
            if found := self.spent.get((_own(table_id) if level == TABLE else level, member)):
                return found
        return self.spent.get((_of_group(effective.policy.worker_group), _WORKER_HOURS))


def read(
    connection: Connection,
    now: datetime,
    table_ids: Collection[str],
    worker_hours_by_group: Mapping[str, float] | None = None,
) -> Budgets:
    """Returns the spent budgets of all patterns, of the own levels of these tables, and of worker groups, whose hours
    of a day are given."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    levels: dict[str, Mapping[str, Any]] = {}
    groups: dict[str, set[str]] = {}
    known = store.every(connection)
    patterns = [each for each in known if each.settings.get("budget")]
    used = _Used(connection)
    if worker_hours_by_group:
        # Only tables with figures count, and to merge the policies of all tables would take long.
        first_day = today - BudgetSettings.carry_over_days * _DAY
        busy = {**used.of(today, today + 2 * _DAY), **used.of(first_day, today)}
        for group, hours in worker_hours_by_group.items():
            levels[_of_group(group)], groups[_of_group(group)] = {_WORKER_HOURS: hours}, set()
        for table_id, (_, effective) in policy_registry.effective_of_all(connection, known, busy).items():
            if effective.policy.worker_group in worker_hours_by_group:
                groups[_of_group(effective.policy.worker_group)].add(table_id)
    if patterns:
        subjects = policy_registry.subjects(connection)
        for each in patterns:
            levels[f"{PATTERN}{each.pattern}"] = each.settings["budget"]
            groups[f"{PATTERN}{each.pattern}"] = {key for key, one in subjects.items() if one.matches(each.pattern)}
    for table_id, own in store.of_tables(connection, table_ids).items():
        if own.settings.get("budget"):
            levels[_own(table_id)] = own.settings["budget"]
            groups[_own(table_id)] = {table_id}
    if not levels:
        return Budgets()
    spent: dict[tuple[str, str], str] = {}
    for level, settings in levels.items():
        days = settings.get("carry_over_days", BudgetSettings.carry_over_days)
        for member, (figure, unit) in _MEMBERS.items():
            daily = settings.get(member)
            if daily is None:
                continue
            place = attempt_figures.NAMES.index(figure)
            of_today, before = (
                _sum(each, groups[level], place)
                for each in (used.of(today, today + 2 * _DAY), used.of(today - days * _DAY, today))
            )
            allowed = daily + max(0.0, days * daily - before)
            if of_today >= allowed:
                whose = "the table" if level.startswith(TABLE) else f"the tables of {level}"
                spent[level, member] = f"{whose} have taken {of_today:.3g} {unit} today, {allowed:.3g} allowed"
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
