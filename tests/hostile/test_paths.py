"""Tests paths that lead out of a table or of the allowed roots, by settings, properties, links, metadata and
markers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.plan_paths import check_plans
from jobs.hudi.records import commit_of, touched_of
from jobs.storage.location import is_inside, link_out
from jobs.storage.paths import Storage
from jobs.table_errors import PathOutsideTableError
from service.catalog import table_store, watch_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.lake.active_timeline import read_active_timeline
from service.lake.file_slices import files_by_partition
from service.lake.storage import open_storage
from service.model.clock import utc_now
from service.model.storage_errors import PathForbiddenError
from service.model.storage_errors import PathOutsideTableError as PathOutsideTable
from service.observation.poll import poll_table
from service.observation.table_read import TableReader
from tests.integration import tables
from tests.integration.plans import clean, instant_now, leave_plan
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import sqlalchemy as sa
    from pyspark.sql import SparkSession


def test_a_table_outside_the_present_roots_is_not_read(engine: sa.Engine, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "lake" / "trips")
    table.commit("001")
    base, now = str(table.base), utc_now()
    with writing(engine) as connection:
        table_store.register(connection, Registration("tbl_1", base, "trips", now, now))
    with reading(engine) as connection:
        watch = watch_store.get(connection, "tbl_1")
    allowed, narrowed = (f"{tmp_path}/lake",), (f"{tmp_path}/lake2", f"{tmp_path}/other")
    with pytest.raises(PathForbiddenError):
        poll_table(engine, utc_now, watch, TableReader(engine, {}, 100, narrowed))
    with pytest.raises(PathForbiddenError):
        read_active_timeline(base, {}, narrowed)
    # The refusal also holds for a table that was read before, whose timeline has no new instant.
    assert len(poll_table(engine, utc_now, watch, TableReader(engine, {}, 100, allowed)).commits) == 1
    with reading(engine) as connection:
        watch = watch_store.get(connection, "tbl_1")
    with pytest.raises(PathForbiddenError):
        poll_table(engine, utc_now, watch, TableReader(engine, {}, 100, narrowed))


def test_a_listing_of_a_table_does_not_show_what_a_link_leads_to(tmp_path: Path) -> None:
    table, outside = SmallTable(tmp_path / "trips"), tmp_path / "outside"
    outside.mkdir()
    (table.base / "p").mkdir()
    storage = open_storage(str(table.base), {})
    assert files_by_partition(storage) == {}
    (table.base / "p" / "link").symlink_to(outside)
    with pytest.raises(PathOutsideTable):
        files_by_partition(storage)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", True),
        ("2026-01-01", True),
        ("US:CA/x", True),
        ("a..b/..c", True),
        ("/lake/t", True),
        ("/lake/t/p/f", True),
        ("file:/lake/t/p", True),
        ("file:///lake/t/p", True),
        ("..", False),
        ("p/../../x", False),
        ("/lake/t/../x", False),
        ("/lake/t2", False),
        ("/etc", False),
        ("file:/etc", False),
        ("file://host/lake/t", False),
        ("s3a://lake/t", False),
        ("hdfs://nn/lake/t", False),
        ("p\0", False),
    ],
)
def test_a_path_in_metadata_is_relative_to_the_table_or_below_it(path: str, expected: bool) -> None:
    assert is_inside("/lake/t", path) is expected


def test_paths_on_s3_are_compared_by_bucket_and_key() -> None:
    assert is_inside("s3a://lake/t", "s3a://lake/t/p/f")
    assert is_inside("s3a://lake/t", "s3://lake/t/p/f")
    assert not is_inside("s3a://lake/t", "s3a://lake/t2/f")
    assert not is_inside("s3a://lake/t", "s3a://other/t/f")
    assert not is_inside("s3a://lake/t", "/lake/t/f")


def test_a_writer_may_spell_the_table_by_a_link_but_not_leave_it_by_one(tmp_path: Path) -> None:
    base = tmp_path / "real" / "t"
    (base / "p").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert is_inside(str(base), f"{tmp_path}/link/t/p/f")
    assert not is_inside(str(base), f"{tmp_path}/link/other")
    assert link_out(str(base), "p") is None
    (base / "p" / "within").symlink_to(base)
    assert link_out(str(base), "p") is None
    (base / "p" / "out").symlink_to(tmp_path)
    assert link_out(str(base), "p") == f"{base}/p/out"
    (base / "q").symlink_to(tmp_path)
    assert link_out(str(base), "q") == f"{base}/q"
    assert link_out(str(base), "missing") is None
    assert link_out("s3a://lake/t", "p") is None


@pytest.mark.parametrize(
    "record",
    [
        {"partitionToWriteStats": {"../other": []}},
        {"partitionToWriteStats": {"/etc": []}},
        {"partitionToWriteStats": {"p": [{"fileId": "a", "path": "../../etc/passwd"}]}},
        {"partitionToWriteStats": {"p": [{"fileId": "a", "path": "/etc/passwd"}]}},
        {"partitionToReplaceFileIds": {"p/../..": ["a"]}},
    ],
)
def test_metadata_of_a_commit_that_leads_out_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(PathOutsideTableError):
        commit_of("001", "002", record)
    if "partitionToWriteStats" in record:
        with pytest.raises(PathOutsideTableError):
            touched_of(record)


def test_no_file_is_written_outside(tmp_path: Path) -> None:
    storage = Storage(f"{tmp_path}/t")
    for segments in (("..", "x"), ("p/../..", "x")):
        with pytest.raises(PathOutsideTableError):
            storage.create(*segments)
        with pytest.raises(PathOutsideTableError):
            storage.create_empty(*segments)
    assert list(tmp_path.iterdir()) == []


# -- with Hudi itself

INSTANT = "20300101000000000"
# Hudi itself compares paths by their first characters, so a table of a longer name counts as a part of this one.
VICTIM = f"trips2/p/00000000-aaaa-bbbb-cccc-dddddddddddd-0_0-0-0_{INSTANT}.parquet"


@pytest.fixture(scope="module")
def trips(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("trips") / "trips"
    tables.write_table(spark, base, metadata=False)
    return base


@pytest.fixture
def base(trips: Path, tmp_path: Path) -> Path:
    """A copy of a table, with a file of another table that no job may touch."""
    shutil.copytree(trips, tmp_path / "trips")
    (tmp_path / VICTIM).parent.mkdir(parents=True)
    (tmp_path / VICTIM).write_text("keep me")
    return tmp_path / "trips"


@pytest.mark.parametrize(
    "name", ["hoodie.timeline.path", "hoodie.timeline.history.path", "hoodie.table.index.defs.path"]
)
def test_properties_that_lead_out_are_refused(spark: SparkSession, base: Path, name: str) -> None:
    hudi_table(spark, base, INDEX)
    properties = base / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith(f"{name}=")]
    properties.write_text("\n".join([*kept, f"{name}=../../../away", ""]))
    properties.with_name(".hoodie.properties.crc").unlink()
    with pytest.raises(PathOutsideTableError):
        hudi_table(spark, base, INDEX)


def test_links_in_the_table_that_lead_out_are_refused(spark: SparkSession, base: Path) -> None:
    outside = base.with_name("outside")
    partition = next(path.parent for path in base.glob("*/*.parquet"))
    shutil.copytree(partition, outside)
    (base / "2030-01-01").symlink_to(outside)
    with pytest.raises(PathOutsideTableError):
        hudi_table(spark, base, INDEX).partitions()
    (base / "2030-01-01").unlink()
    assert hudi_table(spark, base, INDEX).partitions()
    (partition / "link.parquet").symlink_to(outside)
    with pytest.raises(PathOutsideTableError):
        hudi_table(spark, base, INDEX).partitions()
    shutil.rmtree(base / ".hoodie" / ".temp", ignore_errors=True)
    (base / ".hoodie" / ".temp").symlink_to(outside)
    with pytest.raises(PathOutsideTableError):
        hudi_table(spark, base, INDEX)


def test_a_marker_of_a_file_outside_does_not_delete_it(spark: SparkSession, base: Path) -> None:
    timeline, markers = base / ".hoodie" / "timeline", base / ".hoodie" / ".temp" / INSTANT
    (timeline / f"{INSTANT}.deltacommit.requested").touch()
    (timeline / f"{INSTANT}.deltacommit.inflight").touch()
    markers.mkdir(parents=True)
    (markers / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (markers / "MARKERS0").write_text(f"../{VICTIM}.marker.CREATE\n")
    with pytest.raises(PathOutsideTableError), WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK) as client:
        client.rollback(INSTANT)
    assert (base.parent / VICTIM).exists()


def test_a_pending_clean_of_a_file_outside_does_not_delete_it(spark: SparkSession, base: Path) -> None:
    leave_plan(spark, base, "clean", instant_now(), clean({"": [str(base.parent / VICTIM)]}))
    with pytest.raises(PathOutsideTableError):
        run_job(spark, base, "cleaning", {"retain": 5})
    assert (base.parent / VICTIM).exists()


def compaction(path: str) -> dict[str, Any]:
    operation = {"baseInstantTime": "0", "deltaFilePaths": [], "dataFilePath": path, "fileId": "a", "partitionPath": ""}
    return {"operations": [operation], "extraMetadata": {"anything": "/goes"}, "version": 2}


def clustering(path: str) -> dict[str, Any]:
    group = {"slices": [{"dataFilePath": path, "deltaFilePaths": [], "fileId": "a", "partitionPath": ""}]}
    return {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [group]}}


def rollback(path: str) -> dict[str, Any]:
    request = {"partitionPath": "", "fileId": "a", "latestBaseInstant": "0", "filesToBeDeleted": [path]}
    undone = {"commitTime": "0", "action": "commit"}
    return {"instantToRollback": undone, "RollbackRequests": [{**request, "logBlocksToBeDeleted": {}}]}


@pytest.mark.parametrize(
    ("action", "record_of"), [("compaction", compaction), ("clustering", clustering), ("rollback", rollback)]
)
def test_every_kind_of_plan_is_checked(
    spark: SparkSession, base: Path, action: str, record_of: Callable[[str], dict[str, Any]]
) -> None:
    leave_plan(spark, base, action, INSTANT, record_of(f"file:{base}/p/a.parquet"))
    check_plans(hudi_table(spark, base, INDEX), action)
    for path in ("/etc/passwd", f"file:{base}2/p/a.parquet", "../trips2/a.parquet"):
        leave_plan(spark, base, action, INSTANT, record_of(path))
        with pytest.raises(PathOutsideTableError):
            check_plans(hudi_table(spark, base, INDEX), action)
