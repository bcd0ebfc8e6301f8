"""A job makes few calls of the JVM: it reads no commit twice, and frees its objects in few calls."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.format.bucket_rules import BucketRules
from jobs.hudi.client import WriteClient
from jobs.hudi.hashing_config import rules_before, rules_of
from jobs.hudi.jvm import Jvm
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.records import REPLACE
from jobs.protocol.writers import dead_writes
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_an_open_table_sees_what_others_do_to_its_timeline(spark: SparkSession, tmp_path: Path) -> None:
    base, other = tmp_path / "trips", tmp_path / "other" / "trips"
    options = tables.write_table(spark, base, count=60, partitioned=False)
    table = hudi_table(spark, base, INDEX)
    (first,) = table.commits()
    savepoint = run_job(spark, base, "savepoint").details["savepoint"]

    tables.upsert(tables.rows(spark, 0, 10, ts=1), base, options)
    kept, second = table.commits()
    assert kept.rows is first.rows  # The first commit was not read again.
    assert sum(second.rows.values()) == 10

    run_job(spark, base, "restore", {"savepoint": savepoint, "table_name": "test"}, writers_stopped=True)
    assert table.commits() == [first]

    tables.write_table(spark, other, count=40, partitioned=False)
    shutil.rmtree(base)
    shutil.copytree(other, base)
    (found,) = table.commits()
    assert sum(found.rows.values()) == 40


def test_an_open_table_sees_damage_and_hashing_configs_of_after_its_first_reading(
    spark: SparkSession, base: Path
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    table = hudi_table(spark, base, INDEX)
    assert table.unreadable_instants() == {}
    assert rules_of(table) == BucketRules.uniform(4)

    for _ in range(2):
        run_job(spark, base, "bucket_expansion", {"factor": 2})
    assert [each.default for each in rules_before(table, "9")] == [16, 8, 4]
    first, second = sorted(each.requested for each in table.instants() if each.action == REPLACE)
    assert [each.default for each in rules_before(table, second)] == [8, 4]
    assert [each.default for each in rules_before(table, first)] == [4]
    now = rules_of(table)
    assert now
    assert now.default == 16

    (completed,) = Path(table.timeline_path).glob(f"{second}_*.replacecommit")
    completed.write_bytes(b"no Avro")
    (found,) = table.unreadable_instants().items()
    assert found[0] == second
    assert found[1].startswith(f"reading {second}: ")


def test_options_that_no_file_system_reads_are_not_copied_about(spark: SparkSession) -> None:
    hudi = Jvm(spark)
    options = hudi.java.org.apache.hadoop.conf.Configuration(hudi.hadoop_conf)
    options.addResource("yarn-default.xml")
    options.addResource("mapred-default.xml")
    options.set("yarn.resourcemanager.principal", "rm/_HOST@HERE")
    assert options.get("yarn.acl.enable")
    before = int(options.size())
    hudi.reads.slim(options)
    assert options.get("yarn.acl.enable") is None
    assert options.get("yarn.resourcemanager.principal") == "rm/_HOST@HERE"
    assert options.get("fs.file.impl") == hudi.hadoop_conf.get("fs.file.impl")
    assert options.size() < before / 2
    copied = hudi.java.org.apache.hadoop.conf.Configuration(options)
    assert copied.get("io.file.buffer.size") == hudi.hadoop_conf.get("io.file.buffer.size")
    # The session's own options are slim as well.
    assert hudi.storage_conf().unwrap().get("yarn.acl.enable") is None
    assert hudi.engine_context.getStorageConf().unwrap().get("yarn.acl.enable") is None


def test_long_answers_come_at_once_in_each_thread(spark: SparkSession) -> None:
    texts = Jvm(spark).java.org.apache.commons.lang3.StringUtils

    def quickest() -> float:
        seconds = []
        for _ in range(10):
            begun = time.monotonic()
            assert len(texts.repeat("x", 20_000)) == 20_000
            seconds.append(time.monotonic() - begun)
        return min(seconds)

    # Where the second part of an answer waits for the first one to be confirmed, each takes 40 ms.
    assert quickest() < 0.03
    with ThreadPoolExecutor(1) as another:
        assert another.submit(quickest).result() < 0.03


def test_logs_have_large_buffers_only_where_hudi_merges_them(spark: SparkSession, tmp_path: Path) -> None:
    tables.write_table(spark, tmp_path / "trips", count=60, partitioned=False)
    table = hudi_table(spark, tmp_path / "trips", INDEX)
    size = table.jvm.hudi.common.config.HoodieMemoryConfig.MAX_DFS_STREAM_BUFFER_SIZE
    assert size.defaultValue() == 256 << 10
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        assert client._config.getProps().getProperty(size.key()) == str(16 << 20)


def test_hudis_client_is_opened_when_it_is_needed(spark: SparkSession, tmp_path: Path) -> None:
    tables.write_table(spark, tmp_path / "trips", count=60, partitioned=False)
    table = hudi_table(spark, tmp_path / "trips", INDEX)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        assert dead_writes(table, client) == []
        assert "_client" not in vars(client)
        assert client.new_instant() > table.instants()[-1].requested
        assert "_client" in vars(client)


def test_only_jobs_that_may_merge_look_for_the_operations_of_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, tmp_path / "trips", count=60, updates=2, partitioned=False)
    asked: list[str] = []
    monkeypatch.setattr(OpenedTable, "records_operations", property(lambda table: asked.append(table.base_path)))
    keeps_two = {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2}
    for kind, params in (("savepoint", {}), ("cleaning", keeps_two), ("archival", {"retain": 4})):
        run_job(spark, tmp_path / "trips", kind, params)
    assert asked == []
    run_job(spark, tmp_path / "trips", "compaction")
    assert asked


def test_objects_that_python_drops_leave_the_map_of_py4j(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, tmp_path / "trips", count=60, partitioned=False)
    paths = hudi_table(spark, tmp_path / "trips", INDEX).jvm.hudi.storage.StoragePath
    gateway: Any = spark.sparkContext._gateway
    known = gateway.java_gateway_server.getGateway().getBindings()
    sent: list[str] = []
    send = gateway._gateway_client.send_command

    def send_command(command: str, *args: Any, **kwargs: Any) -> Any:
        sent.append(command)
        return send(command, *args, **kwargs)

    monkeypatch.setattr(gateway._gateway_client, "send_command", send_command)
    kept, begun = paths("/kept"), int(known.size())
    for number in range(300):
        paths(f"/{number}")
    deadline = time.monotonic() + 60
    while known.size() > begun + 50 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert known.size() <= begun + 50
    # py4j's own way to remove one object.
    assert not any(command.startswith("m\nd\n") for command in sent)
    assert str(kept.toString()) == "/kept"
