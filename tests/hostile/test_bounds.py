"""A table with more, longer or larger values than can be stored shows the reason, and has no other effect."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy.exc import OperationalError

from jobs.format.hashing_config import DamagedConfigError, HashingConfig
from service.catalog import commit_store, table_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.lake.avro_file import first_record
from service.lake.commit import COMPACTION, Commit
from service.lake.history import archived_since
from service.lake.instant_metadata import CommitRecord, decode
from service.lake.storage import MAX_METADATA_BYTES, open_storage
from service.lake.table_config import read_table_config
from service.model.errors import DatabaseUnavailableError
from service.model.storage_errors import StorageError
from service.model.table_errors import NotAHudiTableError
from service.registration.detection import examine
from tests.hostile import avro
from tests.integration.control_plane.watching import Watched
from tests.support.small_table import SmallTable, base_file, bucket_id

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock


@pytest.fixture
def watched(engine: sa.Engine, clock: FakeClock) -> Watched:
    return Watched(engine, clock)


def stat(**members: Any) -> dict[str, Any]:
    return {"fileId": "a", "path": "p/a_0-1-1_001.parquet", **members}


def commit(*stats: dict[str, Any], partition: str = "p", **members: Any) -> dict[str, Any]:
    return {"partitionToWriteStats": {partition: list(stats)}, **members}


COMMITS = {
    "bytes": commit(stat(totalWriteBytes=9 * 10**18)),
    "rows": commit(stat(numInserts=10**30)),
    "float": commit(stat(numInserts=1e300)),
    "sum": commit(stat(totalWriteBytes=6 * 10**15), stat(totalWriteBytes=6 * 10**15)),
    "partition": commit(stat(), partition="p" * 5000),
    "nul": commit(stat(), partition="p\0"),
    "surrogate": commit(stat(), partition="p\ud800"),
    "file-id": commit(stat(fileId="a" * 5000)),
    "file-id-nul": commit(stat(fileId="a\0")),
    "no-file-id": commit({"path": "p"}),
    "operation": commit(stat(), operationType="X" * 33),
    "replaced": commit(partitionToReplaceFileIds={"p": ["a\0"]}),
    "partitions": {"partitionToWriteStats": {str(number): [] for number in range(100_001)}},
    "nested": commit(stat(), operationType=json.loads("[" * 200 + "]" * 200)),
}


def refused(watched: Watched, table: SmallTable) -> str:
    """Polls a table and returns its problem."""
    table_id = watched.register(table)
    watched.poll()
    watch = watched.watch(table_id)
    assert watch.error is not None
    assert watch.error.type in {"storage-error", "file-damaged"}, watch.error
    assert watched.commits(table_id) == []
    return watch.error.detail


@pytest.mark.parametrize("name", COMMITS)
def test_a_commit_beyond_the_bounds_makes_its_table_unhealthy(watched: Watched, tmp_path: Path, name: str) -> None:
    table = SmallTable(tmp_path / "t", version=6)
    table.commit("001")
    (table.timeline / "002.deltacommit").write_text(json.dumps(COMMITS[name]))
    assert "002.deltacommit is damaged" in refused(watched, table)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (avro.bomb(MAX_METADATA_BYTES), "unpacks to more than 67108864 bytes"),
        (avro.avro_file('"string"', b"\x02a", codec="bzip2"), "a codec that Hudi does not write: b'bzip2'"),
        (avro.avro_file('"string"', avro.deflated(b"\x02a")[:-1], codec="deflate"), "a block that is cut off"),
    ],
    ids=["bomb", "codec", "cut-off"],
)
def test_a_block_of_avro_is_unpacked_within_a_bound(content: bytes, reason: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(StorageError, match=reason):
        decode(content, CommitRecord, "a.commit")

    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 3 * MAX_METADATA_BYTES


def test_a_deflated_record_within_the_bound_is_read() -> None:
    assert first_record(avro.bomb(1000)) == {"n": b"\0" * 1000}


ODD_NAMES = [b"2" * 40 + b"_003.deltacommit", b"002_" + b"3" * 40 + b".deltacommit", b"002_003\xff.deltacommit"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_of_the_timeline_with_an_odd_name_makes_its_table_unhealthy(
    watched: Watched, tmp_path: Path, name: bytes
) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    Path(os.fsdecode(bytes(table.timeline) + b"/" + name)).touch()
    assert refused(watched, table)


def test_a_file_of_a_partition_with_a_name_that_is_not_utf_8_makes_its_table_unhealthy(
    watched: Watched, tmp_path: Path
) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"p": {base_file(bucket_id(0), "001"): 10}})
    Path(os.fsdecode(bytes(table.base) + b"/p/\xff\xfe.parquet")).touch()
    assert "not UTF-8" in refused(watched, table)


def test_a_folder_with_too_many_entries_is_refused(tmp_path: Path) -> None:
    for number in range(11):
        (tmp_path / str(number)).touch()
    storage = open_storage(str(tmp_path), {})
    assert len(storage.list(most=11)) == 11
    with pytest.raises(StorageError, match="more than 10 files"):
        storage.list(most=10)


@pytest.mark.parametrize("value", ["\\u0000", "\\ud800", "n" * 1025])
def test_a_name_that_cannot_be_stored_is_damage(tmp_path: Path, value: str) -> None:
    table = SmallTable(tmp_path / "t")
    with (table.base / ".hoodie" / "hoodie.properties").open("a") as file:
        file.write(f"hoodie.table.name={value}\n")
    with pytest.raises(NotAHudiTableError, match="is damaged"):
        read_table_config(open_storage(str(table.base), {}))


ROWS: list[dict[str, Any]] = [
    {"instantTime": 7, "completionTime": "002", "action": "commit", "metadata": b""},
    {"instantTime": "1" * 40, "completionTime": "002", "action": "commit", "metadata": b""},
    {"instantTime": "001", "completionTime": "002", "action": "a" * 40, "metadata": b""},
    {"instantTime": "001", "completionTime": ["002"], "action": "commit", "metadata": b""},
    {"instantTime": "001", "completionTime": "002", "action": "commit", "metadata": {"a": 1}},
    {"completionTime": "002"},
]


@pytest.mark.parametrize("row", ROWS)
def test_an_archived_instant_of_another_shape_is_damage(tmp_path: Path, row: dict[str, Any]) -> None:
    table = SmallTable(tmp_path / "t")
    table.add_to_history(pa.Table.from_pylist([row]), "001_001_0.parquet")
    storage = open_storage(str(table.base), {})
    found, is_whole = archived_since(storage, read_table_config(storage), "001")
    assert (found, is_whole) == ((), False)


KEYS = [
    pa.array([1, 2, 3]),
    pa.array([["a"], ["b"]]),
    pa.array(["k" * 70_000]),
    pa.array(["k" * 70_000, "a"]).dictionary_encode(),
    pa.array([b"\xff"]),
]


@pytest.mark.parametrize("keys", KEYS)
def test_record_keys_that_are_no_keys_are_damage(tmp_path: Path, keys: pa.Array) -> None:
    with pytest.raises(StorageError, match="record key"):
        _examined(tmp_path, pa.table({"_hoodie_record_key": keys}))


def test_a_base_file_with_too_many_columns_or_too_long_a_footer_is_refused(tmp_path: Path) -> None:
    wide = pa.table({f"c{number}": pa.array([1]) for number in range(10_001)})
    with pytest.raises(StorageError, match="more than 10000 columns"):
        _examined(tmp_path / "wide", wide)
    long = (2**31 - 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(StorageError, match="shorter than its footer"):
        _examined(tmp_path / "short", pa.table({"a": [1]}), tail=long)
    with pytest.raises(StorageError, match="footer of more than"):
        _examined(tmp_path / "long", pa.table({"a": [1]}), tail=long, size=2**31)


def _examined(folder: Path, content: pa.Table, tail: bytes = b"", size: int = 0) -> None:
    """`size` bytes are in front of the `tail`; they take no room on the disk."""
    table = SmallTable(folder / "t")
    name = base_file(bucket_id(0), "001")
    table.commit("001", {"p": {name: 0}})
    pq.write_table(content, table.base / "p" / name)
    with (table.base / "p" / name).open("r+b") as file:
        file.seek(size, os.SEEK_SET if size else os.SEEK_END)
        file.write(tail)
    examine(str(table.base), allowed_roots=None, claimed=None, storage_options={})


def test_counts_of_many_commits_never_overflow(engine: sa.Engine, clock: FakeClock) -> None:
    now = clock()
    commits = [
        Commit("t", f"{number:03}", "deltacommit", None, now, now, bytes_written=2**63 - 1, file_groups=1)
        for number in range(4)
    ]
    with writing(engine) as connection:
        table_store.register(connection, Registration("t", "/t", "t", now, now))
        commit_store.record(connection, commits, now)
        assert commit_store.since_run(connection, "t", COMPACTION).bytes_written == 2**65


def test_a_statement_that_fails_does_not_mean_that_the_database_is_absent(engine: sa.Engine) -> None:
    with pytest.raises(OperationalError), reading(engine) as connection:
        connection.exec_driver_sql("SELECT sum(x) FROM (SELECT 9223372036854775807 AS x UNION ALL SELECT 1)").all()
    with pytest.raises(DatabaseUnavailableError), reading(engine) as connection:
        connection.exec_driver_sql("SELECT * FROM gone").all()


@pytest.mark.parametrize("number", ["1e400", "1" * 5000, "[4]", "NaN"])
def test_a_hashing_config_with_an_impossible_number_is_damaged(number: str) -> None:
    with pytest.raises(DamagedConfigError):
        HashingConfig.from_json("001", b'{"expressions": "", "defaultBucketNumber": %s}' % number.encode())
