"""Reads by buckets return the same rows as Spark's own plan without a shuffle, or say why they use that plan."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark import Table, bucketed, hashed_join, java_plan
from groundskeeper_spark.table import NotColocatedError, java_hash, snapshot
from tests.integration.run import run_job
from tests.integration.tables import writer_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

KEY = ("id",)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    """A partitioned table with logs and deletes and four buckets, and one without partitions and eight."""
    folder = tmp_path_factory.mktemp("bucketed")
    rows = spark.range(600).select(
        F.when(F.col("id") % 7 == 0, F.concat(F.lit("é😀"), "id")).otherwise(F.col("id").cast("string")).alias("id"),
        F.lit(1).alias("ts"),
        F.concat(F.lit("d"), F.col("id") % 2).alias("dt"),
        F.when(F.col("id") % 5 != 0, F.col("id")).alias("v"),
    )
    left, right = folder / "left", folder / "right"
    _write(rows.where("ts = 1"), left, num_buckets=4)
    _write(rows.where("v % 3 = 0").withColumn("ts", F.lit(2)).withColumn("v", F.col("v") * 10), left, num_buckets=4)
    _write(rows.where("v % 11 = 0"), left, num_buckets=4, **{"hoodie.datasource.write.operation": "delete"})
    other = rows.where("v is null or v > 200").withColumnRenamed("v", "w").drop("dt")
    _write(other, right, num_buckets=8, partitioned=False, table_type="COPY_ON_WRITE")
    return Table(str(left), KEY, 4), Table(str(right), KEY, 8)


def _write(rows: DataFrame, path: Path, **options: Any) -> None:
    rows.write.format("hudi").options(**writer_options(path, metadata=False, **options)).mode("append").save(str(path))


def _sorted(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


QUICK = (("full", None), ("left", "right"))
# Joins that sort or look up hashes of the keys.
BY_HASH = [
    *((how, None) for how in ("inner", "left", "right", "full", "semi", "anti")),
    *(("inner", "left"), ("inner", "right"), ("left", "right"), ("right", "left")),
]
EVERY = [
    (how, in_memory)
    for how in ("inner", "left", "right", "full", "semi", "anti")
    for in_memory in (None, "left", "right")
    if (how, in_memory) not in {*QUICK, ("semi", "left"), ("anti", "left")}
]


@pytest.mark.parametrize(
    ("how", "in_memory"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in EVERY)]
)
def test_a_join_has_the_rows_of_spark_without_an_exchange(
    spark: SparkSession, tables: tuple[Table, Table], how: str, in_memory: str | None
) -> None:
    found = bucketed.join(spark, *tables, ["id"], how, columns=(["v"], ["w"]), in_memory=in_memory)
    left, right = (spark.read.format("hudi").load(table.path) for table in tables)
    assert found.fallback is None
    assert "Exchange" not in found.plan
    # A join in memory sorts no table.
    assert ("Sort" in found.plan, "ShuffledHashJoin" in found.plan) == (not in_memory, bool(in_memory))
    assert ("xxhash64" in found.plan) == ((how, in_memory) in BY_HASH)
    assert found.rows.rdd.getNumPartitions() == 4
    assert _sorted(found.rows) == _sorted(left.select("id", "v").join(right.select("id", "w"), "id", how))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("how", "in_memory"), BY_HASH)
def test_keys_with_equal_hashes_are_not_taken_for_equal(
    spark: SparkSession, tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch, how: str, in_memory: str | None
) -> None:
    few = "Expression found = new Remainder(number, literal(7L));"
    more = "import java.util.List;\nimport org.apache.spark.sql.catalyst.expressions.Remainder;"
    source = hashed_join.SOURCE.replace("Expression found = number;", few).replace("import java.util.List;", more)
    monkeypatch.setattr(hashed_join, "SOURCE", source)
    monkeypatch.setattr(java_plan, "_made", WeakKeyDictionary())
    found = bucketed.join(spark, *tables, ["id"], how, columns=(["v"], ["w"]), in_memory=in_memory)
    left, right = (spark.read.format("hudi").load(table.path) for table in tables)
    assert "% 7" in found.plan
    assert _sorted(found.rows) == _sorted(left.select("id", "v").join(right.select("id", "w"), "id", how))


def test_a_join_tells_keys_with_a_long_common_beginning_apart(spark: SparkSession, tmp_path: Path) -> None:
    """Sorts by the part of a key in which the keys of the largest files differ; keys of other files may not have it."""
    both = []
    for name, few in (("left", ["Bestellung", "é"]), ("right", ["Bestellung", "é", "Bestellung-é1"])):
        ids = [f"Bestellung-{'é' if number % 9 == 0 else ''}{number}" for number in range(100)] + few
        rows = spark.createDataFrame([(each, 1, f"{name} {each}") for each in ids], "id string, ts int, v string")
        _write(rows, tmp_path / name, num_buckets=2, partitioned=False, table_type="COPY_ON_WRITE")
        both.append(Table(str(tmp_path / name), KEY, 2))
    found = bucketed.join(spark, both[0], both[1], ["id"], "full", columns=(["v"], ["ts"]))
    left, right = (spark.read.format("hudi").load(table.path) for table in both)
    assert found.fallback is None
    assert "substring" in found.plan
    assert _sorted(found.rows) == _sorted(left.select("id", "v").join(right.select("id", "ts"), "id", "full"))


def test_a_condition_reaches_the_files_and_no_log_is_missed(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    """In the left table, rows whose value in the base file is at most 600 have ten times this value in a log."""
    where = F.col("v") > 1000, F.col("w") > 400
    found = bucketed.join(spark, *tables, ["id"], "full", columns=(["v"], ["w"]), where=where)
    sides = [spark.read.format("hudi").load(table.path).where(only) for table, only in zip(tables, where, strict=True)]
    expected = _sorted(sides[0].select("id", "v").join(sides[1].select("id", "w"), "id", "full"))
    assert found.fallback is None
    assert "GreaterThan(v,1000)" in found.plan
    assert "GreaterThan(w,400)" in found.plan
    assert any("v=None" not in row for row in expected)
    assert _sorted(found.rows) == expected


@pytest.mark.exhaustive
def test_a_condition_on_a_sorted_column_reads_few_rows_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 40_000, numPartitions=1).select(
        F.format_string("%06d", "id").alias("id"), F.lit(1).alias("ts"), F.col("id").alias("v")
    )
    path = tmp_path / "sorted"
    pages = {"hoodie.parquet.page.size": "2000", "hoodie.datasource.write.operation": "bulk_insert"}
    _write(rows, path, num_buckets=2, partitioned=False, table_type="COPY_ON_WRITE", **pages)
    table = Table(str(path), KEY, 2)

    def rows_of(where: Column) -> tuple[int, int]:
        """Returns the numbers of rows of the result, and of those that were read from the files."""
        found = bucketed.join(spark, table, table, ["id"], columns=(["v"], ["ts"]), where=(where, where))
        assert found.fallback is None
        context, group = spark.sparkContext, str(where)
        context.setJobGroup(group, "")
        counted = len(found.rows.collect())
        tracker = context.statusTracker()
        (job,) = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
        store = context._jsc.sc().statusStore()
        context._jsc.clearJobGroup()
        return counted, sum(store.lastStageAttempt(stage).inputRecords() for stage in job.stageIds)

    assert rows_of(F.col("v") >= 0) == (40_000, 80_000)
    few, read = rows_of(F.col("v") < 100)
    assert few == 100
    assert read < 40_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_table_is_joined_with_itself(spark: SparkSession, tables: tuple[Table, Table], how: str) -> None:
    table = tables[0]
    found = bucketed.join(spark, table, table, ["id"], how, columns=(["v"], ["ts"]))
    rows = spark.read.format("hudi").load(table.path)
    assert found.fallback is None
    assert _sorted(found.rows) == _sorted(rows.select("id", "v").join(rows.select("id", "ts"), "id", how))


def test_a_third_table_loses_no_rows_because_the_result_is_sealed(
    spark: SparkSession, tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    third = spark.read.format("hudi").load(tables[0].path).select("id", F.col("ts").alias("third"))

    def joined() -> int:
        found = bucketed.join(spark, *tables, ["id"], "left", columns=(["v"], ["w"]))
        assert found.fallback is None
        return found.rows.hint("merge").join(third.repartition(4, "id"), "id").count()

    expected = third.count()
    assert joined() == expected
    seal = "new UnknownPartitioning(rdd.getNumPartitions())"
    assert seal in java_plan._SOURCE
    open_trap = java_plan._SOURCE.replace(seal, "planned.outputPartitioning()")
    monkeypatch.setattr(java_plan, "_SOURCE", open_trap)
    monkeypatch.setattr(java_plan, "_made", WeakKeyDictionary())
    assert joined() < expected, "the trap is open no more: nothing proves the seal"


def test_groups_have_the_rows_of_spark_without_an_exchange(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    aggregates = [F.count("*").alias("n"), F.sum("v").alias("sum")]
    found = bucketed.group_by(spark, tables[0], ["id"], aggregates, where=F.col("ts") >= 1)
    assert found.fallback is None
    assert "Exchange" not in found.plan
    assert _sorted(found.rows) == _sorted(spark.read.format("hudi").load(tables[0].path).groupBy("id").agg(*aggregates))
    # Spark's own plan has a second aggregate for the rows that a shuffle brings.
    assert found.plan.count("HashAggregate") == 1
    assert "ExistingRDD" not in found.plan
    assert "_hoodie_commit_time" not in found.plan


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(["max(ts) filter (where v > 5)", "sum(v)"], marks=pytest.mark.exhaustive),
        ["count(distinct v)"],
        pytest.param(["sort_array(collect_list(v))"], marks=pytest.mark.exhaustive),
        ["avg(v) + max(length(id))", "max(named_struct('a', v, 'b', id))"],
    ],
)
def test_groups_of_any_function_have_the_rows_of_spark(
    spark: SparkSession, tables: tuple[Table, Table], texts: list[str]
) -> None:
    aggregates = [F.expr(text).alias(f"a{at}") for at, text in enumerate(texts)]
    found = bucketed.group_by(spark, tables[0], ["id"], aggregates)
    assert found.fallback is None
    assert _sorted(found.rows) == _sorted(spark.read.format("hudi").load(tables[0].path).groupBy("id").agg(*aggregates))


def test_a_look_up_reads_the_buckets_of_its_keys_only(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    found = bucketed.lookup(spark, tables[0], ["1", "é😀14", "none"], columns=["v"])
    assert found.fallback is None
    assert {row.id for row in found.rows.collect()} == {"1", "é😀14"}


def test_a_wrong_number_of_buckets_is_an_error_and_no_wrong_answer(
    spark: SparkSession, tables: tuple[Table, Table]
) -> None:
    wrong = Table(tables[0].path, KEY, 16)
    with pytest.raises(Exception, match="outside of its bucket"):
        bucketed.group_by(spark, wrong, ["id"], [F.count("*")]).rows.collect()


def test_tables_that_are_not_co_located_fall_back_with_the_reason(
    spark: SparkSession, tables: tuple[Table, Table]
) -> None:
    left, right = tables
    reasons = {
        "hash fields differ": bucketed.join(spark, left, Table(right.path, ("w",), 8), ["id"]),
        "multiple of the other": bucketed.join(spark, left, Table(right.path, KEY, 6), ["id"]),
        "is not known": bucketed.join(spark, left, Table(right.path, KEY), ["id"]),
        "does not hold the hash fields": bucketed.join(spark, left, right, ["ts"]),
    }
    for reason, found in reasons.items():
        assert reason in (found.fallback or "")
    assert reasons["is not known"].rows.count() == bucketed.join(spark, left, right, ["id"]).rows.count()


def test_another_spark_or_hudi_falls_back(
    spark: SparkSession, tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = java_plan._SOURCE.replace("new LogicalRDD(", "new RenamedRDD(")
    monkeypatch.setattr(java_plan, "_SOURCE", other)
    monkeypatch.setattr(java_plan, "_made", WeakKeyDictionary())
    found = bucketed.group_by(spark, tables[0], ["id"], [F.count("*")])
    assert "cannot be planned: Py4JJavaError" in (found.fallback or "")
    assert "RenamedRDD" in (found.fallback or "")
    assert found.rows.count() > 0


def test_a_look_up_never_skips_the_bucket_of_a_row(spark: SparkSession, tables: tuple[Table, Table]) -> None:
    wrong = bucketed.lookup(spark, Table(tables[0].path, KEY, 1024), ["1"])
    assert "has no file" in (wrong.fallback or "")
    assert wrong.rows.count() == 1
    assert "splits" in (bucketed.lookup(spark, tables[0], ["a:1,b:2"]).fallback or "")
    assert "not of the types" in (bucketed.lookup(spark, tables[0], [1]).fallback or "")


@pytest.mark.parametrize(("real", "declared", "ids"), [(3, 2, ("0", "4")), (2, 3, ("0", "3"))])
def test_a_look_up_finds_a_row_although_the_rows_that_it_reads_fit_a_wrong_number_by_chance(
    spark: SparkSession, tmp_path: Path, real: int, declared: int, ids: tuple[str, str]
) -> None:
    """The first row is in the file of the bucket in which the second one would be by the declaration."""
    here, there = (java_hash((each,)) for each in ids)
    assert here % real == there % declared == here % declared != there % real
    path = tmp_path / "few"
    rows = spark.createDataFrame([(each, 1, 1) for each in ids], "id string, ts int, v int")
    _write(rows, path, num_buckets=real, partitioned=False)
    found = bucketed.lookup(spark, Table(str(path), KEY, declared), [ids[1]])
    assert [row.id for row in found.rows.collect()] == [ids[1]]
    assert "do not prove" in (found.fallback or "")


def test_a_read_that_was_planned_before_an_expansion_has_the_rows_of_its_snapshot(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "expanded"
    rows = spark.range(80).select(F.col("id").cast("string").alias("id"), F.lit(1).alias("ts"), F.col("id").alias("v"))
    _write(rows, path, num_buckets=4, partitioned=False)
    table, sums = Table(str(path), KEY, 4), [F.sum("v").alias("sum")]
    before = bucketed.group_by(spark, table, ["id"], sums)
    run_job(spark, path, "bucket_expansion", {"num_buckets": 8})
    _write(rows.withColumn("v", F.col("v") + 100), path, num_buckets=8, partitioned=False)
    after, found = bucketed.group_by(spark, table, ["id"], sums), bucketed.lookup(spark, table, ["7", "8", "9"])
    assert [each.fallback for each in (before, after, found)] == [None] * 3
    assert [each.rows.rdd.getNumPartitions() for each in (before, after)] == [4, 8]
    assert _sorted(before.rows) == _sorted(rows.groupBy("id").agg(*sums))
    assert _sorted(after.rows) == _sorted(rows.groupBy("id").agg(F.sum(F.col("v") + 100).alias("sum")))
    assert sorted((row.id, row.v) for row in found.rows.collect()) == [("7", 107), ("8", 108), ("9", 109)]


def test_other_layouts_and_types_fall_back(spark: SparkSession, tables: tuple[Table, Table], tmp_path: Path) -> None:
    rows = spark.range(8).select("id", F.lit(1).alias("ts"), F.concat(F.lit("d"), F.col("id")).alias("dt"))
    plain, ranges = tmp_path / "plain", tmp_path / "ranges"
    _write(rows, plain, num_buckets=None, **{"hoodie.datasource.write.operation": "bulk_insert"})
    engine = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.bucket.index.max.num.buckets": "4"}
    _write(rows.drop("dt"), ranges, partitioned=False, **{"hoodie.bucket.index.min.num.buckets": "2", **engine})
    unlike, consistent = Table(str(plain), KEY, 4), Table(str(ranges), KEY, 4)
    count = [F.count("*")]
    found = {
        "types of the keys differ": bucketed.join(spark, tables[0], unlike, ["id"]),
        "does not belong to a simple bucket": bucketed.group_by(spark, unlike, ["id"], count),
        "has a consistent hashing index": bucketed.group_by(spark, consistent, ["id"], count),
    }
    for reason, result in found.items():
        assert reason in (result.fallback or "")
    for instant in (plain / ".hoodie" / "timeline").glob("*commit*"):
        instant.unlink()
    with pytest.raises(NotColocatedError, match="no completed commit"):
        snapshot(java_plan.begin(spark), unlike)


def test_partitions_with_other_numbers_and_composite_keys_are_read_and_null_parts_fall_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(60).select(
        F.col("id").cast("string").alias("id"),
        F.when(F.col("id") % 3 != 0, F.col("id") % 4).alias("sub"),
        F.lit(1).alias("ts"),
        F.concat(F.lit("d"), F.col("id") % 2).alias("dt"),
    )
    path = tmp_path / "several"
    for partition, number in (("d0", 4), ("d1", 6)):
        _write(rows.where(F.col("dt") == partition), path, num_buckets=number, record_key="id,sub")
    configs = path / ".hoodie" / ".bucket_index" / "partition_bucket_index_meta" / "configs"
    configs.mkdir(parents=True)
    config = {"rule": "regex", "expressions": "d1,6", "defaultBucketNumber": 4}
    (configs / "00000000000000.hashing_config").write_text(json.dumps(config))
    table = Table(str(path), ("id", "sub"))
    found = bucketed.group_by(spark, table, ["id", "sub"], [F.count("*")])
    assert found.fallback is None
    assert found.rows.rdd.getNumPartitions() == 2
    assert _sorted(found.rows) == _sorted(rows.groupBy("id", "sub").agg(F.count("*")))
    with_null = bucketed.lookup(spark, table, [("3", None)])
    assert "not of the types" in (with_null.fallback or "")
    assert [row.id for row in with_null.rows.collect()] == ["3"]
    both = bucketed.lookup(spark, table, [("5", 1), ("7", 3), ("7", 2)])
    assert both.fallback is None
    assert {row.id for row in both.rows.collect()} == {"5", "7"}

    pending = "20990101000000000"
    (path / ".hoodie" / "timeline" / f"{pending}.replacecommit.requested").touch()
    (configs / f"{pending}.hashing_config").write_text(json.dumps({**config, "expressions": "d1,12"}))
    with pytest.raises(NotColocatedError, match="uncommitted expansion"):
        snapshot(java_plan.begin(spark), table)


def test_the_check_of_rows_has_the_hash_of_the_format_for_any_text(spark: SparkSession) -> None:
    texts = [
        "",
        "0",
        "4711",
        "Aa",
        "BB",
        "\x00",
        "\x7f",
        "\x80",
        "é😀",
        "ab😀",
        "zzzzzzzzzzzzzzzz",
        "\ud7ff\uffff",
        None,
    ]
    keys = [(a, b, at) for at, a in enumerate(texts) for b in (*texts, a)] + [("min", "max", -(2**63))]
    # The hash of bytes is right only where each letter takes one, so a letter of two is tried in each place.
    keys += [("x" * at + "é" + "x" * (size - at), "x" * size, size) for size in range(70) for at in range(size + 1)]
    rows = spark.createDataFrame(keys, "a string, b string, c bigint")
    plan = java_plan.begin(spark)
    for fields in (("a",), ("c",), ("a", "b"), ("c", "b", "a")):
        code = Column(plan.hash(rows._jdf, json.dumps(fields)))
        found = rows.select(*fields, code.alias("code")).collect()
        assert [row.code for row in found] == [java_hash(tuple(row[name] for name in fields)) for row in found]


def test_a_join_needs_few_messages_to_the_jvm_however_many_files_it_reads(
    spark: SparkSession, tables: tuple[Table, Table]
) -> None:
    """Each message costs CPU time on both sides, and a listing has several facts for each file."""
    bucketed.join(spark, *tables, ["id"], columns=(["v"], ["w"]))
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    sent: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        send = client.send_command
        patch.setattr(client, "send_command", lambda text, *more: sent.update([text[0]]) or send(text, *more))
        assert bucketed.join(spark, *tables, ["id"], columns=(["v"], ["w"])).fallback is None
    # The second kind of message says that Python has forgotten an object.
    assert sum(sent.values()) - sent["m"] < 60, sent


@pytest.mark.exhaustive
@pytest.mark.parametrize("in_memory", [None, "right"])
def test_a_bucket_with_most_of_the_rows_is_reported_and_read_right(
    spark: SparkSession, tmp_path: Path, in_memory: str | None
) -> None:
    plan = java_plan.begin(spark)
    numbers = spark.range(40_000).select(F.col("id").cast("string").alias("id"))
    bucket = Column(plan.hash(numbers._jdf, json.dumps(KEY))) % 8
    rows = numbers.where((bucket == 3) | (F.col("id") % 63 == 0)).select(
        "*", F.lit(1).alias("ts"), F.rand(1).alias("v")
    )
    share = rows.where(bucket == 3).count() / rows.count()
    assert share > 0.85
    one, other = tmp_path / "one", tmp_path / "other"
    _write(rows, one, num_buckets=8, partitioned=False, table_type="COPY_ON_WRITE")
    _write(rows.where("v < 0.5"), other, num_buckets=8, partitioned=False, table_type="COPY_ON_WRITE")
    tables = Table(str(one), KEY, 8), Table(str(other), KEY, 8)
    found = bucketed.join(spark, *tables, ["id"], "left", columns=(["v"], ["ts"]), in_memory=in_memory)
    assert found.fallback is None
    # Files of few rows have as large a footer as others, so bytes understate the skew of rows.
    assert all(each > 2 for each in found.skew), found.skew
    left, right = (spark.read.format("hudi").load(table.path) for table in tables)
    assert _sorted(found.rows) == _sorted(left.select("id", "v").join(right.select("id", "ts"), "id", "left"))
