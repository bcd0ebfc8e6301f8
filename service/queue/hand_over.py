"""The hand-over of a job: the job waits until the table's writers have stopped, and then continues.

A Flink job must not run while file groups are replaced: it remembers them for as long as it runs, and between two
checkpoints nothing on the table shows that it is running.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobs.contract import JsonMapped


class HandOverState(StrEnum):
    """States: draining (someone has to stop the writers) -> stopping (the service stops them) -> stopped | expired."""

    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXPIRED = "expired"


@dataclass(frozen=True)
class FlinkStop:
    """Progress of the service in stopping a Flink job.

    `trigger_id` identifies the stop. It is chosen before the stop is requested, so a replica that continues requests
    the same stop. `ended_at` is when the job was found to have ended; `savepoint` is the one that this stop created.
    """

    job_id: str
    trigger_id: str
    asked_at: datetime
    ended_at: datetime | None = None
    savepoint: str | None = None


@dataclass(frozen=True)
class HandOver(JsonMapped):
    """State of a hand-over. `since` is when the state began; `by` is who stopped the writers; `detail` is a sentence
    about the current status.

    After `deadline` the job fails without having changed anything. Until `claimed_until` no other replica continues it.
    """

    state: HandOverState
    since: datetime
    deadline: datetime
    by: str | None = None
    savepoint: str | None = None
    detail: str = ""
    flink: FlinkStop | None = None
    claimed_until: datetime | None = None

    def evolve(self, **changes: Any) -> HandOver:
        return dataclasses.replace(self, **changes)

    def what_to_do(self, job_id: str, table_id: str, *, is_over: bool) -> str:
        """Returns instructions for the operator. `is_over`: the job has committed or ended."""
        match self.state:
            case HandOverState.EXPIRED:
                return (
                    "Nothing: the job was given up, and nothing has changed. The Flink job may keep running as it is."
                )
            case HandOverState.STOPPED if is_over:
                origin = f"from the savepoint {self.savepoint}" if self.savepoint else "from its last savepoint"
                return (
                    f"Submit the Flink job again, {origin}, with the options that GET"
                    f" /v1/tables/{table_id}/writer-options?engine=flink returns now. A restart of the old job, or the"
                    " old options, would write to file groups that no longer exist."
                )
            case HandOverState.STOPPED:
                return "Leave the writers stopped until the job has committed or ended."
            case _ if is_over:
                return "Check that the Flink job is running: this job ended while Flink was being stopped."
        return (
            "Stop every Flink job that writes this table, with a savepoint; wait until it has ended; then POST"
            f' /v1/jobs/{job_id}/writers-stopped {{"savepoint": "..."}}, before {self.deadline.isoformat()}. If the'
            " table is registered with `writers.flink`, the service does all of this itself."
        )

    def public_json(self) -> dict[str, Any]:
        """Returns the members that the API and events show."""
        return {
            "state": self.state.value,
            "since": self.since.isoformat(),
            "deadline": self.deadline.isoformat(),
            "by": self.by,
            "savepoint": self.savepoint,
            "detail": self.detail,
        }
