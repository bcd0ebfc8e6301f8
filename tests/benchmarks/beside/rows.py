"""Reads a table by its metadata table, by listing, and with another version of Hudi in a process of its own.

    python -m tests.benchmarks.beside.rows BASE COLUMNS OUT CONF

Writes the rows to OUT as JSON, by the metadata table and by listing; the session gets CONF, which names the bundle.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from tests.benchmarks.beside.clock import Clock

Json = dict[str, Any]
Version = tuple[Any, ...]
Rows = list[tuple[Any, Version]]
"""The key and the other columns of each row."""

OURS = "1.2.0"
_BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
_NO_PRUNING = {"hoodie.bucket.index.query.pruning": "false", "hoodie.enable.data.skipping": "false"}


def conf_of(hudi_version: str, clock: Clock) -> dict[str, str]:
    """The options of a Spark session with this version of Hudi and this clock."""
    return {"spark.jars.packages": f"{_BUNDLE}:{hudi_version}", "spark.sql.shuffle.partitions": "2", **clock.spark_conf}


def counts(found: Rows, expected: Mapping[Any, Version]) -> Json:
    """Counts the rows that differ: `old` rows do not have the key's last version, `extra` rows have an unexpected
    key."""
    keys = [key for key, _ in found]
    return {
        "rows": len(found),
        "lost": len(expected.keys() - set(keys)),
        "old": len({key for key, version in found if key in expected and expected[key] != version}),
        "extra": len(set(keys) - expected.keys()),
        "duplicate": len(keys) - len(set(keys)),
    }


def has_expected_rows(found: Json) -> bool:
    return not any(number for name, number in found.items() if name != "rows")


def read(spark: SparkSession, base: Path, columns: Sequence[str], *, metadata: bool = True) -> Rows:
    """Reads the rows; the first column is the key."""
    reader = spark.read.format("hudi").options(**_NO_PRUNING).option("hoodie.metadata.enable", str(metadata).lower())
    return [(row[0], tuple(row[1:])) for row in reader.load(str(base)).select(*columns).collect()]


def compared(
    base: Path,
    columns: Sequence[str],
    expected: Mapping[Any, Version],
    *,
    own: tuple[str, Clock],
) -> Json:
    """Returns the counts of each way to read; `own` is the writer's own version of Hudi with its clock.

    Before table version 8 Hudi 1.2 takes the times of the timeline's files for completion times, in the zone of its own
    JVM. If that zone is behind the writer's, Hudi puts logs into an older file slice, so we read in the writer's zone.
    """
    version, clock = own
    found = {f"by_{way}": counts(each, expected) for way, each in _read_by(OURS, clock, base, columns).items()}
    if version != OURS:
        found[f"by_{version}"] = counts(_read_by(version, clock, base, columns)["metadata"], expected)
    return {"ok": all(has_expected_rows(each) for each in found.values()), **found}


def _read_by(hudi_version: str, clock: Clock, base: Path, columns: Sequence[str]) -> dict[str, Rows]:
    out = base.with_name(f"{base.name}_by_{hudi_version}.json")
    command = [sys.executable, "-m", "tests.benchmarks.beside.rows", str(base), ",".join(columns), str(out)]
    command.append(json.dumps(conf_of(hudi_version, clock)))
    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[Any]] = json.loads(out.read_text())
    return {way: [(row[0], tuple(row[1:])) for row in each] for way, each in found.items()}


def _main(base: str, columns: str, out: str, conf: str) -> None:
    from jobs.hudi.session import start_session

    spark = start_session(master="local[2,4]", app_name="reading", driver_memory="1g", conf=json.loads(conf))
    found = {}
    for way, metadata in (("metadata", True), ("listing", False)):
        read_rows = read(spark, Path(base), columns.split(","), metadata=metadata)
        found[way] = [[key, *version] for key, version in read_rows]
    Path(out).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    _main(*sys.argv[1:])
