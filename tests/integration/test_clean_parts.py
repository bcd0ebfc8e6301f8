"""A cleaning of many files makes several clean instants. After each of them Hudi, an older Hudi and the next job know
what is left to delete; at the end the table is the same as after a single clean."""

from __future__ import annotations

import json
import shutil
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.hudi.cleaner import Cleaner
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK, UNDER_OUR_LOCK_WITHOUT_ROLLBACKS
from jobs.services import cleans
from jobs.services.cleans import Cleans
from tests.integration import dying_job, run, tables
from tests.integration.dying_job import DyingJob
from tests.integration.many_files import data_files, fill
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.clean_plan import CleanPlan
    from tests.integration.doomed import Spares

# Three file groups, one in each partition, are enough for several cleans.
INDEX = BucketIndex(1, ("id",))
RETAIN = {"retain": 1}
IN_PARTS = {"retain": 1, "files_per_clean": 2}
HUDIS = {"hoodie.clean.commits.retained": "1"}
BEFORE_ALL = "00000000000000"


class InterruptionError(Exception):
    pass


run_job = partial(run.run_job, index=INDEX)


def proved(spark: SparkSession, base: Path) -> list[str]:
    return run.proved(spark, base, INDEX.num_buckets, INDEX)


def with_garbage(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    """Writes a table with older versions in three partitions, and with replaced file groups."""
    options = tables.writer_options(base, num_buckets=INDEX.num_buckets, **shape)

    def write(path: Path) -> None:
        tables.write_table(spark, path, count=60, updates=1, num_buckets=INDEX.num_buckets, **shape)
        run_job(spark, path, "clustering", {"sort_by": ["city"]})
        for ts in (6, 7):
            tables.upsert(tables.rows(spark, 0, 60, ts=ts), path, options)
            if options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
                run_job(spark, path, "compaction")

    tables.prepared(base, f"with garbage {sorted(options.items())}", write)
    return options


def cleaned_at_once(spark: SparkSession, base: Path, params: dict[str, Any]) -> tuple[set[str], dict[str, Any]]:
    """Returns the data files that a copy of the table has after a single clean, and what this clean says."""
    copy = base.parent / "copy" / base.name
    shutil.copytree(base, copy)
    assert len(run_job(spark, copy, "cleaning", params).instants) == 1
    return data_files(copy), last_clean(spark, copy)


def last_clean(spark: SparkSession, base: Path) -> dict[str, Any]:
    timeline = hudi_table(spark, base, INDEX).meta.reloadActiveTimeline()
    last = timeline.getCleanerTimeline().filterCompletedInstants().lastInstant().get()
    read = json.loads(str(timeline.readCleanMetadata(last).toString()))
    return {key: read[key] for key in ("earliestCommitToRetain", "lastCompletedCommitTimestamp", "extraMetadata")}


def interrupted(
    spark: SparkSession,
    base: Path,
    params: dict[str, Any],
    change: Callable[[CleanPlan | None], None] = lambda plan: None,
) -> None:
    """Runs a cleaning that ends after its first clean."""
    plan = Cleaner.plan

    def planned(cleaner: Cleaner, most_files: int, done: CleanPlan | None = None) -> CleanPlan | None:
        if done is not None:
            raise InterruptionError
        found = plan(cleaner, most_files)
        change(found)
        return found

    before = data_files(base)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cleaner, "plan", planned)
        with pytest.raises(InterruptionError):
            run_job(spark, base, "cleaning", params)
    assert data_files(base) < before


def clean_by_hudi(spark: SparkSession, base: Path) -> None:
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, HUDIS) as client:
        client._client.clean()


def clean_by_us(spark: SparkSession, base: Path) -> None:
    run_job(spark, base, "cleaning", IN_PARTS)


