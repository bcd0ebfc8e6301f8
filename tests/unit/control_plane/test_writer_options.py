from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.contract import BucketIndex, TableLock, WriterEngine
from jobs.format.index_definitions import ENABLE_RECORDS, Indexes
from service.catalog.registration import Registration
from service.lake.table import TableType
from service.writer_options.options import WriterOptions, writer_options
from service.writer_options.written_table import Callback, Target

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLBACK = Callback("http://gk/v1/callbacks/hudi")
RETRIES = "hoodie.write.num.retries.on.conflict.failures"
SPARK, SPARK_SQL, FLINK = WriterEngine.SPARK, WriterEngine.SPARK_SQL, WriterEngine.FLINK
FOUR = BucketIndex(4, ("a", "b"))


def options(
    engine: WriterEngine = SPARK,
    *,
    index: BucketIndex | None = None,
    lock: TableLock | None = None,
    num_buckets: int = 0,
    callback: Callback = CALLBACK,
    profile: dict[str, Any] | None = None,
) -> WriterOptions:
    table = Registration("t", "/lake/t", "t", NOW, NOW, index=index, lock=lock or TableLock(), profile=profile or {})
    target = Target.of(table, lock_options=table.lock.options, num_buckets=num_buckets)
    return writer_options(target, engine, callback=callback)


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_every_writer_leaves_services_and_others_instants_alone_and_calls_back(engine: WriterEngine) -> None:
    found = options(engine).options
    assert found["hoodie.clean.failed.writes.policy"] == "LAZY"
    assert (
        found["hoodie.compact.inline"]
        == found["hoodie.clean.automatic"]
        == found["hoodie.clustering.inline"]
        == "false"
    )
    assert found["hoodie.write.commit.callback.http.url"] == CALLBACK.url


def test_spark_repeats_a_batch_that_conflicts_and_a_statement_is_not_repeated_by_hudi() -> None:
    for engine, retries in ((SPARK, "3"), (SPARK_SQL, "0")):
        found = options(engine).options
        assert found["hoodie.write.concurrency.mode"] == "optimistic_concurrency_control"
        assert found[RETRIES] == retries


def test_flink_does_not_conflict_with_itself_and_waits_for_the_lock_in_small_steps() -> None:
    lock = TableLock("zookeeper", {"hoodie.write.lock.client.num_retries": "3", "hoodie.write.lock.zookeeper.url": "z"})
    found = options(FLINK, lock=lock)
    assert found.options["hoodie.write.concurrency.mode"] == "single_writer"
    assert found.options["hoodie.write.lock.provider"].endswith("ZookeeperBasedLockProvider")
    assert found.options["hoodie.write.lock.zookeeper.url"] == "z"
    assert found.options["hoodie.write.lock.client.wait_time_ms_between_retry"] == "250"
    assert found.options["hoodie.write.lock.client.num_retries"] == "200"
    assert RETRIES not in found.options
    assert any("pekko.ask.timeout" in note for note in found.notes)


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_a_table_of_non_blocking_writers_gets_options_of_non_blocking_writers(engine: WriterEngine) -> None:
    found = options(engine, index=FOUR, num_buckets=4, profile={"bucket_layout": {"fixed_file_ids": True}})
    assert found.options["hoodie.write.concurrency.mode"] == "non_blocking_concurrency_control"
    assert found.options["hoodie.clean.failed.writes.policy"] == "LAZY"
    assert RETRIES not in found.options
    assert any("never conflict" in note for note in found.notes)


def test_spark_keeps_the_indexes_of_the_table() -> None:
    kept = Indexes.of(
        ["files", "column_stats", "record_index"],
        b'{"indexDefinitions": {"column_stats": '
        b'{"sourceFields": ["_hoodie_record_key", "a", "b"]}, "record_index": {"indexOptions": {}}}}',
    ).keeping()
    assert kept == {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.column.stats.column.list": "a,b",
        "hoodie.metadata.record.index.enable": "true",
    }
    for engine in (SPARK, SPARK_SQL):
        assert kept.items() <= options(engine, profile={"index_options": kept}).options.items()
    assert kept.keys().isdisjoint(options(FLINK, profile={"index_options": kept}).options)


