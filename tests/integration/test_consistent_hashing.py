"""Tables with consistent hashing are audited by their hashing metadata; what would break their ranges is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome
from jobs.format.consistent_hashing import FOLDER
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from service.lake.consistent_hashing import read_metadata
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import duplicates, prepared, rows, snapshot, upsert, writer_options
from tests.integration.tables import newest as newest_instant

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ENGINE = {
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
}
PARTITION = "2026-01-01"


def write(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    options = {**writer_options(base, **shape), **ENGINE}
    key = f"consistent hashing {sorted(options.items())}"
    prepared(base, key, lambda path: upsert(rows(spark, 0, 300, partitions=2), path, options))
    return options


def resize(spark: SparkSession, base: Path, *, completes: bool | None = True) -> None:
    """Splits buckets by Hudi's own plan and execution, as an owner does; only plans if `completes` is None."""
    table, classes = hudi_table(spark, base, None), "org.apache.hudi.client.clustering"
    kind = "SparkConsistentBucket"
    clustering = {
        **ENGINE,
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.hash.field": "id",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.bucket.index.split.threshold": "0.00001",
        "hoodie.bucket.index.merge.threshold": "0.0000001",
        "hoodie.clustering.async.max.commits": "0",
        "hoodie.clustering.plan.strategy.class": f"{classes}.plan.strategy.{kind}ClusteringPlanStrategy",
        "hoodie.clustering.execution.strategy.class": f"{classes}.run.strategy.{kind}ClusteringExecutionStrategy",
        "hoodie.clustering.updates.strategy": f"{classes}.update.strategy.{kind}DuplicateUpdateStrategy",
    }
    with WriteClient(table, UNDER_OUR_LOCK, clustering) as client:
        instant = client._client.scheduleClustering(table.jvm.nothing()).get()
        if completes is not None:
            client._client.cluster(instant, completes)
    if completes is False:
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            table.reload()
            # `WriteClient.rollback` would remove the hashing metadata.
            client._client.rollback(str(instant))


def num_buckets(base: Path, partition: str = PARTITION) -> int:
    storage = open_storage(str(base), {}, None)
    config = read_table_config(storage)
    found = read_metadata(storage, config, read_timeline(storage, config), partition)
    return len(found.ends) if found else 0


def findings(spark: SparkSession, base: Path) -> dict[str, str]:
    found = run_job(spark, base, "audit", index=None).details
    assert {"hashing metadata", "rows of hash ranges"} <= set(found["checked"]), found
    return {each["type"]: each["detail"] for each in found["findings"]}


