"""Tests jobs on tables that Hudi's client for Java writes, and Hudi's sink for Kafka Connect with it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from jobs.format.kafka_connect import OFFSETS
from tests.integration import tables
from tests.integration.java_client import JavaClient
from tests.integration.run import hudi_table, run_job
from tests.integration.test_repair_of_archived_writes import archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def options(spark: SparkSession, base: Path) -> dict[str, str]:
    """A table with 20 rows of Spark in two partitions."""
    found = tables.writer_options(base, num_buckets=None, **{"hoodie.index.type": "SIMPLE"})
    tables.upsert(tables.rows(spark, 0, 20, partitions=2).select("id", "ts", "dt"), base, found)
    return found


@pytest.fixture
def client(spark: SparkSession, base: Path, options: dict[str, str]) -> Iterator[JavaClient]:
    own = {"hoodie.index.type": "INMEMORY", "hoodie.parquet.small.file.limit": "0"}
    found = JavaClient(spark, base, {**options, **own})
    yield found
    found.close()


def _read(spark: SparkSession, base: Path) -> dict[str, int]:
    """Returns `ts` by key, as readers find it by the metadata table and by listing."""
    found = []
    for metadata in ("true", "false"):
        frame = spark.read.format("hudi").option("hoodie.metadata.enable", metadata).load(str(base))
        rows = [(row.id, row.ts) for row in frame.select("id", "ts").collect()]
        assert len(rows) == len(dict(rows))
        found.append(dict(rows))
    assert found[0] == found[1]
    return found[0]


def _cluster_by_hudi(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Clusters as Hudi's own services do, without regard to writers. A job of ours would be refused
    (`test_kafka_connect.py`)."""
    taken = "hoodie.write.lock", "hoodie.metadata"
    settings = ",".join(f"{name}={value}" for name, value in options.items() if name.startswith(taken))
    found = spark.sql(f"CALL run_clustering(path => '{base}', op => 'scheduleAndExecute', options => '{settings}')")
    assert found.count() == 1


def test_rows_of_kafka_connect_are_found_again_after_their_file_groups_were_replaced(
    spark: SparkSession, base: Path, options: dict[str, str], client: JavaClient
) -> None:
    expected = {f"k{number}": 0 for number in range(20)}
    client.connect(range(20, 40), 1)
    run_job(spark, base, "compaction", index=None)
    client.connect(range(30, 50), 2)
    expected |= {f"k{number}": 1 if number < 30 else 2 for number in range(20, 50)}
    assert _read(spark, base) == expected

    _cluster_by_hudi(spark, base, options)
    assert _read(spark, base) == expected
    instant = client.connect(range(40, 60), 3)
    expected |= {f"k{number}": 3 for number in range(40, 60)}
    stale = run_job(spark, base, "audit", index=None).details["stale_writes"]
    assert [(each["instant"], each["operation"]) for each in stale] == [(instant, "KAFKA_CONNECT")]

    repaired = run_job(spark, base, "repair", index=None).details

    assert (repaired["repaired"], repaired["rows"], repaired["superseded"]) == ([instant], 20, 0)
    assert _read(spark, base) == expected
    assert run_job(spark, base, "audit", index=None).details["clean"]
    # After a restart the sink reads its position from the latest commit.
    assert hudi_table(spark, base, None).commits()[-1].extra[OFFSETS] == "0=3"


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_archived", [False, True])
def test_rows_of_kafka_connect_are_found_after_the_clustering_was_archived(
    spark: SparkSession, base: Path, *, is_archived: bool
) -> None:
    """After the archival nothing tells readers that the sink's file groups were replaced, so keys exist twice."""
    options = tables.writer_options(base, num_buckets=None, metadata=False, **{"hoodie.index.type": "SIMPLE"})
    tables.upsert(tables.rows(spark, 0, 20, partitions=2).select("id", "ts", "dt"), base, options)
    with closing(JavaClient(spark, base, {**options, "hoodie.parquet.small.file.limit": "0"})) as client:
        client.connect(range(20, 40), 1)
        _cluster_by_hudi(spark, base, options)
        archive(spark, base, options, hudi_table(spark, base, None).commits()[-1].write.instant)
        late = [client.connect(range(30, 50), 2), client.connect(range(40, 60), 3)]
    if is_archived:
        archive(spark, base, options, late[-1])
    rows = spark.read.format("hudi").load(str(base)).select("id", "ts").collect()
    assert len(rows) == len({row.id for row in rows}) + 10

    repaired = run_job(spark, base, "repair", {"instants": late}, index=None).details

    assert sorted(repaired["repaired"]) == late
    expected = {f"k{number}": 0 for number in range(20)} | {f"k{number}": 1 for number in range(20, 30)}
    expected |= {f"k{number}": 2 if number < 40 else 3 for number in range(30, 60)}
    found = _read(spark, base)
    assert {key: ts for key, ts in found.items() if int(key[1:]) < 500} == expected
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_rows_of_an_index_in_memory_are_found_again_after_a_clustering(
    spark: SparkSession, base: Path, client: JavaClient
) -> None:
    # All tables of a process share the in-memory index of Hudi's client for Java, so no other test has these keys.
    client.upsert(range(120, 140), 1)
    run_job(spark, base, "clustering", index=None)
    client.upsert(range(130, 150), 2)
    assert not run_job(spark, base, "audit", index=None).details["clean"]

    repaired = run_job(spark, base, "repair", index=None).details

    expected = {f"k{number}": 0 for number in range(20)}
    expected |= {f"k{number}": 1 if number < 130 else 2 for number in range(120, 150)}
    assert (repaired["rows"], _read(spark, base)) == (10, expected)
    assert run_job(spark, base, "audit", index=None).details["clean"]
