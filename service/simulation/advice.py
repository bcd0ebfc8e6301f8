"""Advice: the cheapest setting of a table that keeps reads cheap enough, found by simulating its past."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, partial
from typing import Annotated

from jobs.contract import JobKind
from jobs.kinds.results import NO_WORK
from jobs.spec import Spec
from service.model.formatting import count
from service.model.record import Record
from service.policies.policy import Policy
from service.queue.cost import Basis
from service.simulation.advisable import ADVISABLE, Advisable
from service.simulation.fleet import Expected, Fleet
from service.simulation.outcome import Outcome
from service.simulation.simulator import simulated
from service.simulation.table_past import TablePast

PERIOD = timedelta(days=7)
"""The last commits of this period are simulated."""

MOST_COMMITS = 25_000
"""A table with more commits in the period, which is one every 24 seconds, gets no advice, because simulating it with
each setting would take too long."""

TOO_MANY = (
    f"the table has more than {MOST_COMMITS} commits in {PERIOD.days} days, which are too many to simulate each"
    " setting; compare a few settings over a shorter time with `groundskeeper policy simulate`"
)

_LEAST_COMMITS = 30
_LEAST_SECONDS = 86_400.0
_LEAST_SAVING = 0.1


class AdviceState(StrEnum):
    """What has become of advice. `none`: there is no advice, and `because` says why. `kept`: it was applied, and the
    outcome of a week was as expected."""

    NONE = "none"
    OPEN = "open"
    APPLIED = "applied"
    KEPT = "kept"
    TAKEN_BACK = "taken-back"
    DISMISSED = "dismissed"


@dataclass(frozen=True)
class Figures:
    """What a setting costs in a day, according to the simulation. `overhead` is the kind of overhead that the setting
    influences (`Advisable`); it is not exceeded in 95 % of the time."""

    jobs: float
    seconds: float
    gb_hours: float
    overhead: float

    @classmethod
    def of(cls, outcome: Outcome, overhead: float, days: float) -> Figures:
        return cls(outcome.jobs / days, outcome.seconds / days, outcome.gb_hours / days, overhead)

    @property
    def cost(self) -> float:
        """The cost in GB-hours, or in hours if workers do not report their memory."""
        return self.gb_hours or self.seconds / 3600


@dataclass(frozen=True)
class Advice(Record):
    """The last advice about a table. `figures` has those of the present setting (`now_...`), those of the advised one
    (`new_...`), and the allowed overhead (`most_overhead`)."""

    table_id: str
    computed_at: Annotated[datetime, Spec("When the advice was computed", examples=("2026-01-01T12:00:00Z",))]
    state: Annotated[AdviceState, Spec("State of the advice")]
    because: Annotated[
        str,
        Spec(
            "The advice with its figures, or why there is none",
            examples=("compaction every 12 commits instead of 5: -58 % GB-hours, read overhead 1.14 instead of 1.03",),
        ),
    ]
    setting: Annotated[
        str | None, Spec("The setting of the policy; null without advice", examples=("compaction.commits",))
    ] = None
    before: Annotated[int | None, Spec("Its value when the advice was computed", examples=(5,))] = None
    after: Annotated[int | None, Spec("The value that is advised", examples=(12,))] = None
    figures: Annotated[
        Mapping[str, float],
        Spec("Cost a day, now and with the new value", examples=({"now_gb_hours": 1.2, "new_gb_hours": 0.5},)),
    ] = field(default_factory=dict)
    own_before: int | None = None  # The value of the table's own level before it was applied; None if it had none.
    changed_at: Annotated[datetime | None, Spec("When the advice was applied, dismissed or taken back")] = None


def advised(past: TablePast, fleet: Fleet, expected: Expected, begin: float, now: datetime) -> Advice:
    """Returns the advice about a table, from its commits since `begin`. If an overhead is too high, the advice is about
    its setting; otherwise it is about the setting that saves the most."""
    none = Advice(past.id, now, AdviceState.NONE, "")
    if obstacle := _obstacle(past, begin, now.timestamp()):
        return replace(none, because=obstacle)
    begin = max(begin, past.writes[0].at)
    days = (now.timestamp() - begin) / 86_400

    @cache
    def outcome(policy: Policy) -> Outcome:
        return simulated([replace(past, policy=policy)], fleet, expected, begin, now.timestamp())

    def figures(about: Advisable, value: int) -> Figures:
        section = replace(getattr(past.policy, about.section), **{about.member: value})
        found = outcome(replace(past.policy, **{about.section: section}))
        return Figures.of(found, about.overhead(found) or 1.0, days)

    found = [replace(none, because=obstacle) for each in ADVISABLE if (obstacle := each.obstacle(past))]
    for each in (each for each in ADVISABLE if not each.obstacle(past)):
        kind = JobKind(each.section)
        if expected(past.id, kind.value, NO_WORK, dry_run=False).basis is Basis.DEFAULT:
            because = f"too little is known: no {kind.value} has ended, so its cost is unknown"
            found.append(replace(none, because=because))
        else:
            found.append(_about(none, each, past.policy, partial(figures, each)))
    best = min(found, key=_rank)
    return best if best.setting else replace(none, because="; ".join(each.because for each in found))


def _about(none: Advice, about: Advisable, policy: Policy, figures: Callable[[int], Figures]) -> Advice:
    """Returns the advice about one setting. The larger its value is, the higher is the overhead, and the lower the
    cost."""
    name, present = about.section, getattr(getattr(policy, about.section), about.member)
    today = figures(present)
    most = about.most(policy.advice, today.overhead)
    best, found = present, today
    if today.overhead <= most:
        for each in (step for step in about.steps if step > present):
            if (next_one := figures(each)).overhead > most:
                break
            best, found = each, next_one
        if found.cost > (1 - _LEAST_SAVING) * today.cost or found.jobs == today.jobs:
            return replace(none, because=f"{name} every {about.every(present)} is about the cheapest")
    else:
        for each in (step for step in reversed(about.steps) if step < present):
            best, found = each, figures(each)
            if found.overhead <= most:
                break
        if found.overhead >= today.overhead:
            because = f"no setting brings the {about.overhead_is} of {today.overhead:.2f} to {most:g}"
            return replace(none, because=because)
    saved = f"{found.cost / today.cost - 1:+.0%}".replace("%", " %") if today.cost else "no"
    unit = "GB-hours" if today.gb_hours else "work"
    because = (
        f"{name} every {about.every(best)} instead of {about.shortly(present)}: {saved} {unit},"
        f" {about.overhead_is} {found.overhead:.2f} instead of {today.overhead:.2f}"
    )
    if found.overhead > most:
        because += f"; no setting reaches {most:g}"
    by_name = {f"now_{name}": value for name, value in vars(today).items()}
    by_name |= {f"new_{name}": value for name, value in vars(found).items()}
    return replace(
        none,
        state=AdviceState.OPEN,
        because=because,
        setting=about.setting,
        before=present,
        after=best,
        figures={**by_name, "most_overhead": most},
    )


def _rank(advice: Advice) -> tuple[bool, bool, float]:
    """Returns the sort key: advice that lowers an overhead that is too high comes first, then advice that saves
    most."""
    if advice.setting is None:
        return (True, True, 0.0)
    known = advice.figures
    saved = (known["now_gb_hours"] - known["new_gb_hours"], known["now_seconds"] - known["new_seconds"])
    return (False, known["now_overhead"] <= known["most_overhead"], -(saved[0] if known["now_gb_hours"] else saved[1]))


def worse(
    figures: Mapping[str, float], overhead: float | None, gb_hours_per_day: float, overhead_is: str = "read overhead"
) -> str | None:
    """Returns a clause that says in what the outcome is worse than expected; None if it is not worse."""
    try:
        before, foreseen = figures["now_gb_hours"], figures["new_gb_hours"]
        expected, allowed = figures["new_overhead"], figures["most_overhead"]
    except KeyError:
        return "the expected outcome is not known any more"
    most = 1 + 1.25 * (max(expected, allowed) - 1)
    if overhead is not None and overhead > most:
        return f"the {overhead_is} is {overhead:.2f}, {expected:.2f} was foreseen"
    # Advice that costs more lowers the overhead, so its cost is not compared.
    if foreseen and gb_hours_per_day > 1.25 * max(before, foreseen):
        return f"jobs cost {gb_hours_per_day:.2g} GB-hours a day, {foreseen:.2g} were foreseen"
    return None


def too_little(commits: int, seconds: float) -> str | None:
    """Returns a clause if a table has too few commits of writers in the period for advice, else None. `seconds` is the
    time since the first of them."""
    if commits >= _LEAST_COMMITS and seconds >= _LEAST_SECONDS:
        return None
    return f"too little is known: {count(commits, 'commit')}; {_LEAST_COMMITS} in more than a day are needed"


def _obstacle(past: TablePast, begin: float, end: float) -> str | None:
    if len(past.writes) > MOST_COMMITS:
        return TOO_MANY
    return too_little(len(past.writes), end - max(begin, past.writes[0].at) if past.writes else 0.0)
