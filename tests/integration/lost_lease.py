"""Lets an attempt lose its lease between two steps: it leaves the same as a killed one, and needs no own process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import LeaseLostError
from jobs.job_context import JobContext
from tests.integration.run import run_job
from tests.integration.victim import CALLS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def lose_the_lease_at(spark: SparkSession, base: Path, kind: str, point: dict[str, Any], **job: Any) -> list[str]:
    """Runs a job that loses its lease `before` or `after` the `nth` call of the name (see `victim.CALLS`). Returns the
    instants that the service knows of it."""
    owner, name = CALLS[point["name"]]
    real, context, left = getattr(owner, name), JobContext(), [point.get("nth", 1)]

    def lost(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        result = real(*args, **kwargs) if left[0] or point["at"] == "after" else None
        if left[0] == 0:
            # An attempt is told so while it works, and notices at its next checkpoint, or here.
            context.end(LeaseLostError())
            context.checkpoint()
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, lost)
        with pytest.raises(LeaseLostError):
            run_job(spark, base, kind, context=context, **job)
    return list(context.instants)
