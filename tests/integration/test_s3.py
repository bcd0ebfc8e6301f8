"""Tests a table on S3 (moto's server, Hadoop's s3a): our tasks read and write by Arrow the same files as Hudi."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import Outcome, TableLock
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import HudiError, RefusedError
from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import Jvm
from jobs.hudi.s3a_recycling import JOBS_BEFORE_CLOSE, Connections
from jobs.hudi.upgrader import Upgrader
from jobs.storage.paths import of_hadoop
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.doomed import Spares, Surroundings
from tests.integration.dying_job import DyingJob
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, run_job, work_order
from tests.integration.stored_table import INDEX, PARTITIONS, StoredTable, left_behind, names_of_files, rows
from tests.support import s3
from tests.support.ports import free_port, listening
from tests.support.session_jars import jars_of
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

CLOSE_WAIT = "08"


class Lake(s3.Server):
    """A bucket on its own server, and the options with which all three readers find it."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self.options = {
            "fs.s3a.bucket.lake.access.key": "someone",
            "fs.s3a.bucket.lake.secret.key": "anything",
            "fs.s3a.bucket.lake.endpoint": endpoint,
            "fs.s3a.endpoint": "http://127.0.0.1:1",  # the bucket's own endpoint must override this one
            "fs.s3a.path.style.access": "true",
        }
        self.for_hudi_rs = {
            "aws_access_key_id": "someone",
            "aws_secret_access_key": "anything",
            "aws_region": "us-east-1",
            "aws_endpoint": endpoint,
            "aws_allow_http": "true",
        }
        self.files.create_dir("lake")

    def names(self, base: str) -> set[str]:
        return names_of_files(base, self.options)

    def left_behind(self, base: str) -> list[str]:
        return left_behind(base, self.options) + [f"upload {key}" for key in self.unfinished_uploads()]

    def connections_held(self) -> int:
        """Counts the connections from this machine to the server that the server has ended (proc(5))."""
        port = f":{int(self.endpoint.rpartition(':')[2]):04X}"
        lines = [line for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
        entries = [line.split() for line in lines]
        return sum(remote.endswith(port) and state == CLOSE_WAIT for _, _, remote, state, *_ in entries)

    def unfinished_uploads(self) -> list[str]:
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="someone",
            aws_secret_access_key="anything",
            region_name="us-east-1",
        )
        return [item["Key"] for item in client.list_multipart_uploads(Bucket="lake").get("Uploads", [])]


@contextmanager
def endpoint() -> Iterator[str]:
    # The server has its own process, because Arrow may wait for it while it holds the interpreter's lock.
    port = free_port()
    with listening([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port], port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def lake() -> Iterator[Lake]:
    with endpoint() as address:
        yield Lake(address)


@pytest.fixture(scope="module")
def on_s3(spark: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    """The session with the lake's options in Hadoop's configuration, as in a worker."""
    with reached_by(spark, lake.options, "s3a://lake"):
        yield spark


@pytest.fixture
def lock(tmp_path: Path) -> TableLock:
    """Hudi's filesystem lock needs atomic creation, which a disk has, but not S3."""
    return TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})


