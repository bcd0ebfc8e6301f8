"""After a SIGKILL of the worker at any step of a change of the version, the next attempt takes it back and succeeds."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import HudiError
from jobs.format.table_version import UPGRADE_NOTE
from jobs.hudi.upgrader import Upgrader
from tests.integration import dying_job, tables
from tests.integration.dying_job import DyingJob
from tests.integration.run import hudi_table, perform_order, run_job, work_order
from tests.integration.tables import INDEX
from tests.integration.test_upgrade import DECLARED, ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

COPYING = {"at": "file", "name": ".hoodie/.aux/groundskeeper.upgrade/files/*"}
AFTER_BACKUP = {"at": "after", "name": "the backup"}
MOVING = {"at": "file", "name": ".hoodie/timeline/*_*.*commit"}
PROPERTIES = {"at": "file", "name": ".hoodie/hoodie.properties.backup"}
OF_METADATA = {"at": "file", "name": ".hoodie/metadata/.hoodie/timeline/*_*.deltacommit"}
AFTER_UPGRADE = {"at": "after", "name": "the upgrade"}
IN_COMPACTION = {"at": "before", "name": "the commit of the compaction"}
# The next attempt begins the compaction anew.
ROLLING_BACK = {"at": "file", "name": ".hoodie/*.rollback.inflight"}
BEFORE_END = {"at": "before", "name": "the end"}
AFTER_END = {"at": "after", "name": "the end"}
# The first removal comes before the backup is made. At the second removal the note of the backup is already deleted.
WITHOUT_NOTE = {"at": "before", "name": "the removal", "nth": 2}
TAKING_BACK = PROPERTIES
AFTER_TAKING_BACK = {"at": "after", "name": "the taking back"}

# Versions before and after, and the points at which one attempt after the other dies.
_LONG = [
    (6, 9, (MOVING,)),
    (6, 9, (MOVING, TAKING_BACK)),
    (6, 9, (COPYING, AFTER_BACKUP)),
    (6, 9, (PROPERTIES, BEFORE_END)),
    (6, 9, (OF_METADATA, AFTER_TAKING_BACK)),
    (6, 8, (AFTER_UPGRADE, BEFORE_END)),
    (6, 9, (IN_COMPACTION,)),
    (6, 9, (IN_COMPACTION, ROLLING_BACK)),
    (6, 9, (BEFORE_END,)),
    (6, 9, (AFTER_END,)),
    (6, 9, (WITHOUT_NOTE,)),
    (9, 6, ({"at": "file", "name": ".hoodie/*.*commit"},)),
    (9, 6, (AFTER_UPGRADE,)),
    (9, 8, (PROPERTIES,)),
]


@pytest.mark.timeout(1800)
@dying_job.cases("before to points", (6, 9, (AFTER_UPGRADE,)), _LONG)
def test_wherever_the_worker_is_killed_the_next_attempt_finishes_the_change(
    spark: SparkSession,
    base: Path,
    spares_if_killed: Spares | None,
    before: int,
    to: int,
    points: tuple[dict[str, Any], ...],
) -> None:
    table_type = "MERGE_ON_READ" if IN_COMPACTION in points else "COPY_ON_WRITE"
    shape = {"version": before, "table_type": table_type, "partitioned": False}
    options = tables.write_table(spark, base, count=ROWS, updates=1, **shape)
    rows = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "upgrade", {"to_version": to}, declared=DECLARED), spares_if_killed)
    for death in job.deaths(points):
        assert death.result is None
    done = job.finish().details
    assert done["nothing_to_do"] == (points in ((AFTER_END,), (WITHOUT_NOTE,)))
    assert hudi_table(spark, base, INDEX).version == to
    assert not (base / ".hoodie" / ".aux" / "groundskeeper.upgrade").exists()
    assert not (base / ".hoodie" / "lock").exists()
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    tables.upsert(tables.rows(spark, 0, ROWS, ts=5), base, options)
    audit = run_job(spark, base, "audit").details
    assert (audit["clean"], audit["rows"], audit["duplicates"]) == (True, ROWS, 0), audit


@pytest.mark.exhaustive
def test_a_change_whose_machine_loses_its_power_is_taken_back_from_a_backup_that_is_on_the_disk(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was closed, but not written to the disk, may be empty afterwards."""
    options = tables.write_table(spark, base, count=ROWS, updates=1, version=6, table_type="COPY_ON_WRITE")
    rows = tables.snapshot(spark, base)
    backup = (base / UPGRADE_NOTE).parent
    on_disk: set[Path] = set()
    states: list[tuple[bool, str]] = []

    def sync() -> None:
        on_disk.update(backup.rglob("*"))
        properties = (base / ".hoodie" / "hoodie.properties").read_text()
        states.append(((base / UPGRADE_NOTE).exists(), properties.partition("table.version=")[2][:1]))

    monkeypatch.setattr(os, "sync", sync)
    job = DyingJob(spark, work_order(base, "upgrade", {"to_version": 9}, declared=DECLARED))
    job.die_at(AFTER_UPGRADE)
    for copy in set(backup.rglob("*.*")) - on_disk - {base / UPGRADE_NOTE}:
        copy.write_bytes(b"")

    job.finish()

    # A backup is complete on the disk before its note, and the timeline is before the note is deleted.
    assert states == [(False, "6"), (True, "6"), (False, "6"), (True, "9")]
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    tables.upsert(tables.rows(spark, 0, ROWS, ts=5), base, options)
    assert run_job(spark, base, "audit").details["clean"]


@pytest.mark.exhaustive
def test_an_attempt_that_was_frozen_takes_nothing_back_once_another_one_has_the_lock(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=ROWS, updates=1, version=6, table_type="COPY_ON_WRITE", partitioned=False)
    rows = tables.snapshot(spark, base)
    order = work_order(base, "upgrade", {"to_version": 9}, declared=DECLARED)
    following = DyingJob(spark, replace(order, attempt=2))
    following.overtake(monkeypatch, Upgrader, "run", AFTER_UPGRADE)
    with pytest.raises(HudiError, match="has changed meanwhile"):
        perform_order(spark, order)

    assert hudi_table(spark, base, INDEX).version == 9
    assert (base / UPGRADE_NOTE).exists()
    following.finish()
    assert not (base / UPGRADE_NOTE).exists()
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    assert run_job(spark, base, "audit").details["clean"]
