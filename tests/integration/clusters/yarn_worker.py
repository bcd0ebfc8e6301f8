"""Starts workers on a YARN cluster, and writes the tables whose jobs need its executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration import tables
from tests.integration.cluster_worker import ClusterWorker
from tests.integration.clusters.test_spark_cluster import BY_HUDI, ROWS, Scene
from tests.support import packed_environment
from tests.support.spark_cluster import CONF as STANDALONE
from tests.support.spark_cluster import SPARK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.support.yarn_cluster import Cluster

CONF = {
    **STANDALONE,
    "spark.executor.instances": "2",
    "spark.executor.memoryOverhead": "384m",
    "spark.yarn.am.memory": "256m",
    # The containers find Spark's own jars on this machine, so that they are not uploaded.
    "spark.yarn.jars": f"local:{SPARK}/jars/*",
}
EACH_FILE = {
    # Each file of the table is a task of the stage before the shuffle.
    "spark.sql.files.maxPartitionBytes": "1b",
    "spark.sql.files.openCostInBytes": "1b",
    "spark.eventLog.enabled": "true",
}
FILES = 24


def sort_scene(spark: SparkSession, daemon: Daemon, base: Path) -> Scene:
    """Writes a table of `FILES` files, which Hudi itself is to sort."""
    options = tables.writer_options(base, table_type="COPY_ON_WRITE", num_buckets=None, partitioned=False)
    options["hoodie.datasource.write.operation"] = "bulk_insert"
    tables.upsert(tables.rows(spark, 0, ROWS).repartition(FILES), base, options)
    return Scene(spark, daemon, base, BY_HUDI)


class Start:
    """Starts a worker on a cluster, in a folder, as the guide does: with an archive of its Python and a folder of
    jars, unless it fetches these."""

    def __init__(self, spark: SparkSession, daemon: Daemon, temporary: pytest.TempPathFactory) -> None:
        self._daemon = daemon
        archive = packed_environment.pack(temporary.mktemp("environment"))
        self._jars = packed_environment.hudi_jars(spark, temporary.mktemp("jars"))
        self._shipped = {"spark.archives": f"{archive}#environment", "spark.pyspark.python": "./environment/bin/python"}

    def __call__(
        self,
        cluster: Cluster,
        folder: Path,
        *arguments: str,
        fetches: bool = False,
        environment: Mapping[str, str] | None = None,
        **conf: str,
    ) -> ClusterWorker:
        own = {"HADOOP_CONF_DIR": str(cluster.conf_folder), **(environment or {})}
        own |= {} if fetches else {"GROUNDSKEEPER_JARS": str(self._jars)}
        every = {**CONF, **self._shipped, "spark.yarn.stagingDir": str(folder / "staging"), **conf}
        return ClusterWorker(self._daemon, folder, "yarn", *arguments, conf=every, environment=own)
