"""Clustering of tables without a bucket index neither fails nor delays concurrent writers, and loses no row."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import ExpansionStep
from jobs.errors import WritersActiveError
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_STRATEGIES = "org.apache.hudi.client.clustering.update.strategy"
_UPDATES, _ROLLS_BACK = (
    "hoodie.clustering.updates.strategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
)
# The ways in which a writer treats a clustering that it has seen pending.
_WRITERS = {
    "rejects its own updates": {_UPDATES: f"{_STRATEGIES}.SparkRejectUpdateStrategy"},
    "allows its own updates": {_UPDATES: f"{_STRATEGIES}.SparkAllowUpdateStrategy"},
    "rolls the clustering back": {_UPDATES: f"{_STRATEGIES}.SparkAllowUpdateStrategy", _ROLLS_BACK: "true"},
}
_FIRST = "rolls the clustering back", "COPY_ON_WRITE", 9
_KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
_ALL = [(writer, kind, version) for writer in _WRITERS for kind in _KINDS for version in (6, 9)]
_BY_CITY = {"sort_by": ["city"]}


def _table(
    spark: SparkSession, base: Path, writer: str, kind: str, version: int, *, partitioned: bool = True
) -> dict[str, str]:
    shape: dict[str, Any] = {"table_type": kind, "version": version, "partitioned": partitioned}
    options = tables.write_table(spark, base, count=300, num_buckets=None, **shape)
    tables.upsert(tables.rows(spark, 0, 300, ts=1), base, options)
    return options | _WRITERS[writer]


def _in_order(spark: SparkSession, base: Path, *, newest: int, count: int) -> None:
    """Asserts that no row is lost, old or duplicate, by the metadata table and by listing."""
    assert len(tables.snapshot(spark, base, metadata=False)) == count
    assert spark.read.format("hudi").load(str(base)).where(f"ts = {newest}").count() == count
    assert tables.duplicates(spark, base) == 0
    assert run_job(spark, base, "audit", index=None).details["clean"]
    assert tables.left_behind(base) == []


@pytest.mark.parametrize(
    ("writer", "kind", "version"),
    [pytest.param(*each, marks=[] if each == _FIRST else [pytest.mark.exhaustive]) for each in _ALL],
)
def test_a_batch_that_begins_during_a_clustering_is_waited_for_and_kept(
    spark: SparkSession, tmp_path: Path, writer: str, kind: str, version: int
) -> None:
    base = tmp_path / "plain"
    options = _table(spark, base, writer, kind, version, partitioned=(writer, kind, version) != _FIRST)
    held = HeldWriter(tables.rows(spark, 0, 350, ts=5), base, options)

    def let_go_later() -> None:
        threading.Timer(2, held.let_go).start()

    # The writer begins when the clustering is inflight and has written its files; it ends while the job waits.
    context = At("comparing the record keys", lambda: held.start() and None, (ExpansionStep.DRAINING, let_go_later))
    done = run_job(spark, base, "clustering", _BY_CITY, index=None, context=context)

    held.finish()
    assert done.details["rewritten_again"] + done.details["left_out"] > 0
    # The writer continues with its old state of the table.
    tables.upsert(tables.rows(spark, 0, 400, ts=6), base, options)
    _in_order(spark, base, newest=6, count=400)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "version"),
    [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6), ("COPY_ON_WRITE", 9)],
)
def test_rows_that_are_committed_during_a_clustering_are_in_its_files(
    spark: SparkSession, tmp_path: Path, kind: str, version: int
) -> None:
    base = tmp_path / "plain"
    options = _table(spark, base, "rejects its own updates", kind, version)

    def commit_upsert() -> None:
        tables.upsert(tables.rows(spark, 0, 350, ts=5), base, options)

    done = run_job(
        spark, base, "clustering", _BY_CITY, index=None, context=At("comparing the record keys", commit_upsert)
    )

    assert (done.details["rewritten_again"], done.details["left_out"]) == (3, 0)
    _in_order(spark, base, newest=5, count=350)
    assert not any(item.log_files for item in hudi_table(spark, base, None).file_slices())


@pytest.mark.exhaustive
def test_a_write_that_stays_in_flight_leaves_nothing_of_a_clustering(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "plain"
    options = _table(spark, base, *_FIRST)
    held = HeldWriter(tables.rows(spark, 0, 350, ts=5), base, options).start()
    with pytest.raises(WritersActiveError):
        run_job(spark, base, "clustering", {**_BY_CITY, "wait_seconds": 2}, index=None)
    held.finish()
    _in_order(spark, base, newest=5, count=350)
