"""Reads by buckets of tables of generated schemas, keys, partitions and histories have the rows of Spark's own plan.

The next command generates more tables, different ones in each run: GENERATED_TABLES=50 pytest -s --exhaustive
tests/integration/test_generated_bucketed_reads.py
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark import Table, bucketed
from tests.integration.test_generated_tables import EXAMPLES, History, generated, histories, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from groundskeeper_spark import Result

JOINS = ["inner", "left", "right", "full", "semi", "anti"]
SIDES = [None, "left", "right"]
_numbers = count()
_outcomes: dict[str, int] = {}


@pytest.mark.exhaustive
@pytest.mark.timeout(0 if EXAMPLES else 600)
@generated
@given(history=histories(), how=st.sampled_from(JOINS), narrowed=st.booleans(), side=st.sampled_from(SIDES))
def test_a_generated_table_is_read_by_buckets_as_by_spark(
    spark: SparkSession, tmp_path: Path, history: History, how: str, narrowed: bool, side: str | None
) -> None:
    folder = tmp_path / f"g{next(_numbers)}"
    (operation, rows), *_ = history.batches
    # The other table has some of the keys, k times as many buckets, and the other type.
    other = replace(
        history,
        num_buckets=history.num_buckets * history.factor,
        table_type="COPY_ON_WRITE" if history.table_type == "MERGE_ON_READ" else "MERGE_ON_READ",
        batches=[(operation, rows[::2]), ("upsert", history.late[: len(rows) // 2 + 1])],
        lose_base_files=False,
    )
    tables = []
    for name, each in (("left", history), ("right", other)):
        if write(spark, folder / name, each) is None:
            return
        tables.append(Table(str(folder / name), history.keys, each.num_buckets))
    keys = list(history.keys)
    left, right = (spark.read.format("hudi").load(each.path) for each in tables)
    of_left = [name for name in left.columns if name.startswith("c")]
    columns = (of_left, ["ts"]) if narrowed else None
    where = (F.col("ts") < 8, F.col("ts") > 0) if narrowed else (None, None)
    sides = [left, right]
    if columns:
        sides = [
            each.where(only).select(*keys, *chosen) for each, only, chosen in zip(sides, where, columns, strict=True)
        ]
    in_memory = "right" if side and how in ("semi", "anti") else side
    joined = bucketed.join(spark, *tables, keys, how, columns=columns, where=where, in_memory=in_memory)
    _require(joined, sides[0].join(sides[1], keys, how), history, "join")
    aggregates = [F.count("*").alias("n"), F.max("ts").alias("newest")]
    grouped = bucketed.group_by(spark, tables[0], keys, aggregates)
    _require(grouped, left.groupBy(*keys).agg(*aggregates), history, "group")
    wanted = [tuple(row[: len(keys)]) for row in rows[:3]]
    found = bucketed.lookup(spark, tables[1], wanted, columns=["ts", "dt"])
    is_wanted = F.struct(*keys).isin([F.struct(*map(F.lit, key)) for key in wanted])
    _require(found, right.where(is_wanted).select(*keys, "ts", "dt"), history, "look-up")


def _require(found: Result, expected: DataFrame, history: History, read: str) -> None:
    """Asserts equal rows. Only keys that Hudi takes apart may raise an error, and only look-ups may fall back."""
    outcome = "by buckets"
    if found.fallback:
        outcome = found.fallback.partition(":")[0][:60]
        assert read == "look-up", found.fallback
        assert any(each in found.fallback for each in ("splits", "no file", "do not prove")), found.fallback
    try:
        assert sorted(map(str, found.rows.collect())) == sorted(map(str, expected.collect()))
    except Exception as error:
        if "outside of its bucket" not in str(error):
            raise
        assert any(_is_split(key, history) for row in history.late for key in row[: len(history.keys)]), history
        outcome = "refused"
    _outcomes[f"{read}: {outcome}"] = _outcomes.get(f"{read}: {outcome}", 0) + 1
    print(_outcomes)


def _is_split(key: str, history: History) -> bool:
    """Returns whether the guide says that Hudi hashes another text than the key."""
    if len(history.keys) > 1:
        return "," in key or ":" in key or key in ("__null__", "__empty__")
    return "," in key and ":" in key
