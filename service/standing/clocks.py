"""The problem of clocks: some writers of a table name their instants by one, and others by another."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jobs.format.clock_frame import spoken
from service.model.formatting import duration
from service.standing.problem import Definition, Severity, StandingKind
from service.standing.step import look_at_table

if TYPE_CHECKING:
    from service.standing.facts import TableFacts
    from service.standing.problem import StandingProblem

CLOCKS_DISAGREE = Definition(
    StandingKind.CLOCKS_DISAGREE,
    Severity.CRITICAL,
    "The clocks of the table's writers do not agree",
    "Hudi orders rows by the moments that writers name, so a later write may lose to an earlier one. Every job that"
    " writes is refused, because its instant would come before some writers' and after others'.",
    "Let all writers run by one clock: set their machines by a time server, and run them in one time zone. A table that"
    " is made with `hoodie.table.timeline.timezone=UTC` has one for writers in any zone.",
)


def disagree(table: TableFacts, now: datetime) -> StandingProblem | None:
    found = table.snapshot.clock.get("disagreement") if table.snapshot is not None and table.is_readable else None
    if found is None:
        return None
    one, other = (timedelta(seconds=found[name]) for name in ("one_seconds", "other_seconds"))
    apart, since = timedelta(seconds=round(abs(one - other).total_seconds())), datetime.fromisoformat(found["since"])
    return CLOCKS_DISAGREE.of(
        table.about,
        since,
        f"For {duration(now - since)} some writers have named their instants {spoken(one)} and others {spoken(other)},"
        f" in turn: the clocks are {apart} apart.",
        {**found, "apart_seconds": apart.total_seconds()},
        step=look_at_table(table.id),
    )
