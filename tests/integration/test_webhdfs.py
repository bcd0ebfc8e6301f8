"""Compares Arrow's file system over WebHDFS with Hadoop's own client on a real cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from jobs.contract import TableLock
from jobs.storage import hdfs as hdfs_options
from jobs.storage.paths import of_hadoop
from jobs.storage.permissions import Permissions
from service.lake.storage import open_storage
from service.lake.table_lock import read_lock, remove_lock
from service.model.lock_state import LockState
from service.model.storage_errors import PathForbiddenError, PathNotFoundError, StorageError, StorageUnsupportedError
from tests.support import hdfs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.support.hdfs import Cluster

# Hadoop escapes none of these characters in a path, so we must not, either.
ODD = "a b/ü+y 50%25&x=1?#;'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with hdfs.running() as running:
        yield running


@pytest.fixture(scope="module")
def files(cluster: Cluster) -> fs.FileSystem:
    return _access(cluster).filesystem()


def _access(cluster: Cluster) -> hdfs_options.Hdfs:
    return hdfs_options.of_hadoop(cluster.options, cluster.uri.removeprefix("hdfs://"))


def test_files_are_where_hadoop_finds_them_and_as_it_writes_them(cluster: Cluster, files: fs.FileSystem) -> None:
    content = os.urandom(3_000_000)
    storage = of_hadoop(f"{cluster.uri}/table", cluster.options)
    output = storage.create(ODD, "file")
    output.stream.write(content[:1_000_000])
    output.stream.write(content[1_000_000:])
    assert files.get_file_info(f"/table/{ODD}/file").type == fs.FileType.NotFound
    assert output.close() == len(content)

    found = cluster.status(f"/table/{ODD}/file")
    assert (found.getLen(), found.getPermission().toString()) == (len(content), "rw-r--r--")
    cluster.create(f"/table/{ODD}/by hadoop")
    by_hadoop = cluster.status(f"/table/{ODD}/by hadoop")
    for of in ("getOwner", "getGroup", "getReplication", "getBlockSize"):
        assert getattr(found, of)() == getattr(by_hadoop, of)()
    assert cluster.status(f"/table/{ODD}").getPermission().toString() == "rwxr-xr-x"

    with files.open_input_file(f"/table/{ODD}/file") as file:
        assert file.size() == len(content)
        assert file.read_at(10, 1_999_999) == content[1_999_999:2_000_009]
        assert file.read_at(100, len(content) - 5) == content[-5:]
        file.seek(0)
        assert file.read() == content
    info = files.get_file_info(f"/table/{ODD}/file")
    assert (info.type, info.size) == (fs.FileType.File, len(content))
    assert abs(info.mtime - datetime.now(UTC)) < timedelta(minutes=1)
    assert storage.size([f"{cluster.uri}/table/{ODD}/file", f"{cluster.uri}/table/none"]) == len(content)


def test_listings_are_whole_whatever_their_length(cluster: Cluster, files: fs.FileSystem) -> None:
    storage = of_hadoop(f"{cluster.uri}/listed", cluster.options)
    names = {f"{number:03d} é" for number in range(3 * hdfs.ENTRIES_OF_A_LISTING + 1)}
    for name in names:
        storage.create_empty(name)
    storage.create_empty("folder", "inner", "deep")
    assert storage.size([*(f"{cluster.uri}/listed/{name}" for name in names), f"{cluster.uri}/listed/none"]) == 0
    seen = open_storage(f"{cluster.uri}/listed", cluster.options)
    assert set(seen.names("")) == {*names, "folder"}
    assert {entry.path for entry in seen.list(recursive=True)} == {
        *names,
        "folder",
        "folder/inner",
        "folder/inner/deep",
    }
    assert seen.list("none") == []
    assert not seen.exists("none")
    assert seen.exists("folder/inner")
    for missing in (f"{next(iter(names))}/below", "none"):
        with pytest.raises(PathNotFoundError):
            seen.names(missing)


def test_an_idle_poll_is_one_request(cluster: Cluster) -> None:
    for name in ("001.commit", "001.inflight"):
        cluster.create(f"/polled/.hoodie/timeline/{name}")
    seen = open_storage(f"{cluster.uri}/polled", cluster.options)
    requests: list[httpx.Request] = []
    hooks = seen.filesystem.handler._client._client.event_hooks
    seen.filesystem.handler._client._client.event_hooks = {"request": [requests.append]}
    try:
        assert set(seen.names(".hoodie/timeline")) == {"001.commit", "001.inflight"}
    finally:
        seen.filesystem.handler._client._client.event_hooks = hooks
    assert [request.url.params["op"] for request in requests] == ["LISTSTATUS_BATCH"]


def test_an_abandoned_file_is_gone_and_can_be_written_again(cluster: Cluster, files: fs.FileSystem) -> None:
    storage = of_hadoop(f"{cluster.uri}/abandoned", cluster.options)
    output = storage.create("p", "file")
    output.stream.write(b"half")
    output.abandon()
    assert files.get_file_info("/abandoned/p/file").type == fs.FileType.NotFound
    for content in (b"a long first one", b"short", b""):
        with files.open_output_stream("/abandoned/p/file", compression=None) as stream:
            stream.write(content)
        with files.open_input_file("/abandoned/p/file") as file:
            assert file.read() == content
    files.move("/abandoned/p", "/abandoned/q")
    with pytest.raises(OSError, match="cannot be renamed"):
        files.move("/abandoned/p", "/abandoned/r")
    files.delete_dir("/abandoned/q")
    with pytest.raises(FileNotFoundError):
        files.delete_file("/abandoned/q/file")


def test_parquet_files_are_read_as_from_a_disk(cluster: Cluster, files: fs.FileSystem) -> None:
    table = pa.table({f"c{number}": pa.array(range(50_000)) for number in range(20)})
    pq.write_table(table, "/parquet", filesystem=files, row_group_size=10_000)
    for rows in (False, True):
        with of_hadoop(f"{cluster.uri}/t", cluster.options).read_parquet(f"{cluster.uri}/parquet", rows=rows) as file:
            assert file.read() == table


def test_refusals_of_the_cluster_are_typed_and_short(cluster: Cluster) -> None:
    cluster.create("/private/file")
    cluster.set_permission("/private", 0o700)
    stranger = replace(_access(cluster), user="stranger").filesystem()
    with pytest.raises(PermissionError) as refused:
        stranger.get_file_info("/private/file")
    assert "\n" not in str(refused.value)
    with pytest.raises(PermissionError), stranger.open_output_stream("/private/new") as stream:
        stream.write(b"x")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"hadoop.security.authentication": "custom"}, StorageUnsupportedError),
        ({"fs.permissions.umask-mode": "u=rwx,g=rx"}, StorageUnsupportedError),
        ({"dfs.namenode.http-address": "http://elsewhere/"}, StorageUnsupportedError),
        ({"dfs.namenode.http-address": "127.0.0.1:1"}, StorageError),
    ],
)
def test_an_unreachable_cluster_is_reported(cluster: Cluster, options: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        open_storage(f"{cluster.uri}/t", cluster.options | options).list()
    assert any(value in str(raised.value) for value in options.values())
    with pytest.raises(PathForbiddenError):
        open_storage(f"{cluster.uri}/tables", cluster.options, [f"{cluster.uri}/table"])


@pytest.mark.exhaustive
def test_a_standby_is_left_for_the_active_name_node_and_a_dead_data_node_for_another() -> None:
    with hdfs.running(data_nodes=2, is_highly_available=True) as cluster:
        files = _access(cluster).filesystem()

        def write_and_read(name: str, content: bytes) -> None:
            with files.open_output_stream(f"/{name}", compression=None) as stream:
                stream.write(content)
            with files.open_input_file(f"/{name}") as file:
                assert file.read() == content

        write_and_read("one", b"1" * 1000)
        cluster.fail_over(to=1)
        write_and_read("two", b"2" * 1000)
        cluster.fail_over(to=0)
        assert files.get_file_info("/two").size == 1000
        cluster.kill_data_node(0)
        for _ in range(8):
            with files.open_input_file("/one") as file:
                assert file.read() == b"1" * 1000


def test_a_lock_is_read_and_removed_only_while_it_is_the_one_that_was_read(
    cluster: Cluster, files: fs.FileSystem
) -> None:
    base, lock, now = f"{cluster.uri}/locked", TableLock(), datetime.now(UTC)

    def read() -> Any:
        return read_lock(base, lock, cluster.options, Permissions(), now)

    def remove(expected: str) -> bool:
        return remove_lock(base, lock, cluster.options, Permissions(), expected)

    def names() -> list[str]:
        return [info.base_name for info in files.get_file_info(fs.FileSelector("/locked/.hoodie"))]

    cluster.create("/locked/.hoodie/hoodie.properties")
    assert read().state is LockState.FREE
    cluster.create("/locked/.hoodie/lock")
    held = read()
    assert (held.state, held.holder) == (LockState.HELD, "a writer that Hudi's lock file does not name")
    assert abs(held.since - datetime.now(UTC)) < timedelta(minutes=1)
    assert remove("another") is False
    with files.open_output_stream("/locked/.hoodie/lock") as file:
        file.write(b"the next holder's")
    assert remove(held.id) is False
    assert sorted(names()) == ["hoodie.properties", "lock"]
    assert remove(read().id) is True
    assert remove(held.id) is False
    assert names() == ["hoodie.properties"]
