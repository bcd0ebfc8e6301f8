"""Tests workers on a real YARN cluster whose default file system is a real HDFS, without and with Kerberos."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.daemon import Daemon
from tests.integration import tables
from tests.integration.clusters.test_spark_cluster import MANY, ROWS
from tests.integration.clusters.yarn_worker import Start
from tests.integration.run import run_job
from tests.support import hdfs, yarn_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.yarn_cluster import Cluster

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]
USER = "etl"


@pytest.mark.parametrize("lifetimes", [None, (20, 150)])
def test_tables_on_hdfs_are_served_by_executors_on_yarn(
    spark: SparkSession,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    lifetimes: tuple[int, int] | None,
) -> None:
    """`lifetimes` are seconds after which a delegation token must have been renewed, and after which it ends."""
    of_tokens = {}
    if lifetimes:
        renewed, ended = (f"{seconds}000" for seconds in lifetimes)
        name = "dfs.namenode.delegation.token"
        of_tokens = {f"{name}.renew-interval": renewed, f"{name}.max-lifetime": ended}
    with (
        hdfs.running(with_kerberos=bool(lifetimes), options=of_tokens) as storage,
        yarn_cluster.running(tmp_path / "yarn", on=storage) as cluster,
    ):
        settings = {"storage_options": json.dumps(storage.options), "allowed_roots": storage.uri, "workers": "0"}
        (tmp_path / "events").mkdir()
        conf = {
            "spark.yarn.stagingDir": f"{storage.uri}/staging",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file:{tmp_path}/events",
        }
        environment = {}
        if storage.realm:
            storage.set_permission("/", 0o777)
            keytab = storage.realm.keytab(tmp_path / "etl.keytab", USER)
            storage.realm.log_in(keytab, tmp_path / "ticket", monkeypatch)
            conf |= {"spark.kerberos.keytab": str(keytab), "spark.kerberos.principal": f"{USER}@{storage.realm.name}"}
            # Spark does not send its newest token to an executor that is just starting, so the last one has to be valid
            # for longer than that takes.
            conf["spark.security.credentials.renewalRatio"] = "0.25"
            option = f"-Djava.security.krb5.conf={storage.realm.config}"
            conf |= {f"spark.{process}.extraJavaOptions": option for process in ("executor", "yarn.am")}
            environment = storage.realm.without_login()
        with Daemon(tmp_path / "service", **settings) as daemon:
            start = Start(spark, daemon, tmp_path_factory)
            with start(cluster, tmp_path / "worker", environment=environment, **conf) as worker:
                worker.wait_until("ready", executors=2)
                serve(spark, daemon, storage, cluster, tmp_path)
                assert worker.end() == 0
                log = worker.log.read_text()
            if storage.realm:
                assert_executors_without_tokens_are_told(start, cluster, tmp_path, daemon, environment, conf)
        assert "Same path resource" not in log
        assert "delegation=" not in log
        assert_executors_ran_tasks(tmp_path / "events")


def serve(spark: SparkSession, daemon: Daemon, storage: hdfs.Cluster, cluster: Cluster, folder: Path) -> None:
    """Runs jobs on a copy of a local table whose file groups are too many for the driver, and compares all rows."""
    local, remote = folder / "local" / "orders", "/lake/orders"
    options = tables.write_table(spark, local, count=ROWS, updates=1, partitioned=False, num_buckets=MANY, copied=False)
    before = tables.snapshot(spark, local)
    files = storage.arrow()
    hdfs.copy(local, files, remote)
    table = daemon.register(f"{storage.uri}{remote}", num_buckets=MANY)
    daemon.succeed(table, "compaction", engine="hudi")
    daemon.succeed(table, "bucket_expansion", factor=2, settle_seconds=1)
    daemon.succeed(table, "clustering", sort_by=["city"])
    # The first tokens may have ended, so new executors need later ones.
    for executor in cluster.executors():
        os.kill(executor, signal.SIGKILL)
    audit = daemon.succeed(table, "audit")
    assert (audit["clean"], audit["rows"]) == (True, ROWS), audit

    back = folder / "back" / "orders"
    back.mkdir(parents=True)
    hdfs.copy(back, files, remote, back=True)
    assert tables.in_order(spark, back, 2 * MANY) == before
    # The writer still has the old number of buckets in its options.
    tables.upsert(tables.rows(spark, 0, ROWS, ts=9), back, options)
    assert len(tables.in_order(spark, back, 2 * MANY)) == ROWS
    assert run_job(spark, back, "audit").details["clean"]


def assert_executors_without_tokens_are_told(
    start: Start, cluster: Cluster, folder: Path, daemon: Daemon, environment: dict[str, str], conf: dict[str, str]
) -> None:
    """Asserts the refusal of a table on a cluster for which Spark gets no tokens. Such a cluster is one that is not the
    default and that `spark.kerberos.access.hadoopFileSystems` does not name; here Spark gets no tokens at all."""
    [table] = daemon.call("GET", "/v1/tables").json()["items"]
    without = {
        "spark.security.credentials.hadoopfs.enabled": "false",
        "spark.yarn.stagingDir": f"file:{folder}/staging",
        "spark.eventLog.enabled": "false",
    }
    job = daemon.submit(table["id"], "audit")
    with start(cluster, folder / "without", environment=environment, **(conf | without)):
        failed = daemon.wait(job)
    assert failed["error"]["type"].endswith("/storage-login-failed"), failed
    assert "spark.kerberos.access.hadoopFileSystems" in failed["error"]["detail"]


def assert_executors_ran_tasks(events: Path) -> None:
    [log] = events.iterdir()
    every = [json.loads(line) for line in log.read_text().splitlines()]
    ended = [event for event in every if event["Event"] == "SparkListenerTaskEnd"]
    assert {event["Task Info"]["Executor ID"] for event in ended} >= {"1", "2", "3"}
    # Hudi's compaction, the expansion and the clustering.
    assert len(ended) > 4 * MANY
