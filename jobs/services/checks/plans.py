"""Finds pending plans that cannot be executed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.hudi import plan_checks
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, pending_plans
from jobs.kinds.results import Cure
from jobs.problems.plans import PLAN_UNUSABLE
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.hudi.table import HudiTable

_MOST = 100


def unusable(examined: Examined) -> Iterator[Finding]:
    """Finds plans that cannot be read, whose files are gone, or whose file groups were replaced (Hudi #10964,
    #7035); and clusterings of a table with a simple bucket index."""
    found = list(islice(plan_checks.unusable(examined.table), _MOST))
    yield from _of_buckets(examined.table, {plan.instant for plan, _ in found})
    for plan, problems in found:
        is_compaction = plan.action in COMPACTION_ACTIONS
        for problem in problems:
            yield Finding(
                problem.type,
                problem.title,
                {plan.instant: problem.detail},
                "Hudi's own runner fails at the plan again and again, or loses the rows of the files."
                + ("" if is_compaction else " Writers to its file groups fail."),
                "Put the files back. A compaction plan cannot be rolled back, because later logs may refer to it. "
                "Compaction jobs skip this plan and compact the rest."
                if is_compaction
                else "Roll the plan back; clustering makes a new one.",
                None if is_compaction else Cure(kind=JobKind.ROLLBACK, params={"instant": plan.instant}),
            )


def _of_buckets(table: HudiTable, others: set[str]) -> Iterator[Finding]:
    """Finds clustering plans on a table with a simple bucket index, except those that `others` name. Hudi's runner
    (1.2.0) fails at such a plan, or, without the options of the index, gives the new file groups ids that name no
    bucket."""
    if table.declared.index is None or table.has_consistent_hashing():
        return
    plans = [plan.instant for plan in pending_plans(table, CLUSTERING_ACTIONS) if plan.content]
    for instant in [each for each in plans if each not in others][:_MOST]:
        yield Finding(
            PLAN_UNUSABLE.type,
            PLAN_UNUSABLE.title,
            {instant: f"instant {instant}"},
            "While the plan is pending, writers to its file groups fail; after its execution, every writer fails.",
            PLAN_UNUSABLE.hint,
            Cure(kind=JobKind.ROLLBACK, params={"instant": instant}),
        )
