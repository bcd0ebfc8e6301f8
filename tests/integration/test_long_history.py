"""A history of very many instants: archived in rounds, compacted by Hudi, interrupted anywhere, and read whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from jobs.errors import HudiError, JobError
from service.lake.history import archived_since
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.model.storage_errors import StorageError
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

RETAIN = {"retain": 2}
HISTORY = {6: ".hoodie/archived", 9: ".hoodie/timeline/history"}
# Hudi compacts ten files of one level of the history to one of the next level.
ROUNDS = 11


def add_commits(base: Path, version: int, first: int, count: int) -> list[str]:
    """Copies the first commit to so many instants of the year 2001, which the table then has before all others."""
    folder = base / ".hoodie" / ("timeline" if version > 6 else "")
    done = min(path for path in folder.iterdir() if path.suffix == ".deltacommit")
    own = done.name[:17]
    added = []
    for number in range(first, first + count):
        began = datetime(2001, 1, 1) + timedelta(minutes=number)
        instant, completed = (f"{each:%Y%m%d%H%M%S}000" for each in (began, began + timedelta(seconds=1)))
        for path in folder.glob(f"{own}*.deltacommit*"):
            name = path.name.replace(own, instant, 1)
            if "_" in name:
                name = f"{instant}_{completed}.deltacommit"
            shutil.copyfile(path, folder / name)
        added.append(instant)
    return added


def archived(base: Path) -> tuple[list[str], bool]:
    """Returns the archived commits as the service reads them, with repetitions, and whether it read the whole
    history."""
    storage = open_storage(str(base), {})
    found, is_whole = archived_since(storage, read_table_config(storage), "")
    return [each.instant.requested_time for each in found if each.instant.action == "deltacommit"], is_whole


# Prints the seconds and the MiB of memory that the service needs for the whole history.
_MEASURED = """
import os, sys, time
from pathlib import Path
from tests.integration.test_long_history import archived
from tests.integration.victim import most_memory
before, began = most_memory(os.getpid()), time.monotonic()
found, _ = archived(Path(sys.argv[1]))
used = most_memory(os.getpid()) - before
print(f"{len(found)} instants: {time.monotonic() - began:.1f} s, {used} MiB")
"""


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("version", "each_round"), [(9, 20), (9, 1000), (6, 1000)])
def test_a_long_history_is_archived_compacted_and_read_whole(
    spark: SparkSession, base: Path, version: int, each_round: int
) -> None:
    options = tables.write_table(spark, base, count=60, updates=2, metadata=False, version=version)
    rows = proved(spark, base, 4)
    added: list[str] = []
    for number in range(ROUNDS):
        added += add_commits(base, version, number * each_round, each_round)
        began = time.monotonic()
        done = run_job(spark, base, "archival", RETAIN).details
        print(f"archival {number}: {done['archived']} instants, {time.monotonic() - began:.1f} s")
        assert done["archived"] >= each_round
    print(
        subprocess.run([sys.executable, "-c", _MEASURED, str(base)], check=True, capture_output=True, text=True).stdout
    )

    found, is_whole = archived(base)
    assert is_whole
    assert found[: len(added)] == added
    if version > 6:
        levels = {path.stem.rpartition("_")[2] for path in (base / HISTORY[9]).glob("*.parquet")}
        assert "1" in levels
    table = hudi_table(spark, base, INDEX)
    assert all(table.was_archived(each) for each in (added[0], added[-1]))
    assert proved(spark, base, 4) == rows
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70


KILLS = {
    "before the file": {"at": "before", "name": "the archival"},
    "file": {"at": "file", "name": f"{HISTORY[9]}/*_0.parquet"},
    "manifest": {"at": "file", "name": f"{HISTORY[9]}/manifest_?"},
    "compacted file": {"at": "file", "name": f"{HISTORY[9]}/*_1.parquet"},
    "manifest of the compaction": {"at": "file", "name": f"{HISTORY[9]}/manifest_??", "nth": 2},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kill", KILLS)
def test_a_worker_that_is_killed_while_it_archives_leaves_no_gap(
    spark: SparkSession, base: Path, spares: Spares, kill: str
) -> None:
    options = tables.write_table(spark, base, count=60, updates=2, metadata=False)
    rows = proved(spark, base, 4)
    added: list[str] = []
    for number in range(ROUNDS - 2 if "compact" in kill else 1):
        added += add_commits(base, 9, number * 20, 20)
        run_job(spark, base, "archival", RETAIN)
    added += add_commits(base, 9, len(added), 20)
    job = DyingJob(spark, work_order(base, "archival", RETAIN), spares)
    assert job.die_at(KILLS[kill]).result is None
    # Each commit is in the history or on the timeline.
    left = {item.requested for item in hudi_table(spark, base, INDEX).instants()}
    assert set(added) <= {*archived(base)[0], *left}

    job.finish()

    found, is_whole = archived(base)
    assert is_whole
    assert found[: len(added)] == added
    assert proved(spark, base, 4) == rows
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.parametrize("is_named", [pytest.param(False, id="not named yet"), pytest.param(True, id="named")])
def test_a_manifest_that_was_half_written_hides_no_instant(spark: SparkSession, base: Path, is_named: bool) -> None:
    tables.write_table(spark, base, count=60, updates=2, metadata=False)
    added = add_commits(base, 9, 0, 20)
    of_added = {"retain": 3}  # Commits that are later than the next ones must not be archived before them.
    run_job(spark, base, "archival", of_added)
    history = base / HISTORY[9]
    version = int((history / "_version_").read_text())
    whole = (history / f"manifest_{version}").read_bytes()
    broken = history / f"manifest_{version if is_named else version + 1}"
    broken.write_bytes(whole[: len(whole) // 2])
    broken.with_name(f".{broken.name}.crc").unlink(missing_ok=True)
    # Under this name Hudi writes a manifest before it renames it; a kill leaves it so in a few microseconds only.
    unfinished = history / f"manifest_{version + 1}.a55dd381-eb43-49c6-85bf-9923b4e7caed"
    unfinished.write_bytes(whole)
    os.utime(unfinished, (time.time() - 3600,) * 2)
    added += add_commits(base, 9, 20, 20)

    if is_named:
        assert archived(base) == ([], False)
        with pytest.raises(HudiError):
            run_job(spark, base, "archival", of_added)
        broken.write_bytes(whole)
    done = run_job(spark, base, "archival", of_added).details

    assert not unfinished.exists()
    assert done["archived"] >= 20
    found, is_whole = archived(base)
    assert is_whole
    assert found[: len(added)] == added


# The files of the history, by table version, each of which gets each of the damages below.
_FILES = {
    9: {"file": "*_0.parquet", "manifest": "manifest_?", "version": "_version_"},
    6: {"log": ".commits_.archive*"},
}
_DAMAGES = ("truncated", "empty", "absent")


@pytest.mark.exhaustive
@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize(("version", "kind"), [(version, kind) for version, kinds in _FILES.items() for kind in kinds])
def test_a_damaged_file_of_the_history_is_told_and_the_next_archival_loses_nothing(
    spark: SparkSession, base: Path, version: int, kind: str, damage: str
) -> None:
    options = tables.write_table(spark, base, count=60, updates=2, metadata=False, version=version)
    added = add_commits(base, version, 0, 20)
    run_job(spark, base, "archival", RETAIN)
    last = max((base / HISTORY[version]).glob(_FILES[version][kind]))
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    if damage == "absent":
        last.unlink()
    else:
        last.write_bytes(last.read_bytes()[: last.stat().st_size // 2 if damage == "truncated" else 0])
    try:
        found, is_whole = archived(base)
        is_told = not is_whole
    except StorageError as error:
        found, is_told = [], True
        print("told:", type(error).__name__, error)
    # A history of version 6 is what its folder holds, and the number of the manifest is in its name as well.
    assert is_told or set(added) <= set(found) or (version, damage) == (6, "absent"), (found, is_told)
    new = add_commits(base, version, 20, 20)
    try:
        print("archival:", run_job(spark, base, "archival", RETAIN).details["archived"])
    except JobError as error:
        print("archival:", error.problem())
    left = {item.requested for item in hudi_table(spark, base, INDEX).instants()}
    with suppress(StorageError):
        left |= set(archived(base)[0])
        assert set(new) <= left
    assert len(proved(spark, base, 4)) == 60
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70
