"""The Spark jobs of an attempt, as spans of its trace."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from jobs import tracing
from jobs.trace_context import parsed

if TYPE_CHECKING:
    from pyspark import SparkContext

logger = logging.getLogger(__name__)

_MOST = 200


def record(context: SparkContext, group: str, steps: Sequence[tuple[datetime, str]], parent: str | None) -> None:
    """Adds a span for each Spark job of this job group, up to a maximum, below the step in which it began. `steps` are
    the steps with their start times, in order. Does nothing if no traces are exported."""
    if not tracing.is_on() or parsed(parent) is None:
        return
    tracker: Any = context.statusTracker()
    store: Any = context._jsc.sc().statusStore()
    for number in sorted(tracker.getJobIdsForGroup(group))[:_MOST]:
        try:
            job = store.job(number)
            start, end = _time(job.submissionTime()), _time(job.completionTime())
            status = str(job.status())
            tracing.record(
                f"Spark job {number}",
                parent=next((step for began, step in reversed(steps) if start and began <= start), parent),
                start=start or datetime.now(UTC),
                # The job's end may not have reached Spark's own store yet.
                end=end or datetime.now(UTC),
                error="The Spark job has failed" if status == "FAILED" else None,
                spark__job_id=number,
                spark__name=str(job.name()),
                spark__tasks=int(job.numTasks()),
                spark__status=status,
            )
        except Py4JError as error:
            logger.debug("Spark job %s is not known any more: %s", number, error)


def _time(option: Any) -> datetime | None:
    return datetime.fromtimestamp(option.get().getTime() / 1000, UTC) if option.isDefined() else None
