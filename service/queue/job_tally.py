"""The counters of jobs: how long their attempts took, what these read and wrote, and how long they waited for locks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from jobs.contract import JobKind
from jobs.kinds.results import KindResult
from service.events.tally import Count
from service.lake.commit import BUCKET_RESCALE, CLUSTERING, COMPACTION, Commit
from service.queue.breaker import slot_seconds
from service.queue.job import AttemptOutcome, Job

ATTEMPTS = "job_attempts"
"""Number of ended attempts by kind, outcome, and the smallest bound of `BUCKETS` that the attempt's seconds do not
exceed."""
ATTEMPT_SECONDS = "job_attempt_seconds"
LEASES_LOST = "leases_lost"
LOCK_WAIT_SECONDS = "lock_wait_seconds"
READ_BYTES = "job_read_bytes"
WRITTEN_BYTES = "service_written_bytes"
FREED_BYTES = "job_freed_bytes"

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, math.inf)
"""Upper bounds in seconds."""

_KINDS = {COMPACTION: JobKind.COMPACTION, CLUSTERING: JobKind.CLUSTERING, BUCKET_RESCALE: JobKind.BUCKET_EXPANSION}
# A larger number, which only a broken worker reports, is not counted, so that it does not spoil a counter for ever.
_MOST = 2.0**50


def of_attempt(job: Job, outcome: AttemptOutcome, result: KindResult, now: datetime) -> list[Count]:
    """Returns the counts of an attempt that has just ended. A dry run counts only if its lease was lost. `job` is the
    job as it was leased, `result` is what the worker has reported."""
    kind = job.kind.value
    counts = [Count(LEASES_LOST, (kind,))] if outcome is AttemptOutcome.LOST else []
    if job.dry_run:
        return counts
    seconds = slot_seconds(job, now)
    bucket = next(bound for bound in BUCKETS if seconds <= bound)
    counts.append(Count(ATTEMPTS, (kind, outcome.value, f"{bucket:g}")))
    counts.append(Count(ATTEMPT_SECONDS, (kind, outcome.value), seconds))
    counts.append(Count(LOCK_WAIT_SECONDS, (kind,), amount(result.lock_wait_seconds)))
    counts.append(Count(READ_BYTES, (kind,), amount(result.input_bytes)))
    if outcome is AttemptOutcome.SUCCEEDED and "freed_bytes" in result.amounts:
        counts.append(Count(FREED_BYTES, (kind,), amount(result.amounts["freed_bytes"])))
    return counts


def of_commits(commits: Iterable[Commit]) -> list[Count]:
    """Returns the bytes that new commits of table services have written, by kind of job. A table service may have run
    as a job of this service, or in a writer."""
    services = [(_KINDS.get(each.operation or ""), each) for each in commits if each.is_news]
    return [Count(WRITTEN_BYTES, (kind.value,), amount(each.bytes_written)) for kind, each in services if kind]


def amount(given: object) -> float:
    """Returns a measured amount; 0 for a value that cannot be an amount."""
    return float(given) if isinstance(given, int | float) and 0 <= given <= _MOST else 0.0
