"""Measures the time from a request for a compaction until Hudi works: a warm worker compared with a fresh
`spark-submit` of Hudi's own compaction.

    python tests/benchmarks/start.py [--runs 5] [--jobs 100] [--json]

Both compact copies of one small table, in turn. `at_work` is when the inflight instant of the compaction lies on the
timeline, `done` when all of it has ended. Hudi's side is the procedure `run_compaction` in a script of three lines,
since its utilities bundle is not published for every version; jars are in the local cache already.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.java import CACHE
from jobs.hudi.session import HUDI_BUNDLE, start_session
from tests.acceptance.daemon import Daemon
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
call = "call run_compaction(op => 'scheduleAndExecute', path => '{base}', options => '{options}')"
spark.sql(call).collect()
"""
# Hudi's client would by default build statistics of columns, which the tables do not have.
NO_NEW_INDEX = "hoodie.metadata.index.column.stats.enable=false"
OPTIONS = f"hoodie.compact.inline.max.delta.commits=1,{NO_NEW_INDEX}"
CONF = {
    "spark.jars.ivy": str(CACHE / "ivy"),
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.ui.enabled": "false",
}


def run(runs: int, jobs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = start_session(master="local[2,4]", app_name="start", conf={"spark.sql.shuffle.partitions": "2"})
        tables.write_table(spark, folder / "model", count=2000, updates=3)
        spark.stop()
        script = folder / "compact.py"
        seconds: dict[str, list[dict[str, float]]] = {"groundskeeper": [], "spark_submit": []}
        with Daemon(folder / "service", driver_memory="1g") as daemon:
            first = daemon.register(_copy(folder, "first"))
            daemon.wait_for_worker()
            daemon.succeed(first, "compaction")
            waits = [_wait(daemon, first) for _ in range(jobs)]
            for number in range(runs):
                own, other = _copy(folder, f"own_{number}"), _copy(folder, f"other_{number}")
                table = daemon.register(own)
                seconds["groundskeeper"].append(_timed(own, lambda table=table: daemon.succeed(table, "compaction")))
                script.write_text(SCRIPT.format(base=other, options=OPTIONS))
                seconds["spark_submit"].append(_timed(other, lambda: submit(script)))
    medians = {
        side: {what: round(statistics.median(each[what] for each in every), 3) for what in ("at_work", "done")}
        for side, every in seconds.items()
    }
    ours, theirs = medians["groundskeeper"], medians["spark_submit"]
    return {
        "post_to_running": {
            "jobs": jobs,
            "p50": round(statistics.median(waits), 4),
            "p99": round(statistics.quantiles(waits, n=100)[98], 4),
        },
        **medians,
        "sooner_at_work": round(theirs["at_work"] / ours["at_work"], 1),
        "sooner_done": round(theirs["done"] / ours["done"], 1),
    }


def _copy(folder: Path, name: str) -> Path:
    return Path(shutil.copytree(folder / "model", folder / name))


def _wait(daemon: Daemon, table: str) -> float:
    job = daemon.wait(daemon.submit(table, "cleaning", dry_run=True))
    asked, started = (datetime.fromisoformat(job[key]) for key in ("created_at", "started_at"))
    return (started - asked).total_seconds()


def _timed(base: Path, compact: Callable[[], object]) -> dict[str, float]:
    """Reads the files' modification times afterwards, so that no watching disturbs the measurement."""
    began = time.time()
    compact()
    done = time.time() - began
    [inflight] = (base / ".hoodie" / "timeline").glob("*.compaction.inflight")
    return {"at_work": inflight.stat().st_mtime - began, "done": done}


def submit(script: Path) -> None:
    options = [part for key, value in CONF.items() for part in ("--conf", f"{key}={value}")]
    program = Path(sys.executable).with_name("spark-submit")
    subprocess.run(
        [
            str(program),
            "--master",
            "local[2]",
            "--driver-memory",
            "1g",
            "--packages",
            HUDI_BUNDLE,
            *options,
            str(script),
        ],
        check=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON")
    given = parser.parse_args()
    print(json.dumps(run(given.runs, given.jobs), indent=None if given.json else 2))
