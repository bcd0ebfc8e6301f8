"""Measures a join and a group by buckets against Spark's own plan: seconds on the clock, and CPU seconds.

    python tests/benchmarks/bucketed_reads.py [--rows 4000000]

Both ways run in one session on the same two tables of 8 and 16 buckets, by turns; the figure is the median of three.
Planning counts: each way begins with the paths of the tables.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jobs" / "bucketed_reads"))

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark import Table, bucketed
from jobs.hudi.session import start_session
from tests.benchmarks import process_tree
from tests.integration.tables import writer_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

REPEAT = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    rows = parser.parse_args().rows
    spark = start_session(driver_memory="4g", packages=[], conf={"spark.sql.autoBroadcastJoinThreshold": "-1"})

    def cost(way: Callable[[], DataFrame]) -> process_tree.Cost:
        with process_tree.measured() as cost:
            way().write.format("noop").mode("overwrite").save()
        return cost

    with tempfile.TemporaryDirectory() as folder:
        tables = [_table(spark, f"{folder}/t{number}", rows, number) for number in (8, 16)]

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
        counts = {name: way().count() for name, way in ways.items()}
        assert set(counts.values()) == {rows}, counts
        costs: dict[str, list[process_tree.Cost]] = {name: [] for name in ways}
        for _ in range(REPEAT):
            for name, way in ways.items():
                costs[name].append(cost(way))
        for name, each in costs.items():
            seconds, cpu = median(one.seconds for one in each), median(one.cpu_seconds for one in each)
            print(f"{name:>34} {seconds:6.2f} s {cpu:6.2f} CPU s, load {os.getloadavg()[0]:.1f}", flush=True)
    spark.stop()


def _table(spark: Any, path: str, rows: int, buckets: int) -> Table:
    options = writer_options(path, num_buckets=buckets, partitioned=False, table_type="COPY_ON_WRITE")
    options["hoodie.datasource.write.operation"] = "bulk_insert"
    frame = spark.range(rows).select(
        F.col("id").cast("string").alias("id"), F.lit(1).alias("ts"), F.rand().alias(f"v{buckets}")
    )
    frame.write.format("hudi").options(**options).mode("append").save(path)
    return Table(path, ("id",), buckets)


if __name__ == "__main__":
    main()
