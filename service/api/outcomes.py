"""The cost of reads of a table, and its objective: /v1/tables/{id}/outcome"""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import BaseModel, Field

from jobs.contract import JobKind
from service.api.dependencies import DatabaseDep
from service.api.routes import Routes
from service.api.tables import TableId
from service.catalog import table_store
from service.db.engine import reading
from service.outcome import objective_store
from service.outcome.gain import MeasuredGain
from service.outcome.objective import ObjectiveState
from service.outcome.read_cost import RatesBasis, ReadCost
from service.outcome.reads import ReadSource
from service.policies.objective import ObjectiveSettings
from service.queue import gain_store
from service.scheduling.decision_inputs import read_aim

router = Routes(prefix="/v1/tables", tags=["decisions"])

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_GAINS = 20


class ReadsOut(BaseModel):
    """How often the whole table is read."""

    per_day: float = Field(description="Reads a day", examples=[24.0])
    source: ReadSource = Field(description="Who says so; `assumed`: nobody", examples=["assumed"])
    text: str = Field(description="The same in words", examples=["reads unknown: 24 a day assumed"])


class ReadCostOut(BaseModel):
    """What a read of all current rows costs, in processor seconds of a reader."""

    seconds: float = Field(description="Now", examples=[3.1])
    compacted_seconds: float = Field(description="After a compaction", examples=[2.5])
    merged_seconds: float = Field(description="If then small files were merged too", examples=[2.4])
    overhead: float = Field(description="How many times it costs what it does after a compaction", examples=[1.24])
    basis: RatesBasis = Field(description="`probe`: as workers have measured; `default`: assumed", examples=["probe"])


class KeptOut(BaseModel):
    """Whether the objective is kept, and how well it was. Shares are of the time for which that is known."""

    missed: str | None = Field(description="How the last look found it missed; null if it was kept")
    missed_since: datetime | None = Field(description="Since when")
    looked_at: datetime = Field(description="Time of that look", examples=["2026-01-01T12:00:00Z"])
    week_percent: float = Field(description="Share of the last week for which it was kept", examples=[99.4])
    budget_used: float = Field(
        description="Share of the week's error budget that is used; above 1 the objective is not kept", examples=[0.6]
    )
    burn_hour: float = Field(
        description="How fast the last hour used the budget: 1 uses it up in exactly a week", examples=[0.0]
    )
    burn_day: float = Field(description="The same of the last day", examples=[0.2])
    text: str = Field(
        description="The same in words", examples=["kept 99.4 % of the last week, 60 % of the error budget used"]
    )


class GainOut(BaseModel):
    """What a job of a policy was expected to save each read, and what it has saved by its own result."""

    job_id: str
    kind: JobKind
    created_at: datetime
    expected_seconds: float = Field(description="Processor seconds that it was expected to save a read", examples=[0.6])
    saved_seconds: float | None = Field(description="What it has saved; null until it ends well", examples=[0.55])
    overhead_before: float = Field(description="Overhead of reads when it was queued", examples=[1.24])
    overhead_after: float | None = Field(
        description="The same at the first poll after it, with what was written meanwhile", examples=[1.0]
    )

    @classmethod
    def of(cls, gain: MeasuredGain) -> GainOut:
        return cls(**vars(gain))


class OutcomeOut(BaseModel):
    objective: dict[str, float | None] = Field(
        description="The objective of the effective policy", examples=[{"read_overhead": 1.2}]
    )
    is_set: bool = Field(description="Whether it can be kept or missed", examples=[True])
    reads: ReadsOut = Field(description="How often the table is read")
    cost: ReadCostOut | None = Field(description="What a read costs; null before the first poll")
    kept: KeptOut | None = Field(description="Null without an objective, and before the first look")
    gb_hours_of_day: float | None = Field(
        description="GB-hours of its jobs in 24 hours; null without `max_gb_hours_per_day`", examples=[0.4]
    )
    gains: list[GainOut] = Field(description="The last jobs that make reads cheaper, the newest first")


@router.reader("GET /{table_id}/outcome", "Show what reads of a table cost, and whether its objective is kept")
def get_outcome(table_id: TableId, database: DatabaseDep) -> OutcomeOut:
    """An overhead compares a read now with one right after a compaction."""
    now = database.clock()
    with reading(database.engine) as connection:
        table_store.get(connection, table_id)
        aim, snapshot = read_aim(connection, table_id, now)
        state = objective_store.states(connection, now, [table_id]).get(table_id) if aim.objective.is_set else None
        hour, day = (objective_store.kept(connection, table_id, now - each) for each in (_HOUR, _DAY))
        gains = gain_store.of_table(connection, table_id, _GAINS)
    percent = aim.objective.kept_percent
    return OutcomeOut(
        objective=vars(aim.objective),
        is_set=aim.objective.is_set,
        reads=ReadsOut(per_day=round(aim.reads.per_day, 3), source=aim.reads.source, text=aim.reads.text),
        cost=_cost(aim.cost_of_reads(snapshot), aim.rates.basis) if snapshot else None,
        kept=_kept(state, aim.objective, hour.burn(percent), day.burn(percent)) if state else None,
        gb_hours_of_day=None if aim.objective.max_gb_hours_per_day is None else round(aim.gb_hours, 4),
        gains=[GainOut.of(each) for each in gains],
    )


def _cost(cost: ReadCost, basis: RatesBasis) -> ReadCostOut:
    return ReadCostOut(
        seconds=round(cost.now, 4),
        compacted_seconds=round(cost.compacted, 4),
        merged_seconds=round(cost.merged, 4),
        overhead=round(cost.of_logs, 4),
        basis=basis,
    )


def _kept(state: ObjectiveState, objective: ObjectiveSettings, hour: float, day: float) -> KeptOut:
    return KeptOut(
        missed=state.missed,
        missed_since=state.missed_since,
        looked_at=state.looked_at,
        week_percent=round(100 * state.week.share, 3),
        budget_used=round(state.week.burn(objective.kept_percent), 4),
        burn_hour=round(hour, 4),
        burn_day=round(day, 4),
        text=state.text(objective.kept_percent),
    )
