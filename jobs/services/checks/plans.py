"""Finds pending plans that cannot be executed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.hudi import plan_firewall
from jobs.hudi.plans import COMPACTION_ACTIONS
from jobs.kinds.results import Cure
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 100


def unusable(examined: Examined) -> Iterator[Finding]:
    """Finds plans that cannot be read, whose files are gone, or whose file groups were replaced (Hudi #10964,
    #7035)."""
    for plan, problems in islice(plan_firewall.unusable(examined.table), _MOST):
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