SHAPES = [
    pytest.param(
        {"table_type": kind, "version": version, "metadata": metadata},
        next_one,
        id=f"{kind[0].lower()}-{version}-{'metadata' if metadata else 'listing'}-{next_one.__name__}",
    )
    for kind, version, metadata, next_one in product(
        ("COPY_ON_WRITE", "MERGE_ON_READ"), (6, 8, 9), (True, False), (clean_by_hudi, clean_by_us)
    )
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("shape", "next_one"), SHAPES)
def test_the_rest_of_an_interrupted_cleaning_is_cleaned_by_the_next_one_or_by_hudi(
    spark: SparkSession, base: Path, shape: dict[str, Any], next_one: Callable[[SparkSession, Path], None]
) -> None:
    options = with_garbage(spark, base, **shape)
    before = tables.in_order(spark, base, INDEX.num_buckets)
    planned = run_job(spark, base, "cleaning", IN_PARTS, dry_run=True).details
    expected, its_clean = cleaned_at_once(spark, base, RETAIN)
    assert planned["files"] == len(data_files(base) - expected)
    assert planned["cleans"] > 3

    interrupted(spark, base, IN_PARTS)
    assert proved(spark, base) == before
    next_one(spark, base)

    assert data_files(base) == expected
    assert last_clean(spark, base) == its_clean
    assert proved(spark, base) == before
    assert run_job(spark, base, "cleaning", IN_PARTS).instants == ()
    # The clean after that is incremental again.
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    next_one(spark, base)
    assert len(proved(spark, base)) == 70


@pytest.mark.exhaustive
def test_hudi_refuses_old_instants_between_two_cleans_and_cleans_the_rest(spark: SparkSession, base: Path) -> None:
    with_garbage(spark, base, table_type="COPY_ON_WRITE")
    before = tables.in_order(spark, base, INDEX.num_buckets)
    first, *_ = sorted(commit.write.instant for commit in hudi_table(spark, base, INDEX).commits())
    replaced = {file for commit in hudi_table(spark, base, INDEX).commits() for file in commit.write.replaced}

    interrupted(spark, base, IN_PARTS)

    left = {(path.rpartition("/")[0], path.rpartition("/")[2].partition("_")[0]) for path in data_files(base)}
    assert replaced & left
    with pytest.raises(Exception, match="beyond the lookup window"):
        spark.sql(f"CALL create_savepoint(path => '{base}', commit_time => '{first}')").collect()
    with pytest.raises(Exception, match="Cleaner cleaned up the timestamp of interest"):
        spark.read.format("hudi").option("as.of.instant", first).load(str(base)).collect()
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **HUDIS}
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, keep) as client:
        client.archiver.archive()
    assert proved(spark, base) == before
    expected, its_clean = cleaned_at_once(spark, base, RETAIN)
    clean_by_hudi(spark, base)
    assert (data_files(base), last_clean(spark, base)) == (expected, its_clean)
    assert proved(spark, base) == before


@pytest.mark.exhaustive
def test_hudi_would_never_look_at_the_rest_without_our_note(spark: SparkSession, base: Path) -> None:
    options = with_garbage(spark, base, table_type="COPY_ON_WRITE")
    # The retained instant and the one after it have written only one partition.
    frame = tables.rows(spark, 0, 60, ts=11).where("dt = '2026-01-01'")
    tables.upsert(frame, base, options)
    expected, _ = cleaned_at_once(spark, base, RETAIN)

    def forget(plan: CleanPlan | None) -> None:
        assert plan is not None
        plan.record.getExtraMetadata().clear()

    interrupted(spark, base, IN_PARTS, forget)
    tables.upsert(frame, base, options)
    clean_by_hudi(spark, base)
    older = data_files(base) - expected
    assert any(path.startswith("2026-01-03/") for path in older)


KILLS = {
    "between two cleans": {"at": "after", "name": "the clean", "nth": 1},
    "requested": {"at": "before", "name": "the clean", "nth": 2},
    "inside of one": {"at": "file", "name": ".hoodie/timeline/*.clean.inflight", "nth": 2},
}


