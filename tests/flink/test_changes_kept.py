"""A Flink job keeps all changes of rows (`changelog.enabled`): a delete is a row of a log with the operation D."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from tests.flink import timeline
from tests.flink.check import differences
from tests.flink.job import FlinkJob
from tests.flink.test_flink_writer import BESIDE_OTHERS, change
from tests.flink.test_state_index import PAUSE
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

CHANGES = {**BESIDE_OTHERS, "changelog.enabled": "true"}


@pytest.mark.parametrize("version", ["9", pytest.param("6", marks=pytest.mark.exhaustive)])
def test_a_compaction_brings_no_deleted_row_back(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, version: str
) -> None:
    base = tmp_path / "numbers"
    options = {**CHANGES, "hoodie.write.table.version": version}
    job = FlinkJob(base, last=2000, keys=300, late=250, rate=1000, checkpoint_seconds=1, deletes=True, options=options)
    flink.wait(flink.start(job), "FINISHED")
    timeline.wait_until_complete(base)
    before = tables.snapshot(spark, base)

    done = run_job(spark, base, "compaction").details

    assert [(each["engine"], each["reasons"][0]["type"]) for each in done["engines"]] == [("hudi", "operation-field")]
    assert tables.snapshot(spark, base) == before
    found = differences(spark, base, job.expected(), num_buckets=4)
    assert found.none, found
    # Hudi's readers look for the operation in the newest file.
    assert hudi_table(spark, base, INDEX).records_operations


@pytest.mark.exhaustive
def test_nothing_is_merged_while_the_newest_file_hides_the_deletes(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=2000, keys=300, late=250, rate=1000, checkpoint_seconds=1, deletes=True, options=CHANGES)
    flink.wait(flink.start(job), "FINISHED")
    timeline.wait_until_complete(base)
    columns = "id string, ver long, val string, num double, part string"
    row = spark.createDataFrame([("k0000001", 5000, "new", 1.0, "p1")], columns)
    fields = {"precombine": "ver", "partitionpath": "part"}
    options = tables.writer_options(base) | {f"hoodie.datasource.write.{each}.field": fields[each] for each in fields}
    options["hoodie.table.name"] = hudi_table(spark, base, INDEX).name
    tables.upsert(row, base, options)
    # Readers see deleted rows now, until the next commit of Flink.
    assert differences(spark, base, job.expected()).extra > 0
    before = tables.snapshot(spark, base)

    for kind, params in (("compaction", {}), ("bucket_expansion", {"num_buckets": 8})):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params, writers_stopped=True)
        assert {reason.type for reason in refused.value.reasons} == {"operations-hidden"}

    assert timeline.pending(base) == []
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_slices_with_such_deletes_are_expanded_and_stale_writes_with_them_are_not_repaired(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=60_000, keys=300, late=250, rate=60, checkpoint_seconds=8, deletes=True, options=CHANGES)
    # The expansion needs a moment without a write in flight.
    running = flink.start(replace(job, more_settings={PAUSE: "8 s"}))
    flink.wait_for_checkpoints(running, 2)
    run_job(spark, base, "compaction")
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 1)
    # Slices have base files and logs now, and Hudi counts no deletes in these logs.
    change(spark, base, 8)
    flink.wait_for_checkpoints(running, flink.checkpoints(running) + 3)
    flink.stop_with_savepoint(running)
    timeline.wait_until_complete(base)

    audit = run_job(spark, base, "audit").details

    instants = [each["instant"] for each in audit["stale_writes"]]
    types = [each["type"] for each in audit["findings"]]
    assert (audit["clean"], types, len(instants) > 2) == (False, ["deletes-in-wrong-bucket"], True), audit
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair", {"instants": instants}, writers_stopped=True)
    assert [each.type for each in refused.value.reasons] == ["soft-deletes"]

    # The owner writes all keys again, and a seventh of them is deleted.
    again = replace(job, first=62_400, last=62_999, rate=600, checkpoint_seconds=1)
    flink.wait(flink.start(again), "FINISHED")
    timeline.wait_until_complete(base)
    done = run_job(spark, base, "repair", {"accepted": instants}, writers_stopped=True).details

    assert (done["waived"], done["repaired"]) == (sorted(instants), [])
    for kind in ("audit", "compaction", "audit"):
        found = differences(spark, base, again.expected(), num_buckets=8)
        assert found.none, found
        assert run_job(spark, base, kind).details.get("clean", True)


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_an_audit_finds_such_deletes_in_wrong_buckets_until_they_are_made_again(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "numbers"
    job = FlinkJob(base, last=299, keys=300, late=250, rate=600, checkpoint_seconds=1, deletes=True, options=CHANGES)
    flink.wait(flink.start(job), "FINISHED")
    timeline.wait_until_complete(base)
    change(spark, base, 8)
    hashing_configs, hidden = base / ".hoodie" / ".bucket_index", tmp_path / "hidden"

    def audited(**numbers: int) -> dict[str, dict[str, Any]]:
        """Returns the findings after another job, which first writes each key and then deletes a seventh of them."""
        flink.wait(flink.start(replace(job, **numbers)), "FINISHED")
        timeline.wait_until_complete(base)
        return {each["type"]: each for each in run_job(spark, base, "audit").details["findings"]}

    # The job has read the number of buckets before the change.
    hashing_configs.rename(hidden)
    flink.wait(flink.start(replace(job, first=300, last=899)), "FINISHED")
    timeline.wait_until_complete(base)
    hidden.rename(hashing_configs)
    found = audited(first=0, last=0, buckets=8)

    # The deletes of keys in the upper half of the buckets are wrong.
    wrong = found["deletes-in-wrong-bucket"]
    counts = {instant: int(count) for count, instant in re.findall(r"(\d+) deletes of (\d{17})", wrong["detail"])}
    assert (sum(counts.values()) > 10, wrong["cure"]) == (True, None), wrong
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "repair", {"instants": list(counts)}, writers_stopped=True)
    assert [each.type for each in refused.value.reasons] == ["soft-deletes"]
    # The job deletes the same keys again, because 2100 is a multiple of 7.
    assert "deletes-in-wrong-bucket" not in audited(first=2400, last=2999, buckets=8)
