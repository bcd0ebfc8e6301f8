"""A worker that changes indexes, the version, the buckets or the past of a table is suspended (SIGSTOP) until the next
attempt has ended and a writer has gone on. Then the worker continues, and changes nothing. `test_frozen_attempts` does
so with compactions, replacements and cleanings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from tests.integration import indexed, tables
from tests.integration.run import hudi_table, run_job, work_order
from tests.integration.tables import INDEX
from tests.integration.test_bucket_index import bucketed, plain_table
from tests.integration.test_bucket_resize import SPLIT
from tests.integration.test_consistent_hashing import write as write_ranges
from tests.integration.test_frozen_attempts import AFTER_METADATA, IN_METADATA, suspend
from tests.integration.test_index_builds import order as of_index
from tests.integration.test_partition_ttl import FRESH, aged, lines
from tests.integration.test_stale_writes import UPDATE, UPDATED, written_stale
from tests.integration.test_upgrade import DECLARED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
COUNT = 60
PLAIN: dict[str, Any] = {"num_buckets": None, "table_type": COW, "partitioned": False}
STOPPED = {"writers_stopped": True}

# The next runner of a compaction of the metadata table waits for the end of a heartbeat.
SOON = {"hudi_options": {"hoodie.client.heartbeat.interval_in_ms": "1000"}}

TIMELINE, OF_METADATA = ".hoodie/timeline/", ".hoodie/metadata/.hoodie/timeline/"
PROPERTIES = {"at": "file", "name": ".hoodie/hoodie.properties.backup"}
ENTRIES = {"at": "file", "name": ".hoodie/metadata/record_index/*"}
# A task is about to create the file of a file group, and nobody tells the worker that another attempt has the job.
MARKERS = ".hoodie/metadata/.hoodie/.temp/*/record_index/*.marker.CREATE"
FILLING = {"at": "file", "name": MARKERS, "overtaken": False}
BUILD = {**of_index("build", "record"), "file_groups": 4}


@dataclass
class Scene:
    """A table before a job: the job's parameters, the options of a writer that goes on after the job, and the rows
    after the job. An empty list means that these rows are not known, and None that the job must change no row."""

    params: dict[str, Any]
    options: dict[str, str]
    rows: list[str] | None = None
    index: BucketIndex | None = None  # The bucket index before the job.
    then: BucketIndex | None = None
    count: int = COUNT
    order: dict[str, Any] = field(default_factory=dict)


def index_to_build(spark: SparkSession, base: Path) -> Scene:
    options = tables.write_table(spark, base, count=COUNT, updates=1, **PLAIN)
    return Scene(BUILD, {**options, **indexed.GLOBAL, **indexed.FEW_FILES})


def index_to_drop(spark: SparkSession, base: Path) -> Scene:
    """The writer afterwards builds the index anew."""
    scene = index_to_build(spark, base)
    run_job(spark, base, "index", scene.params, index=None)
    return replace(scene, params=of_index("drop", "record"))


def metadata_to_rebuild(spark: SparkSession, base: Path) -> Scene:
    return replace(index_to_drop(spark, base), params={"action": "rebuild"}, order={"declared": STOPPED})


def metadata_to_compact(spark: SparkSession, base: Path) -> Scene:
    return replace(index_to_drop(spark, base), params={"action": "compact"}, order={"declared": SOON})


def savepoint_to_restore(spark: SparkSession, base: Path) -> Scene:
    """The index that came since makes the restore build the metadata table anew."""
    options = tables.write_table(spark, base, count=COUNT, updates=1, **PLAIN, **indexed.FEW_FILES)
    savepoint = run_job(spark, base, "savepoint", index=None).details["savepoint"]
    before = tables.snapshot(spark, base)
    run_job(spark, base, "index", BUILD, index=None)
    for ts in (7, 8):
        tables.upsert(tables.rows(spark, 0, COUNT + 30, ts=ts), base, {**options, **indexed.GLOBAL})
    params = {"savepoint": savepoint, "table_name": "test"}
    return Scene(params, {**options, **indexed.GLOBAL}, before, order={"writers_stopped": True})


def commit_of_version_6_to_roll_back(spark: SparkSession, base: Path) -> Scene:
    shape = {"version": 6, "table_type": COW, "partitioned": False}
    options = tables.write_table(spark, base, count=COUNT, updates=1, **shape)
    before = tables.snapshot(spark, base)
    tables.upsert(tables.rows(spark, 30, 90, ts=7), base, options)
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    return Scene({"instant": last, "table_name": "test"}, options, before, index=INDEX, then=INDEX)


def partitions_to_drop(spark: SparkSession, base: Path) -> Scene:
    options = aged(spark, base)
    return Scene({"days_retain": 30}, options, lines(spark, base, FRESH), index=INDEX, then=INDEX)


def rows_to_bring_back(spark: SparkSession, base: Path) -> Scene:
    options = written_stale(spark, base, UPDATE, table_type=MOR, partitioned=False)
    return Scene({}, options, [], index=INDEX, then=INDEX, count=300)


def version_to_raise(spark: SparkSession, base: Path) -> Scene:
    options = tables.write_table(spark, base, count=COUNT, updates=1, version=6, table_type=COW, partitioned=False)
    return Scene({"to_version": 9}, options, index=INDEX, then=INDEX, order={"declared": DECLARED})


def commits_to_archive(spark: SparkSession, base: Path) -> Scene:
    shape = {"table_type": COW, "partitioned": False, "metadata": False}
    options = tables.write_table(spark, base, count=COUNT, updates=5, **shape)
    return Scene({"retain": 2}, options, index=INDEX, then=INDEX)


def index_to_adopt(spark: SparkSession, base: Path) -> Scene:
    options = plain_table(spark, base, count=COUNT, updates=1, table_type=MOR, partitioned=False)
    params = {"action": "adopt", "num_buckets": 4}
    found = run_job(spark, base, "bucket_index", params, index=None, declared=STOPPED, dry_run=True).details
    return Scene(params, bucketed(options, found), then=INDEX, order={"declared": STOPPED})


def index_to_give_up(spark: SparkSession, base: Path) -> Scene:
    tables.write_table(spark, base, count=COUNT, updates=1, partitioned=False)
    plain = tables.writer_options(base, num_buckets=None, partitioned=False)
    options = {**plain, "hoodie.index.type": "SIMPLE"}
    return Scene({"action": "drop"}, options, index=INDEX, order={"declared": {**STOPPED, **SOON}})


def ranges_to_split(spark: SparkSession, base: Path) -> Scene:
    return Scene(SPLIT, write_ranges(spark, base, partitioned=False), count=300)


def at_file(pattern: str, **more: Any) -> dict[str, Any]:
    return {"at": "file", "name": pattern, **more}


def case(kind: str, scene: Callable[[SparkSession, Path], Scene], point: dict[str, Any]) -> Any:
    name = f"{scene.__name__} {point['at']} {point['name'][-24:]}".replace("/", "-")
    return pytest.param(kind, scene, point, id=name)


CASES = [
    case("index", index_to_build, PROPERTIES),
    case("index", index_to_build, ENTRIES),
    case("index", index_to_build, FILLING),
    case("index", index_to_build, {"at": "step", "name": "comparing"}),
    case("index", index_to_drop, {"at": "before", "name": "the dropping"}),
    case("index", index_to_drop, PROPERTIES),
    case("metadata_table", metadata_to_rebuild, {"at": "before", "name": "the building"}),
    case("metadata_table", metadata_to_rebuild, FILLING),
    case("restore", savepoint_to_restore, PROPERTIES),
    case("restore", savepoint_to_restore, FILLING),
    case("rollback", commit_of_version_6_to_roll_back, at_file(".hoodie/*.rollback.inflight")),
    case("metadata_table", metadata_to_compact, at_file(f"{OF_METADATA}*.compaction.inflight")),
    case("partition_ttl", partitions_to_drop, AFTER_METADATA),
    case("repair", rows_to_bring_back, IN_METADATA),
    case("upgrade", version_to_raise, at_file(f"{TIMELINE}*_*.*commit")),
    case("archival", commits_to_archive, at_file(f"{TIMELINE}history/*.parquet")),
    case("bucket_index", index_to_adopt, AFTER_METADATA),
    case("bucket_index", index_to_give_up, IN_METADATA),
    case("bucket_resize", ranges_to_split, {"at": "after", "name": "the hashing metadata"}),
]


@pytest.mark.parametrize(("kind", "prepare", "point"), CASES)
def test_a_worker_that_is_suspended_beyond_its_lease_changes_nothing_afterwards(
    spark: SparkSession,
    base: Path,
    spares: Spares,
    kind: str,
    prepare: Callable[[SparkSession, Path], Scene],
    point: dict[str, Any],
) -> None:
    scene = prepare(spark, base)
    wanted = tables.snapshot(spark, base) if scene.rows is None else scene.rows
    order = work_order(base, kind, scene.params, index=scene.index, **scene.order)

    def write() -> None:
        if kind == "repair":
            assert sum("'fare': -1.0" in each for each in tables.snapshot(spark, base)) == UPDATED
        tables.upsert(tables.rows(spark, 20, scene.count + 10, ts=11), base, scene.options)

    # hudi-rs overlooks file slices without a base file.
    suspend(spark, base, spares, order, point, wanted=wanted, write=write, by_hudi_rs=kind != "bucket_resize")
    tables.upsert(tables.rows(spark, 0, scene.count + 20, ts=12), base, scene.options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (scene.count + 20, 0)
    assert found == tables.snapshot(spark, base, metadata=False)
    audit = run_job(spark, base, "audit", index=scene.then).details
    assert (audit["clean"], audit["rows"], audit["pending_instants"]) == (True, scene.count + 20, []), audit
    # The timeline does not have the instants of all files any more.
    if kind != "archival":
        assert tables.left_behind(base) == []
