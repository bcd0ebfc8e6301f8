"""Measures the commits of a writer that compacts inline, that leaves compaction to another process, and that delegates
it to this service: `python tests/benchmarks/delegated.py [--commits 60]`

Each writes the same batches to its own copy of one merge-on-read table, with a compaction every five commits. Async:
the service compacts by its policy, and no writer plans anything.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.hudi.session import start_session
from tests.acceptance.daemon import Daemon
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

EVERY = 5
MODES = ("inline", "async", "delegated")
_INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": str(EVERY)}


def options_of(mode: str, daemon: Daemon, table_id: str) -> dict[str, str]:
    if mode != "delegated":
        return dict(_INLINE) if mode == "inline" else {}
    shown = daemon.call("GET", f"/v1/tables/{table_id}/writer-options?services=delegated").json()["options"]
    return {**{name: value for name, value in shown.items() if "table.service.manager" in name}, **_INLINE}


def measured(
    spark: SparkSession, daemon: Daemon, base: Path, options: Mapping[str, str], *, mode: str, commits: int, rows: int
) -> dict[str, float]:
    table_id = daemon.register(base)
    policy = {
        "cleaning": {"enabled": False},
        "compaction": {"enabled": mode == "async", "commits": EVERY, "min_interval_seconds": 0},
    }
    assert daemon.call("PUT", f"/v1/tables/{table_id}/policy", policy).status_code < 300
    writer = {**options, **options_of(mode, daemon, table_id), "hoodie.metadata.compact.max.delta.commits": "1000"}
    writer |= {
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": f"{daemon.url}/v1/callbacks/hudi",
    }
    seconds = []
    for number in range(1, commits + 1):
        batch = tables.rows(spark, 0, rows // 4, ts=number)
        began = time.perf_counter()
        tables.upsert(batch, base, writer)
        seconds.append(time.perf_counter() - began)
    done = len(list((base / ".hoodie" / "timeline").glob("*_*.commit")))
    by_percent = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50": round(by_percent[49], 2), "p99": round(by_percent[98], 2), "compactions": done}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--rows", type=int, default=200_000)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="delegated-"))
    spark = start_session(
        driver_memory="2g", packages=[], conf={"spark.sql.shuffle.partitions": "2"}, storage_options={}
    )
    tables.let_delegate(spark)
    try:
        options = tables.write_table(spark, folder / "first", count=given.rows, partitioned=False, copied=False)
        # Warm, so that no mode pays for the start of the session.
        for number in range(3):
            tables.upsert(tables.rows(spark, 0, given.rows // 4, ts=-number - 1), folder / "first", options)
        with Daemon(folder / "service", automatic="true") as daemon:
            daemon.wait_for_worker()
            for mode in MODES:
                base = folder / mode
                shutil.copytree(folder / "first", base)
                found = measured(spark, daemon, base, options, mode=mode, commits=given.commits, rows=given.rows)
                print(json.dumps({"mode": mode, **found}), flush=True)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
