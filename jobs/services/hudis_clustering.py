"""The options of Hudi's own clustering (1.2.0), for tables without a bucket index.

The plan is made by `SparkSizeBasedClusteringPlanStrategy`: per partition, of the files that are smaller than
`hoodie.clustering.plan.strategy.small.file.limit`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jobs.format.bucket_rules import exactly
from jobs.hudi.plans import last_clustering
from jobs.job_params import ClusteringLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable

_SMALL_BYTES = 300 * 1024 * 1024  # `PLAN_STRATEGY_SMALL_FILE_LIMIT` of `HoodieClusteringConfig`
_STRATEGY = "hoodie.clustering.plan.strategy"
_SORT_COLUMNS = f"{_STRATEGY}.sort.columns"
_INCREMENTAL = "hoodie.table.services.incremental.enabled"
_CURVES = {
    ClusteringLayout.LINEAR: "linear",
    ClusteringLayout.ZORDER: "z-order",
    ClusteringLayout.HILBERT: "hilbert",
}


def options(
    table: HudiTable, sort_by: Sequence[str], layout: ClusteringLayout, chosen: Sequence[FileSlice] | None
) -> dict[str, str]:
    """Returns the options of a clustering of the partitions of these slices, or of the whole table."""
    found = {
        # Also without a commit since the last clustering, which may have been one of other partitions.
        "hoodie.clustering.async.max.commits": "0",
        "hoodie.clustering.inline.max.commits": "0",
        f"{_STRATEGY}.max.num.groups": "1000",
    }
    if sort_by:
        found |= {
            _SORT_COLUMNS: ",".join(sort_by),
            "hoodie.layout.optimize.strategy": _CURVES[layout],
            # By default Hudi interleaves the bits of the raw values, so that a small integer beside a double has no
            # weight (seen: rows in the plain order of the double). With this it ranks the values by a sample first.
            "hoodie.layout.optimize.curve.build.method": "sample",
        }
    else:
        # A file that would only be written again is left alone, so a second job finds nothing to do.
        found |= {f"{_STRATEGY}.single.group.clustering.enabled": "false", _INCREMENTAL: "false"}
    if chosen is not None:
        partitions = sorted({item.partition for item in chosen})
        pattern = "|".join(exactly(partition) for partition in partitions)
        return {**found, f"{_STRATEGY}.partition.regex.pattern": pattern, _INCREMENTAL: "false"}
    return {**found, **_every_partition(table, sort_by)} if sort_by else found


def mergeable(slices: Sequence[FileSlice]) -> list[FileSlice]:
    """Returns the slices with small files that are not alone in their partition."""
    small = [item for item in slices if item.base_bytes < _SMALL_BYTES]
    number = Counter(item.partition for item in small)
    return [item for item in small if number[item.partition] > 1]


def _every_partition(table: HudiTable, sort_by: Sequence[str]) -> dict[str, str]:
    """Returns the options for a plan of more than the partitions written since the last clustering, if that one was not
    of all partitions, or in another order.

    By default Hudi looks into those alone, and so never orders the others (`BaseTableServicePlanActionExecutor`). Only
    a plan of all partitions tells which it left out (`missingSchedulePartitions`).
    """
    last = last_clustering(table)
    if last is None:
        return {}
    params = (last.get("strategy") or {}).get("strategyParams") or {}
    if last.get("missingSchedulePartitions") is not None and params.get(_SORT_COLUMNS) == ",".join(sort_by):
        return {}
    partitions = sorted({item.partition for item in table.file_slices()})
    if not all(partitions) or any("," in partition for partition in partitions):
        return {_INCREMENTAL: "false"}
    return {f"{_STRATEGY}.partition.selected": ",".join(partitions)}
