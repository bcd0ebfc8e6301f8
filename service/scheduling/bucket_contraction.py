"""Policy of bucket contraction: whether buckets are far too small, in which partitions, and how many buckets are merged
into one.

Contraction and expansion never alternate. After a contraction the largest bucket has at most a fourth of the size that
the policy of the expansion allows, and after an expansion at least half of that size (`bucket_expansion.factor_for`).
"""

from __future__ import annotations

from collections.abc import Sequence

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.model.formatting import count, size
from service.policies.bucket_settings import ContractionSettings
from service.policies.settings import Mode
from service.scheduling.bucket_growth import BucketGrowth
from service.scheduling.decision import Proposal, Run, Skip, Suggest
from service.scheduling.pending_plans import going_first
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar
from service.scheduling.writer_hazard import NO_HAZARD, WriterHazard, unless_refused

MAX_FACTOR = 8
"""The largest factor of one job. If buckets are still too small then, the table is contracted again."""

MARGIN = 4
"""After a contraction the largest bucket has at most the expansion's limit divided by this number."""

_MOST_PARTITIONS = 10_000


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(
        inputs.policy.bucket_contraction,
        inputs.snapshot,
        inputs.context,
        limit=inputs.policy.bucket_expansion.max_bucket_bytes,
        hazard=inputs.hazard,
        growth=inputs.growth,
    )


def decide(
    settings: ContractionSettings,
    snapshot: TableSnapshot,
    context: TriggerContext,
    *,
    limit: int,
    hazard: WriterHazard = NO_HAZARD,
    growth: BucketGrowth | None = None,
) -> Run | Suggest | Skip:
    """Returns the proposal. A due job is `Run` in the mode `auto`, else `Suggest`; if an obstacle exists, the result is
    `Skip`. `limit` is the largest bucket in bytes that the policy of the expansion allows. Buckets that will be too
    large for a merge in 90 days are not merged."""
    if settings.mode is Mode.OFF:
        return Skip("off", "bucket contraction is switched off")
    if not snapshot.num_buckets:
        return Skip("no-bucket-index", "the table has no simple bucket index")
    if context.calendar and not (timing := by_calendar(context.calendar)).is_due:
        return Skip("not-yet", timing.because, timing.until)
    known = [each for each in snapshot.partitions if each.buckets and each.num_buckets]
    small = [each for each in known if each.num_buckets > 1 and each.average_bucket_bytes < settings.min_bucket_bytes]
    if not small:
        return Skip("large-enough", f"no average bucket has less than {size(settings.min_bucket_bytes)}")
    factors = {each.path: factor_for(each, settings.min_bucket_bytes, limit, growth) for each in small}
    chosen = _most_saving([each for each in small if factors[each.path] > 1], factors)
    least = min(small, key=lambda each: each.average_bucket_bytes)
    finding = (
        f"the average bucket of {least.place} has {size(int(least.average_bucket_bytes))},"
        f" {size(settings.min_bucket_bytes)} are wanted"
    )
    if not chosen:
        because = (
            f"{finding}; but the number of buckets is odd, or two together would have more than a fourth of the"
            f" {size(limit)} allowed"
        )
        return Skip("no-factor", because)
    if plans := going_first(snapshot, context):
        return Skip("plans-pending", f"{finding}; but {plans}")
    factor = factors[chosen[0].path]
    some = None if len(chosen) == len(known) else sorted(each.path for each in chosen)[:_MOST_PARTITIONS]
    params = settings.job_params(factor=factor, partitions=some)
    where = f"in {count(len(chosen), 'partition')} of {len(known)}" if "partitions" in params else "everywhere"
    because = f"{finding}; {factor} buckets become one {where}"
    kind = JobKind.BUCKET_CONTRACTION
    proposal = Run(kind, params, because) if settings.mode is Mode.AUTO else Suggest(kind, params, because)
    return unless_refused(proposal, hazard.obstacle)


def factor_for(partition: PartitionState, wanted: int, limit: int, growth: BucketGrowth | None = None) -> int:
    """Returns the smallest power of two, at most `MAX_FACTOR`, that brings the average bucket to `wanted` bytes.

    The factor divides the number of buckets. `factor` buckets as large as the largest one have together at most `limit`
    divided by `MARGIN`, and at most `limit` in 90 days. Returns 1 if there is no such factor.
    """
    factor, later = 1, growth.grown(partition.largest_bucket_bytes) if growth else 0.0
    while (
        factor < MAX_FACTOR
        and partition.average_bucket_bytes * factor < wanted
        and partition.num_buckets % (factor * 2) == 0
        and partition.largest_bucket_bytes * factor * 2 * MARGIN <= limit
        and later * factor * 2 <= limit
    ):
        factor *= 2
    return factor


def _most_saving(partitions: Sequence[PartitionState], factors: dict[str, int]) -> list[PartitionState]:
    """Returns the partitions to contract. A job has one factor for all its partitions, so the factor that removes the
    most buckets is chosen."""
    by_factor: dict[int, list[PartitionState]] = {}
    for each in partitions:
        by_factor.setdefault(factors[each.path], []).append(each)

    def saved(factor: int) -> int:
        return sum(each.num_buckets - each.num_buckets // factor for each in by_factor[factor])

    return by_factor[max(by_factor, key=saved)] if by_factor else []
