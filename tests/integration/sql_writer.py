"""A user of Spark SQL in its own process: one session executes all statements, with the options that the service
prints, and a ledger holds the expected rows after each statement.

`INSERT`, `MERGE`, `UPDATE`, `DELETE`, `INSERT OVERWRITE` of a partition and new partitions, in random order. A
statement that fails is run again, as a user would, after a `REFRESH TABLE` if `--refresh` says so.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

TABLE = "sales"
PARTITIONS = ("eu", "us", "jp")
FIRST_ROWS, NEW_ROWS = 4000, 600
TRIES = 20
START_SECONDS = 240
PAD = "repeat(sha2(cast(id as string), 512), 8)"

Row = tuple[int, int, str]
"""`qty`, `ver`, `region`."""


@dataclass
class Ledger:
    """The expected rows by id, the number of statements of each kind, and the failures."""

    rows: dict[int, Row] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    next_id: int = 0
    ver: int = 0

    def save(self, path: Path) -> None:
        data = {"rows": self.rows, "done": self.done, "failed": self.failed}
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(data))
        unfinished.replace(path)

    @classmethod
    def load(cls, path: Path) -> Ledger:
        data = json.loads(path.read_text())
        rows = {int(key): (row[0], row[1], row[2]) for key, row in data["rows"].items()}
        return cls(rows, Counter(data["done"]), Counter(data["failed"]))


@dataclass(frozen=True)
class Statement:
    """`change` applies the statement to the ledger's rows after its success."""

    kind: str
    sql: str
    change: Callable[[dict[int, Row]], dict[int, Row]]


def create(spark: SparkSession, base: Path, table_type: str, version: int, index: str) -> None:
    """Creates the table. `index` is `bucket`, `none` (Hudi's own default) or another type of Hudi's indexes."""
    buckets = {"hoodie.bucket.index.num.buckets": "2", "hoodie.bucket.index.hash.field": "id"}
    properties = {
        "type": "mor" if table_type == "MERGE_ON_READ" else "cow",
        "primaryKey": "id",
        "preCombineField": "ver",
        **({} if index == "none" else {"hoodie.index.type": index.upper()}),
        **(buckets if index == "bucket" else {}),
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
        # Hudi's default gives every small file a Bloom filter of 430 KB, and an expansion hardly makes buckets smaller.
        "hoodie.parquet.bloom.filter.enabled": "false",
    }
    if version < 8:
        properties["hoodie.metadata.enable"] = "false"
    told = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    spark.sql(
        f"CREATE TABLE {TABLE} (id BIGINT, qty INT, pad STRING, ver BIGINT, region STRING) USING hudi"
        f" PARTITIONED BY (region) LOCATION '{base}' TBLPROPERTIES ({told})"
    )


def next_statement(spark: SparkSession, rng: random.Random, ledger: Ledger) -> Statement:
    ledger.ver += 1
    ver, alive = ledger.ver, ledger.rows
    kinds = ("insert", "insert", "merge", "merge", "update", "update", "delete", "overwrite", "new partition")
    match rng.choice(kinds):
        case "insert":
            return _insert("insert", ledger, rng.choice(PARTITIONS), NEW_ROWS)
        case "new partition":
            return _insert("new partition", ledger, f"p{ver}", 200)
        case "merge":
            factor, rest = rng.randint(3, 9), rng.randint(0, 2)
            chosen = {number: row for number, row in alive.items() if number % factor == rest}
            source = [(number, -5, f"m{ver}", ver, row[2]) for number, row in chosen.items()]
            frame = spark.createDataFrame(source, "id long, qty int, pad string, ver long, region string")
            frame.createOrReplaceTempView("src")
            sql = (
                f"MERGE INTO {TABLE} t USING src s ON t.id = s.id AND t.region = s.region WHEN MATCHED THEN UPDATE SET"
                " id = s.id, qty = s.qty, pad = s.pad, ver = s.ver, region = s.region WHEN NOT MATCHED THEN INSERT *"
            )
            merged = {number: (-5, ver, row[2]) for number, row in chosen.items()}
            return Statement("merge", sql, lambda rows: rows | merged)
        case "update":
            factor = rng.randint(5, 13)
            sql = f"UPDATE {TABLE} SET qty = {ver}, ver = {ver}L WHERE id % {factor} = 1"
            return Statement(
                "update",
                sql,
                lambda rows: {
                    number: (ver, ver, row[2]) if number % factor == 1 else row for number, row in rows.items()
                },
            )
        case "delete":
            factor = rng.randint(17, 41)
            sql = f"DELETE FROM {TABLE} WHERE id % {factor} = 3"
            return Statement(
                "delete", sql, lambda rows: {number: row for number, row in rows.items() if number % factor != 3}
            )
        case _:
            return _overwrite(ledger, PARTITIONS[2])


def _insert(kind: str, ledger: Ledger, region: str, count: int) -> Statement:
    ids, ver = range(ledger.next_id, ledger.next_id + count), ledger.ver
    ledger.next_id = ids.stop
    sql = (
        f"INSERT INTO {TABLE} SELECT id, cast(id % 97 as int), {PAD}, {ver}L, '{region}'"
        f" FROM range({ids.start}, {ids.stop})"
    )
    return Statement(kind, sql, lambda rows: rows | {number: (number % 97, ver, region) for number in ids})


