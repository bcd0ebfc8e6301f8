"""Proposals, admissions and decisions about a table. `because` always explains them to people, with the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
from jobs.spec import Spec
from service.model.record import Record

DECIDED = tuple(
    kind for _, kind in sorted((declared.policy.turn, kind) for kind, declared in KINDS.items() if declared.policy)
)
"""Kinds that policies decide about, in the order in which they start when several are due."""


@dataclass(frozen=True)
class Run:
    """The job is due."""

    kind: JobKind
    params: Mapping[str, Any]
    because: str
    warning: str | None = None  # A sentence for the owner of the table, here and below.
    worker_group: str | None = None  # None for the worker group of the table's policy.


@dataclass(frozen=True)
class Suggest:
    """The job would be due, but only a person may start it."""

    kind: JobKind
    params: Mapping[str, Any]
    because: str
    warning: str | None = None


@dataclass(frozen=True)
class Skip:
    """The job is not due."""

    code: str  # The reason, in kebab-case.
    because: str
    until: datetime | None = None  # When the passing of time alone may change the result; None if it cannot.
    warning: str | None = None
    # The number of further commits before which no job of this kind becomes due, unless `until` comes first; 0 if
    # unknown. Jobs of other kinds do not change this number.
    commits: float = field(default=0, compare=False)


@dataclass(frozen=True)
class Wait:
    """The job is due, but may not start yet. `code` and `until` are as in `Skip`."""

    code: str
    because: str
    until: datetime | None = None
    warning: str | None = None


Proposal = Run | Suggest | Skip
"""A policy's answer for one kind, from the state of the table alone."""

Admission = Run | Suggest | Skip | Wait
"""The scheduler's answer for one kind: the proposal, or a `Wait` because of other jobs, limits, windows or a pause."""


class Verdict(StrEnum):
    RUN = "run"
    WAIT = "wait"
    SUGGEST = "suggest"
    SKIP = "skip"


@dataclass(frozen=True)
class Decision(Record):
    """A stored admission. An admission that repeats the verdict and the code of the last decision is not stored but
    counted, and `because` gets the new figures."""

    kind: JobKind
    verdict: Annotated[Verdict, Spec("`wait`: the job is due, but something blocks it")]
    code: Annotated[str, Spec("The reason as a code", examples=("not-yet",))]
    because: Annotated[
        str, Spec("The reason as a sentence", examples=("3 commits since the last compaction, threshold 5",))
    ]
    first_at: Annotated[datetime, Spec("Time at which the decision was first made", examples=("2026-01-01T12:00:00Z",))]
    last_at: Annotated[datetime, Spec("Time of its last repetition; the figures are of this time")]
    count: Annotated[int, Spec("How often the decision was made in succession")] = 1
    params: Annotated[
        Mapping[str, Any], Spec("Parameters of the job that was started or suggested", examples=({},))
    ] = field(default_factory=dict)
    warning: str | None = None
    wanted_since: Annotated[datetime | None, Spec("Time since which a waiting job has been due")] = None
    job_id: str | None = None  # The job that was started.
    id: int = 0
