"""Hudi's own plan of a clustering (1.2.0), made without an instant, and its execution on file slices as they are now.

Every writer sees a plan on the timeline: by default Hudi then fails the writers' updates of the plan's file groups
(`SparkRejectUpdateStrategy`). A writer with `hoodie.clustering.rollback.pending.replacecommit.on.conflict` rolls back
clusterings that it saw pending, even if they have completed since. So the plan is only computed
(`ClusteringPlanActionExecutor`), and its clustering groups are executed (`MultipleSparkJobExecutionStrategy`) under an
instant that is no clustering plan.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from pyspark import inheritable_thread_target

from jobs.errors import HudiError
from jobs.format.stale_writes import Group
from jobs.hudi.boundaries import inside
from jobs.hudi.jvm import translated
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.hudi.write_stats import WriteStat

# Groups are prepared in parallel, because preparing one samples its rows for the sort. Hudi uses the same number of
# threads.
_AT_ONCE = 15
_ROW_WRITER = "hoodie.datasource.write.row.writer.enable"
SORT_AND_SIZE = "SparkSortAndSizeExecutionStrategy"


class ClusteringGroups:
    """The clustering groups of one plan: numbered sets of file groups that are rewritten together."""

    def __init__(self, table: HudiTable, config: Any, plan: Any, executor: str) -> None:
        self._table = table
        self._executor = executor
        self._config = config
        self._plan = plan
        content = json.loads(str(plan.toString()))
        self._slices: list[dict[Group, int]] = [
            {
                (each.get("partitionPath") or "", each["fileId"]): number
                for number, each in enumerate(group.get("slices") or ())
            }
            for group in content.get("inputGroups") or ()
        ]
        self.number_of = {group: number for number, groups in enumerate(self._slices) for group in groups}
        self.outputs = {
            number: int(group.get("numOutputFileGroups") or 1)
            for number, group in enumerate(content.get("inputGroups") or ())
        }
        self.extra: dict[int, Mapping[str, str]] = {
            number: group.get("extraMetadata") or {} for number, group in enumerate(content.get("inputGroups") or ())
        }
        self.left_out: frozenset[str] = frozenset(content.get("missingSchedulePartitions") or ())

    def members(self, number: int) -> frozenset[Group]:
        """Returns the file groups of a clustering group."""
        return frozenset(self._slices[number])

    def drop(self, numbers: Collection[int]) -> None:
        """Leaves clustering groups out."""
        self.number_of = {group: number for group, number in self.number_of.items() if number not in numbers}

    def execute(
        self, instant: str, slices: Mapping[int, Sequence[FileSlice]], *, until: str
    ) -> dict[int, list[WriteStat]]:
        """Writes new files of `instant` for these clustering groups, from their slices; returns the files by group.

        `until` is the latest instant whose log blocks Hudi's readers read. The table must have been reloaded after the
        slices were listed.
        """
        with translated("preparing the clustering"):
            meta, jvm = self._table.meta, self._table.jvm
            context = jvm.engine_context
            # Hudi reads the records by the schema of the configuration (`readRecordsForGroup`), which may lack columns
            # that a writer has added since the client was opened.
            self._config.setSchema(self._table.schema())
            hudi_table = jvm.hudi.table.HoodieSparkTable.create(self._config, context, meta)
            strategies = jvm.hudi.client.clustering.run.strategy
            strategy = getattr(strategies, self._executor)(hudi_table, context, self._config)
            schema = jvm.hudi.common.schema.HoodieSchemaUtils.addMetadataFields(
                jvm.hudi.common.table.TableSchemaResolver(meta).getTableSchema(False),
                self._config.allowOperationMetadataField(),
            )
            spark = context.getJavaSparkContext()
        prepared = {}
        with ThreadPoolExecutor(_AT_ONCE) as pool:

            def prepare(number: int) -> Any:
                with translated("preparing the clustering"):
                    group = self._group(number, slices[number])
                    return self._written(strategy, spark, group, schema, instant=instant, until=until)

            # The thread must inherit the Spark job group, so that its tasks are cancelled with the job.
            for number, written in zip(slices, pool.map(inheritable_thread_target(prepare), slices), strict=True):
                prepared[number] = written
        with translated("clustering"):
            return _collected(self._table, prepared)

    def _written(self, strategy: Any, spark: Any, group: Any, schema: Any, *, instant: str, until: str) -> Any:
        """Returns the `JavaRDD` of `WriteStatus`es of a clustering group, whose files are not written yet.

        Like `MultipleSparkJobExecutionStrategy.runClusteringForGroupAsync(AsRow)`, it reads only up to the instant that
        it writes.
        """
        jvm = self._table.jvm
        ids = jvm.java.java.util.ArrayList()
        for each in group.getSlices():
            ids.add(jvm.hudi.common.model.HoodieFileGroupId(each.getPartitionPath(), each.getFileId()))
        preserves = bool(self._plan.getPreserveHoodieMetadata())
        params = self._plan.getStrategy().getStrategyParams()
        outputs = int(group.getNumOutputFileGroups())
        more = group.getExtraMetadata()
        if self._config.getBooleanOrDefault(_ROW_WRITER, True):
            rows = jvm.call_hidden(strategy, "readRecordsForGroupAsRow", spark, group, until, schema)
            write = strategy.performClusteringWithRecordsAsRow
        else:
            rows = jvm.call_hidden(strategy, "readRecordsForGroup", spark, group, until)
            write = strategy.performClusteringWithRecordsRDD
        written = write(rows, outputs, instant, params, schema, ids, preserves, more)
        return jvm.hudi.data.HoodieJavaRDD.getJavaRDD(written)

    def _group(self, number: int, slices: Sequence[FileSlice]) -> Any:
        """Returns Hudi's clustering group with these slices instead of those at the time of the plan."""
        model = self._table.jvm.hudi.avro.model
        planned = self._plan.getInputGroups().get(number)
        current = self._table.jvm.java.java.util.ArrayList()
        for item in slices:
            before = planned.getSlices().get(self._slices[number][item.key])
            is_same_base = (before.getDataFilePath() or "") == (item.base_file or "")
            builder = model.HoodieSliceInfo.newBuilder(before)
            if not is_same_base:
                builder = builder.setDataFilePath(item.base_file or "").setBootstrapFilePath("")
            logs = self._table.jvm.java.java.util.ArrayList()
            for name in item.log_files:
                path = "/".join(filter(None, (self._table.base_path.rstrip("/"), item.partition, name)))
                logs.add(inside(self._table.base_path, path, "a log file"))
            current.add(builder.setDeltaFilePaths(logs).build())
        return model.HoodieClusteringGroup.newBuilder(planned).setSlices(current).build()


def _collected(table: HudiTable, prepared: Mapping[int, Any]) -> dict[int, list[WriteStat]]:
    """Writes the files of all groups in one Spark job, and returns their statistics by group."""
    jvm = table.jvm
    owners = [number for number, written in prepared.items() for _ in range(written.getNumPartitions())]
    union = None
    for written in prepared.values():
        union = written if union is None else union.union(written)
    found: dict[int, list[WriteStat]] = {number: [] for number in prepared}
    if union is None:
        return found
    # `glom` gives a list for each partition of the RDD, in order, so the statuses can be assigned to their groups.
    for number, statuses in zip(owners, union.glom().collect(), strict=True):
        stats = jvm.java.java.util.ArrayList()
        for status in statuses:
            if status.hasErrors():
                raise HudiError(f"clustering: {status.getTotalErrorRecords()} rows could not be written")
            stats.add(status.getStat())
        found[number] += [WriteStat.parse(stat) for stat in cast("list[dict[str, Any]]", jvm.read(stats))]
    return found
