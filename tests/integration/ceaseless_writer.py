"""A writer in its own process that upserts one batch after the other without pause, with its first number of buckets.

Each batch changes and adds rows, and some batches begin a partition. The ledger has a line for each batch that Hudi
acknowledged; a failed batch is written again, as a user's orchestration does.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

ROWS_OF_A_PARTITION = 300
FIRST_ROWS, NEW_ROWS, CHANGED_ROWS = 600, 60, 100
START_SECONDS = 240
_OPTIONS = "options.json"


@dataclass(frozen=True)
class Line:
    """One batch in the ledger. `ids` were written, and after the batch all ids less than `below` exist. `error` is
    Hudi's error if the batch failed."""

    number: int
    ids: tuple[int, ...]
    below: int
    error: str | None = None


def batch(number: int, below: int, first_id: int, new_rows: int) -> Line:
    """Returns the ids of a batch, a function of its number and of the number of existing ids."""
    if number == 0:
        return Line(0, tuple(range(first_id, first_id + FIRST_ROWS)), first_id + FIRST_ROWS)
    changed = random.Random(number).sample(range(first_id, below), CHANGED_ROWS)
    return Line(number, (*sorted(changed), *range(below, below + new_rows)), below + new_rows)


def read(ledger: Path) -> list[Line]:
    return [Line(**json.loads(line)) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def ledger_of(folder: Path) -> Path:
    return folder / "ledger.jsonl"


def change_options(folder: Path, options: Mapping[str, str]) -> None:
    """Gives the writer in this folder these options from its next batch on."""
    unfinished = folder / f"{_OPTIONS}.new"
    unfinished.write_text(json.dumps(dict(options)))
    unfinished.replace(folder / _OPTIONS)


def expected(lines: list[Line]) -> dict[int, int]:
    """Returns the number of the last batch that wrote an id, by id."""
    return {item: line.number for line in lines if line.error is None for item in line.ids}


def found(spark: SparkSession, base: Path) -> dict[int, int]:
    """Returns the same by the table's rows. Raises AssertionError for a duplicate row or a mixture of two versions."""
    rows = spark.read.format("hudi").load(str(base)).select("id", "ts", "fare", "dt", "payload").collect()
    ids = [int(row.id[1:]) for row in rows]
    assert len(set(ids)) == len(ids), "duplicates"
    for number, row in zip(ids, rows, strict=True):
        assert (row.fare, row.dt) == (number * 2.5 + row.ts, partition(number))
        assert row.payload == payload(number, row.ts, len(row.payload))
    return {number: row.ts for number, row in zip(ids, rows, strict=True)}


def partition(number: int) -> str:
    return f"p{number // ROWS_OF_A_PARTITION}"


def payload(number: int, batch: int, size: int) -> str:
    """Returns this number of characters that hardly compress, a function of the id and of the batch that wrote it."""
    return random.Random(number * 100_003 + batch).randbytes(size // 2).hex()


def write(
    base: Path,
    ledger: Path,
    stop: Path,
    options: Path,
    conf: dict[str, str],
    payload_bytes: int,
    first_id: int,
    new_rows: int,
) -> None:
    from jobs.hudi.session import start_session

    spark = start_session(master="local[1,4]", app_name="a ceaseless writer", driver_memory="1g", conf=conf)
    below = first_id
    number = 0
    while not stop.exists():
        line = batch(number, below, first_id, new_rows)
        rows = [
            (f"k{item}", number, partition(item), item * 2.5 + number, payload(item, number, payload_bytes))
            for item in line.ids
        ]
        frame = spark.createDataFrame(rows, "id string, ts long, dt string, fare double, payload string").coalesce(1)
        try:
            frame.write.format("hudi").options(**json.loads(options.read_text())).mode("append").save(str(base))
        except Exception as error:
            line = Line(number, line.ids, below, f"{type(error).__name__}: {error}"[:2000])
        else:
            number, below = number + 1, line.below
        with ledger.open("a") as file:
            file.write(json.dumps(asdict(line)) + "\n")
    spark.stop()


@contextmanager
def running(
    folder: Path,
    base: Path,
    options: dict[str, str],
    payload_bytes: int = 20,
    first_id: int = 0,
    new_rows: int = NEW_ROWS,
    *,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Path]:
    """Runs the writer, and yields its ledger after the first acknowledged batch. On exit the writer finishes its last
    batch.

    Writers whose `first_id` are far apart have no partition in common. `conf` are options of its Spark session.
    """
    folder.mkdir(exist_ok=True)
    change_options(folder, options)
    ledger, stop, log = ledger_of(folder), folder / "stop", folder / "writer.log"
    command = [sys.executable, "-m", "tests.integration.ceaseless_writer", str(base), str(ledger), str(stop)]
    with log.open("wb") as output:
        root = Path(__file__).parents[2]
        command += [str(folder / _OPTIONS), json.dumps(dict(conf or {}))]
        command += [str(payload_bytes), str(first_id), str(new_rows)]
        process = subprocess.Popen(command, cwd=root, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not read(ledger):
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(0.2)
        yield ledger
        stop.touch()
        assert process.wait(timeout=START_SECONDS) == 0, log.read_text()[-4000:]
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("base", "ledger", "stop", "options"):
        parser.add_argument(name, type=Path)
    parser.add_argument("conf", type=json.loads)
    parser.add_argument("payload_bytes", type=int)
    parser.add_argument("first_id", type=int)
    parser.add_argument("new_rows", type=int)
    write(**vars(parser.parse_args()))