def test_services_keep_the_rows_and_an_audit_finds_damaged_ranges(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    before = snapshot(spark, base)
    assert (num_buckets(base), findings(spark, base)) == (4, {})
    for kind, params in (
        ("clustering", {"sort_by": ["city"]}),
        ("clustering", {}),
        ("bucket_count", {"num_buckets": 8}),
    ):
        refused = run_job(spark, base, kind, params, index=None, dry_run=True).details["refusals"]
        hints = {each["type"]: each["hint"] for each in refused}
        assert "bucket_resize" in hints["consistent-hashing"]
        assert "no-bucket-index" not in hints

    assert run_job(spark, base, "compaction", index=None).outcome is Outcome.SUCCEEDED
    # The logs of a statement have the instants of its rows, and are older than the new base files.
    session = LongSession(spark, base, {k: v for k, v in options.items() if "datasource" not in k})
    session.run("UPDATE {table} SET fare = -1, ts = 9 WHERE city % 3 = 1")
    assert snapshot(spark, base) == before
    statement = newest_instant(base)
    ((kind, detail),) = findings(spark, base).items()
    assert (kind, detail.split()[-1]) == ("statements-without-effect", statement)
    assert run_job(spark, base, "repair", {"accepted": [statement]}, index=None).details["waived"] == [statement]
    assert findings(spark, base) == {}

    folder = base / FOLDER / PARTITION
    newest = max(folder.glob("[0-9]*.hashing_meta"))
    ranges = json.loads(newest.read_text())
    first, second, *_ = ranges["nodes"]
    first["value"], second["value"] = second["value"], first["value"]
    del ranges["nodes"][-1]
    (folder / f".{newest.name}.crc").unlink()
    newest.write_text(json.dumps(ranges))
    assert findings(spark, base).keys() == {"rows-in-wrong-hash-range", "file-groups-without-hash-range"}
    newest.write_text("{")
    assert (num_buckets(base), findings(spark, base).keys()) == (0, {"hashing-metadata-damaged"})


@pytest.mark.exhaustive
def test_a_resize_by_hudi_itself_is_audited(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    before = snapshot(spark, base)
    resize(spark, base)
    assert (num_buckets(base), snapshot(spark, base), findings(spark, base)) == (8, before, {})
    # The session has been open over the resize, and its options name the number of buckets of the beginning.
    upsert(rows(spark, 0, 400, ts=1, partitions=2), base, options)
    after = snapshot(spark, base)
    assert (len(after), duplicates(spark, base), findings(spark, base)) == (400, 0, {})
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


@pytest.mark.exhaustive
def test_a_resize_that_was_rolled_back_leaves_metadata_that_an_audit_finds(spark: SparkSession, base: Path) -> None:
    options = write(spark, base)
    resize(spark, base, completes=False)
    assert (num_buckets(base), findings(spark, base).keys()) == (4, {"hashing-metadata-uncommitted"})
    params = {"split_bytes": 1 << 30, "merge_bytes": 0}
    assert run_job(spark, base, "bucket_resize", params, index=None).details["nothing_to_do"]
    assert (num_buckets(base), findings(spark, base)) == (4, {})
    upsert(rows(spark, 0, 300, ts=1, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base)) == (300, 0)
    for file in (base / FOLDER / PARTITION).iterdir():
        file.unlink()
    assert "hashing-metadata-gone" in findings(spark, base)


def test_logs_that_writers_made_for_a_resize_that_was_rolled_back_are_removed_without_an_alarm(
    spark: SparkSession, base: Path
) -> None:
    options = write(spark, base)
    resize(spark, base, completes=None)
    [plan] = [item.requested for item in hudi_table(spark, base, None).pending()]
    strategy = "org.apache.hudi.client.clustering.update.strategy.SparkConsistentBucketDuplicateUpdateStrategy"
    both = {"hoodie.clustering.updates.strategy": strategy, "hoodie.write.concurrency.mode": "single_writer"}
    upsert(rows(spark, 0, 300, ts=1, partitions=2), base, {**options, **both})
    for_it = list(base.glob(f"*/.*_{plan}.log.*"))
    before = snapshot(spark, base)
    assert (len(before), len(for_it) > 4) == (300, True)
    for params in ({}, {"limit_file_groups": 2}):
        idle = run_job(spark, base, "compaction", params, index=None).details
        assert idle["nothing_to_do"]
        [note] = idle["notes"]
        assert note.endswith(f"file groups are left out, because pending plans hold them: {plan}.")

    run_job(spark, base, "rollback", {"instant": plan, "table_name": "test"}, index=None)
    run_job(spark, base, "repair", {"leftovers": True}, index=None)

    assert not any(path.exists() for path in for_it)
    assert findings(spark, base) == {}
    assert snapshot(spark, base) == before
    # Any other log of a commit is missed.
    next(path for path in base.glob(f"{PARTITION}/.*.log.*") if path.suffix != ".crc").unlink()
    audited = run_job(spark, base, "audit", index=None).details["findings"]
    assert "commit-files-gone" in {each["type"] for each in audited}


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [{"version": 6}, {"partitioned": False}, {"record_key": "id,region"}])
def test_tables_of_other_shapes_are_audited(spark: SparkSession, base: Path, shape: dict[str, Any]) -> None:
    write(spark, base, **shape)
    assert (num_buckets(base, PARTITION if shape.get("partitioned", True) else ""), findings(spark, base)) == (4, {})
