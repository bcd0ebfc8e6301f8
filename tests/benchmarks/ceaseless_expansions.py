"""Runs a hundred expansions, one after the other, beside a writer that never pauses, and checks every row at the end.

    python tests/benchmarks/ceaseless_expansions.py [--expansions 100] [--minutes 60] [--type MERGE_ON_READ] [--json]

The writer (OCC, its own Spark session, its first number of buckets) repeats batches that conflict. Each expansion
doubles the buckets of one partition; they take turns in waiting for writes, fencing them, and aborting. The exit code
is 1 unless the table equals the writer's acknowledged batches, row for row, and an audit finds it clean.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.contract import BucketIndex
from jobs.errors import WritersActiveError
from jobs.hudi.session import start_session
from jobs.job_params import OnActiveWriters
from tests.integration import ceaseless_writer, tables
from tests.integration.run import hudi_table, run_job

INDEX = BucketIndex(2, ("id",))
MOST_BUCKETS = 32
# Every second batch begins a partition; with fewer the expansions would have to wait for the writer.
NEW_ROWS = 150


def run(expansions: int, minutes: float, table_type: str) -> dict[str, Any]:
    spark = start_session(master="local[2,4]", app_name="expansions", conf={"spark.sql.shuffle.partitions": "2"})
    started = time.monotonic()
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = folder / "trips"
        options = tables.writer_options(base, table_type=table_type, num_buckets=2)
        options["hoodie.write.num.retries.on.conflict.failures"] = "5"
        with ceaseless_writer.running(folder, base, options, new_rows=NEW_ROWS) as ledger:
            policies = cycle(OnActiveWriters)
            while (done := outcomes.total()) < expansions and time.monotonic() - started < minutes * 60:
                table = hudi_table(spark, base, INDEX)
                rules = table.bucket_rules()
                assert rules is not None
                partition = min(table.partitions(), key=rules.buckets_of)
                if rules.buckets_of(partition) >= MOST_BUCKETS:
                    time.sleep(1)  # until the writer has begun another partition
                    continue
                policy = next(policies)
                params = {
                    "factor": 2,
                    "partitions": [partition],
                    "settle_seconds": 2,
                    "on_active_writers": policy.value,
                }
                try:
                    result = run_job(spark, base, "bucket_expansion", params, index=INDEX, writers_retry_conflicts=True)
                    outcomes[f"{policy.value}: expanded"] += 1
                    fenced = result.details["fenced"]
                except WritersActiveError:
                    outcomes[f"{policy.value}: gave up"] += 1
                    fenced = []
                print(f"{done + 1} {partition} {policy.value} fenced {len(fenced)}", file=sys.stderr, flush=True)
        lines = ceaseless_writer.read(ledger)
        found, expected = ceaseless_writer.found(spark, base), ceaseless_writer.expected(lines)
        audit = run_job(spark, base, "audit", index=INDEX).details
    return {
        "ok": found == expected and bool(audit["clean"]),
        "outcomes": {key: count for key, count in sorted(outcomes.items()) if count},
        "batches": sum(line.error is None for line in lines),
        "failed_batches": Counter(_cause(line.error) for line in lines if line.error is not None),
        "rows": len(found),
        "lost_or_old": sum(found.get(key) != number for key, number in expected.items()),
        "misplaced": audit["misplaced"],
        "duplicates": audit["duplicates"],
        "seconds": round(time.monotonic() - started, 1),
    }


def _cause(error: str) -> str:
    """Returns Java's message, without the number of the object that py4j called."""
    said = [line for line in error.splitlines() if line.startswith(": ")]
    return (said or error.splitlines())[0].removeprefix(": ")[:200]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expansions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60, help="no further one is begun after that")
    parser.add_argument("--type", choices=["MERGE_ON_READ", "COPY_ON_WRITE"], default="MERGE_ON_READ")
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON, the last one")
    given = parser.parse_args()
    outcome = run(given.expansions, given.minutes, given.type)
    print(json.dumps(outcome, indent=None if given.json else 2))
    sys.exit(0 if outcome["ok"] else 1)
