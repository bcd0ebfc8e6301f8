"""What was decided about a table, and why. `because` is always a sentence for people, with the figures in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

DECIDED = (
    JobKind.REPAIR,
    JobKind.COMPACTION,
    JobKind.BUCKET_EXPANSION,
    JobKind.CLUSTERING,
    JobKind.CLEANING,
)
"""The kinds that are decided by policies, in the order in which they go when several are due."""


@dataclass(frozen=True)
class Run:
    """It is time. `warning` is for the owner of the table, here and below."""

    kind: JobKind
    params: Mapping[str, Any]
    because: str
    warning: str | None = None


@dataclass(frozen=True)
class Suggest:
    """It would be time, but only a person may start it."""

    kind: JobKind
    params: Mapping[str, Any]
    because: str
    warning: str | None = None


@dataclass(frozen=True)
class Skip:
    """Nothing to do. `code` names the reason in kebab-case; `until` is when that may change by time alone."""

    code: str
    because: str
    until: datetime | None = None
    warning: str | None = None


@dataclass(frozen=True)
class Wait:
    """It is time, but something stands in the way. `code` and `until` as those of `Skip`."""

    code: str
    because: str
    until: datetime | None = None
    warning: str | None = None


Proposal = Run | Suggest | Skip
"""What a policy says of one kind, looking at nothing but the table."""

Admission = Run | Suggest | Skip | Wait
"""What becomes of an answer beside everything else that goes on."""


class Verdict(StrEnum):
    RUN = "run"
    WAIT = "wait"
    SUGGEST = "suggest"
    SKIP = "skip"


@dataclass(frozen=True)
class Decision:
    """A ruling as it is kept. One that is repeated, with the same verdict and code, is counted and not kept again; then
    `because` has the latest figures.

    `wanted_since`: since when the job has been due, over all the reasons that it had to wait for. `job_id` is that of
    the job that was started.
    """

    kind: JobKind
    verdict: Verdict
    code: str
    because: str
    first_at: datetime
    last_at: datetime
    count: int = 1
    params: Mapping[str, Any] = field(default_factory=dict)
    warning: str | None = None
    wanted_since: datetime | None = None
    job_id: str | None = None
    id: int = 0
