"""Measures a join and a group by buckets against Spark's own plan: seconds on the clock, and CPU seconds.

    python tests/benchmarks/bucketed_reads.py [--rows 4000000] [--keys sorted|random|skewed] [--rounds 3]

Both ways run in one session on the same two tables of 8 and 16 buckets, by turns; a figure is the median of the rounds,
and a ratio that of the ratios within each round. Planning counts: each way begins with the paths of the tables.
`skewed` keys put nine tenths of the rows into one bucket.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jobs" / "bucketed_reads"))

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark import Table, bucketed, java_plan
from jobs.hudi.session import start_session
from tests.benchmarks import process_tree
from tests.integration.tables import writer_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

SKEWED_BUCKET, MOST_BUCKETS = 3, 16


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", choices=["sorted", "random", "skewed"], default="sorted")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rows: int = asked.rows
    spark = start_session(driver_memory="4g", packages=[], conf={"spark.sql.autoBroadcastJoinThreshold": "-1"})

    def cost(way: Callable[[], DataFrame]) -> tuple[process_tree.Cost, process_tree.Cost, int]:
        """Returns the cost of all, that of the plan as far as the call makes it, and its messages to the JVM."""
        with process_tree.measured() as whole:
            with process_tree.measured() as planned, _messages(spark) as sent:
                found = way()
            found.write.format("noop").mode("overwrite").save()
        return whole, planned, len(sent)

    with tempfile.TemporaryDirectory() as folder:
        left, right = (_table(spark, f"{folder}/t{number}", rows, number, asked.keys) for number in (8, 16))
        tables = left, right

        def plain(at: int) -> DataFrame:
            return spark.read.format("hudi").load(tables[at].path).select("id", f"v{tables[at].buckets}")

        ways: dict[str, Any] = {
            "join, buckets": lambda: bucketed.join(spark, *tables, ["id"], columns=(["v8"], ["v16"])).rows,
            "join, buckets, one side in memory": lambda: (
                bucketed.join(spark, *tables, ["id"], columns=(["v8"], ["v16"]), in_memory="right").rows
            ),
            "join, Spark": lambda: plain(0).join(plain(1), "id"),
            "group, buckets": lambda: bucketed.group_by(spark, tables[0], ["id"], [F.sum("v8")]).rows,
            "group, Spark": lambda: plain(0).groupBy("id").agg(F.sum("v8")),
        }
        found = bucketed.join(spark, *tables, ["id"], columns=(["v8"], ["v16"]))
        assert found.fallback is None
        print(found.plan, "skew", found.skew, flush=True)
        if asked.keys == "skewed":
            # The wanted rows of the large bucket do not fit into the memory of a task.
            del ways["join, buckets, one side in memory"]
        counts = {name: way().count() for name, way in ways.items()}
        assert len(set(counts.values())) == 1, counts
        print(f"{counts['join, Spark']} rows, {asked.keys} keys", flush=True)
        costs: dict[str, list[tuple[process_tree.Cost, process_tree.Cost, int]]] = {name: [] for name in ways}
        for _ in range(asked.rounds):
            for name, way in ways.items():
                costs[name].append(cost(way))
        for name, each in costs.items():
            plain_costs = costs[f"{name.partition(',')[0]}, Spark"]
            ratio = [
                plain.cpu_seconds / one.cpu_seconds for (one, *_), (plain, *_) in zip(each, plain_costs, strict=True)
            ]
            seconds, cpu = median(one.seconds for one, *_ in each), median(one.cpu_seconds for one, *_ in each)
            planning, peak = (
                median(one.cpu_seconds for _, one, _ in each),
                max(one.peak_bytes["jvm"] for one, *_ in each),
            )
            print(
                f"{name:>34} {seconds:6.2f} s {cpu:6.2f} CPU s, of which planning {planning:5.2f} with {each[-1][2]:3} "
                f"messages, ratio {median(ratio):4.2f} ({min(ratio):4.2f} to {max(ratio):4.2f}), "
                f"JVM up to {peak / 2**20:5.0f} MiB, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    spark.stop()


@contextmanager
def _messages(spark: Any) -> Iterator[list[str]]:
    """Yields the messages of this process to the JVM, except those that it has forgotten an object."""
    client, found = spark.sparkContext._gateway._gateway_client, []
    send = client.send_command

    def noted(text: str, *more: Any, **named: Any) -> Any:
        if not text.startswith("m"):
            found.append(text)
        return send(text, *more, **named)

    client.send_command = noted
    try:
        yield found
    finally:
        del client.send_command


def _table(spark: Any, path: str, rows: int, buckets: int, keys: str) -> Table:
    options = writer_options(path, num_buckets=buckets, partitioned=False, table_type="COPY_ON_WRITE")
    options["hoodie.datasource.write.operation"] = "bulk_insert"
    frame = _keys(spark, rows, keys).select("id", F.lit(1).alias("ts"), F.rand().alias(f"v{buckets}"))
    frame.write.format("hudi").options(**options).mode("append").save(path)
    return Table(path, ("id",), buckets)


def _keys(spark: SparkSession, rows: int, keys: str) -> DataFrame:
    if keys == "random":
        # A digest is in no order, and as long as many real keys.
        return spark.range(rows).select(F.substring(F.md5(F.col("id").cast("string")), 1, 16).alias("id"))
    if keys == "sorted":
        return spark.range(rows).select(F.col("id").cast("string").alias("id"))
    numbers = spark.range(int(rows * 0.9) * MOST_BUCKETS).select(F.col("id").cast("string").alias("id"))
    code = Column(java_plan.begin(spark).hash(numbers._jdf, '["id"]'))
    in_bucket, few = code % MOST_BUCKETS == SKEWED_BUCKET, F.xxhash64("id") % (9 * (MOST_BUCKETS - 1)) == 0
    return numbers.where(in_bucket | few)


if __name__ == "__main__":
    main()
