"""Jobs on small tables work in processes beside the driver, because Spark's jobs would cost more than the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services import compaction
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_WORK: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("compaction", {}, 4),
    ("cleaning", {"retain": 1}, 4),
    ("clustering", {"sort_by": ["id"]}, 4),
    ("bucket_expansion", {"factor": 2}, 8),
)


@pytest.mark.parametrize(
    ("version", "partitions"),
    [(9, 1), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(6, 1), (9, 5)])],
)
def test_a_small_job_starts_no_job_of_spark(spark: SparkSession, base: Path, version: int, partitions: int) -> None:
    # Several threads do the work for each of 20 file slices.
    options = tables.writer_options(base, version=version, partitioned=partitions > 1)
    tables.upsert(tables.rows(spark, 0, 90, partitions=partitions), base, options)
    tables.upsert(tables.rows(spark, 0, 60, ts=1, partitions=partitions), base, options)
    for round_, (kind, params, buckets) in enumerate(_WORK):
        before = tables.in_order(spark, base, 4)
        jobs = _begun(spark)
        result = run_job(spark, base, kind, params)
        assert not result.details.get("nothing_to_do"), result
        assert _names(spark, jobs) == [], kind
        assert tables.in_order(spark, base, buckets) == before
        # The metadata table is correct as well, for a writer and, in the end, for an audit.
        tables.upsert(tables.rows(spark, 0, 60, ts=round_ + 2, partitions=partitions), base, options)
    assert len(proved(spark, base, 8)) == 90


@pytest.mark.exhaustive
def test_sparks_objects_for_a_compaction_are_made_only_if_hudi_executes_it(spark: SparkSession, tmp_path: Path) -> None:
    base, context = tmp_path / "trips", spark.sparkContext._jsc
    options = tables.write_table(spark, base, count=60, partitioned=False)
    tables.upsert(tables.rows(spark, 0, 70, ts=1), base, options)
    before, kept = tables.in_order(spark, base, 4), context.getPersistentRDDs().size()
    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK, compaction.DUE) as client:
        instant = client.schedule_compaction()
        assert instant
        first = _next_broadcast(spark)
        begun = client.begin_compaction(instant)
        assert _next_broadcast(spark) == first + 1
        assert sum(each.rows for each in client.execute_compaction(begun)) == 70
        assert _next_broadcast(spark) > first + 2
        client.commit_compaction(instant, begun)
    assert context.getPersistentRDDs().size() == kept
    assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 60, 90, ts=2), base, options)
    assert len(proved(spark, base, 4)) == 90


def test_pysparks_functions_are_looked_up_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.range(1)
    frame.select(F.lit(1), F.concat("id", F.lit(2)))
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    send, asked = client.send_command, []
    monkeypatch.setattr(client, "send_command", lambda command, *more: asked.append(command) or send(command, *more))
    frame.select(F.lit(1), F.concat("id", F.lit(2)))
    assert asked
    assert [command for command in asked if command.startswith("r\n")] == []


def _next_broadcast(spark: SparkSession) -> int:
    """Makes a broadcast; returns its number."""
    made: Any = spark.sparkContext.broadcast(1)
    number = int(made._jbroadcast.id())
    made.destroy()
    return number


def _names(spark: SparkSession, first: int) -> list[str]:
    """Returns the descriptions of Spark's jobs since `first`."""
    context: Any = spark.sparkContext._jsc
    store = context.sc().statusStore()
    return [str(store.job(number).name()) for number in range(first, _begun(spark))]


def _begun(spark: SparkSession) -> int:
    """Returns the number of jobs that the session has begun."""
    context: Any = spark.sparkContext._jsc
    return int(context.sc().dagScheduler().nextJobId())
