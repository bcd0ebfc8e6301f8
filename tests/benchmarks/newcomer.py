"""Measures how long each command of a newcomer takes, from an empty home to a registered, healthy table.

    python tests/benchmarks/newcomer.py [--json]

The home has no cache of pip, Ivy or Hudi's bundle. The table is a merge-on-read table with a bucket index and eleven
commits that nobody compacted; it is written before the measurement starts. The table counts as healthy when the
policy's compaction and cleaning have ended, and `groundskeeper problems` finds nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from tests.integration import tables
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).resolve().parents[2]
_MOST_SECONDS = 600


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        spark = start_session(master="local[2]", app_name="newcomer", conf={"spark.sql.shuffle.partitions": "2"})
        tables.write_table(spark, home / "trips", count=2000, updates=10)
        spark.stop()
        port = free_port()
        environment = {
            "HOME": name,
            "PATH": f"{home}/.venv/bin:{os.environ['PATH']}",
            "GROUNDSKEEPER_PORT": str(port),
            "GROUNDSKEEPER_URL": f"http://127.0.0.1:{port}",
            **{key: value for key, value in os.environ.items() if key.startswith(("PIP_", "JAVA_"))},
        }
        steps: list[tuple[str, float]] = []

        def step(command: str, work: Callable[[], object]) -> None:
            began = time.monotonic()
            work()
            steps.append((command, time.monotonic() - began))

        install = "python3 -m venv .venv && .venv/bin/pip install -q PATH_OF_THE_SOURCE"
        shell = install.replace("python3", sys.executable).replace("PATH_OF_THE_SOURCE", str(ROOT))
        step(install, lambda: subprocess.run(shell, shell=True, cwd=home, env=environment, check=True))
        with (home / "serve.txt").open("wb") as log:
            serve = subprocess.Popen(
                ["groundskeeper", "serve"], cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        try:
            step(
                "groundskeeper serve", lambda: _wait_until(lambda: _call(home, environment, "workers").returncode == 0)
            )
            step("groundskeeper tables add ./trips", lambda: _checked(home, environment, "tables", "add", "./trips"))
            step("until its first services have ended", lambda: _wait_until(lambda: _is_cared_for(home, environment)))
            step("groundskeeper problems", lambda: _checked(home, environment, "problems"))
        finally:
            os.killpg(serve.pid, signal.SIGTERM)
            serve.wait(60)
    return {
        "commands": sum(each.startswith(("groundskeeper", "python3")) for each, _ in steps),
        "minutes": round(sum(seconds for _, seconds in steps) / 60, 1),
        "steps": {command: round(seconds, 1) for command, seconds in steps},
    }


def _call(home: Path, environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["groundskeeper", *words], cwd=home, env=environment, capture_output=True, text=True)


def _checked(home: Path, environment: Mapping[str, str], *words: str) -> str:
    done = _call(home, environment, *words)
    if done.returncode:
        raise SystemExit(f"groundskeeper {' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _is_cared_for(home: Path, environment: Mapping[str, str]) -> bool:
    """Returns whether the table has been compacted and cleaned, and has no problem."""
    jobs = json.loads(_checked(home, environment, "jobs", "list", "--json"))["items"]
    done = {job["kind"] for job in jobs if job["state"] == "succeeded"}
    return {"compaction", "cleaning"} <= done and json.loads(_checked(home, environment, "problems", "--json"))[
        "items"
    ] == []


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _MOST_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit("it took too long")
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    arguments = parser.parse_args()
    found = run()
    if not arguments.json:
        for command, seconds in found["steps"].items():
            print(f"{seconds:7.1f} s  {command}")
        print(f"{found['commands']} commands, {found['minutes']} minutes")
    else:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
