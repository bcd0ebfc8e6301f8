"""Tables of generated schemas, keys, partitions and histories keep every row through an expansion.

A few examples run with the other tests. The next command generates more tables, different ones in each run:
GENERATED_TABLES=200 pytest -s tests/integration/test_generated_tables.py
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import types as T  # noqa: N812

from jobs.contract import BucketIndex
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = int(os.environ.get("GENERATED_TABLES", "0"))
_numbers = count()

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
# Hudi uses these values unchanged as folder names; `write` leaves out those that Hudi itself cannot write or read.
PARTITIONS = ["2026-01-01", "a b", "ä€😀", "x=y", "50%", "a+b", "a,b", "#1", "a/b", "o'k", "~", "A&B", "(x)", "@"]


@st.composite
def decimals(draw: st.DrawFn) -> tuple[T.DataType, st.SearchStrategy[Any]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    return T.DecimalType(precision, scale), st.integers(-most, most).map(lambda number: Decimal(f"{number}E-{scale}"))


def simple(kind: T.DataType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.just((kind, values))


MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
SIMPLE = st.one_of(
    simple(T.BooleanType(), st.booleans()),
    simple(T.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    simple(T.LongType(), st.integers(-(2**63), 2**63 - 1)),
    simple(T.FloatType(), st.floats(width=32)),
    simple(T.DoubleType(), st.floats()),
    simple(T.StringType(), TEXT),
    simple(T.BinaryType(), st.binary(max_size=20).map(bytearray)),
    simple(T.DateType(), st.dates(date(1900, 1, 1), date(2200, 1, 1))),
    simple(T.TimestampType(), MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    simple(T.TimestampNTZType(), MOMENTS),
    decimals(),
)


def maybe(values: st.SearchStrategy[Any], *, nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nullable else values


@st.composite
def nested(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> tuple[T.DataType, st.SearchStrategy[Any]]:
    shape = draw(st.sampled_from(["list", "map", "struct"]))
    kind, values = draw(inner)
    nullable = draw(st.booleans())
    if shape == "list":
        return T.ArrayType(kind, nullable), st.lists(maybe(values, nullable=nullable), max_size=4)
    if shape == "map":
        return T.MapType(T.StringType(), kind, nullable), st.dictionaries(
            TEXT, maybe(values, nullable=nullable), max_size=3
        )
    fields, parts = [T.StructField("f0", kind, nullable)], [maybe(values, nullable=nullable)]
    for number in range(1, draw(st.integers(1, 3))):
        kind, values = draw(inner)
        fields.append(T.StructField(f"f{number}", kind, True))
        parts.append(maybe(values, nullable=True))
    return T.StructType(fields), st.tuples(*parts)


COLUMN = st.recursive(SIMPLE, nested, max_leaves=4)


@dataclass
class History:
    """A table's shape, schema, and the batches of (operation, rows) that write it."""

    table_type: str
    version: int
    num_buckets: int
    factor: int
    keys: tuple[str, ...]
    partitioned: bool
    more: dict[str, str]
    metadata: bool
    schema: T.StructType
    batches: list[tuple[str, list[tuple[Any, ...]]]] = field(repr=False)
    late: list[tuple[Any, ...]] = field(repr=False)
    lose_base_files: bool = False


