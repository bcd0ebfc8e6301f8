"""The problem of an objective that is missed."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.contract import JobKind
from service.health.next_step import show_table
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.model.formatting import duration

MISSED = Definition(
    ProblemKind.OBJECTIVE_MISSED,
    Severity.WARNING,
    "The objective of the table is missed",
    "Reads cost more, or files take more, than the owner of the table allows.",
    "See what the jobs of the table wait for. Otherwise allow more GB-hours, add workers, or relax the objective.",
)

MISSED_FOR = timedelta(minutes=15)
"""The objective must have been missed for this time, because a job that already runs may meet it again."""


def missed(table: TableFacts, now: datetime) -> HealthProblem | None:
    state, objective = table.objective, table.policy.objective
    if state is None or state.missed is None or state.missed_since is None or not objective.is_set:
        return None
    if now - state.missed_since < MISSED_FOR:
        return None
    compaction = table.decisions.get(JobKind.COMPACTION)
    why = f" Compaction: {compaction.because}." if compaction else ""
    return MISSED.of(
        table.about,
        state.missed_since,
        f"For {duration(now - state.missed_since)} {state.missed}; it was {state.text(objective.kept_percent)}.{why}",
        {
            "read_overhead": round(state.overhead, 4),
            "kept_percent": round(100 * state.week.share, 2),
            "wanted_percent": objective.kept_percent,
            "budget_used": round(state.week.burn(objective.kept_percent), 4),
        },
        step=show_table(table.id),
    )
