"""The service polls a table on Azure's storage, emulated by Azurite, which `test_azure_dfs` does not use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyarrow import fs

from service.lake.active_timeline import read_active_timeline
from service.lake.file_slices import read_snapshot
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from service.model.storage_errors import PathNotFoundError
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.tables import INDEX
from tests.support import azurite
from tests.support.azurite import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.azurite import Server

pytestmark = pytest.mark.exhaustive
ODD = "a b/ü+y 50%25&x=1;'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with azurite.running() as running:
        yield running


def _write(server: Server, path: str, content: bytes, **metadata: str) -> None:
    with server.files.open_output_stream(f"lake/{path}", compression=None, metadata=metadata or None) as stream:
        stream.write(content)


def test_a_folder_is_one_whether_a_blob_says_so_or_not(server: Server) -> None:
    content = os.urandom(3_000_000)
    _write(server, f"listed/{ODD}/file", content)
    _write(server, "listed/top", b"")
    _write(server, "listed/marked", b"", hdi_isfolder="true")
    _write(server, "listed/marked/file", b"x")
    _write(server, "listed/empty", b"", hdi_isfolder="true")
    seen = open_storage(f"{ROOT}/listed", server.options)
    everything = {(entry.path, entry.is_folder) for entry in seen.list(recursive=True)}
    assert everything == {
        ("a b", True),
        (ODD, True),
        (f"{ODD}/file", False),
        ("marked", True),
        ("marked/file", False),
        ("top", False),
        # The service would need another request to see this.
        ("empty", False),
    }
    assert sorted(entry.path for entry in seen.list()) == ["a b", "empty", "marked", "top"]
    marked, top = server.files.get_file_info(["lake/listed/marked", "lake/listed/top"])
    assert (marked.type, top.type) == (fs.FileType.Directory, fs.FileType.File)
    assert seen.read(f"{ODD}/file") == content
    assert seen.list("none") == []
    with pytest.raises(PathNotFoundError):
        seen.names("none")


def test_a_table_is_watched_as_on_a_disk(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    local = tmp_path / "trips"
    options = tables.write_table(spark, local, count=300, updates=1, copied=False)
    base = f"{ROOT}/trips"

    def uploaded() -> None:
        fs.copy_files(str(local), "lake/trips", destination_filesystem=server.files)

    uploaded()
    found = examine(
        f"abfs{base.removeprefix('abfss')}/", allowed_roots=(ROOT,), claimed=None, storage_options=server.options
    )
    assert (found.base_path, found.index) == (base, INDEX)
    assert read_active_timeline(base, server.options) == read_active_timeline(str(local), {})
    # An idle poll is one request.
    asked = len(server.requests())
    open_storage(base, server.options).names(".hoodie/timeline")
    [listing] = server.requests()[asked:]
    assert listing.startswith("GET /devstoreaccount1/lake?comp=list")
    # A later commit is seen as well.
    tables.upsert(tables.rows(spark, 0, 10, ts=9), local, options)
    uploaded()
    slices = []
    for path, more in ((base, server.options), (str(local), {})):
        storage = open_storage(path, more)
        config = read_table_config(storage)
        slices.append(read_snapshot(storage, config, read_timeline(storage, config)))
    assert slices[0] == slices[1]
    assert len(slices[0]) == 12


def test_the_emulator_does_not_support_the_requests_of_hadoops_client(server: Server, spark: SparkSession) -> None:
    """If this test fails, Hudi can be tested here as well, and the stand-in of `azure_dfs` can be removed."""
    java: Any = spark._jvm
    conf = java.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())  # type: ignore[attr-defined]
    for name, value in {**server.options, "fs.azure.io.retry.max.retries": "0"}.items():
        conf.set(name, value)
    path = java.org.apache.hadoop.fs.Path(f"abfs{ROOT.removeprefix('abfss')}/trips")
    with pytest.raises(Py4JJavaError) as refused:
        path.getFileSystem(conf).listStatus(path)
    assert 'Operation failed: "Bad Request", 400, GET' in str(refused.value)
    assert "azurebfs.services.AbfsClient.listPath" in str(refused.value)
