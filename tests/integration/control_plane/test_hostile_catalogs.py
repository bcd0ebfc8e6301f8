"""Tests catalogs whose databases do not answer, or whose names mislead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from service.registration.catalogs import sql
from service.registration.catalogs.catalog import Broken, CatalogKind, Source
from service.registration.catalogs.errors import CatalogDeniedError, CatalogUnavailableError
from service.registration.catalogs.listing import Listing, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.postgresql import Server


def test_no_table_of_a_database_that_cannot_be_listed_counts_as_dropped() -> None:
    denied = Broken("shop.eu.*", CatalogDeniedError("not authorized").problem())
    listing = Listing((), (denied,), 1, is_complete=True)
    assert not listing.lacks("shop.eu.orders")
    assert not listing.lacks("shop.eu.orders.v2")
    assert listing.lacks("shop.europe.orders")


def test_a_catalog_whose_database_does_not_answer_the_query_is_given_up(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An administrator's statement may hold a lock on the table of entries for hours."""
    monkeypatch.setattr(sql, "SECONDS", 1)
    url = postgresql.new_database()
    address = url.replace("postgresql:", "postgresql+psycopg:")
    source = Source(CatalogKind.SQL, address, query="SELECT name, location FROM entries")
    with psycopg.connect(url, autocommit=True) as holder:
        holder.execute("CREATE TABLE entries (name TEXT, location TEXT)")
        holder.execute("INSERT INTO entries VALUES ('shop.orders', %s)", (str(tmp_path),))
        assert [each.name for each in read(source).tables] == ["shop.orders"]
        holder.execute("SET statement_timeout = '60s'")
        with holder.transaction():
            holder.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(CatalogUnavailableError, match="statement timeout"):
                read(source)
