"""The problem of clocks: the writers of a table take the times of their instants from clocks that differ, or a clock
was set back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jobs.format.clock_frame import spoken
from service.health.next_step import show_table
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.model.formatting import duration

CLOCKS_DISAGREE = Definition(
    ProblemKind.CLOCKS_DISAGREE,
    Severity.CRITICAL,
    "The clocks of the table's writers do not agree",
    "Hudi orders rows by the times of their instants, so a later write may lose to an earlier one. Every job that"
    " writes is refused, because its instant would be older than those of some writers and newer than those of others.",
    "Let all writers use the same time: set their machines by a time server, and run the writers in one time zone. A "
    "table that is created with `hoodie.table.timeline.timezone=UTC` uses UTC for writers in any zone.",
)


def disagree(table: TableFacts, now: datetime) -> HealthProblem | None:
    clock = table.snapshot.clock if table.snapshot is not None and table.is_readable else {}
    if (found := clock.get("disagreement")) is None:
        return _set_back(table, clock, now)
    one, other = (timedelta(seconds=found[name]) for name in ("one_seconds", "other_seconds"))
    apart, since = timedelta(seconds=round(abs(one - other).total_seconds())), datetime.fromisoformat(found["since"])
    return CLOCKS_DISAGREE.of(
        table.about,
        since,
        f"For {duration(now - since)} some writers have named their instants {spoken(one)} and others {spoken(other)},"
        f" in turn: the clocks are {apart} apart.",
        {**found, "apart_seconds": apart.total_seconds()},
        step=show_table(table.id),
    )


def _set_back(table: TableFacts, clock: Mapping[str, Any], now: datetime) -> HealthProblem | None:
    """Returns the problem of a clock that was set back. The problem remains after the clock was corrected, because the
    instants that were created in between keep their wrong times."""
    if (found := clock.get("set_back")) is None:
        return None
    since, back = datetime.fromisoformat(found["since"]), timedelta(seconds=round(found["seconds"]))
    more = f"; {found['instants']} do so in all" if found["instants"] > 1 else ""
    return CLOCKS_DISAGREE.of(
        table.about,
        since,
        f"{duration(now - since)} ago the clock of a writer was behind: {found['instant']} appeared after"
        f" {found['after']} had completed, and is {back} earlier{more}."
        " Compare the rows that this writer wrote with their source, because readers may see older versions of these"
        " rows.",
        dict(found),
        step=show_table(table.id),
    )
