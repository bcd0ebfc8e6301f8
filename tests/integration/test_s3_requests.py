"""Tests the number of requests for tables on S3, and a store that refuses some requests or answers late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.contract import BucketIndex, Outcome, TableLock
from jobs.dataplane import key_changes, parquet_layout
from jobs.dataplane.compacted_file import Compaction, compact_slice
from jobs.dataplane.merge_rules import SliceFiles
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.split_writer import Rewrite, Source
from jobs.errors import CommitLostError
from jobs.storage import local_copy
from jobs.storage import s3 as s3_options
from jobs.storage.announced_file import AnnouncedFile
from jobs.storage.paths import of_hadoop
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.stored_table import rows
from tests.support import s3
from tests.support.small_table import SmallTable, base_file, bucket_id
from tests.unit.test_slice_merge import RULES, SCHEMA, T0, T1, data, row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.format.written_file import WrittenFile
    from tests.support.s3 import Server

COLUMNS = 20
INSTANT = "20260101000000000"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with s3.running() as running:
        yield running


def _base_file(server: Server, rows: int, *, wide: bool = False) -> tuple[str, pa.Table]:
    """Writes a base file whose keys belong to bucket 0 of 1."""
    keys = [f"k{number}" for number in range(rows)]
    columns = {
        f"c{each}": [f"{each}-{number}" * (20 if wide else 1) for number in range(rows)] for each in range(COLUMNS)
    }
    meta = {"_hoodie_record_key": keys, "_hoodie_file_name": ["f"] * rows}
    table = pa.table({**meta, **columns})
    path = "lake/trips/00000000-in.parquet"
    codec = "none" if wide else "snappy"
    pq.write_table(table, path, filesystem=server.files, compression=codec, use_dictionary=not wide)
    return f"s3a://{path}", table


def _split(server: Server, path: str) -> list[WrittenFile]:
    storage = of_hadoop("s3a://lake/trips", server.options)
    source = Source("", "00000000-in", 0, 2, (0, 1), path)
    return rewrite_base_file(Rewrite(storage, INSTANT, ("_hoodie_record_key",)), source, "0-0-0")


def _rows_of(server: Server, written: list[WrittenFile]) -> list[dict[str, object]]:
    tables = [pq.read_table(f"lake/trips/{each.file_name}", filesystem=server.files) for each in written]
    rows = pa.concat_tables(tables).drop_columns(["_hoodie_file_name"]).to_pylist()
    return sorted(rows, key=lambda row: row["_hoodie_record_key"])


def _expected(table: pa.Table) -> list[dict[str, object]]:
    rows = table.drop_columns(["_hoodie_file_name"]).to_pylist()
    return sorted(rows, key=lambda row: row["_hoodie_record_key"])


def test_a_small_file_is_read_by_one_request_and_written_by_one(server: Server) -> None:
    path, table = _base_file(server, 5_000)
    server.counted()
    written = _split(server, path)
    # Each of the two children is an object, and a marker, which still exists when the object is complete.
    assert server.counted() == {"HEAD": 3, "GET": 1, "PUT": 4}
    assert _rows_of(server, written) == _expected(table)


def test_no_object_is_left_of_a_task_whose_instant_has_ended(server: Server) -> None:
    file = AnnouncedFile(of_hadoop("s3a://lake/late", server.options), INSTANT, "p", "f.parquet", "CREATE")
    output = file.create()
    output.stream.write(b"rows")
    server.files.delete_dir("lake/late/.hoodie")
    with pytest.raises(CommitLostError):
        output.close()
    output.abandon()
    assert server.names("lake/late") == set()


def test_a_large_file_is_read_by_few_large_requests(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_copy, "REQUEST_BYTES", 1024 * 1024)
    path, table = _base_file(server, 1_500, wide=True)
    size = server.files.get_file_info(path.removeprefix("s3a://")).size
    assert size > 3 * 1024 * 1024
    server.counted()
    written = _split(server, path)
    assert server.counted()["GET"] == -(-size // (1024 * 1024))
    assert _rows_of(server, written) == _expected(table)


def test_a_compaction_fetches_each_file_once_and_so_does_the_proof(server: Server) -> None:
    base, log = f"p/00000000_0-0-0_{T0}.parquet", f"p/.00000000_{T1}.log.1_0-0-0"
    pq.write_table(
        pa.Table.from_pylist([row(key, 5) for key in range(400)], SCHEMA), f"lake/c/{base}", filesystem=server.files
    )
    with server.files.open_output_stream(f"lake/c/{log}") as stream:
        stream.write(data(T1, [row(1, 9, T1), row(900, 9, T1)]))
    storage = of_hadoop("s3a://lake/c", server.options)
    with storage.read_parquet(f"s3a://lake/c/{base}") as reader:
        layout = parquet_layout.of_schema(reader, {}, None)
    server.counted()
    work = Compaction(storage, INSTANT, RULES, layout, None)
    written = compact_slice(work, SliceFiles("p", "00000000", base, (log,)), "0-0-1")
    assert server.counted() == {"HEAD": 3, "GET": 2, "PUT": 2}
    change = key_changes.compare(storage, f"s3a://lake/c/{base}", f"s3a://lake/c/p/{written.file_name}")
    assert (change.gone, change.new) == (0, 1)
    assert server.counted() == {"HEAD": 2, "GET": 2}


def test_an_idle_poll_is_one_listing(server: Server, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "trips")
    for number in range(1, 4):
        table.commit(f"00{number}", {"p": {base_file(bucket_id(0), f"00{number}"): 10}})
    server.upload(tmp_path / "trips", "lake/watched")
    server.counted()
    storage = open_storage("s3a://lake/watched", server.options)
    storage.names(read_table_config(storage).timeline_path)
    assert server.counted() == {"HEAD": 1, "GET": 1, "LIST": 1}
    storage.names(".hoodie/timeline")
    assert server.counted() == {"LIST": 1}


def test_a_store_that_refuses_a_fifth_of_the_requests_loses_nothing(server: Server) -> None:
    path, table = _base_file(server, 5_000)
    server.counted(refused_share=0.2, listing_seconds=0.2)
    written = _split(server, path)
    listed = open_storage("s3a://lake/trips", server.options).list()
    assert server.counted()["refused"] > 0
    assert {each.file_name for each in written} <= {entry.name for entry in listed}
    assert _rows_of(server, written) == _expected(table)


def test_checksums_behind_the_data_are_sent_only_where_the_user_wants_them(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uploads(bucket_options: dict[str, str]) -> int:
        found = s3_options.of_hadoop(server.options | bucket_options, "lake").filesystem()
        server.counted()
        with found.open_output_stream("lake/many parts") as stream:
            for _ in range(3):
                stream.write(b"x" * 6_000_000)
        return server.counted()["with a trailing checksum"]

    assert uploads({"fs.s3a.connection.timeout": "30001"}) == 0
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
    assert uploads({"fs.s3a.connection.timeout": "30002"}) > 0


@pytest.mark.exhaustive
def test_every_service_gets_through_when_the_store_refuses_requests_and_lists_slowly(
    server: Server, spark: SparkSession, tmp_path: Path
) -> None:
    # The bucket is the test's own: Hadoop keeps a file system for each bucket, whatever server it was on.
    server.files.create_dir("throttled")
    base, index = "s3a://throttled/trips", BucketIndex(2, ("id",))
    conf: Any = spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    for name, value in server.options.items():
        conf.set(name, value)
    lock = TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})
    options = tables.writer_options(base, num_buckets=2, metadata=False, **lock.options)
    tables.upsert(rows(spark, 0, 200), base, options)
    tables.upsert(rows(spark, 0, 100, ts=1), base, options)
    before = tables.snapshot(spark, base)
    server.counted(refused_share=0.1, listing_seconds=0.2)
    costs = {}
    try:
        for kind, params in {
            "compaction": {},
            "bucket_expansion": {"num_buckets": 4},
            "clustering": {"sort_by": ["city"]},
            "cleaning": {"retain": 1},
        }.items():
            done = run_job(spark, base, kind, params, index=index, lock=lock)
            assert done.outcome is Outcome.SUCCEEDED, done
            costs[kind] = server.counted(refused_share=0.1, listing_seconds=0.2)
        assert run_job(spark, base, "audit", index=index, lock=lock).details["clean"] is True
        assert server.counted()["refused"] > 0
        assert tables.in_order(spark, base, 4) == before
    finally:
        for name in server.options:
            conf.unset(name)
    assert all(each["refused"] for each in costs.values()), costs
    assert costs["cleaning"]["POST delete"] + costs["cleaning"]["DELETE"] > 0
    # The table has four slices, and 32 requests were refused. Hudi itself makes most of the requests.
    assert sum(costs["clustering"].values()) < 350, costs
