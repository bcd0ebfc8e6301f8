"""Catalogs whose lists have no end, or only empty pages for long: each reading ends, and a typed error says why.

The tests have servers of their own, which answer as Glue, Unity Catalog and a Hive metastore do, because neither `moto`
nor the real catalogs can be made to send pages without end."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport import TSocket, TTransport

from jobs.errors import MetastoreError
from jobs.format import paging
from jobs.hudi.glue_client import GlueClient
from jobs.storage.aws_session import Credentials
from service.registration.catalogs.catalog import CatalogKind, Source
from service.registration.catalogs.errors import CatalogError
from service.registration.catalogs.listing import ReadLimits, read
from tests.support.stand_in import Answer, Asked, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HUDI = {"spark.sql.sources.provider": "hudi"}
# The names of the lists in the answers, and the member by which an answer names its next page.
LISTS = {
    CatalogKind.GLUE: ("DatabaseList", "TableList", "NextToken"),
    CatalogKind.UNITY: ("schemas", "tables", "next_page_token"),
}
TABLES = {
    CatalogKind.GLUE: {"Name": "t", "StorageDescriptor": {"Location": "/lake/t"}, "Parameters": HUDI},
    CatalogKind.UNITY: {"name": "t", "storage_location": "/lake/t", "properties": HUDI},
}


class Catalog:
    """Glue or Unity Catalog with the databases `shop` and `other`; `other` has a table. Each list in `endless` answers
    every call with the same page and another token, so it has no end."""

    def __init__(self, kind: CatalogKind) -> None:
        self.kind = kind
        self.endless: dict[str, list[dict[str, Any]]] = {}
        self.source = Source(kind, "")
        self._tokens = count(1)

    def answer(self, call: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        databases, tables, token = LISTS[self.kind]
        if call == "catalogs":
            return {"catalogs": [{"name": "unity"}]}
        name, member = asked.get("DatabaseName") or asked.get("schema_name"), tables
        found = [TABLES[self.kind]] if name == "other" else []
        if call in ("GetDatabases", "schemas"):
            name, member = "databases", databases
            found = [{"Name": each, "name": each} for each in ("shop", "other")]
        elif call == "GetPartitions":
            member = "Partitions"
        if name in self.endless:
            return {member: self.endless[name], token: str(next(self._tokens))}
        return {member: found}


@contextmanager
def running(kind: CatalogKind) -> Iterator[Catalog]:
    catalog = Catalog(kind)

    def answer(asked: Asked) -> Answer:
        if asked.method == "POST":
            return Answer.of(catalog.answer(asked.headers["X-Amz-Target"].rpartition(".")[2], json.loads(asked.body)))
        url = urlsplit(asked.path)
        return Answer.of(catalog.answer(url.path.rpartition("/")[2], dict(parse_qsl(url.query))))

    with StandIn(answer) as server:
        is_glue = kind is CatalogKind.GLUE
        address = f"{'glue+' if is_glue else ''}{server.url}"
        catalog.source = Source(kind, address, region="eu-central-1" if is_glue else None)
        yield catalog


@pytest.fixture(params=list(LISTS))
def catalog(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with running(request.param) as found:
        yield found


def test_a_database_whose_pages_stay_empty_is_broken_and_the_others_are_listed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MOST_EMPTY", 20)
    catalog.endless["shop"] = []
    found = read(catalog.source)
    prefix = "unity." if catalog.kind is CatalogKind.UNITY else ""
    assert [each.name for each in found.tables] == [f"{prefix}other.t"]
    [broken] = found.broken
    assert (broken.name, broken.problem.type) == (f"{prefix}shop.*", "catalog-failed")
    assert "more than 20 pages in a row are empty" in broken.problem.detail
    # A reading that was given up says nothing about what is gone.
    assert not found.lacks(f"{prefix}shop.orders")
    catalog.endless["databases"] = []
    with pytest.raises(CatalogError, match="does not end"):
        read(catalog.source)


@pytest.mark.parametrize("page", [[], [{"Name": "unwanted", "name": "unwanted"}]], ids=["empty", "unwanted"])
def test_a_list_of_databases_without_end_is_read_until_its_time_is_up(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, page: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(paging, "MOST_EMPTY", 10**9)
    catalog.endless["databases"] = page
    source = Source(
        catalog.kind, catalog.source.address, databases=("shop", "unity.shop"), region=catalog.source.region
    )
    began = time.monotonic()
    found = read(source, ReadLimits(seconds=0.3))
    assert (found.tables, found.is_complete) == ((), False)
    assert time.monotonic() - began < 30


def test_a_sync_to_glue_ends_when_partitions_have_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "MOST_EMPTY", 20)
    monkeypatch.setattr(paging, "MOST_PAGES", 30)
    with running(CatalogKind.GLUE) as catalog:
        client = GlueClient(catalog.source.address, Credentials("someone", "anything"), "eu-central-1")
        of = {"DatabaseName": "shop", "TableName": "t"}
        catalog.endless["shop"] = []
        with pytest.raises(MetastoreError, match=r"get_partitions: .* more than 20 pages in a row are empty"):
            list(client.pages("get_partitions", "Partitions", **of))
        catalog.endless["shop"] = [{}]
        with pytest.raises(MetastoreError, match="more than 30 pages"):
            list(client.pages("get_partitions", "Partitions", **of))
        client.close()


def test_a_hive_metastore_of_many_databases_without_tables_is_read_until_its_time_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_metastore, args=(listening,))
        thread.start()
        host, port = listening.getsockname()
        found = read(Source(CatalogKind.HIVE, f"thrift://{host}:{port}"), ReadLimits(seconds=0.3))
        thread.join(30)
    assert (found.tables, found.is_complete, thread.is_alive()) == ((), False, False)


def _metastore(listening: socket.socket) -> None:
    """Answers one client: ten thousand databases, and no tables, each answer after a hundredth of a second."""
    connection, _ = listening.accept()
    with connection:
        handle = TSocket.TSocket()
        handle.setHandle(connection)
        protocol = TBinaryProtocol(TTransport.TBufferedTransport(handle))
        while True:
            try:
                call, _, number = protocol.readMessageBegin()
            except TTransport.TTransportException:
                return
            protocol.skip(TType.STRUCT)
            names = [f"d{each}" for each in range(10_000)] if call == "get_all_databases" else []
            time.sleep(0.01)
            protocol.writeMessageBegin(call, TMessageType.REPLY, number)
            protocol.writeFieldBegin("", TType.LIST, 0)
            protocol.writeListBegin(TType.STRING, len(names))
            for name in names:
                protocol.writeString(name)
            protocol.writeFieldStop()
            protocol.trans.flush()
