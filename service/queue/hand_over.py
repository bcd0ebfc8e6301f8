"""A hand-over: a job waits until the table's writers have been stopped, and goes on then.

Flink cannot go on while file groups are replaced: it knows them for as long as it runs, and between two checkpoints
nothing shows that it is there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class HandOverState(StrEnum):
    """draining (somebody has to stop the writers) -> stopping (the service does) -> stopped | expired."""

    DRAINING = "draining"
    STOPPING = "stopping"
    STOPPED = "stopped"
    EXPIRED = "expired"


@dataclass(frozen=True)
class FlinkStop:
    """How far the service is with a Flink job. `trigger_id` names the stop, and was chosen before it was asked for: so
    whoever goes on asks for the same one. `ended_at` is when the job was seen to have ended, `savepoint` the one that
    this stop made."""

    job_id: str
    trigger_id: str
    asked_at: datetime
    ended_at: datetime | None = None
    savepoint: str | None = None


@dataclass(frozen=True)
class HandOver:
    """`since` is when the state began; `by` is who stopped the writers; `detail` a sentence on how it stands.

    After `deadline` the job fails, and nothing has changed. No other replica steps it before `claimed_until`.
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
        """For whoever hears of it. `is_over`: the job has committed, or ended."""
        match self.state:
            case HandOverState.EXPIRED:
                return "Nothing: the job was given up, and nothing has changed. The Flink job may go on as it is."
            case HandOverState.STOPPED if is_over:
                origin = f"from the savepoint {self.savepoint}" if self.savepoint else "from its last savepoint"
                return (
                    f"Submit the Flink job again, {origin}, with the options that GET"
                    f" /v1/tables/{table_id}/writer-options?engine=flink answers now. A restart of the old job, or the"
                    " old options, would write to file groups that are no more."
                )
            case HandOverState.STOPPED:
                return "Leave the writers stopped until the job has committed or ended."
            case _ if is_over:
                return "See that the Flink job runs: the job ended while it was to be stopped."
        return (
            "Stop every Flink job that writes this table, with a savepoint; wait until it has ended; then POST"
            f' /v1/jobs/{job_id}/writers-stopped {{"savepoint": "..."}}, before {self.deadline.isoformat()}. If the'
            " table is registered with `writers.flink`, the service does all of that itself."
        )

    def to_json(self) -> dict[str, Any]:
        return {**self.shown(), "flink": _storable(self.flink), "claimed_until": _text(self.claimed_until)}

    def shown(self) -> dict[str, Any]:
        """What others are to know of it."""
        return {
            "state": self.state.value,
            "since": self.since.isoformat(),
            "deadline": self.deadline.isoformat(),
            "by": self.by,
            "savepoint": self.savepoint,
            "detail": self.detail,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> HandOver:
        flink = data.get("flink")
        return cls(
            state=HandOverState(data["state"]),
            since=datetime.fromisoformat(data["since"]),
            deadline=datetime.fromisoformat(data["deadline"]),
            by=data.get("by"),
            savepoint=data.get("savepoint"),
            detail=data.get("detail", ""),
            flink=_flink_stop(flink) if flink else None,
            claimed_until=_moment(data.get("claimed_until")),
        )


def _flink_stop(data: dict[str, Any]) -> FlinkStop:
    return FlinkStop(
        data["job_id"],
        data["trigger_id"],
        datetime.fromisoformat(data["asked_at"]),
        _moment(data.get("ended_at")),
        data.get("savepoint"),
    )


def _storable(stop: FlinkStop | None) -> dict[str, Any] | None:
    if stop is None:
        return None
    return {**dataclasses.asdict(stop), "asked_at": stop.asked_at.isoformat(), "ended_at": _text(stop.ended_at)}


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
