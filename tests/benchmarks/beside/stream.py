"""A structured stream in its own process, which restarts from its checkpoint after each failure.

    python -m tests.benchmarks.beside.stream BASE FOLDER CONF

FOLDER has its source, its checkpoint and `options.json`, which are read at each start. A file `restart` requests a
restart, a file `stop` the end. Each line of the file `deaths` is the reason of a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.contract import BucketIndex
from tests.benchmarks.beside import rows
from tests.benchmarks.beside.clock import Clock
from tests.benchmarks.beside.writer import printed_options
from tests.integration import streaming_sink, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon
    from tests.benchmarks.beside.writer import Json

_VERSION = rows.OURS
_START_SECONDS = 240.0
_END_SECONDS = 600.0
_LAST_BREATH_SECONDS = 3.0


class Stream:
    """Hudi's streaming sink."""

    sort_by = "fare"
    pause_seconds = 60

    def __init__(self, table_type: str, version: int, *, index: str = "bucket", clock: Clock | None = None) -> None:
        self.index = BucketIndex(2, ("id",)) if index == "bucket" else None
        self.declared: Json = {"hudi_version": _VERSION, "retry_conflicts": True, "engines": ["spark"]}
        self.settings: dict[str, str] = {}
        self._clock = clock or Clock()
        self._shape = {"table_type": table_type, "version": version}
        self._type = {} if index in ("bucket", "none") else {"hoodie.index.type": index.upper()}
        self._options: dict[str, str] = {}
        self._folder = Path()

    @contextmanager
    def running(self, folder: Path, base: Path) -> Iterator[None]:
        self._folder = folder / "stream"
        self._folder.mkdir()
        buckets = self.index.num_buckets if self.index else None
        self._options = tables.writer_options(base, num_buckets=buckets, **self._shape)  # type: ignore[arg-type]
        self._options |= self._type
        self._set(self._options)
        conf = rows.conf_of(_VERSION, self._clock)
        command = [sys.executable, "-m", "tests.benchmarks.beside.stream", str(base), str(self._folder)]
        log = self._folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, json.dumps(conf)],
                cwd=Path(__file__).parents[3],
                stdout=output,
                stderr=output,
            )
        try:
            deadline = time.monotonic() + _START_SECONDS
            while streaming_sink.committed(self._folder) < 2:
                assert process.poll() is None, log.read_text()[-4000:]
                assert time.monotonic() < deadline, log.read_text()[-4000:]
                time.sleep(0.2)
            yield
            (self._folder / "stop").touch()
            assert process.wait(_END_SECONDS) == 0, log.read_text()[-4000:]
        finally:
            process.kill()
            process.wait()

    def registered(self, daemon: Daemon, table: str) -> None:
        self.changed({**printed_options(daemon, table, "spark"), **self._type})

    def changed(self, options: Mapping[str, str]) -> None:
        self._options |= options
        self._set(self._options)
        (self._folder / "restart").touch()

    def _set(self, options: dict[str, str]) -> None:
        unfinished = self._folder / "options.new"
        unfinished.write_text(json.dumps(options))
        unfinished.replace(self._folder / "options.json")

    def compared(self, spark: SparkSession, base: Path) -> Json:
        last = streaming_sink.committed(self._folder) * streaming_sink.PER_FILE
        first = max(0, last - streaming_sink.KEYS)
        expected = {f"k{number % streaming_sink.KEYS}": (number, number * 2.5) for number in range(first, last)}
        found = rows.compared(base, ["id", "ts", "fare"], expected, own=(_VERSION, self._clock))
        deaths = self._folder / "deaths"
        told = deaths.read_text().splitlines() if deaths.exists() else []
        return {
            **found,
            "batches": last // streaming_sink.PER_FILE,
            "deaths": len(told),
            "causes": sorted(set(told))[:5],
        }


def _main(base: str, folder: Path, conf: str) -> None:
    from jobs.hudi.session import start_session

    spark = start_session(master="local[2,4]", app_name="a stream", driver_memory="1g", conf=json.loads(conf))
    stop, restart = folder / "stop", folder / "restart"
    while not stop.exists():
        restart.unlink(missing_ok=True)
        options = json.loads((folder / "options.json").read_text())
        try:
            with streaming_sink.running(spark, folder, base, options, batches=1) as query:
                while query.isActive and not stop.exists() and not restart.exists():
                    time.sleep(0.2)
                if query.isActive:
                    continue
                raise RuntimeError(query.exception())
        except Exception as error:  # An operator restarts a failed stream.
            with (folder / "deaths").open("a") as deaths:
                deaths.write(" ".join(str(error).split())[:300] + "\n")
            if stop.exists() and len((folder / "deaths").read_text().splitlines()) > 100:
                raise
            gateway: Any = spark.sparkContext._gateway
            with suppress(subprocess.TimeoutExpired):
                gateway.proc.wait(_LAST_BREATH_SECONDS)
                # Hudi ends the process after a batch that failed three times (`HoodieStreamingSink`, 1.2.0).
                # A cluster manager starts the program again.
                os.execv(sys.executable, [sys.executable, "-m", "tests.benchmarks.beside.stream", *sys.argv[1:]])
    spark.stop()


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
