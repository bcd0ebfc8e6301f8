"""Groups of problems with one cause: all tables with the same kind of problem are one entry of a list. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

from jobs.spec import Spec, Told
from service.health.problem import RANKS, ProblemKind, Severity

if TYPE_CHECKING:
    from service.health.known_problems import Known
    from service.health.problem import HealthProblem

_TOGETHER = (frozenset({ProblemKind.WEBHOOK_FAILING, ProblemKind.WEBHOOK_DISABLED, ProblemKind.DELIVERIES_GIVEN_UP}),)
"""Kinds that one dead receiver causes at once."""

_NAMED = 5


@dataclass(frozen=True)
class ProblemGroup(Told):
    """Problems of one kind, or of kinds that have one cause."""

    kinds: Annotated[
        Sequence[ProblemKind],
        Spec(
            "Kinds of the group's problems, by which `GET /v1/problems` lists them", examples=(["compaction-behind"],)
        ),
    ]
    severity: Annotated[Severity, Spec("Severity of the most serious one")]
    title: Annotated[str, Spec("What is wrong", examples=("Compaction is far behind",))]
    remedy: Annotated[str, Spec("What to do about the most serious one", examples=("Compact the table.",))]
    problems: Annotated[int, Spec("Number of problems", examples=(7,))]
    objects: Annotated[int, Spec("Number of tables, workers or webhooks that have these problems", examples=(7,))]
    names: Annotated[Sequence[str], Spec("Names of the first of these, at most 5", examples=(["orders"],))]
    acknowledged: Annotated[int, Spec("Number of these problems that somebody has acknowledged", examples=(0,))]
    since: Annotated[datetime, Spec("When the oldest one began")]


# `known` is computed every few seconds at most, and every overview shows its groups.
@lru_cache(maxsize=2)
def groups(known: Known, acknowledged: frozenset[str] = frozenset()) -> Sequence[ProblemGroup]:
    """Returns the groups, the most serious first, and among equals the largest first. Groups that are `acknowledged` as
    a whole come last."""
    found: defaultdict[frozenset[ProblemKind], list[HealthProblem]] = defaultdict(list)
    for problem in known.problems:
        found[_kinds(problem.kind)].append(problem)
    return sorted((_group(each, acknowledged) for each in found.values()), key=_rank)


def _rank(group: ProblemGroup) -> tuple[bool, int, int, str]:
    return group.acknowledged == group.problems, RANKS[group.severity], -group.objects, group.title


def _kinds(kind: ProblemKind) -> frozenset[ProblemKind]:
    return next((each for each in _TOGETHER if kind in each), frozenset({kind}))


def _group(problems: Sequence[HealthProblem], acknowledged: frozenset[str]) -> ProblemGroup:
    first = problems[0]
    names = dict.fromkeys((each.about.id, each.about.name) for each in problems)
    return ProblemGroup(
        kinds=sorted({each.kind for each in problems}),
        severity=first.severity,
        title=first.title,
        remedy=first.remedy,
        problems=len(problems),
        objects=len(names),
        names=[name for _, name in list(names)[:_NAMED]],
        acknowledged=sum(each.id in acknowledged for each in problems) if acknowledged else 0,
        since=min(each.since for each in problems),
    )
