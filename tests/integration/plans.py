"""Writes pending plans to a table's timeline, as a writer does."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import fastavro

from jobs.format.instants import instant_of
from jobs.hudi import write_stats
from tests.integration.run import hudi_table
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.client import WriteClient

_RECORDS = {
    "clean": "HoodieCleanerPlan",
    "compaction": "HoodieCompactionPlan",
    "clustering": "HoodieRequestedReplaceMetadata",
    "rollback": "HoodieRollbackPlan",
}


def leave_plan(spark: SparkSession, base: Path, action: str, instant: str, record: dict[str, Any]) -> None:
    """Writes the requested instant of a plan in Hudi's own format."""
    model = getattr(hudi_table(spark, base, INDEX).jvm.hudi.avro.model, _RECORDS[action])
    with (base / ".hoodie" / "timeline" / f"{instant}.{action}.requested").open("wb") as file:
        fastavro.writer(file, json.loads(str(model.getClassSchema().toString())), [record])


def instant_now() -> str:
    """Returns an instant of the current time, which is later than all instants on the timeline."""
    return instant_of(datetime.now())


def schedule_clustering(client: WriteClient) -> str:
    """Writes the clustering plan of a writer's client to the timeline, and returns its instant."""
    scheduled = client._client.scheduleClustering(client._jvm.nothing())
    return str(scheduled.get())


def clean(paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Returns the plan of a clean that deletes these absolute paths, by partition path."""
    return {
        "earliestInstantToRetain": {"timestamp": "0", "action": "commit", "state": "COMPLETED"},
        "lastCompletedCommitTimestamp": "0",
        "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": path, "isBootstrapBaseFile": False} for path in some]
            for partition, some in paths.items()
        },
        "partitionsToBeDeleted": [],
    }


class OtherRunner:
    """Hudi's own client as a writer's asynchronous services use it: one call plans, and two more execute the plan."""

    def __init__(self, spark: SparkSession, base: Path, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._table = hudi_table(spark, base, INDEX)
        jvm = self._table.jvm
        builder = jvm.hudi.config.HoodieWriteConfig.newBuilder().withPath(str(base)).withSchema(self._table.schema())
        soon = dict.fromkeys(("compact.inline.max.delta.commits", "clustering.async.max.commits"), "1")
        due = {f"hoodie.{name}": value for name, value in soon.items()}
        config = builder.withProps(jvm.map({**options, **due})).build()
        self.client: Any = jvm.hudi.client.SparkRDDWriteClient(jvm.engine_context, config)
        self._begun: Any = None

    def plan(self) -> str:
        return str(self.client.scheduleCompaction(self._table.jvm.nothing()).get())

    def begin(self, plan: str) -> None:
        """Starts the instant and writes its files."""
        self._begun = self.client.compact(plan, False)
        write_stats.written_by(self._table.jvm, self.client, self._begun)

    def commit(self, plan: str) -> None:
        self.client.commitCompaction(plan, self._begun, self._table.jvm.nothing())

    def begin_rollback(self, plan: str) -> Callable[[], None]:
        """Writes the plan of a rollback of an inflight instant, as Hudi 1.0 does before it executes a compaction that
        anybody has begun (`HoodieTable.rollbackInflightCompaction`). Returns what executes the rollback of a
        compaction."""
        table, jvm = hudi_table(self._spark, self._table.base_path, INDEX), self._table.jvm
        of_hudi = jvm.hudi.table.HoodieSparkTable.create(self.client.getConfig(), jvm.engine_context, table.meta)
        pending = jvm.items(of_hudi.getActiveTimeline().filterInflights().getInstantsAsStream())
        (inflight,) = [item for item in pending if item.requestedTime() == plan]
        at = table.meta.createNewInstantTime(False)
        of_hudi.scheduleRollback(jvm.engine_context, at, inflight, False, True, False)

        def finish() -> None:
            of_hudi.rollback(jvm.engine_context, at, inflight, False, False)
            of_hudi.getActiveTimeline().revertInstantFromInflightToRequested(inflight)

        return finish

    def plan_clustering(self) -> str:
        return str(self.client.scheduleClustering(self._table.jvm.nothing()).get())

    def begin_clustering(self, plan: str) -> None:
        self._begun = self.client.cluster(plan, False)

    def die(self) -> None:
        self.client.getHeartbeatClient().stopHeartbeatTimers()