def write(
    spark: SparkSession, base: str, lock: TableLock, table_type: str, *, updates: int = 0, count: int = 200
) -> dict[str, str]:
    options = tables.writer_options(base, table_type=table_type, num_buckets=2, metadata=False, **lock.options)
    tables.upsert(rows(spark, 0, count), base, options)
    for number in range(1, updates + 1):
        tables.upsert(rows(spark, 0, count // 2, ts=number), base, options)
    return options


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", pytest.param("COPY_ON_WRITE", marks=pytest.mark.exhaustive)])
def test_a_table_on_s3_is_expanded_and_clustered_like_one_on_a_disk(
    on_s3: SparkSession, lake: Lake, lock: TableLock, table_type: str
) -> None:
    base = f"s3a://lake/{table_type.lower()}/trips"
    options = write(on_s3, base, lock, table_type, updates=table_type == "MERGE_ON_READ")
    before = tables.snapshot(on_s3, base)
    assert len(before) == 200

    # The service reads the table by the same options.
    found = examine(base.replace("s3a", "s3"), allowed_roots=None, claimed=None, storage_options=lake.options)
    assert (found.base_path, found.index) == (base, INDEX)

    expanded = run_job(on_s3, base, "bucket_expansion", {"num_buckets": 4}, index=INDEX, lock=lock)
    assert expanded.outcome is Outcome.SUCCEEDED
    assert expanded.details["rows"] == 200
    has_logs = table_type == "MERGE_ON_READ"
    assert (expanded.details["merged"]["arrow"] > 0, expanded.details["merged"]["hudi"]) == (has_logs, 0)
    assert tables.snapshot(on_s3, base) == before

    # The writer's options still have 2 buckets.
    tables.upsert(rows(on_s3, 100, 300, ts=7), base, options)
    before = tables.snapshot(on_s3, base)
    assert len(before) == 300

    (instant,) = expanded.instants
    if not has_logs:
        clustered = run_job(on_s3, base, "clustering", {"sort_by": ["city"]}, index=INDEX, lock=lock)
        assert clustered.details["inside_buckets"] is True
        (instant,) = clustered.instants
    assert tables.in_order(on_s3, base, 4) == before
    names = lake.names(base)
    retain = {"retain": 1 if has_logs else 2}
    assert run_job(on_s3, base, "cleaning", retain, index=INDEX, lock=lock).outcome is Outcome.SUCCEEDED
    gone = {name for name in names - lake.names(base) if name.endswith(".parquet")}
    # Files that the expansion has replaced, in each partition.
    assert {name.partition("/")[0] for name in gone} == set(PARTITIONS)
    assert tables.in_order(on_s3, base, 4) == before

    assert rows_by_hudi_rs(base, lake.for_hudi_rs) == rows_by_spark(on_s3, base)
    assert lake.left_behind(base) == []
    in_partitions = {name.partition("/")[0] for name in lake.names(base) if instant in name}
    assert set(PARTITIONS) <= in_partitions


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_table_on_s3_adopts_a_bucket_index_by_a_worker_that_dies_and_gives_it_up(
    on_s3: SparkSession,
    lake: Lake,
    lock: TableLock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table_type: str,
) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_LOCK_ROOTS", str(tmp_path))
    base = f"s3a://lake/adopted_{table_type.lower()}/trips"
    plain = tables.writer_options(base, table_type=table_type, num_buckets=None, **lock.options)
    tables.upsert(rows(on_s3, 0, 200), base, plain)
    tables.upsert(rows(on_s3, 0, 100, ts=1), base, plain)
    before = tables.snapshot(on_s3, base)
    declared: dict[str, Any] = {"writers_stopped": True, "writers_hudi_version": "1.2.0"}
    spares = Spares(jars_of(on_s3), tmp_path, Surroundings(storage=lake.options))
    points = [("step", "waiting for writers"), ("before", "the commit"), ("after", "the rollback")]
    given = {"action": "adopt", "num_buckets": 2}
    job = DyingJob(on_s3, work_order(base, "bucket_index", given, index=None, lock=lock, declared=declared), spares)
    for death in job.deaths([{"at": at, "name": name} for at, name in points]):
        assert death.result is None
        assert tables.snapshot(on_s3, base) == before

    done = job.finish().details

    assert (done["rows"], done["num_buckets"]) == (200, 2)
    assert tables.in_order(on_s3, base, 2) == before
    assert rows_by_hudi_rs(base, lake.for_hudi_rs) == rows_by_spark(on_s3, base)
    assert lake.left_behind(base) == []
    options = {**plain, **{each["name"]: each["value"] for each in done["writer_options"]}}
    tables.upsert(rows(on_s3, 150, 250, ts=5), base, options)
    assert len(tables.in_order(on_s3, base, 2)) == 250
    assert run_job(on_s3, base, "audit", index=INDEX, lock=lock).details["clean"] is True
    run_job(on_s3, base, "bucket_index", {"action": "drop"}, index=INDEX, lock=lock, declared=declared)
    tables.upsert(rows(on_s3, 200, 300, ts=7), base, {**plain, "hoodie.index.type": "SIMPLE"})
    assert (len(tables.snapshot(on_s3, base)), tables.duplicates(on_s3, base)) == (300, 0)
    assert run_job(on_s3, base, "audit", index=None, lock=lock).details["clean"] is True


@pytest.mark.exhaustive
def test_the_version_of_a_table_on_s3_changes_if_times_of_files_do_not_matter(
    on_s3: SparkSession, lake: Lake, lock: TableLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "s3a://lake/of_a_version"
    options = tables.writer_options(base, table_type="MERGE_ON_READ", version=8, num_buckets=2, **lock.options)
    tables.upsert(rows(on_s3, 0, 50), base, options)
    tables.upsert(rows(on_s3, 0, 20, ts=1), base, options)
    declared = {"writers_stopped": True, "writers_hudi_version": "1.2.0", "readers_hudi_version": "1.2.0"}
    given: dict[str, Any] = {"index": INDEX, "lock": lock, "declared": declared}
    properties = f"{base.removeprefix('s3a://')}/.hoodie/hoodie.properties"

    planned = run_job(on_s3, base, "upgrade", {"to_version": 6}, dry_run=True, **given).details["refusals"]
    assert [each["type"] for each in planned] == ["upgrade-not-proved"]
    assert "s3a" in planned[0]["detail"]
    run_job(on_s3, base, "compaction", **given)
    before, names = tables.snapshot(on_s3, base), lake.names(base)
    content = lake.files.open_input_stream(properties).read()

    run = Upgrader.run

    def dies(self: Upgrader, to: int) -> None:
        run(self, to)
        raise HudiError("the connection is lost")

    monkeypatch.setattr(Upgrader, "run", dies)
    with pytest.raises(HudiError, match="the connection is lost"):
        run_job(on_s3, base, "upgrade", {"to_version": 9}, **given)
    monkeypatch.undo()
    assert (lake.names(base), lake.files.open_input_stream(properties).read()) == (names, content)
    assert tables.snapshot(on_s3, base) == before

    for ts, to in ((2, 9), (3, 8)):
        assert run_job(on_s3, base, "upgrade", {"to_version": to}, **given).details["rows"] == 50
        assert hudi_table(on_s3, base, INDEX).version == to
        assert tables.snapshot(on_s3, base) == before
        assert tables.snapshot(on_s3, base, metadata=False) == before
        assert rows_by_hudi_rs(base, lake.for_hudi_rs) == rows_by_spark(on_s3, base)
        tables.upsert(rows(on_s3, 0, 20, ts=ts), base, options)
        before = tables.snapshot(on_s3, base)
        assert run_job(on_s3, base, "audit", index=INDEX, lock=lock).details["clean"] is True
    assert not [name for name in lake.names(base) if "groundskeeper.upgrade" in name]


@pytest.mark.exhaustive
def test_rows_that_were_written_to_replaced_file_groups_are_repaired(
    on_s3: SparkSession, lake: Lake, lock: TableLock, tmp_path: Path
) -> None:
    base = "s3a://lake/repaired"
    options = write(on_s3, base, lock, "MERGE_ON_READ")
    session = LongSession(on_s3, base, options)
    run_job(on_s3, base, "clustering", {"sort_by": ["city"]}, index=INDEX, lock=lock)
    session.run("UPDATE {table} SET fare = -1.0, ts = 5 WHERE city < 500")
    expected = rows(on_s3, 0, 200).withColumn("ts", F.when(F.col("city") < 500, 5).otherwise(0).cast("long"))
    expected = expected.withColumn("fare", F.when(F.col("ts") == 5, -1.0).otherwise(F.col("fare")))
    assert not _holds(on_s3, base, expected)
    assert len(run_job(on_s3, base, "audit", index=INDEX, lock=lock).details["stale_writes"]) == 1

    repaired = run_job(on_s3, base, "repair", index=INDEX, lock=lock)

    assert repaired.details["rows"] == expected.where("ts = 5").count()
    assert _holds(on_s3, base, expected)

    # The other kind: a writer that has read the number of buckets just before the switch.
    expansion = {"num_buckets": 4}
    run_job(on_s3, base, "bucket_expansion", expansion, index=INDEX, lock=lock, writers_query_pruning_off=True)
    config = base.removeprefix("s3a://") + "/.hoodie/.bucket_index"
    fs.copy_files(config, str(tmp_path / "config"), source_filesystem=lake.files)
    lake.files.delete_dir(config)
    tables.upsert(rows(on_s3, 100, 300, ts=7), base, options)
    fs.copy_files(str(tmp_path / "config"), config, destination_filesystem=lake.files)
    assert tables.misplaced(on_s3, base, 4) > 0
    instant = max(name.rsplit("/", 1)[-1].split("_")[0] for name in lake.names(base) if name.endswith(".deltacommit"))

    moved = run_job(on_s3, base, "repair", {"instants": [instant]}, index=INDEX, lock=lock)

    assert moved.details["moved"] > 0
    expected = expected.where("substring(id, 2) < 100").union(rows(on_s3, 100, 300, ts=7))
    assert _holds(on_s3, base, expected)
    tables.in_order(on_s3, base, 4)
    assert rows_by_hudi_rs(base, lake.for_hudi_rs) == rows_by_spark(on_s3, base)
    assert run_job(on_s3, base, "audit", index=INDEX, lock=lock).details["clean"] is True
    assert lake.left_behind(base) == []


def _holds(spark: SparkSession, base: str, expected: DataFrame) -> bool:
    found = spark.read.format("hudi").option("hoodie.bucket.index.query.pruning", "false").load(base)
    return sorted(map(str, found.select(*expected.columns).collect())) == sorted(map(str, expected.collect()))


@pytest.mark.exhaustive
def test_jobs_on_a_table_with_a_metadata_table_do_not_use_up_the_connections(
    on_s3: SparkSession, lake: Lake, lock: TableLock
) -> None:
    base = "s3a://lake/with_metadata"
    options = tables.writer_options(base, table_type="MERGE_ON_READ", num_buckets=2, **lock.options)
    tables.upsert(rows(on_s3, 0, 200), base, options)
    jvm = Jvm(on_s3)
    connections = Connections(lambda path: close_file_system(jvm, path))
    kinds = cycle([("bucket_expansion", {"factor": 2}), ("cleaning", {"retain": 2}), ("compaction", {})])
    held = []
    for number, (kind, params) in zip(range(JOBS_BEFORE_CLOSE + 1), kinds, strict=False):
        tables.upsert(rows(on_s3, 0, 100, ts=number + 1), base, options)
        with connections.used_by(base):
            assert run_job(on_s3, base, kind, params, index=INDEX, lock=lock).outcome is Outcome.SUCCEEDED
        held.append(lake.connections_held())
    # If this assertion fails, Hudi returns its connections itself, and `s3a_recycling` can be removed.
    assert held[JOBS_BEFORE_CLOSE - 2] > 0, held
    assert held[JOBS_BEFORE_CLOSE - 1] == 0, held
    assert tables.snapshot(on_s3, base, metadata=True) == tables.snapshot(on_s3, base, metadata=False)
    assert tables.misplaced(on_s3, base, 8) == 0
    assert run_job(on_s3, base, "audit", index=INDEX, lock=lock).details["clean"] is True


@pytest.mark.exhaustive
def test_an_abort_in_the_middle_leaves_nothing_in_the_bucket_and_refusals_come_before(
    on_s3: SparkSession, lake: Lake, lock: TableLock
) -> None:
    table = StoredTable(on_s3, "s3a://lake/aborted", lake.options, lock)
    table.require_nothing_of_an_abort(table_type="COPY_ON_WRITE", metadata=False)
    assert lake.unfinished_uploads() == []
    _said_in_the_dry_run(on_s3, table.base, lock)


def test_a_task_that_fails_while_it_writes_leaves_no_object_but_its_markers(lake: Lake) -> None:
    storage = of_hadoop("s3a://lake/alone", lake.options)
    keys = [f"k{number}" for number in range(200_000)]
    meta = {"_hoodie_record_key": keys, "_hoodie_file_name": ["f"] * len(keys), "v": [key * 20 for key in keys]}
    path = "lake/alone/p=1%20 x/00000000-in.parquet"
    pq.write_table(pa.table(meta), path, filesystem=lake.files, compression="none", use_dictionary=False)
    source = Source("p=1%20 x", "00000000-in", 0, 4, (0, 2), f"s3a://{path}")

    # All four buckets have some of these keys, and only two are to be written.
    with pytest.raises(RefusedError):
        rewrite_base_file(Rewrite(storage, "20260101000000000", ("id",)), source, "0-0-0")

    left = lake.names("s3a://lake/alone")
    assert len([name for name in left if name.startswith(".hoodie/.temp/20260101000000000/p=1%20 x/0000000")]) == 2
    assert len(left) == 3
    assert lake.unfinished_uploads() == []


def _said_in_the_dry_run(spark: SparkSession, base: str, lock: TableLock) -> None:
    """Returns the dry run's obstacles that only S3 has, with their hints."""
    conf: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    conf.set("fs.s3a.bucket.lake.acl.default", "BucketOwnerFullControl")
    try:
        answer = run_job(spark, base, "bucket_expansion", {"factor": 2}, index=INDEX, lock=lock, dry_run=True)
    finally:
        conf.unset("fs.s3a.bucket.lake.acl.default")
    assert [(item["type"], item["detail"]) for item in answer.details["refusals"]] == [
        ("storage-not-supported", "fs.s3a.acl.default = BucketOwnerFullControl")
    ]
    # Hudi itself refuses its filesystem lock on S3.
    answer = run_job(spark, base, "bucket_expansion", {"factor": 2}, index=INDEX, dry_run=True)
    assert [item["type"] for item in answer.details["refusals"]] == ["lock-not-atomic"]
