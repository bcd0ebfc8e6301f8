"""Arrow merges file slices with the same rows, order, columns and write stats as Hudi's own compaction.

An ordinary run compares a few tables. The matrix of merge rules needs `--exhaustive`. The next command generates
tables, different ones in each run: GENERATED_TABLES=200 pytest -s tests/integration/test_slice_merge.py
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from jobs.contract import BucketIndex
from jobs.errors import HudiError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table
from tests.integration.slice_oracle import compacted, rules_of
from tests.integration.test_generated_tables import COLUMN, TEXT, maybe

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.integration.slice_oracle import Merged

EXAMPLES = int(os.environ.get("GENERATED_TABLES", "0"))
_numbers = count()
INDEX = BucketIndex(2, ("id",))
DELETE = {"hoodie.datasource.write.operation": "delete"}
LATEST = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.datasource.write.precombine.field": "",
}
ODD, EVEN = "pmod(substr(id, 2), 2) = 1", "pmod(substr(id, 2), 2) = 0"


@dataclass(frozen=True)
class Step:
    """A commit of the rows k<first>..k<last - 1>, with the same ordering value and additional columns as SQL."""

    first: int
    last: int
    ts: int
    more: dict[str, str] = field(default_factory=dict)
    delete: bool = False
    kind: str = ""


def deleted(first: int, last: int, ts: int, condition: str) -> Step:
    return Step(first, last, ts, {"_hoodie_is_deleted": condition})


def frame(spark: SparkSession, step: Step, ordering: str) -> DataFrame:
    found = spark.range(step.first, step.last, 1, 1).select(
        F.expr("concat('k', id)").alias("id"),
        F.expr((step.kind or ordering).format(ts=step.ts)).alias("ts"),
        F.expr(f"concat('v{step.ts}-', id)").alias("v"),
    )
    for name, expression in step.more.items():
        found = found.withColumn(name, F.expr(expression))
    return found


def write(
    spark: SparkSession,
    base: Path,
    steps: list[Step],
    version: int,
    ordering: str = "cast({ts} as bigint)",
    **more: str,
) -> None:
    options = tables.writer_options(base, num_buckets=2, partitioned=False, version=version, **more)
    for step in steps:
        tables.upsert(frame(spark, step, ordering), base, options | (DELETE if step.delete else {}))


def differences(merged: list[Merged]) -> list[Any]:
    """Returns the refused slices and the differences of the others."""
    return [
        each.refused or (each.our_counts, each.hudis_counts, sorted(set(each.ours) ^ set(each.hudis))[:4])
        for each in merged
        if not each.equal
    ]


@pytest.mark.parametrize("version", [9, *(pytest.param(version, marks=pytest.mark.exhaustive) for version in (6, 8))])
def test_a_slice_is_merged_as_hudi_merges_it(spark: SparkSession, base: Path, version: int) -> None:
    """The steps have nested types, updates, inserts, deletes of base rows and of log rows, and late and newer records
    of deleted keys."""
    options = tables.writer_options(base, num_buckets=1, partitioned=False, version=version)
    flagged = F.expr("pmod(city, 7) = 0")
    tables.upsert(tables.rows(spark, 0, 200).withColumn("_hoodie_is_deleted", F.lit(False)), base, options)
    tables.upsert(tables.rows(spark, 50, 250, ts=2).withColumn("_hoodie_is_deleted", flagged), base, options)
    tables.upsert(tables.rows(spark, 100, 120, ts=3), base, options | DELETE)
    tables.upsert(tables.rows(spark, 40, 130, ts=1).withColumn("_hoodie_is_deleted", ~flagged), base, options)
    merged = compacted(spark, base, INDEX)
    assert not differences(merged)
    (only,) = merged
    assert min(only.our_counts[name] for name in ("updates", "inserts", "deletes")) > 0


BASE = Step(0, 60, 5)
FLAGGED = [
    deleted(0, 60, 5, "false"),
    deleted(0, 20, 5, EVEN),
    deleted(10, 30, 4, "true"),
    deleted(30, 40, 6, "true"),
    deleted(35, 45, 5, "cast(null as boolean)"),
    deleted(40, 50, 0, "true"),
    deleted(45, 48, 1, "false"),
    deleted(70, 80, 1, EVEN),
]
DELETED = [BASE, Step(10, 20, 7), Step(0, 30, 0, delete=True), Step(5, 12, 3, delete=True), Step(10, 15, 2)]
NULLS = [BASE, Step(0, 20, 6), Step(10, 30, 7), Step(25, 35, 7, delete=True)]
NULL_IF_EVEN = "if(" + EVEN.replace("substr(id, 2)", "id") + ", cast(null as {kind}), cast({{ts}} as {kind}))"
ADDED = {"extra": "nullif(concat('x', id), 'q')", "more": "if(id = 'k3', null, named_struct('p', 1, 'q', array(2)))"}
TYPES = {
    "int": "cast({ts} as int)",
    "long": "cast({ts} as bigint)",
    "float": "cast({ts} as float)",
    "double": "cast({ts} as double)",
    "string": "concat('ä😀', cast({ts} as string))",
    "timestamp": "timestamp_micros(1700000000123456 + {ts})",
    "local timestamp": "cast(timestamp_micros(1700000000123456 + {ts}) as timestamp_ntz)",
    "decimal": "cast({ts} as decimal(20, 4))",
    "boolean": "{ts} > 4",
    "equal": "cast(0 as bigint)",
}
WIDE = "cast(if(id = 'k3', null, 2147483647 - length(id)) as {kind})"
SEVERAL = {"hoodie.datasource.write.precombine.field": "ts,seq"}


def seq(first: int, last: int, ts: int, number: int, flag: str = "false") -> Step:
    return Step(first, last, ts, {"seq": str(number), "_hoodie_is_deleted": flag})


# Steps, ordering expression, options of the writer.
Case = tuple[list[Step], str, dict[str, str]]
CASES: dict[str, Case] = {
    **{f"flags of {name}": (FLAGGED, kind, {}) for name, kind in TYPES.items()},
    **{f"deletes of {name}": (DELETED, kind, {}) for name, kind in TYPES.items()},
    **{f"null {kind}": (NULLS, NULL_IF_EVEN.format(kind=kind), {}) for kind in ("int", "bigint", "string")},
    "several ordering fields": (
        [
            seq(0, 60, 5, 5),
            seq(0, 20, 5, 4, "true"),
            seq(10, 30, 5, 5, "true"),
            seq(20, 40, 4, 9),
            seq(30, 50, 6, 0, ODD),
            seq(45, 60, 5, 6),
        ],
        TYPES["long"],
        SEVERAL,
    ),
    "column added": ([BASE, Step(0, 20, 6, ADDED), Step(80, 90, 6, ADDED)], TYPES["long"], {}),
    "Parquet blocks": (FLAGGED, TYPES["long"], {"hoodie.logfile.data.block.format": "parquet"}),
    "by commit time": (
        [
            Step(0, 100, 5),
            Step(20, 60, 3),
            Step(30, 40, 1, delete=True),
            Step(35, 50, 0),
            Step(200, 230, 0),
            Step(210, 220, 0, delete=True),
        ],
        TYPES["long"],
        LATEST,
    ),
    **{
        f"int to {wider}": (
            [
                Step(0, 60, 5, {"x": WIDE.format(kind="int")}),
                Step(0, 20, 6, {"x": WIDE.format(kind="int")}),
                Step(10, 30, 7, {"x": WIDE.format(kind=wider)}),
            ],
            TYPES["long"],
            {},
        )
        for wider in ("bigint", "double")
    },
    "an ordering field that becomes wider": (
        [
            Step(0, 60, 5, kind=TYPES["int"]),
            Step(0, 20, 6, kind=TYPES["int"]),
            Step(10, 30, 4),
            Step(40, 50, 7),
        ],
        TYPES["long"],
        {},
    ),
    "many inserts": ([BASE, Step(0, 3000, 6)], TYPES["long"], {}),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_merged_by_hudis_rules(spark: SparkSession, tmp_path: Path, case: str, version: int) -> None:
    steps, ordering, options = CASES[case]
    write(spark, tmp_path / "t", steps, version, ordering, **options)
    mode = options.get("hoodie.record.merge.mode", "EVENT_TIME_ORDERING")
    assert not differences(compacted(spark, tmp_path / "t", INDEX, mode))


@pytest.mark.exhaustive
def test_a_row_with_a_delete_marker_deletes_its_key(spark: SparkSession, tmp_path: Path) -> None:
    marked = {"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"}
    steps = [
        Step(0, 60, 5, {"op": "'I'"}),
        Step(0, 20, 6, {"op": f"if({EVEN}, 'D', 'U')"}),
        Step(10, 30, 4, {"op": "'D'"}),
    ]
    write(spark, tmp_path / "t", steps, 9, **marked)
    assert not differences(compacted(spark, tmp_path / "t", INDEX, delete_marker=("op", "D")))


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 8, 9])
def test_blocks_of_rolled_back_commits_do_not_count(spark: SparkSession, base: Path, version: int) -> None:
    write(spark, base, [BASE, Step(0, 20, 6), Step(10, 30, 7)], version)
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK) as client:
        client._client.rollback(rules_of(base, "EVENT_TIME_ORDERING").latest)
    write(spark, base, [Step(15, 40, 6)], version)
    merged = compacted(spark, base, INDEX)
    assert not differences(merged)
    if version == 6:
        assert {each.our_counts["rollback_blocks"] for each in merged} == {1}


@pytest.mark.exhaustive
def test_blocks_of_commits_that_did_not_complete_do_not_count(spark: SparkSession, base: Path) -> None:
    write(spark, base, [BASE, Step(0, 20, 6), Step(10, 30, 7)], 6)
    (base / ".hoodie" / f"{rules_of(base, 'EVENT_TIME_ORDERING').latest}.deltacommit").unlink()
    write(spark, base, [Step(25, 35, 8)], 6, **{"hoodie.metadata.enable": "false"})
    assert not differences(compacted(spark, base, INDEX))


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 9])
def test_slices_without_base_file_are_merged(spark: SparkSession, base: Path, version: int) -> None:
    steps = [BASE, Step(0, 100, 6), Step(30, 50, 7, delete=True)]
    write(spark, base, steps, version, **{"hoodie.metadata.enable": "false"})
    for path in [*base.glob("*.parquet"), *base.glob(".*.parquet.crc")]:
        path.unlink()
    merged = compacted(spark, base, INDEX)
    assert not differences(merged)
    assert all(each.files.base is None for each in merged)


@pytest.mark.exhaustive
def test_only_the_first_of_several_base_rows_with_one_key_is_merged(spark: SparkSession, base: Path) -> None:
    bulk = {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.combine.before.insert": "false"}
    options = tables.writer_options(base, num_buckets=2, partitioned=False)
    twice = frame(spark, Step(0, 30, 5), TYPES["long"]).union(frame(spark, Step(0, 30, 4), TYPES["long"]))
    tables.upsert(twice, base, options | bulk)
    write(spark, base, [Step(0, 10, 6), Step(5, 20, 7, delete=True)], 9)
    assert not differences(compacted(spark, base, INDEX))


@pytest.mark.exhaustive
@pytest.mark.parametrize("more", [{}, LATEST], ids=["by event time", "by commit time"])
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("kind", ["SIMPLE", "BLOOM"])
def test_records_whose_positions_are_known_are_merged_alike(
    spark: SparkSession, tmp_path: Path, kind: str, version: int, more: dict[str, str]
) -> None:
    """If an index finds rows, log blocks have the positions of their rows in the base file."""
    index = {"hoodie.index.type": kind, "hoodie.parquet.small.file.limit": "0"}
    options = tables.writer_options(
        tmp_path / "t", num_buckets=None, partitioned=False, version=version, **index, **more
    )
    steps = [
        deleted(0, 60, 5, "false"),
        deleted(0, 20, 5, EVEN),
        deleted(10, 30, 4, "true"),
        Step(30, 50, 6, delete=True),
        deleted(45, 48, 1, "false"),
        deleted(0, 20, 7, "false"),
    ]
    for step in steps:
        found = frame(spark, step, TYPES["long"])
        tables.upsert(found, tmp_path / "t", options | (DELETE if step.delete else {}))
    mode = more.get("hoodie.record.merge.mode", "EVENT_TIME_ORDERING")
    merged = compacted(spark, tmp_path / "t", None, mode)
    assert merged
    assert not differences(merged)


@pytest.mark.exhaustive
def test_partial_updates_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", [BASE], 9)
    spark.sql(f"create table partial_updates using hudi location '{tmp_path / 't'}'")
    spark.sql(
        "merge into partial_updates t using (select 'k3' id, 9L ts, 'm' v) s on t.id = s.id "
        "when matched then update set v = s.v, ts = s.ts"
    )
    assert {each.refused for each in compacted(spark, tmp_path / "t", INDEX)} == {"a log holds partial updates"}


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, Any], T.StructType, list[tuple[bool, list[tuple[Any, ...]]]]]:
    """Generates the options of a writer, a schema, and batches of rows that are upserted or deleted."""
    columns = [(*draw(COLUMN), draw(st.booleans())) for _ in range(draw(st.integers(1, 5)))]
    kind, moments = draw(
        st.sampled_from(
            [(T.LongType(), st.integers(0, 3)), (T.IntegerType(), st.integers(0, 2)), (T.StringType(), TEXT)]
        )
    )
    schema = T.StructType(
        [
            T.StructField("id", T.StringType(), False),
            T.StructField("ts", kind, False),
            T.StructField("_hoodie_is_deleted", T.BooleanType(), True),
            *(T.StructField(f"c{number}", kind, nullable) for number, (kind, _, nullable) in enumerate(columns)),
        ]
    )
    values = [maybe(value, nullable=nullable) for _, value, nullable in columns]
    ids = draw(st.lists(TEXT.map(lambda text: text.strip() or "x"), min_size=1, max_size=40, unique=True))
    flags = st.sampled_from([False, None, False, None, True])
    batches = []
    for _ in range(draw(st.integers(2, 5))):
        chosen = draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
        rows = [(key, draw(moments), draw(flags) if batches else None, *map(draw, values)) for key in chosen]
        batches.append((bool(batches) and draw(st.integers(0, 4)) == 0, rows))
    options: dict[str, Any] = {"version": draw(st.sampled_from([6, 8, 9])), "metadata": draw(st.booleans())}
    if draw(st.integers(0, 3)) == 0:
        options |= LATEST
    if draw(st.integers(0, 3)) == 0:
        options["hoodie.logfile.data.block.format"] = "parquet"
    return options, schema, batches


@given(history=histories())
@settings(
    max_examples=max(EXAMPLES, 1),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
def require_merged_alike(spark: SparkSession, folder: Path, history: Any) -> None:
    options, schema, batches = history
    base = folder / f"t{next(_numbers)}"
    writer = tables.writer_options(base, num_buckets=2, partitioned=False, **options)
    try:
        for delete, rows in batches:
            found = spark.createDataFrame(rows, schema).coalesce(1)
            tables.upsert(found, base, writer | (DELETE if delete else {}))
        mode = options.get("hoodie.record.merge.mode", "EVENT_TIME_ORDERING")
        merged = compacted(spark, base, INDEX, mode) if list(base.glob(".*.log.*")) else []
    except (Py4JJavaError, HudiError) as error:
        print("Hudi cannot:", str(error)[:300])
    else:
        refused = sorted({each.refused for each in merged if each.refused})
        print(f"{len(merged)} slices, {sum(len(each.hudis) for each in merged)} rows, {options}, refused: {refused}")
        assert not differences([each for each in merged if not each.refused])
    shutil.rmtree(base)


@pytest.mark.skipif(not EXAMPLES, reason="GENERATED_TABLES is not set")
@pytest.mark.timeout(0)
def test_generated_slices_are_merged_alike(spark: SparkSession, tmp_path: Path) -> None:
    require_merged_alike(spark, tmp_path)
