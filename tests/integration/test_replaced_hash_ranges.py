"""A deletion or an overwrite of a partition leaves hash ranges with replaced file groups. An audit finds them, and a
repair brings the rows back that went there since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome
from jobs.errors import LeaseLostError
from jobs.hudi import hashing_metadata
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import duplicates, newest, rows, texts, upsert
from tests.integration.test_bucket_resize import SPLIT, resize
from tests.integration.test_consistent_hashing import PARTITION, findings, write
from tests.integration.test_consistent_hashing import resize as of_hudi
from tests.integration.test_resize_of_odd_tables import misplaced_by_hudi

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

OUT_OF_USE, STRANGERS = "hash-ranges-out-of-use", "file-groups-without-hash-range"
STATEMENTS = {
    "DROP PARTITION": f"ALTER TABLE {{table}} DROP PARTITION (dt = '{PARTITION}')",
    "TRUNCATE": f"TRUNCATE TABLE {{table}} PARTITION (dt = '{PARTITION}')",
}


def replace_partition(spark: SparkSession, base: Path, options: dict[str, str], how: str) -> None:
    """Deletes or overwrites the first partition, as owners do."""
    if statement := STATEMENTS.get(how):
        LongSession(spark, base, {k: v for k, v in options.items() if "datasource" not in k}).run(statement)
        return
    operation = {"hoodie.datasource.write.operation": how}
    if how == "delete_partition":
        operation["hoodie.datasource.write.partitions.to.delete"] = PARTITION
    upsert(rows(spark, 0, 100, ts=5, partitions=1), base, {**options, **operation})


@pytest.mark.exhaustive
@pytest.mark.parametrize("resized", [None, resize, of_hudi])
@pytest.mark.parametrize("how", ["delete_partition", "insert_overwrite", "insert_overwrite_table", *STATEMENTS])
def test_rows_that_went_to_replaced_file_groups_are_found_and_brought_back(
    spark: SparkSession, base: Path, how: str, resized: object
) -> None:
    options = write(spark, base)
    if resized is not None:
        resize(spark, base, SPLIT) if resized is resize else of_hudi(spark, base)
    replace_partition(spark, base, options, how)
    replacing = newest(base)
    has_rows = how.startswith("insert")
    assert findings(spark, base).keys() - {"rows-in-wrong-hash-range"} == (
        {OUT_OF_USE, STRANGERS} if has_rows else {OUT_OF_USE}
    )
    later = rows(spark, 50, 400, ts=9, partitions=2)
    upsert(later, base, options)
    assert spark.read.format("hudi").load(str(base)).where("ts = 9").count() < 350
    refused = resize(spark, base, SPLIT, dry_run=True)["refusals"]
    assert {each["type"] for each in refused} == {"hashing-metadata-not-sound"}
    audit = run_job(spark, base, "audit", index=None).details
    stale = [each["instant"] for each in audit["stale_writes"]]
    assert len(stale) == 1
    named = {"instants": [*stale, replacing] if has_rows else stale}

    done = run_job(spark, base, "repair", named, index=None)

    assert (done.outcome, stale[0] in done.details["repaired"]) == (Outcome.SUCCEEDED, True)
    kept = [rows(spark, 0, 50, ts=5, partitions=1)] if has_rows else []
    other = rows(spark, 0, 50, partitions=2).where(f"dt != '{PARTITION}'")
    # Odd keys are in both partitions, because the overwrite had keys of the other one.
    kept += [rows(spark, 50, 100, ts=5, partitions=1).where("substring(id, 2) % 2 = 1")] if has_rows else []
    found, wanted = texts(spark, base, later, *kept, *([] if how == "insert_overwrite_table" else [other]))
    assert (found, misplaced_by_hudi(spark, base, "id")) == (wanted, [])
    # The writer goes on in its session.
    upsert(rows(spark, 0, 400, ts=10, partitions=2), base, options)
    assert (duplicates(spark, base), spark.read.format("hudi").load(str(base)).where("ts = 10").count()) == (0, 400)
    assert run_job(spark, base, "compaction", index=None).outcome is Outcome.SUCCEEDED
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    if resized is not None:
        resize(spark, base, SPLIT)
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_a_repair_that_died_while_it_renewed_ranges_is_continued(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write(spark, base)
    replace_partition(spark, base, options, "delete_partition")
    save = hashing_metadata._save

    def die(*arguments: Any) -> None:
        save(*arguments)
        raise LeaseLostError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(hashing_metadata, "_save", die)
        with pytest.raises(LeaseLostError):
            run_job(spark, base, "repair", index=None)
    assert len(hashing_metadata.dangling(hudi_table(spark, base, None))) == 1
    # Hudi ignores the metadata, and the writer goes on with the old ones.
    upsert(rows(spark, 0, 400, ts=9, partitions=2), base, options)
    stale = newest(base)
    assert spark.read.format("hudi").load(str(base)).count() == 200
    assert run_job(spark, base, "repair", {"instants": [stale]}, index=None).details["repaired"] == [stale]
    found, wanted = texts(spark, base, rows(spark, 0, 400, ts=9, partitions=2))
    assert (found, findings(spark, base)) == (wanted, {})


@pytest.mark.exhaustive
def test_a_repair_beside_flink_and_a_restore_to_before_it_are_refused(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    savepoint = run_job(spark, base, "savepoint", {}, index=None).details["savepoint"]
    replace_partition(spark, base, options, "delete_partition")
    flink = {"writers_engines": ("flink",)}
    refused = run_job(spark, base, "repair", index=None, dry_run=True, declared=flink).details
    assert [each["type"] for each in refused["refusals"]] == ["flink-may-be-running"]
    assert not run_job(spark, base, "repair", index=None, dry_run=True).details["nothing_to_do"]
    run_job(spark, base, "repair", index=None)
    upsert(rows(spark, 0, 400, ts=9, partitions=2), base, options)
    assert (spark.read.format("hudi").load(str(base)).count(), findings(spark, base)) == (400, {})
    params = {"savepoint": savepoint, "table_name": "test"}
    stopped = {"writers_stopped": True}
    refused = run_job(spark, base, "restore", params, index=None, dry_run=True, declared=stopped).details
    assert "expanded-since" in {each["type"] for each in refused["refusals"]}
