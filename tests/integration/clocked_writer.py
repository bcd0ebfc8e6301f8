"""A writer whose JVM has a time zone, and so a clock, of its own: it writes batches that it is told, one after another.

`python clocked_writer.py BASE ZONE` reads from its input, one a line, JSON of `first`, `last`, `ts` and `options`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path


class ClockedWriter:
    """A process with a Spark session. `zone` is one of Java's, such as `Asia/Kolkata` or `GMT-00:10`."""

    def __init__(self, base: Path, zone: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(base), zone], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def upsert(self, first: int, last: int, ts: int, options: dict[str, str]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([first, last, ts, options]), file=self._process.stdin, flush=True)
        # Spark prints there too.
        answer = next(line for line in self._process.stdout if line.startswith("batch "))
        assert answer == "batch written\n", answer


def main(base: str, zone: str) -> None:
    from jobs.hudi.session import start_session
    from tests.integration import tables

    conf = {"spark.driver.extraJavaOptions": f"-Duser.timezone={zone}"}
    spark = start_session(master="local[1,4]", app_name="writer", driver_memory="900m", conf=conf)
    for line in sys.stdin:
        first, last, ts, options = json.loads(line)
        try:
            tables.upsert(tables.rows(spark, first, last, ts=ts), base, options)
            print("batch written", flush=True)
        except Exception as error:
            print("batch failed:", str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
