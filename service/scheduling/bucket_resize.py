"""Policy of bucket resize: whether buckets of consistent hashing are to be split or merged, and in which partitions."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.contract import JobKind
from jobs.kinds.bucket_resize import MARGIN
from service.lake.snapshot import PartitionState, TableSnapshot
from service.model.formatting import count, size
from service.policies.bucket_settings import ResizeSettings
from service.policies.settings import Mode
from service.scheduling.decision import Proposal, Run, Skip, Suggest
from service.scheduling.pending_plans import going_first
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext, by_calendar
from service.scheduling.writer_hazard import NO_HAZARD, WRITERS_TOO_OLD, Obstacle, WriterHazard, unless_refused

_MOST_PARTITIONS = 10_000
_GROWN = 1.1
"""A bucket whose last split was of no use is split again when it has grown to more than this many times its size."""


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(
        inputs.policy.bucket_resize,
        inputs.snapshot,
        inputs.context,
        inputs.hazard,
        has_flink=inputs.has_flink,
        one_sided=inputs.one_sided,
    )


def decide(
    settings: ResizeSettings,
    snapshot: TableSnapshot,
    context: TriggerContext,
    hazard: WriterHazard = NO_HAZARD,
    *,
    has_flink: bool = False,
    one_sided: Mapping[str, int] | None = None,
) -> Run | Suggest | Skip:
    """Returns the proposal. A due job is `Run` in the mode `auto`, else `Suggest`. The result is `Skip` if the job
    would be refused because of the table's writers (`jobs.services.bucket_resize`). `one_sided` are the splits of no
    use (`one_sided_splits`)."""
    return unless_refused(_decide(settings, snapshot, context, one_sided or {}), _obstacle(hazard, has_flink=has_flink))


def _obstacle(hazard: WriterHazard, *, has_flink: bool) -> Obstacle | None:
    """Returns the fact about the writers that prevents a resize. Writers of SQL statements are no obstacle, because
    they know the buckets' ranges of hash values."""
    if has_flink:
        return Obstacle(
            "flink-may-be-running",
            "Flink writes the table or has written it, and nothing proves that Flink follows new ranges. When no Flink"
            " job writes the table any more, declare the engines that write it (`writers.engines`)",
        )
    if hazard.obstacle and hazard.obstacle.code == WRITERS_TOO_OLD:
        return Obstacle(
            WRITERS_TOO_OLD,
            "writers older than Hudi 1.1 might use the old ranges: declare the version that all writers have"
            " (`writers.hudi_version`), or stop the writers and declare this (`writers.stopped`)",
        )
    return None


def _decide(
    settings: ResizeSettings, snapshot: TableSnapshot, context: TriggerContext, one_sided: Mapping[str, int]
) -> Run | Suggest | Skip:
    if settings.mode is Mode.OFF:
        return Skip("off", "bucket resize is switched off")
    known = [each for each in snapshot.partitions if each.largest_range_bytes]
    if not known:
        return Skip("no-consistent-hashing", "the table has no consistent-hashing bucket index")
    if settings.min_buckets > settings.max_buckets or settings.merge_bytes * MARGIN > settings.split_bytes:
        return Skip(
            "bounds-contradict", "merge_bytes is above a fourth of split_bytes, or min_buckets above max_buckets"
        )
    if context.calendar and not (timing := by_calendar(context.calendar)).is_due:
        return Skip("not-yet", timing.because, timing.until)
    # A job for the partition of such a bucket would split it again, so small buckets of the partition are not merged
    # either.
    large = [each for each in known if _is_large(each, settings)]
    stuck = {each.path: each for each in large if each.largest_range_bytes <= _GROWN * one_sided.get(each.path, 0)}
    changeable = [each for each in known if each.path not in stuck]
    large = [each for each in large if each.path not in stuck]
    small = [each for each in changeable if _is_small(each, settings)]
    finding = _finding(large, small, settings)
    if finding is None and stuck:
        worst = max(stuck.values(), key=lambda each: each.largest_range_bytes)
        return Skip(
            "few-keys",
            f"a bucket of {worst.place} has {size(worst.largest_range_bytes)}, but its last split left nearly all of it"
            " in one bucket, because few hash keys have most of it; it is split again when it has grown by a tenth",
        )
    if finding is None:
        return Skip(
            "sizes-right", "no bucket is large enough to be split, and no neighbours are small enough to be merged"
        )
    if plans := going_first(snapshot, context):
        return Skip("plans-pending", f"{finding}; but {plans}")
    paths = sorted({each.path for each in (*large, *small)})
    params = settings.job_params(partitions=None if len(paths) == len(known) else paths[:_MOST_PARTITIONS])
    kind = JobKind.BUCKET_RESIZE
    return Run(kind, params, finding) if settings.mode is Mode.AUTO else Suggest(kind, params, finding)


def _is_large(partition: PartitionState, settings: ResizeSettings) -> bool:
    return partition.largest_range_bytes > settings.split_bytes and partition.num_buckets < settings.max_buckets


def _is_small(partition: PartitionState, settings: ResizeSettings) -> bool:
    least = partition.neighbours_bytes
    return least is not None and least <= settings.merge_bytes and partition.num_buckets > settings.min_buckets


def _finding(large: list[PartitionState], small: list[PartitionState], settings: ResizeSettings) -> str | None:
    found = []
    if large:
        worst = max(large, key=lambda each: each.largest_range_bytes)
        found.append(
            f"a bucket of {worst.place} has {size(worst.largest_range_bytes)}, {size(settings.split_bytes)} are allowed"
            f" ({count(len(large), 'partition')} with such a bucket)"
        )
    if small:
        found.append(
            f"{count(len(small), 'partition')} with neighbouring buckets of at most {size(settings.merge_bytes)} each"
        )
    return "; ".join(found) or None
