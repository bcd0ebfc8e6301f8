"""Clustering of tables without a bucket index: Hudi's own plan and execution (1.2.0), committed by `Replacement`.

`SparkSizeBasedClusteringPlanStrategy` makes the plan, for the files of each partition that are smaller than
`hoodie.clustering.plan.strategy.small.file.limit`. The plan is not on the timeline: until the commit, writers see only
a pending replacecommit. So writers may update the file groups meanwhile; file groups that they change are rewritten
again, or left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from jobs.contract import Outcome, Result, WorkOrder
from jobs.errors import refuse
from jobs.format.bucket_rules import exactly
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import Commit, FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.job_params import ClusteringLayout
from jobs.kinds.clustering import ClusteringParams, ClusteringResult
from jobs.kinds.results import FileGroupNumbers
from jobs.protocol import repeated_file_ids, unique_keys
from jobs.protocol.file_group_change import Switch
from jobs.protocol.replacement import Replacement
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.services import repair
from jobs.services.group_rewrite import PLANNING, STRATEGY, GroupRewrite
from jobs.services.joining import Joining
from jobs.services.key_proof import KeyProof

_SMALL_BYTES = 300 * 1024 * 1024  # `PLAN_STRATEGY_SMALL_FILE_LIMIT` of `HoodieClusteringConfig`
_CURVES = {
    ClusteringLayout.LINEAR: "linear",
    ClusteringLayout.ZORDER: "z-order",
    ClusteringLayout.HILBERT: "hilbert",
}
_ORDERED_KEY = "groundskeeper.ordered"
"""Key in the extra metadata of a clustering: JSON with the order, and the partitions that it has put into this
order."""


def run(
    table: HudiTable,
    order: WorkOrder[ClusteringParams],
    context: JobContext,
    *,
    sort_by: Sequence[str],
    layout: ClusteringLayout,
    partitions: Sequence[str] | None,
) -> Result[ClusteringResult]:
    """Sorts the rows of these partitions (by default, all that are not in this order yet), or merges their small
    files."""
    wanted = Order(tuple(sort_by), layout)
    existing = frozenset(item.partition for item in table.file_slices())
    due = frozenset(partitions) & existing if partitions is not None else wanted.due(table, existing)
    with WriteClient(table, UNDER_OUR_LOCK, wanted.options(None if due == existing else due)) as client:
        groups = client.clusterings.plan() if due else None
        if groups is None:
            scope = existing if partitions is None else frozenset(partitions)
            number = sum(item.partition in scope for item in table.file_slices())
            idle = ClusteringResult(
                file_groups=FileGroupNumbers(before=number, after=number),
                bytes_written=0,
                nothing_to_do=True,
                inside_buckets=False,
            )
            return Result(Outcome.SUCCEEDED, details=KeyProof().result(idle))
        unique_keys.require(table, {partition for partition, _ in groups.number_of})
        joining = None if sort_by else Joining(table, order, context)
        work = GroupRewrite(table, groups, context, joining)
        lock = TableLock(table, order.job_id)
        config = ReplacementConfig.of(order.params, may_leave_out=True, beside_plans=True)
        replaced = Replacement(
            table,
            config,
            context,
            lock,
            choose=work.choose,
            rewrite=work.rewrite,
            # A sink of Kafka Connect that was declared gone may have committed meanwhile.
            before_commit=lambda replaced: refuse(repeated_file_ids.of_kafka_connect(table, replaced.slices)),
            extra=lambda replaced: wanted.to_metadata(due - work.unfinished(replaced)),
            unit=work.unit,
        ).run()
    switch = Switch(replaced.file_groups)
    watched = repair.after_switch(table, lock, order, context, switch, before=replaced.before, fenced=replaced.fenced)
    done = watched.result(replaced.measured(ClusteringResult)).having(
        proof=work.proof_of(replaced), inside_buckets=False, nothing_to_do=False
    )
    if joining:
        # Without the keys of the joined files there is no digest of all keys.
        digest = UNSET if "joined" in work.left_out else done.key_digest
        done = done.having(merged=joining.merged, key_digest=digest)
    return Result(Outcome.SUCCEEDED, instants=(replaced.instant, *watched.instants), details=done)


@dataclass(frozen=True)
class Order:
    """The requested order of rows; without columns, the job only merges small files."""

    sort_by: tuple[str, ...]
    layout: ClusteringLayout

    def options(self, partitions: Collection[str] | None) -> dict[str, str]:
        """Returns the options of Hudi's clustering of these partitions, or of all."""
        found = {
            **PLANNING,
            f"{STRATEGY}.max.num.groups": "1000",
        }
        if partitions is not None:
            pattern = "|".join(exactly(partition) for partition in sorted(partitions))
            found[f"{STRATEGY}.partition.regex.pattern"] = pattern
        if not self.sort_by:
            # A single file is not rewritten, so a second job finds nothing to do.
            return found | {f"{STRATEGY}.single.group.clustering.enabled": "false"}
        return found | {
            f"{STRATEGY}.sort.columns": ",".join(self.sort_by),
            "hoodie.layout.optimize.strategy": _CURVES[self.layout],
            # Hudi's default interleaves the bits of the raw values. A small integer beside a double then has no
            # influence (observed: the rows were in the order of the double alone). `sample` first ranks the values by a
            # sample.
            "hoodie.layout.optimize.curve.build.method": "sample",
        }

    def due(self, table: HudiTable, existing: frozenset[str]) -> frozenset[str]:
        """Returns the partitions that are not in this order according to the active timeline; all if there is no order.
        `existing` are the partitions of the table."""
        due = set(existing)
        for commit in table.commits() if self.sort_by else ():
            due |= commit.files.keys() & existing
            due -= self._brought_by(commit)
        return frozenset(due)

    def to_metadata(self, partitions: Collection[str]) -> dict[str, str]:
        """Returns the metadata of a commit after which these partitions are in this order."""
        if not self.sort_by:
            return {}
        return {_ORDERED_KEY: json.dumps({"order": self._text, "partitions": sorted(partitions)})}

    def _brought_by(self, commit: Commit) -> frozenset[str]:
        """Returns the partitions that the commit has put into this order. The commit's metadata may have any
        content."""
        try:
            done = json.loads(commit.extra.get(_ORDERED_KEY, "{}"))
            return frozenset(map(str, done["partitions"])) if done["order"] == self._text else frozenset()
        except (ValueError, KeyError, TypeError, RecursionError):
            return frozenset()

    @property
    def _text(self) -> str:
        return f"{self.layout.value}: {', '.join(self.sort_by)}"


def mergeable(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Returns the slices with small files that are not alone in their partition."""
    small = [item for item in slices if item.base_bytes < _SMALL_BYTES]
    number = Counter(item.partition for item in small)
    return [item for item in small if number[item.partition] > 1]
