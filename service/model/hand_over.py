"""The hand-over of a job: the job waits until the table's writers have stopped, and then continues.

A Flink job must not run while file groups are replaced, because it remembers the old file groups for as long as it
runs. Between two checkpoints, nothing on the table shows that the Flink job is running.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from jobs.contract import JsonMapped
from jobs.spec import Spec
from service.model.flink_restart import FlinkRestart


class HandOverState(StrEnum):
    """States: draining (someone has to stop the writers) -> stopping (the service stops them) -> stopped | expired."""

    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXPIRED = "expired"


@dataclass(frozen=True)
class FlinkStop:
    """Progress of the service in stopping a Flink job.

    `trigger_id` identifies the stop. The service chooses the id before it requests the stop, so that another replica
    that continues requests the same stop. `ended_at` is the time at which the service found that the Flink job had
    ended. `savepoint` is the savepoint that this stop created.
    """

    job_id: str
    trigger_id: str
    asked_at: datetime
    ended_at: datetime | None = None
    savepoint: str | None = None


@dataclass(frozen=True)
class HandOver(JsonMapped):
    """State of a hand-over. `since` is the time at which the state began. Another replica may continue the hand-over
    only after `claimed_until`."""

    state: Annotated[
        HandOverState,
        Spec(
            "`draining`: a user has to stop the writers; `stopping`: the service is stopping them",
            examples=("draining",),
        ),
    ]
    since: datetime
    deadline: Annotated[datetime, Spec("If the writers are not stopped by this time, the job fails without any change")]
    by: Annotated[
        str | None, Spec("The caller that stopped the writers, or `groundskeeper`", examples=("groundskeeper",))
    ] = None
    savepoint: Annotated[
        str | None,
        Spec("The savepoint with which the Flink job was stopped", examples=("s3://lake/savepoints/savepoint-1f2e3d",)),
    ] = None
    detail: Annotated[
        str, Spec("The condition that the job waits for, or the result", examples=("Waits for orders-ingest.",))
    ] = ""
    flink: FlinkStop | None = None
    claimed_until: datetime | None = None
    restart: Annotated[
        FlinkRestart, Spec("The way in which Flink has to be started afterwards", examples=("from-savepoint",))
    ] = FlinkRestart.FROM_SAVEPOINT

    def evolve(self, **changes: Any) -> HandOver:
        return dataclasses.replace(self, **changes)

    def what_to_do(self, job_id: str, table_id: str, *, is_over: bool) -> str:
        """Returns instructions for the operator. `is_over` says whether the job has committed or ended."""
        match self.state:
            case HandOverState.EXPIRED:
                return "There is nothing to do: the job was given up and has changed nothing. The Flink job may go on."
            case HandOverState.STOPPED if is_over and self.restart is FlinkRestart.WITHOUT_STATE:
                savepoint = f" ({self.savepoint})" if self.savepoint else ""
                return (
                    f"Start the Flink job without its old state. Do not start it from its savepoint{savepoint} or a"
                    " checkpoint, because they contain file groups that no longer exist. Use the options that GET"
                    f" /v1/tables/{table_id}/writer-options?engine=flink returns now. The option"
                    " index.bootstrap.enabled=true loads the new file groups from the table. The old state also"
                    " contains the source's offsets, so let the source begin where the old job stopped, or earlier."
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
                return "Check that the Flink job is running: it was being stopped when the service's job ended."
        body, more = '{"savepoint": "..."}', ""
        if self.restart is FlinkRestart.WITHOUT_STATE:
            body = '{"restart": "without-state"}'
            more = (
                " The call confirms that the Flink job will be started without its state afterwards: the table has no"
                " declared bucket index, so the state may contain file groups that this job replaces. Note the source's"
                " offsets when you stop the Flink job."
            )
        return (
            "Stop every Flink job that writes this table, with a savepoint; wait until it has ended; then POST"
            f" /v1/jobs/{job_id}/writers-stopped {body}, before {self.deadline.isoformat()}.{more} If the table is"
            f" registered with `writers.flink`{' and its `restart`' if more else ''}, the service does all of this by"
            " itself."
        )

    def public_json(self) -> dict[str, Any]:
        """Returns the members that the API and events show."""
        return {
            "state": self.state.value,
            "since": self.since.isoformat(),
            "deadline": self.deadline.isoformat(),
            "by": self.by,
            "savepoint": self.savepoint,
            "restart": self.restart.value,
            "detail": self.detail,
        }
