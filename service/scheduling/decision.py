"""Proposals, admissions and decisions about a table. `because` is always a sentence for people, with the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobs.contract import JobKind
from jobs.kinds.registry import KINDS
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
    warning: str | None = None  # For the owner of the table, here and below.
    worker_group: str | None = None  # None for that of the table's policy.


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
    until: datetime | None = None  # When that may change by time alone.
    warning: str | None = None


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
    """A stored admission. A repetition with the same verdict and code is counted and not stored again; `because` then
    has the latest figures."""

    kind: JobKind
    verdict: Verdict
    code: str
    because: str
    first_at: datetime
    last_at: datetime
    count: int = 1
    params: Mapping[str, Any] = field(default_factory=dict)
    warning: str | None = None
    wanted_since: datetime | None = None  # When the job became due, across all reasons to wait.
    job_id: str | None = None  # The job that was started.
    id: int = 0
