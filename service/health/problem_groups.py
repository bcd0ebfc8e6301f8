"""Groups of problems with one cause, so that all tables with the same kind of problem are one entry of a list. The
functions are pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from jobs.spec import Documented, Spec
from service.health.problem import RANKS, HealthProblem, ProblemKind, Severity

_OF_RECEIVERS = (ProblemKind.DELIVERIES_GIVEN_UP, ProblemKind.WEBHOOK_DISABLED, ProblemKind.WEBHOOK_FAILING)
"""Kinds of problems that one receiver causes together when it is down."""

_NAMED = 5


@dataclass(frozen=True)
class ProblemGroup(Documented):
    """Problems of one kind, or of kinds that have one cause."""

    kinds: Annotated[
        Sequence[ProblemKind],
        Spec(
            "Kinds of the group's problems, by which `GET /v1/problems` lists them", examples=(["compaction-behind"],)
        ),
    ]
    severity: Annotated[Severity, Spec("Severity of the most serious problem")]
    title: Annotated[str, Spec("What is wrong", examples=("Compaction is far behind",))]
    remedy: Annotated[str, Spec("What to do about the most serious problem", examples=("Compact the table.",))]
    problems: Annotated[int, Spec("Number of problems", examples=(7,))]
    objects: Annotated[int, Spec("Number of tables, workers or webhooks that have these problems", examples=(7,))]
    names: Annotated[Sequence[str], Spec("Names of the first of these objects, at most 5", examples=(["orders"],))]
    acknowledged: Annotated[int, Spec("Number of these problems that somebody has acknowledged", examples=(0,))]
    since: Annotated[datetime, Spec("When the oldest problem began")]


def groups(problems: Iterable[HealthProblem]) -> list[ProblemGroup]:
    """Returns the groups, the most serious first, and among equals the largest first. `problems` are ordered by
    severity."""
    found: dict[ProblemKind, list[HealthProblem]] = {}
    for problem in problems:
        found.setdefault(_head(problem.kind), []).append(problem)
    return sorted(map(_group, found.values()), key=_rank)


def with_acknowledged(
    groups: Iterable[ProblemGroup], problems: Iterable[HealthProblem], acknowledged: Collection[str]
) -> list[ProblemGroup]:
    """Returns the groups of `problems` with the numbers of those that are `acknowledged`. Groups whose problems are all
    acknowledged come last."""
    numbers = Counter(_head(each.kind) for each in problems if each.id in acknowledged)
    return sorted((replace(each, acknowledged=numbers[_head(each.kinds[0])]) for each in groups), key=_rank)


def _head(kind: ProblemKind) -> ProblemKind:
    """Returns the kind that stands for the group."""
    return _OF_RECEIVERS[0] if kind in _OF_RECEIVERS else kind


def _rank(group: ProblemGroup) -> tuple[bool, int, int, str]:
    return group.acknowledged == group.problems, RANKS[group.severity], -group.objects, group.title


def _group(problems: Sequence[HealthProblem]) -> ProblemGroup:
    first = problems[0]
    names = {each.about.id: each.about.name for each in problems}
    return ProblemGroup(
        kinds=sorted({each.kind for each in problems}),
        severity=first.severity,
        title=first.title,
        remedy=first.remedy,
        problems=len(problems),
        objects=len(names),
        names=list(names.values())[:_NAMED],
        acknowledged=0,
        since=min(each.since for each in problems),
    )
