"""Archival shortens the timeline and changes no row; the result names each instant that is still needed, and its
user. Jobs go on where history was removed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services.compaction import DUE
from tests.integration import tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, proved, run_job, work_order
from tests.integration.tables import INDEX, newest
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.test_repair_of_archived_writes import archive
from tests.integration.test_stale_writes import PARQUET_METADATA

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares


COMMITS = 6
# The metadata table of these tables is compacted once, in between.
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "4"}
SHAPES = [
    pytest.param({"table_type": "MERGE_ON_READ", "version": 9}, id="mor-9", marks=pytest.mark.exhaustive),
    pytest.param(
        {"table_type": "COPY_ON_WRITE", "version": 6, "partitioned": False, "metadata": False},
        id="cow-6-plain",
        marks=pytest.mark.exhaustive,
    ),
    pytest.param({"table_type": "MERGE_ON_READ", "version": 6}, id="mor-6", marks=pytest.mark.exhaustive),
    pytest.param({"table_type": "COPY_ON_WRITE", "version": 9}, id="cow-9", marks=pytest.mark.exhaustive),
]


def write(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    return tables.write_table(spark, base, count=60, updates=COMMITS - 1, **{**COMPACTED, **shape})


def limits(details: Any) -> set[str]:
    return {each["type"] for each in details["limits"]}


def commits(spark: SparkSession, base: Path) -> list[str]:
    """Returns the commits in the order of their beginning, which is the order of the timeline."""
    return sorted(each.write.instant for each in hudi_table(spark, base, INDEX).commits())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_oldest_commits_leave_the_timeline_and_no_row_changes(
    spark: SparkSession, base: Path, shape: dict[str, Any]
) -> None:
    options = write(spark, base, **shape)
    before, all_commits = proved(spark, base, 4), commits(spark, base)
    planned = run_job(spark, base, "archival", {"retain": 2}, dry_run=True).details
    assert limits(planned) == (set() if "metadata" in shape else {"metadata-table"})
    assert commits(spark, base) == all_commits

    done = run_job(spark, base, "archival", {"retain": 2}).details

    assert done["archived"] >= len(planned["candidates"]) >= 2
    assert done["last_archived"] == planned["candidates"][-1]
    assert commits(spark, base) == all_commits[len(planned["candidates"]) :]
    assert hudi_table(spark, base, INDEX).was_archived(all_commits[0])
    assert proved(spark, base, 4) == before
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    run_job(spark, base, "cleaning", {"retain": 1})
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.exhaustive
def test_an_instant_that_is_still_needed_stays_and_the_result_names_its_user(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=60, updates=1, metadata=False)
    saved = run_job(spark, base, "savepoint").details["savepoint"]
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan = client.schedule_compaction()
    for number in range(4):
        tables.upsert(tables.rows(spark, 0, 30, ts=number + 2), base, options)

    def plan_archival(**params: Any) -> Any:
        return run_job(spark, base, "archival", {"retain": 2, **params}, dry_run=True).details

    held = {each["type"]: each["instant"] for each in plan_archival()["limits"]}
    assert held == {"savepoint": saved, "pending-instant": plan}
    assert plan_archival()["candidates"] == []
    assert run_job(spark, base, "archival", {"retain": 2}).details["archived"] == 0
    run_job(spark, base, "savepoint", {"action": "delete", "instant": saved})
    run_job(spark, base, "compaction")

    first, second, third, *_ = commits(spark, base)
    free = plan_archival()
    assert (free["limits"], free["candidates"]) == ([], commits(spark, base)[:-2])
    unseen = plan_archival(seen=second)
    assert (limits(unseen), unseen["candidates"]) == ({"not-announced"}, [first, second])
    assert plan_archival(seen=None)["candidates"] == []
    incident = {"type": "incident", "instant": third, "reason": "incident inc_1 is open"}
    assert plan_archival(keep=[incident])["limits"][0]["reason"] == "incident inc_1 is open"
    assert plan_archival(keep=[incident])["candidates"] == [first, second]

    run_job(spark, base, "clustering", {"sort_by": ["city"]})
    for number in range(2):
        tables.upsert(tables.rows(spark, 0, 30, ts=number + 9), base, options)
    assert limits(plan_archival()) == {"recent-replacement", "replaced-files"}


@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.exhaustive), 9])
def test_a_stream_that_comes_back_finds_the_position_from_which_it_goes_on(
    spark: SparkSession, base: Path, version: int
) -> None:
    shape: dict[str, Any] = {"metadata": False, "partitioned": False, "version": version}
    options = tables.write_table(spark, base, count=60, updates=1, **shape)
    positions = {"_hudi_streaming_sink_checkpoint": '{"numbers":"7"}', "deltastreamer.checkpoint.key": "trips,0:60"}
    for ts, (key, value) in enumerate(positions.items()):
        # Hudi writes options with this prefix to the metadata of the commit, as its streams do.
        stream = {key: value, "hoodie.datasource.write.commitmeta.key.prefix": key}
        tables.upsert(tables.rows(spark, 0, 30, ts=ts + 5), base, {**options, **stream})
    for number in range(2):
        tables.upsert(tables.rows(spark, 0, 30, ts=number + 9), base, options)
    before, all_commits = proved(spark, base, 4), commits(spark, base)
    _, _, of_query, of_streamer, *_ = all_commits

    done = run_job(spark, base, "archival", {"retain": 2}).details

    assert [each["instant"] for each in done["limits"]] == [of_query, of_streamer]
    assert commits(spark, base) == all_commits[2:]
    table = hudi_table(spark, base, INDEX)
    commit_utils, timeline = table.jvm.hudi.common.util.CommitUtils, table.meta.reloadActiveTimeline()
    found = commit_utils.getValidCheckpointForCurrentWriter(timeline, "_hudi_streaming_sink_checkpoint", "numbers")
    assert str(found.get()) == "7"
    assert proved(spark, base, 4) == before


@pytest.mark.parametrize("undoing", ["restore", pytest.param("rollback", marks=pytest.mark.exhaustive)])
def test_a_stream_whose_last_batch_is_undone_finds_the_position_before(
    spark: SparkSession, base: Path, undoing: str
) -> None:
    options = tables.write_table(spark, base, count=60, metadata=False, partitioned=False)
    streamed = {**options, "hoodie.datasource.write.commitmeta.key.prefix": "deltastreamer."}
    tables.upsert(tables.rows(spark, 0, 30, ts=5), base, {**streamed, "deltastreamer.checkpoint.key": "trips,0:1"})
    tables.upsert(tables.rows(spark, 0, 30, ts=6), base, options)
    saved = run_job(spark, base, "savepoint").details["savepoint"] if undoing == "restore" else None
    before = tables.in_order(spark, base, 4)
    tables.upsert(tables.rows(spark, 0, 30, ts=7), base, {**streamed, "deltastreamer.checkpoint.key": "trips,0:2"})
    _, first, _, last = commits(spark, base)

    done = run_job(spark, base, "archival", {"retain": 2}).details

    assert [each["instant"] for each in done["limits"] if each["type"] == "stream-position"] == [first]
    params = {"savepoint": saved} if saved else {"instant": last}
    stopped = {"writers_stopped": True}
    run_job(spark, base, undoing, {**params, "table_name": "test"}, declared=stopped)
    extras = [each.extra for each in sorted(hudi_table(spark, base, INDEX).commits(), key=lambda c: c.write.instant)]
    # `StreamerCheckpointUtils` takes the last commit that has the key.
    assert [found for each in extras if (found := each.get("deltastreamer.checkpoint.key"))] == ["trips,0:1"]
    assert proved(spark, base, 4) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "point",
    [
        {"at": "file", "name": ".hoodie/timeline/history/*.parquet"},
        {"at": "before", "name": "the archival", "delay": 0.3},
        {"at": "after", "name": "the archival"},
    ],
    ids=["history written", "in between", "done"],
)
def test_an_archival_that_was_killed_is_done_by_the_next_attempt(
    spark: SparkSession, base: Path, spares: Spares, point: dict[str, Any]
) -> None:
    options = write(spark, base, metadata=False)
    before, all_commits = proved(spark, base, 4), commits(spark, base)
    job = DyingJob(spark, work_order(base, "archival", {"retain": 2}), spares)
    assert job.die_at(point).result is None

    job.finish()

    assert commits(spark, base) == all_commits[-2:]
    assert all(hudi_table(spark, base, INDEX).was_archived(each) for each in all_commits[:-2])
    assert proved(spark, base, 4) == before
    assert not (base / ".hoodie" / "lock").exists()
    tables.upsert(tables.rows(spark, 0, 70, ts=50), base, options)
    assert len(proved(spark, base, 4)) == 70


@pytest.mark.parametrize(
    ("version", "more_options"),
    [
        (9, {}),
        pytest.param(9, PARQUET_METADATA, marks=pytest.mark.exhaustive),
        pytest.param(6, {}, marks=pytest.mark.exhaustive),
    ],
)
def test_a_number_of_buckets_outlives_the_history_that_has_its_change(
    spark: SparkSession, base: Path, version: int, more_options: dict[str, str]
) -> None:
    """Without the hashing config, writers would go back to the number in their options, and write each key again."""
    shape = {"version": version, "partitioned": False, "metadata": False}
    options = tables.write_table(spark, base, count=100, **shape, **more_options)  # type: ignore[arg-type]
    count_buckets(spark, base, 4, 7)
    more = archive(spark, base, options, newest(base))
    (history,) = (each for name in ("timeline/history", "history") if (each := base / ".hoodie" / name).exists())
    shutil.rmtree(history)
    history.mkdir()

    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index_of(4))

    assert hudi_table(spark, base, index_of(4)).bucket_rules().default == 7  # type: ignore[union-attr]
    tables.upsert(tables.rows(spark, 0, 110, ts=9), base, options)
    assert len(proved(spark, base, 7, index_of(4))) == 110 + more
