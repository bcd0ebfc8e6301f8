"""Response model of the forecast of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import BaseModel, Field

from service.queue.durations import Basis
from service.queue.job import Job
from service.queue.outlook import HeldBack, Outlook
from service.queue.waiting import Wait


@dataclass(frozen=True)
class Prospects:
    """What jobs wait for, by job id, and what is expected of them."""

    waits: Mapping[str, Wait] = field(default_factory=dict)
    outlook: Outlook | None = None


class ForecastOut(BaseModel):
    """What is expected of an active job, from the order of the queue and from what ended jobs have taken."""

    starts_at: datetime | None = Field(
        description="Expected start of a queued job; null while its group has no ready worker, or its writers must stop"
    )
    ends_at: datetime | None = Field(description="Expected end of its attempt; null if the start is not known")
    seconds: float = Field(description="How long an attempt takes", examples=[12.5])
    learned_from: Basis = Field(
        description="Where that is known from: earlier jobs of this kind on the `table`; on tables of its `size`; all"
        " of this `kind`; or nothing (`default`)",
        examples=["table"],
    )
    is_guess: bool = Field(description="Whether no job of this kind has ended on this table")
    held_back_by: HeldBack | None = Field(description="Why a queued job is not due; null if it is")
    text: str = Field(description="The same in words", examples=["starts in about 8 min"])

    @classmethod
    def of(cls, job: Job, outlook: Outlook | None) -> ForecastOut | None:
        found = outlook.jobs.get(job.id) if outlook is not None and job.state.is_active else None
        # The job may have been leased or put back since.
        if outlook is None or found is None or found.is_held != job.state.is_held:
            return None
        return cls(
            starts_at=_after(outlook.as_of, found.start),
            ends_at=_after(outlook.as_of, found.end),
            seconds=round(found.duration.seconds, 3),
            learned_from=found.duration.basis,
            is_guess=found.is_guess,
            held_back_by=found.held_back,
            text=found.text,
        )


def _after(moment: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else moment + timedelta(seconds=round(seconds, 3))
