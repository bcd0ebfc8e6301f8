"""Rows that a payload class merges stay as readers see them. Hudi (1.2.0) misreads some columns of such tables,
so jobs read all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from jobs.hudi import rows
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.test_consistent_hashing import ENGINE
from tests.integration.test_repair_order import PARTIAL
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.job_context import JobContext

# A value that the database did not send, because it is large and was not changed.
_NOT_SENT = "__debezium_unavailable_value"


def _sent(spark: SparkSession, first: int, last: int, lsn: int, operation: str, note: str) -> DataFrame:
    found = spark.range(first, last, 1, 1).select(F.expr("concat('k', id)").alias("id"), F.expr("id % 7").alias("city"))
    found = found.withColumns({"_event_lsn": F.lit(lsn).cast("long"), "note": F.lit(note)})
    return found.withColumn("_change_operation_type", F.lit(operation))


def _with_values_not_sent(spark: SparkSession, base: Path, num_buckets: int | None, **engine: str) -> dict[str, str]:
    payload = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
    options = tables.writer_options(base, num_buckets=num_buckets, partitioned=False, metadata=False)
    options |= {
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.datasource.write.precombine.field": "_event_lsn",
        **engine,
    }
    for sent in (_sent(spark, 0, 20, 10, "c", "large"), _sent(spark, 0, 9, 11, "u", _NOT_SENT)):
        tables.upsert(sent, base, options)
    tables.upsert(_sent(spark, 6, 8, 12, "d", ""), base, options)
    return options


def test_a_value_that_debezium_did_not_send_stays_what_it_was(spark: SparkSession, base: Path) -> None:
    options, index = _with_values_not_sent(spark, base, 2), BucketIndex(2, ("id",))
    before = tables.snapshot(spark, base)
    assert (len(before), sum("'note': 'large'" in row for row in before)) == (18, 18)

    done = run_job(spark, base, "compaction", index=index).details

    assert [each["engine"] for each in done["engines"]] == ["hudi"]
    assert tables.snapshot(spark, base) == before
    tables.upsert(_sent(spark, 0, 3, 13, "u", _NOT_SENT), base, options)
    assert sum("'note': 'large'" in row for row in tables.snapshot(spark, base)) == 18


def test_hudis_clustering_merges_no_values_that_debezium_did_not_send(spark: SparkSession, base: Path) -> None:
    options = _with_values_not_sent(spark, base, None)
    before = tables.snapshot(spark, base)
    for params in ({}, {"sort_by": ["city"]}, {"plans": ["20260101000000000"]}):
        assert _refusals_of_clustering(spark, base, params) == ["unsent-values-in-logs"]
    run_job(spark, base, "compaction", index=None)

    sent_meanwhile = At("rewriting", lambda: tables.upsert(_sent(spark, 0, 3, 13, "u", _NOT_SENT), base, options))
    assert _refusals_of_clustering(spark, base, {"sort_by": ["city"]}, sent_meanwhile) == ["unsent-values-in-logs"]

    run_job(spark, base, "compaction", index=None)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    after = tables.snapshot(spark, base)
    assert (len(after), sum("'note': 'large'" in row for row in after)) == (len(before), 18)


def _refusals_of_clustering(
    spark: SparkSession, base: Path, params: dict[str, Any], context: JobContext | None = None
) -> list[str]:
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "clustering", params, index=None, context=context)
    return [each.type for each in caught.value.reasons]


def test_a_resize_by_hudi_merges_no_values_that_debezium_did_not_send(spark: SparkSession, base: Path) -> None:
    _with_values_not_sent(spark, base, 4, **ENGINE)

    planned = run_job(
        spark, base, "bucket_resize", {"split_bytes": 1, "merge_bytes": 0}, index=None, dry_run=True
    ).details

    assert [each["type"] for each in planned["refusals"]] == ["unsent-values-in-logs"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 8])
def test_audits_and_counts_read_slices_whose_logs_update_some_columns(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, version=version, **PARTIAL)
    # Several logs update one key, with greater, equal and lesser ordering values, and some columns have no value.
    for last, ts, name in ((30, 2, "region"), (20, 2, "note"), (10, 1, "city"), (40, 3, "price")):
        frame = tables.rows(spark, 0, last, ts=ts)
        tables.upsert(frame.withColumn(name, F.lit(None).cast(frame.schema[name].dataType)), base, options)
    tables.upsert(tables.rows(spark, 5, 8, ts=9), base, {**options, "hoodie.datasource.write.operation": "delete"})
    table = hudi_table(spark, base, INDEX)
    whole = {row["id"]: row for row in tables.collected(spark, base).rows}
    assert len(whole) == 57
    for columns in (["id", "dt", "note"], ["_hoodie_record_key", "id", "city", "at"], ["price", "region", "id"]):
        found = rows.current(table).select(*columns).collect()
        assert {row["id"]: tuple(row) for row in found} == {
            key: tuple(row[name] for name in columns) for key, row in whole.items()
        }
    assert sum(rows.count_by_partition(table, table.partitions()).values()) == 57
    before = proved(spark, base, 4)

    jobs: dict[str, dict[str, Any]] = {"compaction": {}, "clustering": {"sort_by": ["city"]}}
    for kind, params in (*jobs.items(), ("bucket_expansion", {"num_buckets": 8})):
        tables.upsert(tables.rows(spark, 50, 52, ts=3).withColumn("note", F.lit(None).cast("string")), base, options)
        before = tables.in_order(spark, base, 4)
        run_job(spark, base, kind, params)
        assert proved(spark, base, 8 if kind == "bucket_expansion" else 4) == before
