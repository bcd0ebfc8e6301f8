"""Replays the same commits under the present policy and under a new one, and compares both with what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Self

from sqlalchemy import Connection, Engine

from service.db.engine import open_engine, reading
from service.model.formatting import count, duration, size
from service.policies import freeze_store, pause_store
from service.policies.policy import Policy
from service.queue import attempt_figures, worker_store
from service.queue.cost_store import Lessons
from service.scheduling.table_objectives import level_of
from service.simulation import budgets_past, past_store, read_costs
from service.simulation.edit import Edit, Edited, edited
from service.simulation.errors import SimulationTooLargeError
from service.simulation.fleet import Expected, Fleet
from service.simulation.outcome import Outcome
from service.simulation.past_store import Past, TooManyCommits
from service.simulation.side_by_side import both
from service.simulation.simulator import simulated
from service.simulation.table_past import TablePast

MOST_TABLES = 1000
MOST_DAYS = 90
MOST_TABLE_DAYS = 14_000
_DAY = timedelta(days=1)
# A caution is given if commits of a shorter share of the period are known, or if the simulation of the present policy
# differs more from what really happened.
_KNOWN_SHARE = 0.5
_MOST_ERROR = 0.25


@dataclass(frozen=True)
class Period:
    begin: datetime
    end: datetime
    now: datetime


@dataclass(frozen=True)
class WhatIf:
    """The compared outcomes. `now` is the simulated outcome of the present policy, `new` that of the new policy, and
    `actual` what really happened. `names` are the names of the tables by id. `known_since` is the time of the first
    known commit of the period. `left_out` are clauses about facts of these tables that are not simulated."""

    begin: datetime
    end: datetime
    names: Mapping[str, str] = field(default_factory=dict)
    commits: int = 0
    known_since: datetime | None = None
    now: Outcome = field(default_factory=Outcome)
    new: Outcome = field(default_factory=Outcome)
    actual: Outcome = field(default_factory=Outcome)
    left_out: Sequence[str] = ()

    @property
    def caution(self) -> str | None:
        """Returns why these figures may be wrong, and by how much; None if there is no reason for doubt."""
        found = [*self.left_out]
        if self.known_since is not None:
            known = self.end - self.known_since
            if known < _KNOWN_SHARE * (self.end - self.begin):
                found.append(f"commits are known since {duration(known)} only")
        if self.error is not None and self.error > _MOST_ERROR:
            found.append(
                f"the present policy has {count(self.now.jobs, 'job')} in the simulation and had {self.actual.jobs}"
            )
        return "; ".join(found) or None

    @property
    def error(self) -> float | None:
        """Returns by which share the number of simulated jobs of the present policy differs from the number that really
        ran; None if no job ran."""
        return abs(self.now.jobs - self.actual.jobs) / self.actual.jobs if self.actual.jobs else None

    @property
    def text(self) -> str:
        """Returns the difference as a sentence."""
        if not self.names:
            return "No table would have another policy."
        if not self.commits:
            return f"No commits of {count(len(self.names), 'table')} are known in this period."
        parts = [
            f"{self.new.jobs} jobs instead of {self.now.jobs}{_change(self.now.jobs, self.new.jobs)}",
            f"{duration(self.new.seconds)} of work instead of {duration(self.now.seconds)}"
            f"{_change(self.now.seconds, self.new.seconds)}",
            f"{size(self.new.rewritten_bytes)} rewritten instead of {size(self.now.rewritten_bytes)}",
        ]
        if self.new.read_overhead is not None and self.now.read_overhead is not None:
            parts.append(f"read overhead {self.new.read_overhead:.2f} instead of {self.now.read_overhead:.2f}")
        return "; ".join(parts) + "."


@dataclass(frozen=True)
class Simulating:
    """Runs a simulation in another process, which opens its own connection to the database, because a simulation
    occupies a processor core for seconds. `fleet` has the settings of the service; slots and freezes are read from the
    database."""

    database: str = field(repr=False)
    fleet: Fleet = field(default_factory=Fleet)

    @classmethod
    def of(cls, engine: Engine, fleet: Fleet | None = None) -> Self:
        return cls(engine.url.render_as_string(hide_password=False), fleet or Fleet())


class Replayer(Simulating):
    """Computes the effect of an edit."""

    def __call__(self, edit: Edit, period: Period) -> WhatIf:
        """Raises SimulationTooLargeError, TableNotFoundError or PolicyNotFoundError."""
        with reading(engine_of(self.database)) as connection:
            return what_if(connection, edit, period, self.fleet)


engine_of = cache(partial(open_engine, connections=1))


def what_if(connection: Connection, edit: Edit, period: Period, fleet: Fleet) -> WhatIf:
    """Returns the effect that the edit would have had. `fleet` has settings; its slots and freezes are read from the
    database."""
    found = edited(connection, edit, period.now)
    names = {table_id: found.subjects[table_id].name for table_id in found.new.effective}
    if not names:
        return WhatIf(period.begin, period.end)
    check(len(names), period)
    current = {table_id: (found.subjects[table_id], each.policy) for table_id, each in found.now.effective.items()}
    try:
        past = past_store.read(connection, current, period.begin, period.end, period.now)
    except TooManyCommits as error:
        detail = f"The tables have more than {past_store.MOST_COMMITS} commits in this period."
        raise SimulationTooLargeError(detail) from error
    read_costs.add(connection, past.pasts, period.now)
    _add_spent(connection, past.pasts, found, period.begin)
    fleet = with_facts(connection, fleet, period.now)
    sides = found.now, found.new
    budgets = [
        budgets_past.read(connection, side, found.subjects, period.begin, fleet.worker_hours_by_group) for side in sides
    ]
    levels = [{key: level for key, each in side.effective.items() if (level := level_of(each))} for side in sides]
    now, new = (replace(fleet, budgets=b, levels=of) for b, of in zip(budgets, levels, strict=True))
    expected = learned(connection)
    policies = {table_id: each.policy for table_id, each in found.new.effective.items()}
    outcomes = both(partial(_simulated, past, None, now, expected), partial(_simulated, past, policies, new, expected))
    about = period.begin, period.end, names, past.commits, past.known_since
    left_out = list(dict.fromkeys(clause for each in budgets for clause in each.left_out))
    if period.end > period.now and pause_store.pause_of(connection):
        left_out.append("all upkeep is paused, but the simulation starts jobs")
    return WhatIf(*about, *outcomes, past.actual, left_out)


def _add_spent(connection: Connection, pasts: dict[str, TablePast], found: Edited, begin: datetime) -> None:
    """Adds what jobs have cost in the last day, on which the limit of a table's own objective depends."""
    for table_id, new in found.new.effective.items():
        both_sides = (each.policy.objective for each in (found.now.effective[table_id], new))
        if table_id in pasts and any(each.max_gb_hours_per_day is not None for each in both_sides):
            spent = attempt_figures.gb_hours_of_each(connection, table_id, begin - _DAY, begin)
            pasts[table_id] = replace(pasts[table_id], spent=spent)


