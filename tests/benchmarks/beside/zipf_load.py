"""Writes and queries a fleet of tables by a schedule: both follow Zipf distributions, which are independent."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from tests.benchmarks import fleet, trips
from tests.benchmarks.fleet import Small
from tests.benchmarks.process_tree import measured
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SHAPES = (Small(20_000, 2, 1), Small(60_000, 4, 1), Small(120_000, 4, 2))
CHANGED_PERCENT = 2
_MOST_REPEATS = 5
_CONFLICT = "HoodieWriteConflictException"


class EventKind(StrEnum):
    WRITE = "write"
    QUERY = "query"


@dataclass(frozen=True)
class Event:
    """What happens `at` seconds after the beginning. `number` counts the events of its kind: a query's text and a
    batch's rows follow from it."""

    at: float
    kind: EventKind
    table: int
    number: int


@dataclass(frozen=True)
class Took:
    """The cost of an event: seconds on the clock, CPU seconds of the session, and for a write how often Hudi refused
    the batch for a conflict."""

    event: Event
    seconds: float
    cpu_seconds: float
    conflicts: int = 0


def schedule(count: int, seconds: float, every: Mapping[EventKind, float], seed: int) -> list[Event]:
    """Returns the events of so many tables. The tables that are written most and those that are read most are drawn
    independently."""
    found = []
    for does, pause in every.items():
        shares = _shares(count, does, seed)
        drawn = random.Random(f"{does} {seed}").choices(list(shares), [*shares.values()], k=int(seconds / pause))
        found += [Event(number * pause, does, table, number) for number, table in enumerate(drawn)]
    return sorted(found, key=lambda each: (each.at, each.kind))


def reads_per_day(count: int, query_every: float, seed: int) -> list[float]:
    """Returns how often each table is read on average, if there is a query every so many seconds."""
    shares = _shares(count, EventKind.QUERY, seed)
    return [86_400 / query_every * shares[table] for table in range(count)]


def _shares(count: int, kind: EventKind, seed: int) -> dict[int, float]:
    """Returns the share that each table has of the events of this kind."""
    order = random.Random(f"{kind} of {seed}").sample(range(count), count)
    total = sum(1 / place for place in range(1, count + 1))
    return {table: 1 / place / total for place, table in enumerate(order, 1)}


class Session:
    """The warm Spark session of the writers and readers, which do one thing after the other."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        gateway: Any = SparkContext._gateway
        self._jvm: int = gateway.proc.pid

    def make(self, base: Path, number: int) -> None:
        """Writes the table of this number, with base files only."""
        shape = shape_of(number)
        options = fleet.options(base, shape) | {"hoodie.datasource.write.operation": "bulk_insert"}
        rows = trips.rows(self.spark, shape.trips)
        rows.write.format("hudi").options(**options).mode("overwrite").save(str(base))

    def write(self, event: Event, base: Path, options: dict[str, str]) -> Took:
        """Upserts a batch; a batch that conflicts is written again."""
        batch = self._batch(event)
        conflicts = 0
        began = time.monotonic()
        with measured(self._jvm) as cost:
            while True:
                try:
                    tables.upsert(batch, base, options)
                    break
                except Exception as error:
                    conflicts += 1
                    if _CONFLICT not in str(error) or conflicts > _MOST_REPEATS:
                        raise
        return Took(event, time.monotonic() - began, cost.cpu_seconds, conflicts)

    def query(self, event: Event, base: Path) -> Took:
        ask = QUERIES[event.number % len(QUERIES)]
        began = time.monotonic()
        with measured(self._jvm) as cost:
            ask(self.spark.read.format("hudi").load(str(base))).collect()
        return Took(event, time.monotonic() - began, cost.cpu_seconds)

    def _batch(self, event: Event) -> DataFrame:
        """Returns new versions of some rows, the same ones for the same event."""
        shape = shape_of(event.table)
        rows = trips.rows(self.spark, shape.trips, drawn_from=(event.number + 1) * shape.rows)
        chosen = rows.where(f"pmod(xxhash64(id, {event.number}), 100) < {CHANGED_PERCENT}")
        return chosen.withColumn("ts", F.col("ts") + event.number + 1)


def shape_of(number: int) -> Small:
    return SHAPES[number % len(SHAPES)]


# All variants get the same queries: a scan of all rows, a look-up of one row, and a sum over a partition.
QUERIES: tuple[Callable[[DataFrame], DataFrame], ...] = (
    lambda rows: rows.groupBy("city").agg(F.count("*"), F.sum("fare")),
    lambda rows: rows.where(F.col("id") == "trip-0000000042"),
    lambda rows: rows.where(F.col("dt") == "2026-01-01").agg(F.max("ts"), F.avg("distance")),
)
