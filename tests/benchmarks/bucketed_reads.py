"""Measures a join and a group by buckets against Spark's own plan: seconds on the clock, and CPU seconds.

    python tests/benchmarks/bucketed_reads.py [--rows 4000000] [--keys sorted|random|skewed] [--share 0.9] [--rounds 3]
        [--warm-up 2]

Both ways run in one session on the same two tables of 8 and 16 buckets, by turns; a figure is the median of the rounds,
and a ratio the median of the ratios within each round. Planning counts: each way begins with the paths of the tables.
`skewed` keys put the share of the rows into one bucket. The JVM has Java's usual settings, as in a user's session. It
compiles code during the first runs of each way, so the first `--warm-up` rounds are not measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from uuid import uuid4

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
# A worker's session compiles methods later than Java by default.
_USUAL_COMPILER = " ".join(
    f"-XX:Tier4{name}Threshold={count}"
    for name, count in {"Invocation": 5_000, "MinInvocation": 600, "Compile": 15_000, "BackEdge": 40_000}.items()
)


@dataclass(frozen=True)
class Round:
    """The cost of one read. `whole` is the total cost, `planning` the part until the call returns its plan, and
    `messages` the number of messages to the JVM. `of_task` is the most memory that a task had for sorts and hash maps,
    and `spilled` is what all tasks have spilled, both in bytes."""

    whole: process_tree.Cost
    planning: process_tree.Cost
    messages: int
    of_task: int
    spilled: int


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--keys", choices=["sorted", "random", "skewed"], default="sorted")
    parser.add_argument("--share", type=float, default=0.9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=2)
    asked = parser.parse_args()
    rows: int = asked.rows
    conf = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.driver.extraJavaOptions": _USUAL_COMPILER}
    spark = start_session(driver_memory="4g", packages=[], conf=conf)

    def cost(way: Callable[[], DataFrame]) -> Round:
        with _tasks(spark) as tasks, process_tree.measured() as whole:
            with process_tree.measured() as planning, _messages(spark) as sent:
                found = way()
            found.write.format("noop").mode("overwrite").save()
        return Round(whole, planning, len(sent), max(peak for peak, _ in tasks), sum(spilled for _, spilled in tasks))

    with tempfile.TemporaryDirectory() as folder:
        left, right = (
            _table(spark, f"{folder}/t{number}", rows, number, asked.keys, asked.share) for number in (8, 16)
        )
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
        if asked.keys == "skewed" and asked.share > 0.5:
            # The wanted rows of the large bucket do not fit into the memory of a task.
            del ways["join, buckets, one side in memory"]
        counts = {name: way().count() for name, way in ways.items()}
        assert len(set(counts.values())) == 1, counts
        print(f"{counts['join, Spark']} rows, {asked.keys} keys", flush=True)
        costs: dict[str, list[Round]] = {name: [] for name in ways}
        for number in range(-asked.warm_up, asked.rounds):
            for name, way in ways.items():
                found_cost = cost(way)
                if number >= 0:
                    costs[name].append(found_cost)
        for name, each in costs.items():
            plain_costs = costs[f"{name.partition(',')[0]}, Spark"]
            ratio = [
                plain.whole.cpu_seconds / one.whole.cpu_seconds for one, plain in zip(each, plain_costs, strict=True)
            ]
            seconds, cpu = median(one.whole.seconds for one in each), median(one.whole.cpu_seconds for one in each)
            planning, peak = (
                median(one.planning.cpu_seconds for one in each),
                max(one.whole.peak_bytes["jvm"] for one in each),
            )
            print(
                f"{name:>34} {seconds:6.2f} s {cpu:6.2f} CPU s, of which planning {planning:5.2f} with "
                f"{each[-1].messages:3} messages, ratio {median(ratio):4.2f} ({min(ratio):4.2f} to {max(ratio):4.2f}), "
                f"JVM up to {peak / 2**20:5.0f} MiB, a task {max(one.of_task for one in each) / 2**20:4.0f} MiB, "
                f"spilled {max(one.spilled for one in each) / 2**20:4.0f} MiB, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    spark.stop()


@contextmanager
def _messages(spark: Any) -> Iterator[list[str]]:
    """Yields the messages of this process to the JVM, except the notes that Python has released an object."""
    client, found = spark.sparkContext._gateway._gateway_client, []
    send = client.send_command

    def send_and_record(text: str, *more: Any, **named: Any) -> Any:
        if not text.startswith("m"):
            found.append(text)
        return send(text, *more, **named)

    client.send_command = send_and_record
    try:
        yield found
    finally:
        del client.send_command


@contextmanager
def _tasks(spark: SparkSession) -> Iterator[list[tuple[int, int]]]:
    """Yields for each task of the block, when it has ended, the most memory for sorts and hash maps, and the bytes of
    the memory that were spilled."""
    context, group, found = spark.sparkContext, uuid4().hex, list[tuple[int, int]]()
    context.setJobGroup(group, "")
    try:
        yield found
    finally:
        java: Any = context._jsc
        java.clearJobGroup()
    java.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), java.sc().statusStore()
    for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)):
        for stage in job.stageIds if job else ():
            tasks = store.taskList(stage, 0, 10_000)
            for at in range(tasks.size()):
                metrics = tasks.apply(at).taskMetrics()
                if metrics.isDefined():
                    found.append((metrics.get().peakExecutionMemory(), metrics.get().memoryBytesSpilled()))


def _table(spark: Any, path: str, rows: int, buckets: int, keys: str, share: float = 0.9) -> Table:
    options = writer_options(path, num_buckets=buckets, partitioned=False, table_type="COPY_ON_WRITE")
    options["hoodie.datasource.write.operation"] = "bulk_insert"
    frame = _keys(spark, rows, keys, share).select("id", F.lit(1).alias("ts"), F.rand().alias(f"v{buckets}"))
    frame.write.format("hudi").options(**options).mode("append").save(path)
    return Table(path, ("id",), buckets)


def _keys(spark: SparkSession, rows: int, keys: str, share: float) -> DataFrame:
    if keys == "random":
        # Digests have no order, and are as long as many real keys.
        return spark.range(rows).select(F.substring(F.md5(F.col("id").cast("string")), 1, 16).alias("id"))
    if keys == "sorted":
        return spark.range(rows).select(F.col("id").cast("string").alias("id"))
    numbers = spark.range(int(rows * share) * MOST_BUCKETS).select(F.col("id").cast("string").alias("id"))
    code = Column(java_plan.begin(spark).hash(numbers._jdf, '["id"]'))
    # The skewed bucket gets all of its keys, each other bucket gets only this part of its keys.
    part = (1 - share) / (share * (MOST_BUCKETS - 1))
    few = F.pmod(F.xxhash64("id"), F.lit(1_000_000)) < int(part * 1_000_000)
    return numbers.where((code % MOST_BUCKETS == SKEWED_BUCKET) | few)


if __name__ == "__main__":
    main()
