"""/v1/policies/simulate: what another policy would have done in the past"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self

from pydantic import BaseModel, Field, StringConstraints, model_validator

from jobs.contract import JobKind
from service.api.answers import Shown
from service.api.dependencies import DatabaseDep, SimulatorDep
from service.api.policy_models import PatternPolicyIn
from service.api.requests import SOME_TEXT, Moment, Request
from service.api.routes import Routes
from service.api.structs import made, struct_of
from service.catalog.ownership import TAG
from service.model.errors import ParamsInvalidError, PolicyNotFoundError
from service.model.storage_errors import ReadTimedOutError
from service.model.table_errors import TableNotFoundError
from service.policies.precedence import TAG as TAG_PREFIX
from service.simulation.edit import Edit
from service.simulation.errors import SimulationTooLargeError
from service.simulation.outcome import KindOutcome, Outcome, Point, TableOutcome
from service.simulation.what_if import MOST_TABLES, Period, WhatIf

router = Routes(prefix="/v1/policies", tags=["policies"])

_DEFAULT = timedelta(days=14)
_MOST_SHOWN = 20


class SimulateIn(Request):
    """A pattern, a tag or tables, and the policy that these would have had."""

    policy: PatternPolicyIn | None = Field(
        description="The policy that replaces the present one of the pattern or tag; null for its deletion. If "
        "`tables` are given: settings that are added to each table's own policy",
        examples=[{"compaction": {"commits": 12}}],
    )
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=SOME_TEXT)] | None = Field(
        None, description="A pattern of tables, as in policies", examples=["orders_*"]
    )
    tag: Annotated[str, StringConstraints(pattern=TAG)] | None = Field(
        None, description="A tag, which is the same as the pattern `tag:<tag>`", examples=["team=shop"]
    )
    tables: list[Annotated[str, StringConstraints(max_length=64, pattern=SOME_TEXT)]] | None = Field(
        None, min_length=1, max_length=MOST_TABLES, description="Ids of tables", examples=[["tbl_0f3c2a9d5e7b1c44"]]
    )
    since: Moment | None = Field(
        None, alias="from", description="Beginning of the period; default: 14 days before its end"
    )
    until: Moment | None = Field(
        None,
        alias="to",
        description="End of the period; default: now. A later time, without `from`, means a forecast from now on: it"
        " begins with the files of the last polls, and repeats the commits of a past period of the same length",
    )

    @model_validator(mode="after")
    def _is_about_tables(self) -> Self:
        if sum(each is not None for each in (self.pattern, self.tag, self.tables)) != 1:
            raise ValueError("needs one of `pattern`, `tag` and `tables`")
        if self.tables is not None and self.policy is None:
            raise ValueError("needs a `policy` for `tables`")
        return self

    def edit(self) -> Edit:
        settings = {name: value for name, value in (self.policy or {}).items() if name != "precedence"}
        pattern = f"{TAG_PREFIX}{self.tag}" if self.tag is not None else self.pattern
        precedence = (self.policy or {}).get("precedence", 0)
        return Edit(None if self.policy is None else settings, pattern, precedence, tuple(self.tables or ()))


class KindOutcomeOut(Shown, declared=KindOutcome):
    """The jobs of one kind."""

    kind: JobKind


class PointOut(Shown, declared=Point):
    """The sums over all tables at one time."""


class OutcomeOut(BaseModel):
    jobs: int = Field(description="Jobs that succeeded", examples=[412])
    seconds: float = Field(description="Seconds that workers spent on these jobs", examples=[5400.0])
    gb_hours: float = Field(description="This time in hours, times the memory of a slot in GiB", examples=[3.0])
    rewritten_bytes: int = Field(description="Bytes that the jobs wrote into base files", examples=[53687091200])
    read_overhead: float | None = Field(
        description="The read overhead of all tables together, as the value that was not exceeded in 95 % of the "
        "time; null if nothing is known",
        examples=[1.14],
    )
    kept: float | None = Field(
        description="Share of the time for which objectives were kept, of all tables with an objective; null without"
        " such tables",
        examples=[0.994],
    )
    longest_wait: float | None = Field(
        description="Longest time for which a due job waited for a slot, in seconds; null if it is not known",
        examples=[42.0],
    )
    kinds: list[KindOutcomeOut] = Field(
        description="The jobs by kind; the kind on which workers spent the most time comes first"
    )
    points: list[PointOut] = Field(description="At equidistant times, without those about which nothing is known")

    @classmethod
    def of(cls, outcome: Outcome) -> OutcomeOut:
        kinds = [KindOutcomeOut.of(each) for each in outcome.kinds]
        return made(cls, outcome, kinds=kinds, points=[PointOut.of(each) for each in outcome.points])


class SimulatedTableOut(BaseModel):
    id: str = Field(description="Id of the table", examples=["tbl_0f3c2a9d5e7b1c44"])
    name: str
    jobs_now: int = Field(description="Simulated jobs of the present policy", examples=[120])
    jobs_new: int = Field(description="Simulated jobs of the new policy", examples=[50])
    gb_hours_now: float = Field(description="Their GB-hours", examples=[3.1])
    gb_hours_new: float = Field(description="Their GB-hours", examples=[1.3])
    read_overhead_now: float = Field(description="Not exceeded in 95 % of the time", examples=[1.05])
    read_overhead_new: float = Field(description="Not exceeded in 95 % of the time", examples=[1.14])

    @classmethod
    def of(cls, name: str, now: TableOutcome, new: TableOutcome) -> SimulatedTableOut:
        return cls(
            id=now.id,
            name=name,
            jobs_now=now.jobs,
            jobs_new=new.jobs,
            gb_hours_now=now.gb_hours,
            gb_hours_new=new.gb_hours,
            read_overhead_now=now.overhead,
            read_overhead_new=new.overhead,
        )


class SimulationOut(BaseModel):
    since: datetime = Field(alias="from", description="Beginning of the period")
    until: datetime = Field(alias="to", description="End of the period")
    tables: int = Field(description="Tables that the edit is about", examples=[12])
    commits: int = Field(description="Commits of writers that were replayed", examples=[20160])
    known_since: datetime | None = Field(description="First known commit of the period; null if there is none")
    text: str = Field(
        description="The difference in a sentence",
        examples=["412 jobs instead of 1012 (-59%); 2 h of work instead of 5 h (-60%)."],
    )
    error: float | None = Field(
        description="Share by which the jobs of `now` differ from those of `actual`; null if there were none",
        examples=[0.04],
    )
    caution: str | None = Field(
        description="Why the figures may be wrong; null if there is no reason for doubt",
        examples=["commits are known since 5 h only"],
    )
    now: OutcomeOut = Field(description="Result of the present policy in the simulation")
    new: OutcomeOut = Field(description="Result of the new policy in the simulation")
    actual: OutcomeOut = Field(
        description="What really happened, including submitted jobs, failures and table services in writers"
    )
    items: list[SimulatedTableOut] = Field(description="The 20 tables whose work changes the most")

    @classmethod
    def of(cls, found: WhatIf) -> SimulationOut:
        tables = [(found.now.tables[each], found.new.tables[each]) for each in found.now.tables]
        tables.sort(key=lambda each: -abs(each[1].seconds - each[0].seconds))
        return struct_of(
            cls
        )(
            since=found.begin,  # type: ignore[call-arg]  # its alias is no word of Python
            until=found.end,
            tables=len(found.names),
            commits=found.commits,
            known_since=found.known_since,
            text=found.text,
            error=found.error,
            caution=found.caution,
            now=OutcomeOut.of(found.now),
            new=OutcomeOut.of(found.new),
            actual=OutcomeOut.of(found.actual),
            items=[SimulatedTableOut.of(found.names[now.id], now, new) for now, new in tables[:_MOST_SHOWN]],
        )


@router.reader(
    "POST /simulate",
    "Show what another policy would have done in the past",
    SimulationTooLargeError,
    PolicyNotFoundError,
    TableNotFoundError,
)
def simulate_policy(wanted: SimulateIn, database: DatabaseDep, simulator: SimulatorDep) -> SimulationOut:
    """Replays the commits of the tables under the present policy and under the new one, with the slots of the workers
    that are ready now. Starts nothing and stores nothing. Takes seconds, or up to a minute for very many commits."""
    now = database.clock()
    end = wanted.until or now
    begin = now if end > now else wanted.since or end - _DEFAULT
    if begin >= end or (end > now and wanted.since is not None):
        raise ParamsInvalidError.of("from", "must be before `to`; if `to` is in the future, leave it out")
    try:
        return SimulationOut.of(simulator(wanted.edit(), Period(begin, end, now)))
    except ReadTimedOutError as error:
        raise SimulationTooLargeError("The simulation was ended after its time limit.") from error
