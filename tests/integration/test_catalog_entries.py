"""The service's clients of catalogs, which need no JVM, find the entries that syncs have made for a real table: Hudi's
own tool in a Hive metastore, and our sync in Glue."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from service.registration.catalogs.catalog import CatalogKind, Source
from service.registration.catalogs.errors import CatalogError, CatalogLoginError, CatalogUnavailableError
from service.registration.catalogs.listing import read
from service.registration.detection import examine
from tests.integration import tables
from tests.integration.run import run_job
from tests.support import hive_metastore, s3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

MERGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@pytest.fixture(scope="module")
def metastore(spark: SparkSession) -> Iterator[hive_metastore.Server]:
    with hive_metastore.running(spark) as running:
        yield running


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("lake") / "trips"
    tables.write_table(spark, base, count=30, **MERGED)
    return base


def check(source: Source, table: Path, *, entries: int) -> None:
    found = read(source)
    assert (found.entries, found.broken, found.is_complete) == (entries, (), True)
    [listed] = found.tables
    assert (listed.name, listed.base_path) == ("lake.trips", str(table))
    examined = examine(listed.base_path, allowed_roots=(str(table.parent),), claimed=None, storage_options={})
    assert examined.base_path == str(table)


def test_a_table_that_hudis_tool_has_entered_in_a_hive_metastore_is_found(
    spark: SparkSession, metastore: hive_metastore.Server, table: Path
) -> None:
    run_job(spark, table, "sync", {"metastore_uris": metastore.uris, "database": "lake"})
    # The first address does not answer; the second one counts.
    source = Source(CatalogKind.HIVE, f"thrift://127.0.0.1:1,{metastore.uris}")
    # Hudi's tool enters the table itself, `_ro` and `_rt`, which are one table.
    check(source, table, entries=3)
    assert read(Source(CatalogKind.HIVE, metastore.uris, databases=("!lake",))).tables == ()
    with metastore.away(), pytest.raises(CatalogUnavailableError):
        read(Source(CatalogKind.HIVE, metastore.uris))


def test_a_table_that_a_sync_has_entered_in_glue_is_found(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with s3.running() as server:
        uri = server.endpoint.replace("http://", "glue+http://")
        run_job(spark, table, "sync", {"metastore_uris": uri, "database": "lake"})
        check(Source(CatalogKind.GLUE, uri), table, entries=3)


OTHERS = {
    "web server": (b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 64, CatalogLoginError, "wants Thrift in HTTP"),
    "Kerberos": (b"\4\0\0\0\x13Invalid status -128", CatalogLoginError, "wants a login by SASL, such as Kerberos"),
    "TLS": (b"\x15\3\3\0\2\2\n", CatalogLoginError, "wants TLS"),
    "silent": (b"", CatalogUnavailableError, "cannot log in to a metastore by Kerberos, nor use TLS"),
    "nested without end": (
        b"\x80\x01\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00" + b"\x0c\x00\x01" * 40,
        CatalogError,
        "nested too deeply",
    ),
    "larger than memory": (b"\x7f\xff\xff\xff", CatalogError, "does not come from a metastore"),
}


@pytest.mark.parametrize("server", OTHERS)
def test_a_server_that_is_no_metastore_is_refused_by_its_true_name(server: str) -> None:
    answer, error, said = OTHERS[server]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = listening.getsockname()
        with pytest.raises(error, match=said):
            read(Source(CatalogKind.HIVE, f"thrift://{host}:{port}"))
        thread.join()