@dying_job.cases("kill", ("requested",), zip(KILLS))
def test_a_killed_cleaning_goes_on_where_it_was(
    spark: SparkSession, base: Path, spares_if_killed: Spares | None, kill: str
) -> None:
    with_garbage(spark, base, table_type="COPY_ON_WRITE")
    before = tables.in_order(spark, base, INDEX.num_buckets)
    expected, its_clean = cleaned_at_once(spark, base, RETAIN)
    job = DyingJob(spark, run.work_order(base, "cleaning", IN_PARTS, index=INDEX), spares_if_killed)
    job.die_at(KILLS[kill])
    assert data_files(base) > expected

    result = job.finish()

    assert len(result.instants) > 2
    assert data_files(base) == expected
    assert last_clean(spark, base) == its_clean
    assert proved(spark, base) == before


@pytest.mark.exhaustive
def test_a_clean_that_a_writer_completes_while_a_part_is_deleted_is_not_completed_again(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_garbage(spark, base, table_type="COPY_ON_WRITE")
    before = proved(spark, base)
    expected, _ = cleaned_at_once(spark, base, RETAIN)
    by_writer: list[str] = []
    may_complete = Cleans._may_complete

    def after_a_writer(of_job: Cleans) -> bool:
        if not by_writer:
            with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK_WITHOUT_ROLLBACKS) as client:
                done = client.cleaner.execute()
                assert done
                by_writer.append(done.instant)
        return may_complete(of_job)

    monkeypatch.setattr(Cleans, "_may_complete", after_a_writer)
    # The lock is not held while files are deleted.
    monkeypatch.setattr(cleans, "_FEW_FILES", 0)

    done = run_job(spark, base, "cleaning", IN_PARTS)

    assert by_writer == [each for each in done.instants if each in by_writer]
    completed = [path.name.partition("_")[0] for path in (base / ".hoodie" / "timeline").glob("*_*.clean")]
    assert sorted(completed) == sorted({*completed, *done.instants})
    assert len(done.instants) > 1
    assert data_files(base) == expected
    assert proved(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("policy", ["KEEP_LATEST_COMMITS", "KEEP_LATEST_FILE_VERSIONS"])
@pytest.mark.parametrize("kept", ["savepoint", "consumer", "nothing"])
def test_parts_keep_what_a_single_clean_keeps(spark: SparkSession, base: Path, policy: str, kept: str) -> None:
    options = with_garbage(spark, base, table_type="COPY_ON_WRITE")
    params: dict[str, Any] = {"policy": policy, "retain": 2}
    if kept == "savepoint":
        run_job(spark, base, "savepoint")
    for ts in (8, 9, 10):
        tables.upsert(tables.rows(spark, 0, 60, ts=ts), base, options)
    instants = sorted(commit.write.instant for commit in hudi_table(spark, base, INDEX).commits())
    if kept == "consumer":
        params["consumers"] = [{"name": "warehouse", "instant": instants[-2]}]
    before = proved(spark, base)
    expected, its_clean = cleaned_at_once(spark, base, params)
    interrupted(spark, base, {**params, "files_per_clean": 2})
    if policy == "KEEP_LATEST_FILE_VERSIONS":
        # Such a clean names no instant, and archival would take the moment of the clean.
        assert last_clean(spark, base)["earliestCommitToRetain"] == BEFORE_ALL
    assert len(run_job(spark, base, "cleaning", {**params, "files_per_clean": 2}).instants) > 1
    assert data_files(base) == expected
    assert last_clean(spark, base) == its_clean
    assert proved(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize(("hudi", "version"), [("0.15.0", 6), ("1.0.2", 6), ("1.0.2", 8), ("1.1.1", 9)])
def test_the_cleaner_of_an_older_writer_cleans_the_rest(
    spark: SparkSession, base: Path, hudi: str, version: int
) -> None:
    # Version 6 in the form that all versions of Hudi read and write.
    options = with_garbage(spark, base, table_type="COPY_ON_WRITE", version=version)
    before = proved(spark, base)
    expected, _ = cleaned_at_once(spark, base, RETAIN)
    interrupted(spark, base, IN_PARTS)
    with OldWriter(hudi) as old:
        # One row of one partition.
        options |= {"hoodie.clean.automatic": "true", "hoodie.cleaner.commits.retained": "1"}
        old.upsert(base, options, 0, 1, ts=60)
    assert {path for path in data_files(base) - expected if path.startswith("2026-01-03")} == set()
    found = proved(spark, base)
    assert len(set(found) - set(before)) == 1
    assert len(found) == len(before)


def test_an_inflight_clean_has_the_plan_that_hudi_before_1_0_archives(spark: SparkSession, base: Path) -> None:
    shape = {"table_type": "COPY_ON_WRITE", "version": 6, "metadata": False, "partitioned": False}
    tables.write_table(spark, base, count=60, updates=2, num_buckets=INDEX.num_buckets, **shape)
    assert run_job(spark, base, "cleaning", RETAIN).instants
    (inflight,) = (base / ".hoodie").glob("[0-9]*.clean.inflight")
    assert inflight.read_bytes() == inflight.with_suffix(".requested").read_bytes() > b""
    assert len(proved(spark, base)) == 60


def test_a_table_with_nothing_to_clean_is_not_looked_at_again(spark: SparkSession, base: Path) -> None:
    shape = {"table_type": "COPY_ON_WRITE", "num_buckets": None, "hoodie.parquet.small.file.limit": "0"}
    options = tables.write_table(spark, base, count=20, **shape)
    for first in (20, 40):
        tables.upsert(tables.rows(spark, first, first + 20), base, options)
    looked_at: list[int] = []

    def looks() -> tuple[str, ...]:
        with pytest.MonkeyPatch.context() as patch:
            parts = Cleaner._parts
            patch.setattr(Cleaner, "_parts", lambda *given: _record_parts(looked_at, parts(*given)))
            result = run_job(spark, base, "cleaning", {"retain": 1, "files_per_clean": 1}, index=None)
        assert result.details["files_deleted"] == 0
        assert result.details["nothing_to_do"]
        return result.instants

    # A plan that costs little is made again each time.
    assert run_job(spark, base, "cleaning", RETAIN, index=None).instants == ()
    assert len(looks()) == 1
    assert looks() == ()
    assert looked_at == [3, 0]
    earliest = last_clean(spark, base)["earliestCommitToRetain"]
    assert earliest == max(commit.write.instant for commit in hudi_table(spark, base, None).commits())


def _record_parts(found: list[int], parts: Any) -> Any:
    found.append(parts.partitions())
    return parts


def test_cleans_of_many_files_have_a_bound_each(spark: SparkSession, base: Path) -> None:
    partitions, most_files = 10, 200
    options = tables.write_table(spark, base, count=60, table_type="COPY_ON_WRITE", metadata=False)
    tables.upsert(tables.rows(spark, 0, 60, ts=1), base, options)
    tables.upsert(tables.rows(spark, 0, 60, ts=2), base, options)
    before = len(data_files(base))
    deletable = fill(base, partitions=partitions, groups=10, versions=10) + 12
    plans: list[CleanPlan] = []
    listed: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        plan, table = Cleaner.plan, Cleaner._planning_table

        def planned(*given: Any) -> CleanPlan | None:
            found = plan(*given)
            plans.extend([found] if found else [])
            return found

        def planning(*given: Any) -> Any:
            listed.append(table(*given))
            return listed[-1]

        patch.setattr(Cleaner, "plan", planned)
        patch.setattr(Cleaner, "_planning_table", planning)
        result = run_job(spark, base, "cleaning", {"retain": 1, "files_per_clean": most_files})
    assert result.details["files_deleted"] == deletable
    assert len(result.instants) == len(plans) == -(-deletable // most_files)
    assert max(each.number_of_files for each in plans) <= most_files
    assert len(data_files(base)) == before - 12 + partitions * 10 + partitions
    # Python may keep references to these tables until its garbage collector runs.
    views = [each.getHoodieView() for each in listed if each is not None]
    assert sum(view.isClosed() for view in views) == len(plans)
