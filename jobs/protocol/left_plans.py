"""Describes the pending plans that hold up a job, with the evidence of the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.contract import Problem
from jobs.hudi.lock_status import duration
from jobs.hudi.records import CLUSTERING, REPLACE, Instant
from jobs.hudi.table import HudiTable
from jobs.problems.left_plan import LeftPlan, Maker, advice
from jobs.problems.plans import PENDING_PLAN
from jobs.protocol import abandoned
from jobs.protocol.plan_owner import PlanOwner

_MOST_NAMED = 5


def described(table: HudiTable, plans: Iterable[Instant]) -> list[LeftPlan]:
    """Describes pending instants of table services. Hudi does not record who has made a plan. A note of this service
    about its last plan and the marks of Flink on the table show that."""
    owner, others = PlanOwner(table, ""), Maker.FLINK if table.may_have_flink else Maker.OTHER
    found = []
    for item in plans:
        seconds = abandoned.seconds_since_request(table, item)
        age = None if seconds is None else duration(seconds)
        maker = Maker.OURS if owner.has_made(item.requested) else others
        action = CLUSTERING if item.action == REPLACE and table.is_plan(item) else item.action
        found.append(LeftPlan(item.requested, action, item.state, age, maker))
    return found


def refusal(table: HudiTable, plans: Sequence[LeftPlan], *, where: str = "", title: str | None = None) -> Problem:
    """Returns the refusal because of these plans. `where` is a part of the table, with which the detail begins.
    `title` is not used if all of them are requests of writers."""
    named = plans[:_MOST_NAMED]
    more = ", ..." if len(plans) > _MOST_NAMED else ""
    detail = f"{where}{', '.join(map(str, named))}{more}"
    hint = advice(named, table.declared.name, has_buckets=table.declared.index is not None)
    if all(each.is_request for each in plans):
        title = "A write that replaces file groups has been requested"
    return PENDING_PLAN.because(detail, title=title, hint=hint)
