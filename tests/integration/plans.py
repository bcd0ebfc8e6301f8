"""Pending plans on a table's timeline, as a writer leaves them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import fastavro

from tests.integration.run import hudi_table
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
    """Writes it as requested, in Hudi's own format."""
    model = getattr(hudi_table(spark, base, INDEX).jvm.hudi.avro.model, _RECORDS[action])
    with (base / ".hoodie" / "timeline" / f"{instant}.{action}.requested").open("wb") as file:
        fastavro.writer(file, json.loads(str(model.getClassSchema().toString())), [record])


def schedule_clustering(client: WriteClient) -> str:
    """Leaves the clustering plan of a writer's client on the timeline; returns its instant."""
    scheduled = client._client.scheduleClustering(client._jvm.nothing())
    return str(scheduled.get())


def clean(paths: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The plan of a clean that deletes these absolute paths, by partition path."""
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