@st.composite
def histories(draw: st.DrawFn) -> History:
    composite = draw(st.booleans())
    keys = ("id", "id2") if composite else ("id",)
    columns = [(*draw(COLUMN), draw(st.booleans())) for _ in range(draw(st.integers(1, 5)))]
    schema = T.StructType(
        [
            T.StructField("id", T.StringType(), False),
            T.StructField("id2", T.StringType(), False),
            T.StructField("ts", T.LongType(), False),
            T.StructField("dt", T.StringType(), True),
            *(T.StructField(f"c{number}", kind, nullable) for number, (kind, _, nullable) in enumerate(columns)),
        ]
    )
    values = st.tuples(*(maybe(value, nullable=nullable) for _, value, nullable in columns))
    # A `:` in composite keys is ambiguous, and Hudi 1.2 loops for ever on some of them.
    odd = TEXT.map(lambda text: text.replace(":", ";").strip() or "x")
    partitions = draw(st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3, unique=True))
    ids = draw(st.lists(odd, min_size=1, max_size=30, unique=True))
    second = st.sampled_from(["u", "ü.", "v,w"])
    where = {key: (draw(second), draw(st.sampled_from(partitions))) for key in ids}

    def rows(chosen: list[str], ts: int) -> list[tuple[Any, ...]]:
        return [(key, where[key][0], ts, where[key][1], *draw(values)) for key in chosen]

    first = rows(ids, 0)
    batches = [(draw(st.sampled_from(["upsert", "bulk_insert", "insert"])), first)]
    for ts in range(1, draw(st.integers(1, 3))):
        some = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
        batches.append(("upsert", rows(some, ts)))
    gone = draw(st.sampled_from(["none", "some", "a partition"]))
    if gone == "some":
        batches.append(("delete", rows(draw(st.lists(st.sampled_from(ids), min_size=1, unique=True)), 8)))
    if gone == "a partition":
        batches.append(("delete", rows([key for key in ids if where[key][1] == partitions[0]] or ids[:1], 8)))
    table_type = draw(st.sampled_from(["MERGE_ON_READ", "COPY_ON_WRITE", "MERGE_ON_READ"]))
    metadata = draw(st.booleans())
    more = {"hoodie.datasource.write.hive_style_partitioning": draw(st.sampled_from(["true", "false"]))}
    if draw(st.booleans()):
        more["hoodie.datasource.write.partitionpath.urlencode"] = "true"
    return History(
        table_type=table_type,
        version=draw(st.sampled_from([6, 9])),
        num_buckets=draw(st.sampled_from([1, 2, 3, 5])),
        factor=draw(st.sampled_from([2, 3, 4, 8])),
        keys=keys,
        partitioned=draw(st.sampled_from([True, True, False])),
        more=more,
        metadata=metadata,
        schema=schema,
        batches=batches,
        late=rows(ids, 9),
        lose_base_files=table_type == "MERGE_ON_READ" and not metadata and draw(st.booleans()),
    )


def write(spark: SparkSession, base: Path, history: History) -> dict[str, str] | None:
    """Writes the table and returns the writer's options; None if Hudi itself cannot write or read such a table."""
    options = tables.writer_options(
        base,
        table_type=history.table_type,
        version=history.version,
        num_buckets=history.num_buckets,
        record_key=",".join(history.keys),
        partitioned=history.partitioned,
        metadata=history.metadata,
        **history.more,
    )
    try:
        for operation, rows in history.batches:
            frame = spark.createDataFrame(rows, history.schema)
            tables.upsert(frame, base, {**options, "hoodie.datasource.write.operation": operation})
        if history.lose_base_files:
            lose_base_files(base)
        tables.snapshot(spark, base)
    except Py4JJavaError as error:
        print("Hudi cannot:", str(error.java_exception)[:300])
        return None
    return options


def lose_base_files(base: Path) -> None:
    """Removes the base files of slices with logs, which leaves slices with only logs, as Flink's writers make them."""
    with_logs = {path.name.lstrip(".")[:38] for path in base.glob("**/.0*.log.*")}
    for path in base.glob("**/0*.parquet"):
        if path.name[:38] in with_logs:
            path.unlink()


generated = settings(
    max_examples=EXAMPLES or 3,
    derandomize=not EXAMPLES,
    database=None,
    phases=[Phase.generate],  # because shrinking an example would take many expansions
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(0 if EXAMPLES else 600)
@generated
@given(history=histories())
def test_every_row_of_a_generated_table_is_there_and_in_its_bucket_after_an_expansion(
    spark: SparkSession, tmp_path: Path, history: History
) -> None:
    base = tmp_path / f"t{next(_numbers)}"
    options = write(spark, base, history)
    if options is None:
        return
    before = tables.snapshot(spark, base)
    untouched = shutil.copytree(base, tmp_path / f"{base.name}_untouched")
    number = history.num_buckets * history.factor
    fields = ",".join(history.keys)
    index = BucketIndex(history.num_buckets, history.keys)

    result = run_job(spark, base, "bucket_expansion", {"factor": history.factor}, index=index)

    assert tables.in_order(spark, base, number, fields) == before
    assert result.details["rows"] == len(before)

    late: DataFrame = spark.createDataFrame(history.late, history.schema)
    try:
        tables.upsert(late, base, options)
    except Py4JJavaError as error:
        print("Hudi cannot, with us or without us:", str(error.java_exception)[:300])
        with pytest.raises(Py4JJavaError):
            tables.upsert(late, untouched, options)
        return
    assert len(tables.in_order(spark, base, number, fields)) == len(history.late)


@pytest.mark.exhaustive
@pytest.mark.timeout(0 if EXAMPLES else 600)
@generated
@given(history=histories())
def test_a_diagnosis_of_a_generated_table_finds_nothing(spark: SparkSession, tmp_path: Path, history: History) -> None:
    history.lose_base_files = False
    base = tmp_path / f"t{next(_numbers)}"
    if write(spark, base, history) is None:
        return
    found = run_job(spark, base, "diagnosis", index=BucketIndex(history.num_buckets, history.keys)).details
    assert (found["findings"], found["unchecked"]) == ([], [])
    shutil.rmtree(base)
