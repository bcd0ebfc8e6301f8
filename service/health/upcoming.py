"""The next job of a table. The functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from jobs.contract import JobKind
from jobs.spec import Documented, Spec
from service.health.overview_store import PastJob
from service.queue.job import JobState
from service.scheduling.decision import DECIDED, Decision, Verdict


class NextState(StrEnum):
    """The state of the next job. `RUNNING`: a worker has it. `QUEUED`: it was submitted. `WAITS`: it is due, but
    something blocks it. `SUGGESTED`: it is due, and a person has to start it."""

    RUNNING = "running"
    QUEUED = "queued"
    WAITS = "waits"
    SUGGESTED = "suggested"


@dataclass(frozen=True)
class NextJob(Documented):
    """The job of a table that comes next."""

    kind: Annotated[JobKind, Spec(examples=("compaction",))]
    state: Annotated[
        NextState,
        Spec(
            "`running`, or `queued`; `waits`: it is due, but something blocks it; `suggested`: a person has to start it"
        ),
    ]
    because: Annotated[
        str | None,
        Spec("The decision about the job; null for a job that exists already", examples=("7 commits, threshold 5",)),
    ]
    job_id: Annotated[str | None, Spec("Null if the job does not exist yet", examples=("job_4be1c0d2f6a89b37",))]


_OF_JOB = {
    JobState.RUNNING: NextState.RUNNING,
    JobState.LEASED: NextState.RUNNING,
    JobState.QUEUED: NextState.QUEUED,
}
_OF_DECISION = {Verdict.WAIT: NextState.WAITS, Verdict.SUGGEST: NextState.SUGGESTED}


def next_job(jobs: Sequence[PastJob], decisions: Mapping[JobKind, Decision]) -> NextJob | None:
    """Returns an active job among the table's last `jobs`, a running one if there is any. Without an active job,
    returns the first job that is due by the current `decisions`; None if no job is due."""
    active = [(_OF_JOB[job.state], job) for job in jobs if job.state in _OF_JOB]
    if active:
        state, job = min(active, key=lambda each: (each[0] is not NextState.RUNNING, each[1].created_at))
        return NextJob(job.kind, state, None, job.id)
    for verdict, state in _OF_DECISION.items():
        for kind in DECIDED:
            if kind in decisions and decisions[kind].verdict is verdict:
                return NextJob(kind, state, decisions[kind].because, None)
    return None
