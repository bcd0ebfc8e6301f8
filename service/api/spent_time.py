"""Time that a job has spent, as the API shows it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from service.queue.job import Spent


class SpentOut(BaseModel):
    """Seconds from the submission of the job to its end, or until now."""

    waited_seconds: float = Field(description="Before its first attempt and between attempts", examples=[41.0])
    worked_seconds: float = Field(description="In all of its attempts together", examples=[19.5])
    took_seconds: float = Field(description="Both together", examples=[60.5])

    @classmethod
    def of(cls, spent: Spent) -> SpentOut:
        waited, worked = round(spent.waited, 3), round(spent.worked, 3)
        return cls(waited_seconds=waited, worked_seconds=worked, took_seconds=round(waited + worked, 3))
