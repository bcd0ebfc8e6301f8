"""The problem that another process executes a table service that this service executes too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from service.health.next_step import show_table
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.lake.commit import CLUSTERING, COMPACTION
from service.model.formatting import duration
from service.observation.other_runs import STOPPED_AFTER

OTHER_RUNNER = Definition(
    ProblemKind.OTHER_RUNNER,
    Severity.WARNING,
    "A writer executes the same table service as this service",
    "Two processes that execute one plan corrupt the table. Groundskeeper does not touch a plan that another "
    "process executes, but Hudi's own table services may do so: asynchronous clustering sends no heartbeats, and "
    "executes every pending plan.",
    "Switch the table service off in the writer, or here in the table's policy.",
)

_OFF = {
    COMPACTION: "`hoodie.compact.inline=false` and `hoodie.datasource.compaction.async.enable=false`, which is on by"
    " default in a Spark stream; in Flink `compaction.async.enabled=false`",
    CLUSTERING: "`hoodie.clustering.inline=false` and `hoodie.clustering.async.enabled=false`; in Flink"
    " `clustering.async.enabled=false`",
}


def other_runners(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each table service that is switched on in the policy, or that writers delegate to this
    service."""
    if table.snapshot is None:
        return
    services = {
        COMPACTION: ("compaction", table.policy.compaction.enabled),
        CLUSTERING: ("clustering", table.policy.clustering.enabled),
    }
    for run in table.snapshot.other_runs:
        name, is_on = services[run.operation]
        why = "although a writer had delegated it" if run.is_delegated else "although the policy has it switched on"
        if (is_on or run.is_delegated) and now - run.at < STOPPED_AFTER:
            yield OTHER_RUNNER.of(
                table.about,
                run.since,
                f"The {name} {run.instant}, which completed {duration(now - run.at)} ago, was executed by no job of"
                f" this service, {why}.",
                {"service": name, "instant": run.instant, "completed_at": run.at.isoformat()},
                step=show_table(table.id),
                part=name,
                remedy=f"Switch {name} off in the writer: {_OFF[run.operation]}. Or switch it off in the policy.",
            )