def check(tables: int, period: Period) -> None:
    """Raises SimulationTooLargeError."""
    days = (period.end - period.begin) / _DAY
    if days > MOST_DAYS:
        raise SimulationTooLargeError(f"The period has {days:.0f} days; {MOST_DAYS} are allowed.")
    if tables > MOST_TABLES:
        raise SimulationTooLargeError(f"The edit is about {tables} tables; {MOST_TABLES} are allowed.")
    if tables * days > MOST_TABLE_DAYS:
        detail = (
            f"{tables} tables for {days:.0f} days are {tables * days:.0f} table days; {MOST_TABLE_DAYS} are allowed."
        )
        raise SimulationTooLargeError(detail)


def with_facts(connection: Connection, fleet: Fleet, now: datetime) -> Fleet:
    """Returns the fleet with the slots of the ready workers, and with the freezes."""
    slots: Counter[str] = Counter()
    for worker in worker_store.every(connection):
        if worker.is_alive(now) and worker.is_ready:
            slots[worker.info.group] += worker.info.slots or 1
    return replace(fleet, slots=slots, freezes=freeze_store.every(connection))


def learned(connection: Connection) -> Expected:
    """Returns the expected costs of the cost model."""
    lessons = Lessons()
    lessons.look_up_shapes(connection)
    lessons.read_all(connection)
    return lessons.model.expected


def _simulated(past: Past, policies: Mapping[str, Policy] | None, fleet: Fleet, expected: Expected) -> Outcome:
    pasts = [
        each if policies is None else replace(each, policy=policies[table_id]) for table_id, each in past.pasts.items()
    ]
    return simulated(pasts, fleet, expected, past.begin.timestamp(), past.end.timestamp())


def _change(before: float, after: float) -> str:
    return f" ({after / before - 1:+.0%})" if before else ""