def test_a_table_of_consistent_hashing_is_written_with_it() -> None:
    found = options(FLINK, profile={"bucket_layout": {"kind": "consistent_hashing"}})
    assert (found.options["index.type"], found.options["hoodie.index.bucket.engine"]) == (
        "BUCKET",
        "CONSISTENT_HASHING",
    )
    assert any("consistent-hashing" in note for note in found.notes)
    assert any("insert_overwrite" in note for note in found.notes)
    for engine in (SPARK, SPARK_SQL):
        looked_up = options(engine, profile={"bucket_layout": {"kind": "consistent_hashing"}}).options
        assert looked_up["hoodie.spark.sql.optimized.writes.enable"] == "false"
    assert "hoodie.spark.sql.optimized.writes.enable" not in found.options


@pytest.mark.parametrize(
    ("provider", "option"),
    [
        ("filesystem", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"),
        ("zookeeper", "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"),
        ("com.example.Lock", "com.example.Lock"),
    ],
)
def test_the_lock_is_the_tables_own(provider: str, option: str) -> None:
    found = options(lock=TableLock(provider, {"hoodie.write.lock.provider": "another", "x": "y"})).options
    assert (found["hoodie.write.lock.provider"], found["x"]) == (option, "y")


@pytest.mark.parametrize(("engine", "name"), [(SPARK, "hoodie.index.type"), (FLINK, "index.type")])
def test_the_number_of_buckets_is_the_present_one_and_a_change_is_told(engine: WriterEngine, name: str) -> None:
    found = options(engine, index=FOUR, num_buckets=8)
    assert found.options[name] == "BUCKET"
    assert found.options["hoodie.bucket.index.num.buckets"] == "8"
    assert found.options["hoodie.bucket.index.hash.field"] == "a,b"
    assert any("registered with 4 buckets" in note for note in found.notes)


def test_a_number_that_never_changed_needs_no_note() -> None:
    assert not any("registered with" in note for note in options(index=BucketIndex(4, ("a",)), num_buckets=4).notes)


def test_a_spark_writer_without_a_bucket_index_neither_fails_beside_a_clustering_nor_takes_it_back() -> None:
    name = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"
    assert options().options[name] == "false"
    assert options().options["hoodie.clustering.updates.strategy"].endswith(".SparkAllowUpdateStrategy")
    assert name not in options(index=BucketIndex(4, ("a",)), num_buckets=4).options
    assert name not in options(FLINK).options


def test_flink_loads_the_index_of_a_table_that_is_there_unless_buckets_need_no_index() -> None:
    name = "index.bootstrap.enabled"
    found = options(FLINK)
    assert found.options[name] == "true"
    [note] = [note for note in found.notes if "start it without that state" in note]
    assert f"{name}=true and no savepoint" in note
    assert note.endswith("keeps the source's offsets.")
    assert name not in options().options
    for of_buckets in (
        options(FLINK, index=FOUR, num_buckets=4),
        options(FLINK, profile={"bucket_layout": {"kind": "consistent_hashing"}}),
    ):
        assert name not in of_buckets.options
        assert not any("without that state" in note for note in of_buckets.notes)
    assert name not in writer_options(Target("/lake/t", exists=False), FLINK, callback=CALLBACK).options


def test_writers_are_told_of_a_key_and_headers_only_if_the_service_needs_them() -> None:
    key, headers = "hoodie.write.commit.callback.http.api.key", "hoodie.write.commit.callback.http.custom.headers"
    assert not {key, headers} & set(options().options)
    found = options(callback=Callback("http://gk", key="<key>", headers="Authorization:Bearer <token>")).options
    assert (found[key], found[headers]) == ("<key>", "Authorization:Bearer <token>")


def test_flink_gets_a_statement_that_creates_the_table_without_changes() -> None:
    profile = {"table_type": "MERGE_ON_READ", "record_key_fields": ["id", "it's"], "ordering_fields": ["ver"]}
    found = options(FLINK, index=FOUR, num_buckets=4, profile=profile)
    expected = {
        "connector": "hudi",
        "path": "file:///lake/t",
        "table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id,it's",
        "ordering.fields": "ver",
    }
    assert expected.items() <= found.options.items()
    lines = found.sql["with"].splitlines()
    assert (lines[0], lines[-1]) == ("WITH (", ")")
    assert "  'hoodie.datasource.write.recordkey.field' = 'id,it''s'," in lines
    assert len(lines) == len(found.options) + 2
    assert not lines[-2].endswith(",")


def test_spark_sql_gets_statements_and_what_must_be_set_before_the_session_starts() -> None:
    found = options(SPARK_SQL, lock=TableLock("filesystem", {"a": "b;c"}))
    assert found.session_conf == {"spark.sql.filesourceTableRelationCacheSize": "0"}
    assert any(note.startswith("Set spark.sql.filesourceTableRelationCacheSize when") for note in found.notes)
    assert "SET hoodie.clean.failed.writes.policy=LAZY;" in found.sql["set"].splitlines()
    assert "SET a=`b;c`;" in found.sql["set"].splitlines()
    assert "filesourceTableRelationCacheSize" not in found.sql["set"]


def test_beside_flink_spark_writes_the_metadata_table_as_flink_does() -> None:
    streaming = "hoodie.metadata.streaming.write.enabled"
    for engine in (SPARK, SPARK_SQL):
        assert (
            writer_options(Target("/lake/t", has_flink=True), engine, callback=CALLBACK).options[streaming] == "false"
        )
        assert streaming not in writer_options(Target("/lake/t"), engine, callback=CALLBACK).options
        # A Flink job that finds its rows by the record index opens its instant there at the beginning, too.
        for option in ENABLE_RECORDS.values():
            indexed = Target("/lake/t", has_flink=True, index_options={option: "true"})
            assert streaming not in writer_options(indexed, engine, callback=CALLBACK).options


def test_spark_does_not_prune_by_buckets_where_that_loses_rows() -> None:
    pruning = "hoodie.bucket.index.query.pruning"
    for engine in (SPARK, SPARK_SQL):
        found = options(engine, index=FOUR, num_buckets=4)
        assert found.options[pruning] == "false"
        assert found.options["hoodie.spark.sql.optimized.writes.enable"] == "false"
        assert any(pruning in note for note in found.notes)
        assert pruning not in options(engine).options
    assert pruning not in options(WriterEngine.FLINK, index=FOUR, num_buckets=4).options


@pytest.mark.parametrize("index", [None, FOUR])
def test_spark_does_not_skip_data_by_statistics_that_hide_rows(index: BucketIndex | None) -> None:
    skipping = "hoodie.enable.data.skipping"
    for engine in (SPARK, SPARK_SQL):
        found = options(engine, index=index, num_buckets=4 if index else None)
        assert found.options[skipping] == "false"
        assert sum(skipping in note for note in found.notes) == 1
    assert skipping not in options(WriterEngine.FLINK, index=FOUR, num_buckets=4).options


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_a_table_that_does_not_exist_yet_is_described_by_the_options(engine: WriterEngine) -> None:
    target = Target(
        "s3a://lake/t",
        name="t",
        table_type=TableType.MERGE_ON_READ,
        record_key_fields=("id",),
        ordering_fields=("ts",),
        index=BucketIndex(4, ("id",)),
        num_buckets=4,
        exists=False,
    )
    found = writer_options(target, engine, callback=CALLBACK)
    assert found.options["hoodie.bucket.index.num.buckets"] == "4"
    assert not any("registered with" in note for note in found.notes)
    if engine is SPARK:
        assert found.options["hoodie.datasource.write.recordkey.field"] == "id"
        assert found.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
    if engine is SPARK_SQL:
        description = "TBLPROPERTIES (type = 'mor', primaryKey = 'id', orderingFields = 'ts')"
        assert found.sql["tblproperties"] == description
    if engine is FLINK:
        assert (found.options["path"], found.options["hoodie.table.name"]) == ("s3a://lake/t", "t")


def test_a_table_that_exists_has_the_statement_that_creates_it_in_a_catalog() -> None:
    profile = {
        "record_key_fields": ["id"],
        "partition_fields": ["day"],
        "columns": [
            {"name": "id", "type": "string"},
            {"name": "odd`name", "type": "int64"},
            {"name": "price", "type": "decimal128(10, 2)"},
            {"name": "at", "type": "timestamp[us, tz=UTC]"},
        ],
    }
    found = options(FLINK, profile=profile)
    assert found.sql["create"] == (
        "CREATE TABLE `t` (\n  `id` STRING,\n  `odd``name` BIGINT,\n  `price` DECIMAL(10, 2),\n"
        # Hudi's version and the job's options decide, so nobody but the user knows.
        "  `at` <timestamp[us, tz=UTC]>,\n  `day` <its type>,\n  PRIMARY KEY (`id`) NOT ENFORCED\n)"
        f" PARTITIONED BY (`day`) {found.sql['with']};"
    )
    sql = options(SPARK_SQL, profile=profile).sql
    assert sql["create"] == "CREATE TABLE IF NOT EXISTS `t` USING hudi LOCATION '/lake/t';"
    assert options(SPARK, profile=profile).sql == {}
    assert "create" not in options(FLINK).sql
