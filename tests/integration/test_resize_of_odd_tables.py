"""Resizes of tables with odd keys, partitions and histories, beside writers that nobody had in mind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.hudi import hashing_metadata
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import duplicates, rows, snapshot, upsert, writer_options
from tests.integration.test_bucket_resize import MERGE, SPLIT, resize
from tests.integration.test_consistent_hashing import ENGINE, findings, write
from tests.integration.writers import At

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DELETE = {"hoodie.datasource.write.operation": "delete"}


def misplaced_by_hudi(spark: SparkSession, base: Path, hash_fields: str) -> list[tuple[str, str]]:
    """Returns the record keys that Hudi's own `ConsistentBucketIdentifier` looks for in another file group."""
    table = hudi_table(spark, base, None)
    jvm = table.jvm
    fields = jvm.java.java.util.ArrayList()
    for each in hash_fields.split(","):
        fields.add(each)
    identifiers: dict[str, Any] = {}
    found = []
    for row in spark.read.format("hudi").load(str(base)).select(PARTITION_PATH, RECORD_KEY, FILE_NAME).collect():
        partition, key, name = row
        if partition not in identifiers:
            instant = hashing_metadata.versions(table, partition).in_force
            folder = base / hashing_metadata.FOLDER / partition
            content = (folder / f"{instant}.hashing_meta").read_bytes()
            model = jvm.hudi.common.model.HoodieConsistentHashingMetadata
            metadata = model.fromBytes(bytearray(content))
            identifiers[partition] = jvm.hudi.index.bucket.ConsistentBucketIdentifier(metadata)
        hoodie_key = jvm.hudi.common.model.HoodieKey(key, partition)
        node = identifiers[partition].getBucket(hoodie_key, fields)
        if f"{node.getFileIdPrefix()}-0" != name.partition("_")[0]:
            found.append((partition, key))
    return found


@pytest.mark.exhaustive
def test_a_column_that_a_writer_adds_during_a_resize_keeps_its_values(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    options = write(spark, base)

    def adds_a_column() -> None:
        wider = rows(spark, 0, 150, ts=5, partitions=2).withColumn("tip", F.col("fare") / 10)
        upsert(wider, base, options)

    done = resize(spark, base, SPLIT, context=At("comparing the record keys", adds_a_column))
    assert done["rewritten_again"] > 0
    found = spark.read.format("hudi").load(str(base))
    assert (found.count(), found.where("tip = fare / 10").count()) == (300, 150)
    assert (duplicates(spark, base), findings(spark, base)) == (0, {})


KEYS = [
    "a:b",
    "x,y",
    "id:k",
    "a,b:c",
    "c:a,b",
    "日本:1",
    "ü,😀",
    "line\nbreak",
    "id:1,id:2",
    " ",
    "k",
    "__null__",
    "x:__empty__",
]


def odd(spark: SparkSession, count: int, ts: int = 0) -> DataFrame:
    """Returns rows with odd keys. Hudi loops for ever on a key whose last field it does not hash, if the value of this
    field has a colon."""
    found = rows(spark, 0, count, ts=ts, partitions=2)
    keys = F.array(*map(F.lit, KEYS))
    number = F.expr("cast(substring(id, 2) as int)")
    return found.withColumns(
        {
            "id": F.concat(keys[number % len(KEYS)], (number / len(KEYS)).cast("int").cast("string")),
            "region": keys[(number * 5) % len(KEYS)],
        }
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("record_key", "hash_fields"),
    [("id", "id"), ("id,region", "region,id"), ("id,region", "region")],
)
def test_keys_with_separators_stay_in_the_buckets_of_hudi(
    spark: SparkSession, tmp_path: Path, record_key: str, hash_fields: str
) -> None:
    base = tmp_path / "trips"
    options = {**writer_options(base, record_key=record_key, hash_fields=hash_fields), **ENGINE}
    upsert(odd(spark, 300), base, options)
    assert misplaced_by_hudi(spark, base, hash_fields) == []
    before = snapshot(spark, base)
    declared = {"hudi_options": {"hoodie.bucket.index.hash.field": hash_fields}}
    assert run_job(spark, base, "audit", index=None, declared=declared).details["findings"] == []
    for params in (SPLIT, MERGE):
        resize(spark, base, params, declared=declared)
        assert snapshot(spark, base) == before
        assert misplaced_by_hudi(spark, base, hash_fields) == []
    upsert(odd(spark, 300, ts=1), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base)) == (len(before), 0)
