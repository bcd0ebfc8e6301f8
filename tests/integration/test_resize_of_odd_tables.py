"""Resizes of tables with odd keys, partitions and histories, beside writers that nobody had in mind."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import Outcome, TableLock
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.hudi import hashing_metadata
from tests.integration import stored_table, test_s3
from tests.integration.hidden import hidden
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import duplicates, newest, rows, snapshot, texts, upsert, writer_options
from tests.integration.test_bucket_resize import MERGE, SPLIT, resize
from tests.integration.test_consistent_hashing import ENGINE, findings, num_buckets, write
from tests.integration.writers import At, HeldWriter
from tests.support.session_storage import reached_by

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
def test_a_column_that_a_writer_adds_during_a_resize_keeps_its_values(spark: SparkSession, base: Path) -> None:
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
    spark: SparkSession, base: Path, record_key: str, hash_fields: str
) -> None:
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


def stale_write(base: Path, frame: DataFrame, options: dict[str, str], since: str, away: Path) -> str:
    """Upserts as a writer that knows nothing of the resize `since`; returns the instant."""
    folder = base / hashing_metadata.FOLDER
    kept = shutil.copytree(folder, away.with_name(f"{away.name} ranges"))
    for path in [*folder.rglob(f"{since}*"), *folder.rglob(f".{since}*")]:
        path.unlink()
    with hidden(base, since, away):
        upsert(frame, base, options)
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    return newest(base)


@pytest.mark.exhaustive
@pytest.mark.parametrize("change", ["split", "merge"])
def test_rows_of_a_stale_writer_are_repaired_and_deleted_ones_do_not_come_back(
    spark: SparkSession, tmp_path: Path, base: Path, change: str
) -> None:
    options = write(spark, base)
    resize(spark, base, SPLIT if change == "split" else MERGE)
    since = newest(base)
    stale = stale_write(base, rows(spark, 280, 340, ts=5, partitions=2), options, since, tmp_path / "away")
    assert len(snapshot(spark, base)) == 300
    # Writers that know the new ranges delete keys from before the resize, and keys that only the stale write has.
    upsert(rows(spark, 295, 305, ts=6, partitions=2), base, {**options, **DELETE})
    assert [each["instant"] for each in run_job(spark, base, "audit", index=None).details["stale_writes"]] == [stale]
    result = run_job(spark, base, "repair", index=None).details
    assert result["repaired"] == [stale]
    expected = [rows(spark, 0, 280, partitions=2), rows(spark, 280, 295, ts=5, partitions=2)]
    found, wanted = texts(spark, base, *expected, rows(spark, 305, 340, ts=5, partitions=2))
    assert found == wanted
    assert (findings(spark, base), misplaced_by_hudi(spark, base, "id")) == ({}, [])
    upsert(rows(spark, 0, 400, ts=7, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base)) == (400, 0)


@pytest.mark.exhaustive
def test_a_writer_that_is_fenced_writes_its_batch_again(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    held = HeldWriter(rows(spark, 0, 350, ts=5, partitions=2), base, options)
    fencing = {**SPLIT, "on_active_writers": "fence"}
    before = snapshot(spark, base)
    context = At("comparing the record keys", lambda: held.start() and None)
    done = resize(spark, base, fencing, context=context)
    assert (len(done["fenced"]), num_buckets(base), snapshot(spark, base)) == (1, 8, before)
    held.end()
    assert held.error is not None
    assert (snapshot(spark, base), findings(spark, base)) == (before, {})
    upsert(rows(spark, 0, 350, ts=5, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base), findings(spark, base)) == (350, 0, {})


@pytest.mark.exhaustive
def test_statements_work_after_a_resize_if_they_look_buckets_up(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    told = {key: value for key, value in options.items() if not key.startswith("hoodie.datasource")}
    old = LongSession(spark, base, told)
    old.run("UPDATE {table} SET fare = -2 WHERE city % 3 = 0")
    # Hudi names the logs of such a statement by the instants of the rows.
    assert findings(spark, base) == {}
    (note,) = resize(spark, base, SPLIT, dry_run=True)["notes"]
    assert "hoodie.spark.sql.optimized.writes.enable=false" in note
    resize(spark, base, SPLIT)
    new = LongSession(spark, base, {**told, "hoodie.spark.sql.optimized.writes.enable": "false"})
    new.run("UPDATE {table} SET fare = -1, ts = 9 WHERE city % 3 = 1")
    new.run("DELETE FROM {table} WHERE city % 3 = 2")
    found, expected = spark.read.format("hudi").load(str(base)), rows(spark, 0, 300, partitions=2)
    for fare, rest in ((-2, 0), (-1, 1)):
        assert found.where(f"fare = {fare}").count() == expected.where(f"city % 3 = {rest}").count()
    assert found.count() == expected.where("city % 3 != 2").count()
    assert (duplicates(spark, base), findings(spark, base)) == (0, {})


@pytest.mark.exhaustive
def test_buckets_of_a_table_on_s3_are_resized(spark: SparkSession, tmp_path: Path) -> None:
    """The partitions have names that some storages escape."""
    lock = TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})
    with test_s3.endpoint() as address:
        lake = test_s3.Lake(address)
        with reached_by(spark, lake.options, "s3a://lake"):
            base = "s3a://lake/resized/trips"
            options = {**writer_options(base, **lock.options), **ENGINE}
            upsert(stored_table.rows(spark, 0, 200), base, options)
            for number, params in enumerate((SPLIT, MERGE), 1):
                before = snapshot(spark, base)
                done = run_job(spark, base, "bucket_resize", params, index=None, lock=lock)
                assert (done.outcome, done.details["partitions"]) == (Outcome.SUCCEEDED, 2)
                assert (snapshot(spark, base), snapshot(spark, base, metadata=False)) == (before, before)
                upsert(stored_table.rows(spark, 0, 200 + 50 * number, ts=number), base, options)
                assert run_job(spark, base, "audit", index=None, lock=lock).details["clean"]
            assert (len(snapshot(spark, base)), duplicates(spark, base)) == (300, 0)
            assert run_job(spark, base, "compaction", index=None, lock=lock).outcome is Outcome.SUCCEEDED
            assert rows_by_hudi_rs(base, lake.for_hudi_rs) == rows_by_spark(spark, base)
            assert lake.left_behind(base) == []
