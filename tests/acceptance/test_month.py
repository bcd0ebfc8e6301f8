"""Simulates a month of a table whose writer delegates all services to us. The table's size stays bounded without
manual work."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.conftest import SETTINGS
from tests.acceptance.daemon import PATIENCE_SECONDS, Daemon
from tests.acceptance.storage import completed_instants
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.serving import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

DAYS, BATCHES_A_DAY, KEYS = 30, 4, 600
# The size at the end of the first days, with a margin for a late service, is the limit for all later days.
SETTLED, ROOM = 8, 2.0
# A simulated day takes minutes: the thresholds are counts of commits, and there are no pauses between jobs.
POLICY = {
    "compaction": {"min_interval_seconds": 0},
    "cleaning": {"commits": 6, "retain": 4, "min_interval_seconds": 0},
    "archival": {"enabled": True, "commits": 20, "retain": 10, "min_interval_seconds": 0},
}


def sizes(base: Path) -> dict[str, int]:
    """Returns the numbers of files, and the bytes of all data files. Services may run meanwhile."""
    data: dict[str, int] = {}
    for path in base.rglob("*.*"):
        if ".hoodie" in path.relative_to(base).parts or path.suffix == ".crc" or path.name.startswith(".hoodie"):
            continue
        with suppress(FileNotFoundError):
            data[path.name] = path.stat().st_size
    timeline = [path for path in (base / ".hoodie" / "timeline").iterdir() if path.suffix not in {"", ".crc"}]
    return {
        "data files": len(data),
        "log files": sum(".log." in name for name in data),
        "bytes": sum(data.values()),
        "timeline": len(timeline),
    }


def unfinished(base: Path) -> set[str]:
    """Returns the actions of pending instants."""
    done = completed_instants(base)
    names = [path.name.split(".") for path in (base / ".hoodie" / "timeline").glob("*.requested")]
    return {name[1] for name in names if name[0] not in done}


@pytest.mark.exhaustive
@pytest.mark.timeout(2400)
def test_a_delegated_table_stays_bounded_for_a_month_without_manual_work(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    settings = {**SETTINGS, "automatic": "true", "plan_seconds": "0.2", "poll_seconds": "5"}
    tables.let_delegate(spark)
    with Daemon(tmp_path / "service", **settings) as daemon:
        daemon.wait_for_worker()
        options = tables.writer_options(base)
        tables.upsert(tables.rows(spark, 0, KEYS, ts=0), base, options)
        table = daemon.register(base)
        assert daemon.call("PUT", f"/v1/tables/{table}/policy", POLICY).status_code == 200
        shown = daemon.call("GET", f"/v1/tables/{table}/writer-options", params={"services": "delegated"}).json()
        options |= shown["options"]

        days: list[dict[str, int]] = []
        for day in range(DAYS):
            for batch in range(BATCHES_A_DAY):
                ts = 1 + day * BATCHES_A_DAY + batch
                first = (ts * 37) % KEYS
                tables.upsert(tables.rows(spark, first, first + 60, ts=ts), base, options)
            days.append(sizes(base))
            print(day, days[-1], flush=True)

        # A clean that the writer planned waits ten minutes for its next commit, which would execute it.
        assert eventually(lambda: not unfinished(base) - {"clean"}, PATIENCE_SECONDS), unfinished(base)
        _require_no_hand(daemon, table)
        audit = daemon.succeed(table, "audit")
        diagnosis = daemon.succeed(table, "diagnosis")

    assert (audit["clean"], audit["duplicates"], audit["misplaced"]) == (True, 0, 0)
    assert diagnosis["findings"] == []
    settled = {name: max(day[name] for day in days[:SETTLED]) for name in days[0]}
    for number, day in enumerate(days[SETTLED:], SETTLED):
        assert all(day[name] <= ROOM * settled[name] for name in day), (number, day, settled)
    _require_rows(spark, base)
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


def _require_no_hand(daemon: Daemon, table: str) -> None:
    """Asserts that policies started all jobs, that all kinds ran, and that no job finally failed."""
    jobs: list[dict[str, Any]] = []
    for kind in ("compaction", "cleaning", "archival"):
        found = daemon.call("GET", "/v1/jobs", params={"table_id": table, "kind": kind, "limit": 500}).json()["items"]
        print(kind, len(found), {job["state"] for job in found})
        assert found, kind
        jobs += found
    assert {job["requested_by"] for job in jobs} == {"policy"}
    assert {job["state"] for job in jobs} <= {"succeeded", "queued", "leased", "running"}, [
        job["error"] for job in jobs if job["error"]
    ]


def _require_rows(spark: SparkSession, base: Path) -> None:
    """Asserts that each key has the row of the last batch with this key."""
    expected = dict.fromkeys(range(KEYS), 0)
    for ts in range(1, 1 + DAYS * BATCHES_A_DAY):
        first = (ts * 37) % KEYS
        expected |= dict.fromkeys(range(first, first + 60), ts)
    found = spark.read.format("hudi").load(str(base)).select("id", "ts").collect()
    assert len(found) == len(expected)
    assert sorted(row.ts for row in found) == sorted(expected.values())