def _overwrite(ledger: Ledger, region: str) -> Statement:
    ids, ver = range(ledger.next_id, ledger.next_id + NEW_ROWS), ledger.ver
    ledger.next_id = ids.stop
    sql = (
        f"INSERT OVERWRITE {TABLE} PARTITION (region = '{region}') SELECT id, cast(id % 97 as int), {PAD}, {ver}L"
        f" FROM range({ids.start}, {ids.stop})"
    )
    return Statement(
        "overwrite",
        sql,
        lambda rows: (
            {number: row for number, row in rows.items() if row[2] != region}
            | {number: (number % 97, ver, region) for number in ids}
        ),
    )


def run(
    base: Path,
    path: Path,
    stop: Path,
    options: Path,
    table_type: str,
    *,
    version: int,
    seed: int,
    index: str,
    conf: Mapping[str, str],
    refresh: bool,
) -> None:
    from jobs.hudi.session import start_session

    spark = start_session(
        master="local[1,4]",
        app_name="a Spark SQL user",
        driver_memory="1g",
        conf={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.filesourceTableRelationCacheSize": "0" if refresh else "1000",
            **conf,
        },
    )
    rng, ledger = random.Random(seed), Ledger()
    create(spark, base, table_type, version, index)
    first = _insert("insert", ledger, PARTITIONS[0], FIRST_ROWS)
    spark.sql(first.sql)
    ledger.rows = first.change(ledger.rows)
    ledger.save(path)
    while not options.exists():  # the service has to see the table before it can say how to write it
        time.sleep(0.2)
    chosen: dict[str, str] = {}
    while not stop.exists():
        before, chosen = chosen, json.loads(options.read_text())
        for key, value in chosen.items() - before.items():
            spark.sql(f"SET {key}={value}")
        statement = next_statement(spark, rng, ledger)
        for attempt in range(TRIES):
            try:
                spark.sql(statement.sql).collect()
                break
            except Exception as error:
                ledger.failed[f"{statement.kind}: {_reason(error)}"] += 1
                ledger.save(path)
                if attempt == TRIES - 1:
                    raise
                time.sleep(1)
                if refresh:
                    spark.sql(f"REFRESH TABLE {TABLE}")
        ledger.rows = statement.change(ledger.rows)
        ledger.done[statement.kind] += 1
        ledger.save(path)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if "Exception" in line or "Caused by" in line]
    return (lines or [str(error)])[-1][:160]


@contextmanager
def running(
    folder: Path,
    base: Path,
    *,
    table_type: str,
    version: int = 9,
    seed: int = 1,
    refresh: bool = True,
    index: str = "bucket",
    conf: Mapping[str, str] | None = None,
) -> Iterator[Writing]:
    """Runs the user until the end of the block, and fails if the process fails. The block begins when the table exists.

    `conf` are options of its Spark session.
    """
    folder.mkdir()
    files = [folder / name for name in ("ledger.json", "stop", "options.json")]
    command = [sys.executable, "-m", "tests.integration.sql_writer", str(base), *map(str, files)]
    command += [table_type, str(version), str(seed), index, json.dumps(dict(conf or {}))]
    command += ["--refresh"] if refresh else []
    log = (folder / "log").open("wb")
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=log, stderr=log)
    writing = Writing(files[0], files[2])
    try:
        deadline = time.monotonic() + START_SECONDS
        while not files[0].exists():
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the user never began"
            time.sleep(0.2)
        yield writing
    finally:
        files[1].touch()
        files[2].exists() or files[2].write_text("{}")
        process.wait(START_SECONDS)
        log.close()
    assert process.returncode == 0, (folder / "log").read_text()[-5000:]


@dataclass(frozen=True)
class Writing:
    """A running user, who begins with the statements when the options are known, and sets those that change later."""

    path: Path
    options: Path

    def give(self, options: Mapping[str, str]) -> None:
        unfinished = self.options.with_suffix(".new")
        unfinished.write_text(json.dumps(dict(options)))
        unfinished.replace(self.options)

    def ledger(self) -> Ledger:
        return Ledger.load(self.path)


def found(spark: SparkSession, base: Path) -> tuple[dict[int, Row], int]:
    """Returns the rows of the table, and the number of duplicate rows."""
    frame = spark.read.format("hudi").option("hoodie.bucket.index.query.pruning", "false").load(str(base))
    rows: list[Any] = frame.select("id", "qty", "ver", "region").collect()
    held = {row.id: (row.qty, row.ver, row.region) for row in rows}
    return held, len(rows) - len(held)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("base", "ledger", "stop", "options"):
        parser.add_argument(name, type=Path)
    parser.add_argument("table_type")
    parser.add_argument("version", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("index")
    parser.add_argument("conf", type=json.loads)
    parser.add_argument("--refresh", action="store_true")
    given = vars(parser.parse_args())
    run(given.pop("base"), given.pop("ledger"), **given)
