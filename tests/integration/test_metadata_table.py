"""The metadata table is compacted beside writers, and neither rows nor indexes change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.errors import CancelledError
from tests.integration import indexed, tables
from tests.integration.indexed import COUNT, assert_right, index_state
from tests.integration.run import run_job
from tests.integration.writers import Cancelled, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COMPACT = {"action": "compact"}
STREAMING = "hoodie.metadata.streaming.write.enabled"


@pytest.mark.parametrize(
    ("version", "streaming"),
    [
        pytest.param(6, "false", marks=pytest.mark.exhaustive),
        (9, "true"),
        pytest.param(9, "false", marks=pytest.mark.exhaustive),
    ],
)
def test_it_is_compacted_beside_a_writer(spark: SparkSession, tmp_path: Path, version: int, streaming: str) -> None:
    base = tmp_path / "trips"
    # Table version 6 knows neither secondary nor expression indexes.
    indexes = {**indexed.GLOBAL, **indexed.STATISTICS} if version == 6 else indexed.ALL
    options = indexed.write(spark, base, indexes, version=version, **{STREAMING: streaming})
    rows, state = tables.snapshot(spark, base), index_state(spark, base)
    planned = run_job(spark, base, "metadata_table", COMPACT, index=None, dry_run=True).details
    assert planned["before"]["log_files"] > 0
    assert "after" not in planned

    writer = HeldWriter(tables.rows(spark, 0, COUNT + 10, ts=5), base, options, tmp_path / "go").start()
    done = run_job(spark, base, "metadata_table", COMPACT, index=None).details

    assert done["before"]["commits"] >= 3
    assert (done["after"]["commits"], done["after"]["log_files"]) == (0, 0)
    assert index_state(spark, base) == state
    for metadata in (True, False):
        assert tables.snapshot(spark, base, metadata=metadata) == rows
    writer.finish()
    after = tables.snapshot(spark, base, metadata=False)
    assert tables.snapshot(spark, base, metadata=True) == after
    assert len(after) == COUNT + 10
    if version != 6:
        assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


def test_a_job_that_ends_early_leaves_a_right_table_and_the_next_one_has_less_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "trips"
    options = indexed.write(spark, base, indexed.GLOBAL)
    rows = tables.snapshot(spark, base)
    with pytest.raises(CancelledError):
        run_job(spark, base, "metadata_table", COMPACT, index=None, context=Cancelled(after=0, step="compacting"))
    assert tables.snapshot(spark, base, metadata=True) == rows

    assert run_job(spark, base, "metadata_table", COMPACT, index=None).details["after"]["commits"] == 0
    again = run_job(spark, base, "metadata_table", COMPACT, index=None).details
    assert again["nothing_to_do"] is True
    tables.upsert(tables.rows(spark, 0, COUNT, ts=7), base, options)
    assert tables.snapshot(spark, base, metadata=True) == tables.snapshot(spark, base, metadata=False)


def test_a_table_without_metadata_table_needs_nothing(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    tables.upsert(tables.rows(spark, 0, 20), base, tables.writer_options(base, metadata=False))
    assert run_job(spark, base, "metadata_table", COMPACT).details["nothing_to_do"] is True
