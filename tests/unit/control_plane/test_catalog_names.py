"""The patterns of a catalog select tables whose names have dots, backticks or characters of patterns."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.registration.catalogs import glue, hive, unity
from service.registration.catalogs.catalog import CatalogKind, Source, parts, qualified
from service.registration.catalogs.listing import read

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.text("a.`_[!*é", min_size=1, max_size=8)


@given(NAMES, NAMES)
def test_a_name_says_which_part_is_the_database(database: str, table: str) -> None:
    assert parts(qualified(database, table)) == (database, table)


def test_names_without_dots_stay_as_they_are() -> None:
    assert qualified("shop", "orders") == "shop.orders"
    assert qualified("main.shop", "orders") == "main.shop.orders"


@pytest.mark.parametrize(
    "name",
    [
        glue._entry("shop", {"Name": "v1.orders"}).name,
        hive._entry("shop", {hive._NAME: "v1.orders"}).name,
        unity._entry("shop", {"name": "v1.orders"}).name,
    ],
)
def test_a_table_with_a_dot_is_one_of_its_database(name: str) -> None:
    for databases, tables, is_wanted in [
        (("shop",), ("*",), True),
        (("shop.v1",), ("*",), False),
        (("*",), ("v1.*",), True),
        (("*",), ("orders",), False),
        (("*",), ("*", "!v1.orders"), False),
    ]:
        assert Source(CatalogKind.GLUE, "", databases=databases, tables=tables).wants(name) is is_wanted


def test_a_pattern_matches_a_bracket_by_a_set_with_the_bracket() -> None:
    source = Source(CatalogKind.GLUE, "", tables=("a[[]1]",))
    assert source.wants(qualified("shop", "a[1]"))
    assert not source.wants(qualified("shop", "a1"))


def test_a_view_of_a_table_with_a_dot_gives_it_no_name(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "entries.db") as connection:
        connection.execute("CREATE TABLE entries (name TEXT, location TEXT)")
        for table in ("v1.orders_ro", "v1.orders", "v1.orders_rt"):
            connection.execute("INSERT INTO entries VALUES (?, '/lake/orders')", (qualified("shop", table),))
    query = "SELECT name, location FROM entries"
    source = Source(CatalogKind.SQL, f"sqlite:///{tmp_path}/entries.db", databases=("shop",), query=query)
    assert [each.name for each in read(source).tables] == ["shop.`v1.orders`"]
