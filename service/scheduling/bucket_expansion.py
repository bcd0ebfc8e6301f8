"""Policy of bucket expansion: whether a table needs more buckets, in which partitions, and how many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.model.formatting import count, size
from service.policies.bucket_settings import ExpansionSettings
from service.policies.settings import Mode
from service.scheduling.bucket_growth import AHEAD, MAX_FACTOR, BucketGrowth, local
from service.scheduling.decision import Proposal, Run, Skip, Suggest
from service.scheduling.pending_plans import going_first
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar
from service.scheduling.writer_hazard import NO_HAZARD, WriterHazard, unless_refused

_UNEVEN = 4
"""A bucket is uneven if it is too large although the average bucket is smaller than the target divided by this number.
The rows of such a bucket share few keys, so more buckets would not separate them."""

AHEAD_OF_NEED = timedelta(days=1)
"""An expansion is due this long before the largest bucket reaches its limit, so that a quiet hour comes before that."""

_URGENT = 1.25
"""A bucket with more than this many times the allowed size does not wait for a quiet hour."""

NOT_QUIET = "not-quiet"

_MOST_PARTITIONS = 10_000
"""If there are more partitions than this, the job names none and covers the whole table."""


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.bucket_expansion, inputs.snapshot, inputs.context, inputs.hazard, growth=inputs.growth)


def decide(
    settings: ExpansionSettings,
    snapshot: TableSnapshot,
    context: TriggerContext,
    hazard: WriterHazard = NO_HAZARD,
    *,
    growth: BucketGrowth | None = None,
) -> Run | Suggest | Skip:
    """Returns the proposal, with the hazard's warning. A due job is `Run` in the mode `auto`, else `Suggest`; if an
    obstacle exists, the result is `Skip`.

    If `growth` is known, the job is due a day before a bucket becomes too large, and it waits for a quiet hour. The
    parameters name partitions when only some of them have to be expanded.
    """
    found = _decide(settings, snapshot, context, growth)
    return replace(unless_refused(found, hazard.obstacle), warning=hazard.warning)


def _decide(
    settings: ExpansionSettings, snapshot: TableSnapshot, context: TriggerContext, growth: BucketGrowth | None
) -> Run | Suggest | Skip:
    if settings.mode is Mode.OFF:
        return Skip("off", "bucket expansion is switched off")
    if not snapshot.num_buckets:
        return Skip("no-bucket-index", "the table has no simple bucket index")
    if context.calendar and not (timing := by_calendar(context.calendar)).is_due:
        return Skip("not-yet", timing.because, timing.until)
    known = [each for each in snapshot.partitions if each.buckets]
    large = [each for each in known if each.largest_bucket_bytes > settings.max_bucket_bytes]
    due_at = growth.needed_at - AHEAD_OF_NEED if growth and growth.needed_at else None
    if not large and due_at and due_at <= context.now:
        large = sorted(known, key=lambda each: each.largest_bucket_bytes)[-1:]
    if not large:
        most = max((each.largest_bucket_bytes for each in known), default=0)
        allowed = size(settings.max_bucket_bytes)
        return Skip("small-enough", f"the largest bucket has {size(most)}, {allowed} are allowed", due_at)
    found = _split(settings, snapshot, large, known, growth, context=context)
    is_urgent = context.has_waited or any(
        each.largest_bucket_bytes > _URGENT * settings.max_bucket_bytes for each in large
    )
    may_wait = isinstance(found, Run) and not is_urgent and not context.calendar
    if may_wait and growth and growth.quiet_at and growth.quiet_at > context.now:
        best = local(growth.quiet_at, growth.time_zone)
        return Skip(NOT_QUIET, f"{found.because}; best at {best}, a quiet time", growth.quiet_at)
    return found


def _split(
    settings: ExpansionSettings,
    snapshot: TableSnapshot,
    large: Sequence[PartitionState],
    known: Sequence[PartitionState],
    growth: BucketGrowth | None,
    *,
    context: TriggerContext,
) -> Run | Suggest | Skip:
    target = settings.max_bucket_bytes
    splittable = [each for each in large if _UNEVEN * each.average_bucket_bytes >= target]
    worst = max(splittable or large, key=lambda each: each.largest_bucket_bytes)
    largest = size(worst.largest_bucket_bytes)
    finding = f"bucket {worst.largest_bucket} of {worst.place} has {largest}, {size(target)} are allowed"
    if growth and growth.needed_at and worst.largest_bucket_bytes <= target:
        finding += f" and expected by {local(growth.needed_at, growth.time_zone)}"
    if not splittable:
        average = size(worst.average_bucket_bytes)
        because = f"{finding}; but an average bucket has {average}, so more buckets would not separate its few keys"
        return Skip("uneven-keys", because)
    if plans := going_first(snapshot, context):
        return Skip("plans-pending", f"{finding}; but {plans}")
    factor = factor_for(worst.largest_bucket_bytes, target)
    lasting = ""
    if growth and growth.factor > factor:
        factor, lasting = growth.factor, f", which last for {AHEAD.days} days"
    params = settings.job_params(factor=factor, partitions=_partitions(splittable, known))
    where = f"in {count(len(splittable), 'partition')} of {len(known)}" if "partitions" in params else "everywhere"
    because = f"{finding}; {factor} times as many buckets {where}{lasting}"
    kind = JobKind.BUCKET_EXPANSION
    return Run(kind, params, because) if settings.mode is Mode.AUTO else Suggest(kind, params, because)


def factor_for(largest: int, target: int) -> int:
    """Returns the smallest power of two that brings a bucket of `largest` bytes to at most `target` bytes, but no more
    than `MAX_FACTOR`."""
    factor = 2
    while factor < MAX_FACTOR and largest > target * factor:
        factor *= 2
    return factor


def _partitions(large: Sequence[PartitionState], known: Sequence[PartitionState]) -> list[str] | None:
    """Returns the partitions to expand; None for the whole table."""
    if 2 * len(large) > len(known) or len(large) > _MOST_PARTITIONS:
        return None
    return sorted(each.path for each in large)
