"""Tests that reads of tables are found in event logs that Spark has written, and that broken logs do no harm."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from groundskeeper_client import Client, calls
from service.cli.client.spark_event_logs import EventLogs
from service.model.clock import utc_now
from tests.integration import tables
from tests.integration.control_plane.command_line import serving_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)
QUERY = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"


def read_with_log(spark: SparkSession, folder: Path, base: Path) -> None:
    """Reads a table in four ways while Spark's own listener writes a log of another application."""
    jvm: Any = spark._jvm
    context = spark.sparkContext._jsc.sc()
    conf = context.conf().clone().set("spark.eventLog.enabled", "true").set("spark.eventLog.compress", "false")
    none, uri = jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri())
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener("app-1", none, uri, conf)
    listener.start()
    context.addSparkListener(listener)
    try:
        hudi = spark.read.format("hudi")
        assert hudi.load(str(base)).count() == 40
        assert len(hudi.load(str(base)).where("ts >= 0").groupBy("city").count().collect()) > 1
        optimized = hudi.option("hoodie.datasource.query.type", "read_optimized").load(str(base))
        assert optimized.join(hudi.load(str(base)), "id").count() == 40
        context.listenerBus().waitUntilEmpty()
    finally:
        context.removeSparkListener(listener)
        listener.stop()


def test_each_query_that_sparks_log_has_is_one_read_of_each_of_its_tables(spark: SparkSession, tmp_path: Path) -> None:
    with serving_command_line(tmp_path) as cli:
        base, folder = tmp_path / "trips", tmp_path / "logs"
        folder.mkdir()
        tables.write_table(spark, base, count=40, updates=1)
        table_id = cli.json("tables", "add", str(base))["id"]
        read_with_log(spark, folder, base)

        assert "3 reads counted" in cli.run("tables", "count-reads", str(folder)).stdout
        again = cli.json("tables", "count-reads", str(folder))

        assert again == {"queries": 3, "counted": 0, "repeated": 3, "unknown": 0}
        with Client(cli.serving.url, cli.environment["GROUNDSKEEPER_TOKEN"]) as client:
            reads = client.send(calls.get_outcome(table_id)).reads
        assert reads.source.value == "lineage"
        # The last day counts most, and the rest of the week has none.
        assert 3 < reads.per_day < 24
        assert "no folder" in cli.run("tables", "count-reads", str(tmp_path / "nowhere"), code=2).stderr


def line(number: int, path: str, at: datetime, **more: Any) -> bytes:
    scan = {"nodeName": "Scan", "metadata": {"Location": f"HoodieFileIndex(1 paths)[{path}]"}, "children": []}
    plan = {"nodeName": "Project", "metadata": {}, "children": [scan]}
    time = int(at.timestamp() * 1000)
    event = {"Event": QUERY, "executionId": number, "time": time, "sparkPlanInfo": plan, **more}
    return json.dumps(event).encode() + b"\n"


def found(logs: EventLogs, since: datetime = LONG_AGO) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.run, each.paths) for each in logs.new(since)]


def test_a_log_that_grows_is_read_on_and_old_queries_are_left_out(tmp_path: Path) -> None:
    now = utc_now()
    file = tmp_path / "eventlog_v2_app-7" / "events_1_app-7"
    file.parent.mkdir()
    (file.parent / "appstatus_app-7.inprogress").touch()
    file.write_bytes(line(0, "s3a://lake/orders", now - timedelta(days=3)) + line(1, "s3a://lake/orders", now)[:-20])
    logs = EventLogs(str(tmp_path))
    assert found(logs, now - timedelta(days=1)) == []
    file.write_bytes(file.read_bytes() + line(1, "s3a://lake/orders", now)[-20:] + line(2, "/lake/trips", now))
    assert found(logs) == [("app-7/1", ("s3a://lake/orders",)), ("app-7/2", ("/lake/trips",))]
    assert found(logs) == []


def test_compressed_logs_are_read_and_the_last_unfinished_frame_ends_one(tmp_path: Path) -> None:
    lines = b"".join(line(number, "/lake/trips", utc_now()) for number in range(2_000))
    whole = pa.compress(lines, codec="zstd", asbytes=True)
    (tmp_path / "app-1.zstd").write_bytes(whole)
    (tmp_path / "app-2.zstd.inprogress").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "app-3.lz4").write_bytes(b"LZ4Block")
    logs = EventLogs(str(tmp_path))
    runs = [run for run, _ in found(logs)]
    assert len([run for run in runs if run.startswith("app-1/")]) == 2_000
    assert [why for path, why in logs.unreadable.items() if path.endswith("app-3.lz4")] == [
        "lz4 is not supported; set spark.eventLog.compression.codec to zstd"
    ]


@pytest.fixture
def broken() -> Iterator[bytes]:
    location = {"metadata": {"Location": ["x"]}}
    return b"".join(
        [
            b"\xff\xfe no JSON SparkListenerSQLExecutionStart\n",
            b'["SparkListenerSQLExecutionStart"]\n',
            line(1, "/a", utc_now(), time="yesterday"),
            line(2, "/a", utc_now(), time=10**30),
            line(3, "/a", utc_now(), executionId=None),
            line(4, "/a", utc_now(), sparkPlanInfo=0).replace(
                b": 0", b": " + b'{"children": [' * 9_000 + b"]}" * 9_000
            ),
            line(5, "/a", utc_now(), sparkPlanInfo=[location]),
            line(6, "/a", utc_now(), sparkPlanInfo=location),
            b'{"Event":"SparkListenerSQLExecutionStart","x":"' + b"y" * 20_000_000 + b'"}\n',
            line(7, "/lake/trips", utc_now()),
        ]
    )


def test_a_broken_line_stops_neither_its_log_nor_others(tmp_path: Path, broken: bytes) -> None:
    (tmp_path / "app-1").write_bytes(broken)
    (tmp_path / "app-2").write_bytes(line(0, "/lake/orders", utc_now()))
    start = b'{"Event":"SparkListenerApplicationStart","App Name":"groundskeeper","App ID":"app-3"}\n'
    (tmp_path / "app-3").write_bytes(start + line(0, "/lake/orders", utc_now()))
    assert sorted(found(EventLogs(str(tmp_path)))) == [("app-1/7", ("/lake/trips",)), ("app-2/0", ("/lake/orders",))]
