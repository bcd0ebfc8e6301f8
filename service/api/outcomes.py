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
from service.scheduling.decision_inputs import read_objective

router = Routes(prefix="/v1/tables", tags=["decisions"])

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_GAINS = 20


class ReadsOut(BaseModel):
    """How often the whole table is read."""

    per_day: float = Field(description="Reads a day", examples=[24.0])
    source: ReadSource = Field(
        description="Where the number comes from; `assumed`: nobody has given one", examples=["assumed"]
    )
    text: str = Field(description="The same in words", examples=["reads unknown: 24 a day assumed"])


class ReadCostOut(BaseModel):
    """What a read of all current rows costs, in processor seconds of a reader."""

    seconds: float = Field(description="Now", examples=[3.1])
    compacted_seconds: float = Field(description="After a compaction", examples=[2.5])
    merged_seconds: float = Field(description="Processor seconds if small files were merged too", examples=[2.4])
    overhead: float = Field(description="Cost of a read, divided by its cost right after a compaction", examples=[1.24])
    basis: RatesBasis = Field(description="`probe`: measured by workers; `default`: assumed", examples=["probe"])


class KeptOut(BaseModel):
    """Whether the objective is kept now, and for which share of the time it was kept. Time for which this is not known
    is left out."""

    missed: str | None = Field(description="How the objective was missed at the last check; null if it was kept")
    missed_since: datetime | None = Field(description="Since when")
    looked_at: datetime = Field(description="Time of the last check", examples=["2026-01-01T12:00:00Z"])
    week_percent: float = Field(description="Share of the last week for which the objective was kept", examples=[99.4])
    budget_used: float = Field(
        description="Share of the week's error budget that is used; above 1 the objective is not kept", examples=[0.6]
    )
    burn_hour: float = Field(
        description="Rate at which the last hour used the error budget; at rate 1 the budget lasts a week",
        examples=[0.0],
    )
    burn_day: float = Field(description="The same rate over the last day", examples=[0.2])
    text: str = Field(
        description="The same in words", examples=["kept 99.4 % of the last week, 60 % of the error budget used"]
    )


class GainOut(BaseModel):
    """What a job of a policy was expected to save each read, and what it has saved according to its result."""

    job_id: str
    kind: JobKind
    created_at: datetime
    expected_seconds: float = Field(
        description="Processor seconds that the job was expected to save each read", examples=[0.6]
    )
    saved_seconds: float | None = Field(
        description="Processor seconds that the job has saved each read; null until the job has succeeded",
        examples=[0.55],
    )
    overhead_before: float = Field(description="Overhead of reads when the job was queued", examples=[1.24])
    overhead_after: float | None = Field(
        description="Overhead at the first poll after the job, which includes later writes", examples=[1.0]
    )

    @classmethod
    def of(cls, gain: MeasuredGain) -> GainOut:
        return cls(**vars(gain))


class OutcomeOut(BaseModel):
    objective: dict[str, float | None] = Field(
        description="The objective of the effective policy", examples=[{"read_overhead": 1.2}]
    )
    is_set: bool = Field(description="Whether the objective can be kept", examples=[True])
    reads: ReadsOut = Field(description="How often the table is read")
    cost: ReadCostOut | None = Field(description="What a read costs; null before the first poll")
    kept: KeptOut | None = Field(description="Null without an objective, and before the first check")
    gb_hours_of_day: float | None = Field(
        description="GB-hours of the table's jobs in 24 hours; null without `max_gb_hours_per_day`", examples=[0.4]
    )
    gains: list[GainOut] = Field(description="The last jobs that make reads cheaper, the newest first")


@router.reader("GET /{table_id}/outcome", "Show what reads of a table cost, and whether its objective is kept")
def get_outcome(table_id: TableId, database: DatabaseDep) -> OutcomeOut:
    """An overhead is the cost of a read now, divided by its cost right after a compaction."""
    now = database.clock()
    with reading(database.engine) as connection:
        table_store.get(connection, table_id)
        objective, snapshot = read_objective(connection, table_id, now)
        state = objective_store.states(connection, now, [table_id]).get(table_id) if objective.settings.is_set else None
        hour, day = (objective_store.kept(connection, table_id, now - each) for each in (_HOUR, _DAY))
        gains = gain_store.of_table(connection, table_id, _GAINS)
    percent = objective.settings.kept_percent
    return OutcomeOut(
        objective=vars(objective.settings),
        is_set=objective.settings.is_set,
        reads=ReadsOut(
            per_day=round(objective.reads.per_day, 3), source=objective.reads.source, text=objective.reads.text
        ),
        cost=_cost(objective.cost_of_reads(snapshot), objective.rates.basis) if snapshot else None,
        kept=_kept(state, objective.settings, hour.burn(percent), day.burn(percent)) if state else None,
        gb_hours_of_day=None if objective.settings.max_gb_hours_per_day is None else round(objective.gb_hours, 4),
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
