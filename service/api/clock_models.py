"""Response models of the clock of a table's writers."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field


class ClockDisagreementOut(BaseModel):
    """Two clocks by which writers name instants in turn."""

    one_seconds: float = Field(description="From UTC to the one clock", examples=[0.2])
    other_seconds: float = Field(description="From UTC to the other", examples=[-28800.4])
    since: datetime = Field(examples=["2026-01-01T12:00:00Z"])


class ClockSetBackOut(BaseModel):
    """Instants that appeared after another one had completed, and are earlier; the first of them."""

    instant: str = Field(examples=["20260101115508123"])
    after: str = Field(description="The one that had completed before", examples=["20260101120003456"])
    seconds: float = Field(description="By so much it is earlier", examples=[295.3])
    since: datetime = Field(description="When the first one appeared", examples=["2026-01-01T12:00:08Z"])
    instants: int = Field(description="How many there are", examples=[1])


class ClockOut(BaseModel):
    """The clock by which the writers name instants, as the last poll that found the timeline changed has measured it.
    It counts writers' commits of two days, at most 100."""

    utc_offset_seconds: float | None = Field(
        description="From UTC to the clock, zone included; null if no file of the timeline tells of it",
        examples=[-28860.2],
    )
    zone_seconds: int | None = Field(description="What looks like a time zone in it", examples=[-28800])
    ahead_seconds: float | None = Field(description="The rest: by this much the clock is ahead", examples=[-60.2])
    since: datetime | None = Field(
        description="When the first of the latest commits by this clock appeared", examples=["2026-01-01T12:00:08Z"]
    )
    samples: int = Field(description="Commits by this clock", examples=[3])
    disagreement: ClockDisagreementOut | None = Field(
        description="Two clocks, if writers name instants by both in turn: then jobs that write are refused"
    )
    set_back: ClockSetBackOut | None = Field(
        default=None, description="A clock that went back in the last two days, if one did: rows may be lost"
    )
