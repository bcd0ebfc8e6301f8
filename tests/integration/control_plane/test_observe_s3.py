"""A table on S3 (moto's server) is watched as one on a disk is."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from service.catalog import commit_store, snapshot_store, table_store, watch_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.events.notifier import Notifier
from service.lake.active_timeline import read_active_timeline
from service.observation.observer import Observer, ObserverConfig
from service.observation.poll_requests import PollRequests
from service.observation.table_read import TableReader
from tests.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

A = bucket_id(0)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_a_table_on_s3_is_watched(endpoint: str, sqlite: sa.Engine, clock: FakeClock, tmp_path: Path) -> None:
    options = {
        "fs.s3a.access.key": "someone",
        "fs.s3a.secret.key": "anything",
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.path.style.access": "true",
    }
    files = fs.S3FileSystem(
        access_key="someone",
        secret_key="anything",
        region="us-east-1",
        endpoint_override=endpoint,
        allow_bucket_creation=True,
    )
    files.create_dir("lake")
    table = SmallTable(tmp_path / "trips")

    def upload() -> None:
        fs.copy_files(str(table.base), "lake/trips", destination_filesystem=files)

    with writing(sqlite) as connection:
        table_store.register(connection, Registration("t", "s3a://lake/trips", "trips", clock(), clock()))
        table_store.register(connection, Registration("gone", "s3a://lake/gone", "gone", clock(), clock()))
    read = TableReader(sqlite, options, 1)
    observer = Observer(sqlite, clock, Random(1), PollRequests(), ObserverConfig(), read=read, notifier=Notifier())

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
        found = commit_store.page(connection, limit=10).items
        snapshot = snapshot_store.get(connection, "t")
        before = watch_store.get(connection, "t")
        assert watch_store.get(connection, "gone").failures > 0
    assert [commit.requested_time for commit in found] == ["003", "001"]
    assert snapshot is not None
    assert (snapshot.base_bytes, snapshot.log_bytes) == (10, 5)
    assert snapshot.pending[0].heartbeat_at is not None
    active = read_active_timeline("s3a://lake/trips", options)
    assert [instant.requested_time for instant in active.completed] == ["001", "003"]
    poll()
    with reading(sqlite) as connection:
        assert watch_store.get(connection, "t").looked_at == before.looked_at
