"""The metadata table is compacted beside writers, and neither rows nor indexes change."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.table_errors import MetadataTableBusyError, MetadataTableError
from service.lake.metadata_table import metadata_table_of
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from service.model.clock import utc_now
from tests.integration import indexed, tables
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.indexed import COUNT, assert_right, file_groups, index_state
from tests.integration.run import run_job, work_order
from tests.integration.writers import HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

COMPACT = {"action": "compact"}
REBUILD = {"action": "rebuild"}
FEW = {**indexed.GLOBAL, **indexed.STATISTICS}
STREAMING = "hoodie.metadata.streaming.write.enabled"


def assert_seen_as_by_hudi(spark: SparkSession, base: Path) -> None:
    """Asserts that the service, which reads names only, sees what Hudi's view of the metadata table in the JVM has."""
    storage = open_storage(str(base), {})
    config = read_table_config(storage)
    seen = metadata_table_of(storage, config, read_timeline(storage, config), None, utc_now())
    found = run_job(spark, base, "metadata_table", COMPACT, index=None, dry_run=True).details
    assert seen is not None
    assert found["before"] == {
        "commits": seen.commits,
        "base_files": seen.base_files,
        "log_files": seen.log_files,
        "bytes": seen.base_bytes + seen.log_bytes,
    }
    assert (seen.pending, seen.missing) == (found["pending"], ())


