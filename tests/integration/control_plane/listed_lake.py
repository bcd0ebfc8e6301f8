"""Tables in a folder, and a database that lists them as a catalog does."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from pathlib import Path


QUERY = "SELECT name, location, owner, team, format FROM entries"


class Lake:
    """Tables in a folder, and a database that lists them."""

    def __init__(self, path: Path) -> None:
        self.path = path / "lake"
        self.path.mkdir()
        self.database = path / "entries.db"
        self.run("CREATE TABLE entries (name TEXT, location TEXT, owner TEXT, team TEXT, format TEXT)")

    def run(self, statement: str, *values: str | None) -> None:
        with sqlite3.connect(self.database) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(statement, values)

    def table(self, name: str, *, at: str | None = None, owner: str | None = None, team: str | None = None) -> Path:
        base = self.path / (at or name)
        if not base.exists():
            base.parent.mkdir(parents=True, exist_ok=True)
            SmallTable(base).commit("20260101120000000", completed="20260101120001000")
        self.entry(name, str(base), owner, team)
        return base

    def entry(self, name: str, location: str | None, owner: str | None = None, team: str | None = None) -> None:
        self.drop(name)
        self.run("INSERT INTO entries VALUES (?, ?, ?, ?, 'x')", name, location, owner, team)

    def drop(self, pattern: str) -> None:
        self.run("DELETE FROM entries WHERE name LIKE ?", pattern)

    def declared(self, **members: Any) -> dict[str, Any]:
        of_kind = {"kind": "sql", "address": f"sqlite:///{self.database}", "query": QUERY}
        return {"name": "lake", **of_kind, "tag_parameters": ["team"], **members}
