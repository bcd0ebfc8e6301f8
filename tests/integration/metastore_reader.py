"""Reads tables by Spark SQL through a Hive metastore, in a session without their paths. A test starts this program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_READ_SECONDS = 240


def read(uris: str, names: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Returns the rows of each table in the form of `independent.rows_of`."""
    found = folder / "read.json"
    command = [sys.executable, "-m", "tests.integration.metastore_reader", uris, str(found), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_READ_SECONDS, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-4000:]
    rows: dict[str, list[str]] = json.loads(found.read_text())
    return rows


def main(uris: str, found: str, *names: str) -> None:
    from jobs.hudi.session import start_session
    from tests.integration.independent import rows_of

    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uris,
        "spark.sql.warehouse.dir": f"{found}.warehouse",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = start_session(driver_memory="1g", conf=conf)
    Path(found).write_text(json.dumps({name: rows_of(spark.table(name)) for name in names}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
