"""The plan of a resize by `SparkConsistentBucketClusteringPlanStrategy` (Hudi 1.2.0), which is not on the timeline.

The strategy also rewrites all buckets that it neither splits nor merges, to sort them; these groups are left out.
Hudi's executor writes either rows or RDDs. Its code for rows (`ConsistentBucketBulkInsertDataInternalWriterHelper`)
takes the new ranges from a plan on the timeline only, so the job lets it write RDDs.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import UNSET

from jobs.contract import WorkOrder
from jobs.errors import RowsDifferError, WritersActiveError
from jobs.format.bucket_rules import exactly
from jobs.format.stale_writes import Group
from jobs.format.written_file import WrittenFile
from jobs.hudi import hashing_metadata
from jobs.hudi.client import WriteClient
from jobs.hudi.clustering_groups import ClusteringGroups
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.plans import CLUSTERING_ACTIONS, held_by_plans
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.bucket_resize import ONE_SIDED, BucketResizeParams, BucketResizeResult, ResizedBuckets
from jobs.kinds.results import EstimatedCost, FileGroupNumbers
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.protocol.replacement_outcome import Replaced
from jobs.protocol.writers import dead_writes, roll_back_dead
from jobs.services.checks import consistent_hashing
from jobs.services.checks.consistent_hashing import Placed
from jobs.services.group_rewrite import PLANNING, STRATEGY, GroupRewrite

_EXECUTOR = "SparkConsistentBucketClusteringExecutionStrategy"
_STRATEGIES = "org.apache.hudi.client.clustering.plan.strategy"
# Hudi takes the thresholds as multiples of this size, which is a power of two so that they are exact.
_MAX_FILE_BYTES = 1 << 50
_MOST_GROUPS = (1 << 31) - 1
_MOST_SHOWN = 100
_POLL_SECONDS = 0.1
_DRY_RUN_WAITS = 10.0


def due(slices: Iterable[FileSlice], params: BucketResizeParams) -> set[str]:
    """Returns the partitions with a bucket to split or with two that are small enough to be merged, so that Hudi need
    not plan for the others."""
    small: dict[str, int] = {}
    found = set()
    for item in slices:
        if item.bytes > params.split_bytes:
            found.add(item.partition)
        elif item.bytes <= params.merge_bytes:
            small[item.partition] = small.get(item.partition, 0) + 1
    return found | {partition for partition, number in small.items() if number > 1}


def client(table: HudiTable, params: BucketResizeParams, partitions: Collection[str] = ()) -> WriteClient:
    """Returns a client that plans for these partitions, or for all."""
    options = {
        "hoodie.bucket.index.min.num.buckets": str(params.min_buckets),
        "hoodie.bucket.index.max.num.buckets": str(params.max_buckets),
        "hoodie.parquet.max.file.size": str(_MAX_FILE_BYTES),
        "hoodie.bucket.index.split.threshold": repr(params.split_bytes / _MAX_FILE_BYTES),
        "hoodie.bucket.index.merge.threshold": repr(params.merge_bytes / _MAX_FILE_BYTES),
        "hoodie.datasource.write.row.writer.enable": "false",
        f"{STRATEGY}.class": f"{_STRATEGIES}.SparkConsistentBucketClusteringPlanStrategy",
        f"{STRATEGY}.max.num.groups": str(_MOST_GROUPS),
        f"{STRATEGY}.partition.regex.pattern": "|".join(exactly(each) for each in sorted(partitions)),
    }
    index = hashing_metadata.index_options(table, params.min_buckets)
    return WriteClient(table, UNDER_OUR_LOCK, {**PLANNING, **index, **options})


def make(
    table: HudiTable, client: WriteClient, order: WorkOrder[BucketResizeParams], context: JobContext
) -> ResizePlan | None:
    """Returns the plan; None if there is nothing to split or merge. A job rolls back dead writes. Raises
    WritersActiveError if a deltacommit was always in flight, because then Hudi plans nothing (`checkPrecondition`)."""
    wait, lock = ReplacementConfig.of(order.params).wait_seconds, TableLock(table, order.job_id)
    deadline = time.monotonic() + (min(wait, _DRY_RUN_WAITS) if order.dry_run else wait)
    while True:
        if not order.dry_run:
            roll_back_dead(table, lock, client, context.checkpoint)
        before = table.instants()
        groups = client.clusterings.plan(executor=_EXECUTOR)
        if groups is not None:
            plan = ResizePlan(table, client, groups, order.params, context)
            return plan if groups.number_of else None
        writing = [item.requested for item in table.pending() if item.action == "deltacommit"]
        if not writing and before == table.instants():
            return None
        would_wait = not order.dry_run or set(writing) - set(dead_writes(table, client))
        if time.monotonic() >= deadline or not would_wait:
            raise WritersActiveError(f"Hudi plans no resize while a write is in flight: {', '.join(writing)}.")
        context.checkpoint()
        time.sleep(_POLL_SECONDS)


def larger_share(files: Sequence[WrittenFile]) -> float:
    """Returns the share of the rows or of the bytes, whichever is more, that the larger one of the new buckets of a
    split has; 0 without rows."""
    rows = [each.rows for each in files]
    sizes = [each.bytes for each in files]
    return max(max(each) / sum(each) for each in (rows, sizes)) if sum(rows) and sum(sizes) else 0.0


class ResizePlan:
    """Clustering groups that split a bucket or merge some, each with the ranges of its new buckets."""

    def __init__(
        self,
        table: HudiTable,
        client: WriteClient,
        groups: ClusteringGroups,
        params: BucketResizeParams,
        context: JobContext,
    ) -> None:
        self._table = table
        self._client = client
        self._groups = groups
        self._params = params
        every = set(groups.number_of.values())
        groups.drop({each for each in every if not self._is_split(each) and len(groups.members(each)) == 1})
        self._work = GroupRewrite(table, groups, context)
        self._expected: dict[FileSlice, int] = {}
        self.unit = self._work.unit

    @property
    def partitions(self) -> set[str]:
        return {partition for partition, _ in self._groups.number_of}

    def read_rows(self) -> dict[Group, Placed]:
        """Reads the rows of the partitions, which `rewrite` compares with its own."""
        before = self._table.file_slices()
        found = consistent_hashing.rows_in_ranges(self._table, self.partitions)
        # A slice that has changed meanwhile may have been read in either state.
        unchanged = set(before) & set(self._table.file_slices())
        self._expected = {item: found[item.key].rows if item.key in found else 0 for item in unchanged}
        return found

    def forecast(self, slices: Sequence[FileSlice]) -> BucketResizeResult:
        """Returns the result of a dry run."""
        chosen = self.choose(slices)
        numbers = self._numbers(chosen)
        total = sum(item.bytes for item in chosen)
        found = BucketResizeResult(
            files=sum(item.number_of_files for item in chosen),
            bytes=total,
            file_groups=FileGroupNumbers(before=len(chosen), after=sum(1 + self._is_split(each) for each in numbers)),
            estimated_cost=EstimatedCost(bytes_read=total, bytes_written=total, tasks=len(numbers)),
        )
        return self._described(found, chosen)

    def counted(self, found: BucketResizeResult, replaced: Replaced) -> BucketResizeResult:
        """Returns the result of a job with what it has split and merged."""
        written: dict[int, list[WrittenFile]] = {}
        for file in replaced.written:
            written.setdefault(self._groups.number_of[(file.partition, file.source)], []).append(file)
        shares = {number: larger_share(files) for number, files in written.items() if self._is_split(number)}
        described = self._described(found, replaced.slices, shares)
        one_sided = sum(share > ONE_SIDED for share in shares.values())
        return described.having(one_sided=one_sided, proof=self._work.proof_of(replaced))

    # -- what a `Replacement` calls

    def choose(self, slices: Sequence[FileSlice]) -> list[FileSlice]:
        """Returns the slices of complete groups: a bucket whose neighbour a writer's plan holds cannot be merged
        alone. Partitions in which Hudi's own resize is pending are left out, because two cannot follow one state of
        the metadata."""
        resizing = {partition for partition, _ in held_by_plans(self._table, CLUSTERING_ACTIONS)}
        chosen = [item for item in self._work.choose(slices) if item.partition not in resizing]
        free = {item.key for item in chosen}
        whole = {number for number in self._numbers(chosen) if self._groups.members(number) <= free}
        return [item for item in chosen if self._groups.number_of[item.key] in whole]

    def rewrite(self, instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        """Writes the new buckets. Raises RowsDifferError, also if a file belongs to no new bucket of its group, or if a
        group that no writer has changed has another number of rows than before."""
        written = self._work.rewrite(instant, chosen, everything)
        rows: Counter[int] = Counter()
        for file in written:
            number = self._groups.number_of[(file.partition, file.source)]
            rows[number] += file.rows
            if file.file_id not in self._children(number):
                raise RowsDifferError(f"{file.file_id} in partition '{file.partition}' is no new bucket of the plan")
        for number, slices in self._by_group(chosen).items():
            known = [self._expected.get(item) for item in slices]
            if None not in known and sum(each or 0 for each in known) != rows[number]:
                names = ", ".join(item.file_id for item in slices)
                raise RowsDifferError(f"{names}: {sum(each or 0 for each in known)} rows became {rows[number]}")
        return written

    def save(self, outcome: Replaced) -> None:
        """Writes the new hashing metadata; the lock must be held."""
        groups = [self._groups.extra[number] for number in self._numbers(outcome.slices)]
        self._client.clusterings.save_hashing(outcome.instant, groups)

    def confirm(self, replaced: Replaced) -> None:
        self._client.clusterings.confirm_hashing(sorted({item.partition for item in replaced.slices}))

    # -- its groups

    def _numbers(self, slices: Iterable[FileSlice]) -> list[int]:
        return sorted({self._groups.number_of[item.key] for item in slices})

    def _by_group(self, slices: Iterable[FileSlice]) -> dict[int, list[FileSlice]]:
        found: dict[int, list[FileSlice]] = {}
        for item in slices:
            found.setdefault(self._groups.number_of[item.key], []).append(item)
        return found

    def _is_split(self, number: int) -> bool:
        return self._groups.outputs[number] > 1

    def _children(self, number: int) -> set[str]:
        nodes = json.loads(self._groups.extra[number][hashing_metadata.NODES])
        return {f"{each['fileIdPrefix']}-0" for each in nodes if each["tag"] == "REPLACE"}

    def _described(
        self, found: BucketResizeResult, slices: Sequence[FileSlice], shares: Mapping[int, float] | None = None
    ) -> BucketResizeResult:
        shares = shares or {}
        # The policy has to see the splits of no use, so they come first.
        numbers = sorted(self._numbers(slices), key=lambda each: -shares.get(each, 0))
        merged = [self._groups.members(each) for each in numbers if not self._is_split(each)]
        by_group = self._by_group(slices)
        return found.having(
            changes=tuple(self._change(each, by_group[each], shares.get(each)) for each in numbers[:_MOST_SHOWN]),
            split=len(numbers) - len(merged),
            merged_away=sum(len(each) - 1 for each in merged),
            partitions=len({item.partition for item in slices}),
        )

    def _change(self, number: int, slices: Sequence[FileSlice], share: float | None) -> ResizedBuckets:
        sizes = [item.bytes for item in slices]
        if is_split := self._is_split(number):
            because = f"{sizes[0]} bytes are more than {self._params.split_bytes} (split_bytes)"
        else:
            because = f"neighbours of at most {max(sizes)} bytes each, {self._params.merge_bytes} (merge_bytes) allowed"
        return ResizedBuckets(
            partition=slices[0].partition,
            change="split" if is_split else "merge",
            file_ids=tuple(item.file_id for item in slices),
            bytes=sum(sizes),
            because=because,
            larger_share=UNSET if share is None else round(share, 3),
        )
