"""Tests polls of a table on S3 (moto's server) and HDFS (a real cluster)."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import pytest
from pyarrow import fs

from jobs.storage.stores import store_of
from service.catalog import commit_store, snapshot_store, table_store, watch_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.events.notifier import Notifier
from service.lake.active_timeline import read_active_timeline
from service.lake.reader_pool import ReaderPool
from service.observation.files_digest import FilesDigest
from service.observation.observer import Observer, ObserverConfig
from service.observation.poll_requests import PollRequests
from service.observation.table_read import TableReader
from tests.support import hdfs, s3
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

A = bucket_id(0)


@dataclass(frozen=True)
class Lake:
    """A storage on a real server. `root` is in the form of Arrow, and `uri` the same place in the form of Hadoop."""

    options: dict[str, str]
    files: fs.FileSystem
    root: str
    uri: str


@pytest.fixture(scope="module", params=["s3", pytest.param("hdfs", marks=pytest.mark.exhaustive)])
def lake(request: pytest.FixtureRequest) -> Iterator[Lake]:
    if request.param == "s3":
        with s3.running() as server:
            yield Lake(server.options, server.files, "lake", "s3a://lake")
    else:
        with hdfs.running() as cluster:
            store = store_of(cluster.uri, cluster.options)
            yield Lake(cluster.options, store.filesystem(), "/lake", f"{cluster.uri}/lake")


def test_a_table_on_a_remote_storage_is_watched(
    lake: Lake, sqlite: sa.Engine, clock: FakeClock, tmp_path: Path
) -> None:
    options, files = lake.options, lake.files
    table = SmallTable(tmp_path / "trips")

    def upload() -> None:
        fs.copy_files(str(table.base), f"{lake.root}/trips", destination_filesystem=files)

    with writing(sqlite) as connection:
        table_store.register(connection, Registration("t", f"{lake.uri}/trips", "trips", clock(), clock()))
        table_store.register(connection, Registration("gone", f"{lake.uri}/gone", "gone", clock(), clock()))
    read = TableReader(sqlite, options, 1)
    parts = {
        "read": read,
        "first": read.first,
        "quiet": read.quiet,
        "files_digest": FilesDigest(options),
        "notifier": Notifier(),
    }
    observer = Observer(sqlite, clock, Random(1), PollRequests(), ObserverConfig(), **parts)

    def poll() -> None:
        clock.advance(70)
        observer.run_once()
        assert observer.pool.wait(60)

    table.commit("001", {"p": {base_file(A, "001"): 10}})
    upload()
    poll()
    table.commit("003", {"p": {log_file(A, "003"): 5}})
    table.begin("005", heartbeat=1000)
    upload()
    poll()
    with reading(sqlite) as connection:
        found = commit_store.page(connection, PageRequest(10)).items
        snapshot = snapshot_store.get(connection, "t")
        before = watch_store.get(connection, "t")
        assert watch_store.get(connection, "gone").failures > 0
    assert [commit.requested_time for commit in found] == ["003", "001"]
    assert snapshot is not None
    assert (snapshot.base_bytes, snapshot.log_bytes) == (10, 5)
    assert snapshot.pending[0].heartbeat_at is not None
    # The reads are in a process with limits, as in the service.
    with ReaderPool(1) as readers:
        active = readers.run(read_active_timeline, f"{lake.uri}/trips", options)
    assert [instant.requested_time for instant in active.completed] == ["001", "003"]
    poll()
    with reading(sqlite) as connection:
        assert watch_store.get(connection, "t").looked_at == before.looked_at
