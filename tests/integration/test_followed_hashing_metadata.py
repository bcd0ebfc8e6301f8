"""A resize removes no hashing metadata that Hudi follows, even if the instant of the metadata is not on the
timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome
from jobs.errors import LeaseLostError, RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import duplicates, rows, upsert
from tests.integration.test_bucket_resize import SPLIT
from tests.integration.test_consistent_hashing import findings, write
from tests.integration.test_consistent_hashing import resize as of_hudi
from tests.integration.test_resize_kills import metadata_files
from tests.integration.writers import let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def _refusal_of_split(spark: SparkSession, base: Path, **more: Any) -> str:
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "bucket_resize", SPLIT, index=None, **more)
    assert {each.type for each in refused.value.reasons} == {"hashing-metadata-not-sound"}
    return "; ".join(each.detail for each in refused.value.reasons)


@pytest.mark.exhaustive
def test_metadata_are_kept_in_a_copy_without_history(spark: SparkSession, base: Path) -> None:
    options = write(spark, base, metadata=False)
    of_hudi(spark, base)
    table = hudi_table(spark, base, None)
    replaced = [group for commit in table.commits() for group in commit.write.replaced]
    timeline = base / ".hoodie" / "timeline"
    resized = max(each.name.split("_")[0] for each in timeline.glob("*_*.replacecommit"))
    for ts in (1, 2):
        upsert(rows(spark, 1000, 1050, ts=ts, partitions=5).where("dt = '2026-01-05'"), base, options)
    # The owner cleaned, archived, and copied the table without its archived timeline.
    for partition, file_id in replaced:
        for file in [*(base / partition).glob(f"{file_id}*"), *(base / partition).glob(f".{file_id}*")]:
            file.unlink()
    for file in [each for each in timeline.iterdir() if each.is_file()]:
        if (instant := file.name.lstrip(".").split("_")[0].split(".")[0]) <= resized and instant.isdigit():
            file.unlink()
    files = metadata_files(base)
    assert f"{resized}.hashing_meta" in files
    assert f"{resized}.commit" not in files
    assert "hashing-metadata-in-doubt" in findings(spark, base)
    assert "hashing-metadata-in-doubt" in _refusal_of_split(spark, base)
    assert metadata_files(base) == files
    upsert(rows(spark, 0, 300, ts=9, partitions=2), base, options)
    assert (spark.read.format("hudi").load(str(base)).count(), duplicates(spark, base)) == (310, 0)


@pytest.mark.exhaustive
def test_metadata_are_kept_that_hudi_confirmed_after_a_writers_rollback(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write(spark, base)
    # Hudi confirms them because buckets that the resize leaves alone have base files.
    assert run_job(spark, base, "compaction", index=None).outcome is Outcome.SUCCEEDED

    def die(*_: Any) -> None:
        raise LeaseLostError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(WriteClient, "commit_replacement", die)
        with pytest.raises(LeaseLostError):
            run_job(spark, base, "bucket_resize", {**SPLIT, "max_buckets": 5}, index=None, job_id="job_br")
    table = hudi_table(spark, base, None)
    (instant,) = [each.requested for each in table.pending()]
    let_heartbeat_expire(base, instant)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        # A writer's rollback leaves the metadata.
        client._client.rollback(instant)
    upsert(rows(spark, 0, 300, ts=1, partitions=2), base, options)
    files = metadata_files(base)
    assert {f"{instant}.hashing_meta", f"{instant}.commit"} <= files
    number = spark.read.format("hudi").load(str(base)).count()
    again = {"job_id": "job_br", "earlier_instants": (instant,)}
    assert "file-groups-without-hash-range" in _refusal_of_split(spark, base, **again)
    assert metadata_files(base) == files
    upsert(rows(spark, 0, 300, ts=2, partitions=2), base, options)
    assert spark.read.format("hudi").load(str(base)).count() == number