@pytest.mark.parametrize(
    ("version", "streaming", "indexes", "partitioned"),
    [
        (9, "true", FEW, False),
        *(
            pytest.param(*each, True, marks=pytest.mark.exhaustive)
            for each in [
                # Table version 6 knows neither secondary nor expression indexes.
                (6, "false", FEW),
                (9, "true", FEW),
                (9, "true", indexed.ALL),
                (9, "false", indexed.ALL),
                (9, "true", indexed.ALL_BY_PARTITION),
            ]
        ),
    ],
    ids=["v9-flat", "v6", "v9", "v9-all", "v9-at-the-end", "v9-by-partition"],
)
def test_the_metadata_table_is_compacted_beside_a_writer(
    spark: SparkSession,
    base: Path,
    version: int,
    streaming: str,
    indexes: dict[str, str],
    partitioned: bool,
) -> None:
    more: dict[str, Any] = {
        "partitioned": partitioned,
        STREAMING: streaming,
        "hoodie.metadata.index.column.stats.file.group.count": "3",
        **{f"hoodie.metadata.record.level.index.{most}.filegroup.count": "2" for most in ("min", "max")},
    }
    options = indexed.write(spark, base, indexes, version=version, **more)
    rows, state = tables.snapshot(spark, base), index_state(spark, base)
    assert_seen_as_by_hudi(spark, base)

    writer = HeldWriter(tables.rows(spark, 0, COUNT + 10, ts=5), base, options).start()
    done = run_job(spark, base, "metadata_table", COMPACT, index=None).details

    assert done["before"]["commits"] >= 3
    assert done["before"]["log_files"] > 0
    assert (done["after"]["commits"], done["after"]["log_files"]) == (0, 0)
    assert index_state(spark, base) == state
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    writer.finish()
    assert_seen_as_by_hudi(spark, base)
    after = tables.snapshot(spark, base, metadata=False)
    assert tables.snapshot(spark, base, metadata=True) == after
    assert len(after) == COUNT + 10
    if indexes in (indexed.ALL, indexed.ALL_BY_PARTITION):
        assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]

    groups = file_groups(base)
    assert {name.rpartition("-")[2] for name in groups["record_index"]} == {"0000", "0001"}
    assert len(groups["column_stats"]) == 3
    run_job(spark, base, "metadata_table", REBUILD, index=None, declared={"writers_stopped": True})
    assert file_groups(base) == groups
    assert_seen_as_by_hudi(spark, base)
    # A writer with this option compacts the metadata table within its own commit, which completes afterwards.
    at_once = {**options, "hoodie.metadata.compact.max.delta.commits": "1"}
    for number in (6, 7) if partitioned else ():
        tables.upsert(tables.rows(spark, 0, COUNT // 3, ts=number), base, at_once)
    assert_seen_as_by_hudi(spark, base)


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", ["*.compaction.requested", "*.compaction.inflight", "*_*.commit"])
def test_a_killed_compaction_leaves_a_right_table_and_is_ended_by_the_next_job(
    spark: SparkSession, base: Path, spares: Spares, file: str
) -> None:
    options = indexed.write(spark, base, indexed.ALL)
    rows, state = tables.snapshot(spark, base), index_state(spark, base)
    job = DyingJob(spark, work_order(base, "metadata_table", COMPACT, index=None), spares)
    assert job.die_at({"at": "file", "name": f".hoodie/metadata/.hoodie/timeline/{file}"}).result is None
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows

    if file.endswith("inflight"):
        with pytest.raises(MetadataTableBusyError):
            job.finish()
        for beat in (base / ".hoodie" / "metadata" / ".hoodie" / ".heartbeat").glob("[0-9]*"):
            os.utime(beat, (time.time() - 3600, time.time() - 3600))
    done = job.finish().details
    assert done.get("nothing_to_do") or (done["after"]["log_files"], done["pending"]) == (0, 0)
    assert_seen_as_by_hudi(spark, base)
    assert index_state(spark, base) == state
    tables.upsert(tables.rows(spark, 0, COUNT, ts=7), base, options)
    assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


def damage(base: Path, partition: str, how: str) -> set[str]:
    """Damages the latest base file of each file group, and returns their paths in the table."""
    folder = base / ".hoodie" / "metadata" / partition
    latest = {file.name.partition("_")[0]: file for file in sorted(folder.glob("*.hfile"), key=os.path.getmtime)}
    for file in latest.values():
        whole = file.read_bytes()
        middle = 60 if how == "changed" else len(whole) // 2
        file.write_bytes(whole[:middle] + (b"?" + whole[middle + 1 :] if how == "changed" else b""))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return {str(file.relative_to(base)) for file in latest.values()}


@pytest.mark.parametrize(
    ("partition", "how", "version"),
    [
        ("files", "cut", 9),
        pytest.param("files", "changed", 6, marks=pytest.mark.exhaustive),
        pytest.param("record_index", "changed", 9, marks=pytest.mark.exhaustive),
        pytest.param("column_stats", "cut", 6, marks=pytest.mark.exhaustive),
    ],
)
def test_damaged_files_are_found_and_built_anew(
    spark: SparkSession, base: Path, partition: str, how: str, version: int
) -> None:
    if partition == "files":
        options = tables.write_table(spark, base, count=COUNT, version=version, partitioned=False)
    else:
        options = indexed.write(spark, base, FEW, version=version)
    run_job(spark, base, "metadata_table", COMPACT, index=None)
    rows = tables.snapshot(spark, base, metadata=False)
    damaged = damage(base, partition, how)

    for kind in ("audit", "diagnosis"):
        found = {each["type"]: each for each in run_job(spark, base, kind, index=None).details["findings"]}
        assert all(path in found["metadata-table-damaged"]["detail"] for path in list(damaged)[:1])
        assert found["metadata-table-damaged"]["cure"] == {"kind": "metadata_table", "params": REBUILD}
    assert run_job(spark, base, "metadata_table", index=None).details["findings"]
    if how == "cut" and partition == "files":
        with pytest.raises(MetadataTableError):
            run_job(spark, base, "compaction", index=None)

    run_job(spark, base, "metadata_table", REBUILD, index=None, declared={"writers_stopped": True})
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.upsert(tables.rows(spark, 0, COUNT + 5, ts=9), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT + 5
    assert run_job(spark, base, "audit", index=None).details["clean"]


def test_a_table_without_metadata_table_needs_nothing(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=20, partitioned=False, metadata=False)
    assert run_job(spark, base, "metadata_table", COMPACT).details["nothing_to_do"] is True
