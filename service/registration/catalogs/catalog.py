"""A catalog as the settings declare it, and the entries that it lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeVar

from jobs.contract import Problem
from service.registration.catalogs import errors
from service.registration.registry import Declarations

_Table = TypeVar("_Table")
# Spark stores a location that ends like this in the metastore for a table whose files are elsewhere
# (`HiveExternalCatalog`).
_PLACEHOLDER = "-__PLACEHOLDER__"
_QUOTED = re.compile(r"(.*)\.`((?:[^`]|``)+)`", re.DOTALL)


class CatalogKind(StrEnum):
    GLUE = "glue"
    HIVE = "hive"
    UNITY = "unity"
    SQL = "sql"


class OnNew(StrEnum):
    """What happens to a table that the catalog lists and that is not registered."""

    REPORT = "report"
    REGISTER = "register"


class OnMoved(StrEnum):
    """What happens to a table whose location the catalog has changed. `FOLLOW` registers the table at the new location,
    with the declarations about it, and unregisters the old location."""

    REPORT = "report"
    FOLLOW = "follow"


class OnDropped(StrEnum):
    REPORT = "report"
    UNREGISTER = "unregister"


@dataclass(frozen=True)
class Source:
    """Where a catalog is, and what is read from it. `account` is the JSON of an account of AWS. `marker` is a parameter
    with a value by which a Hudi table is recognized too. `kept` are patterns of parameters that become tags."""

    kind: CatalogKind
    address: str = field(repr=False)
    databases: tuple[str, ...] = ("*",)
    tables: tuple[str, ...] = ("*",)
    account: str | None = field(default=None, repr=False)
    region: str | None = None
    token: str | None = field(default=None, repr=False)
    query: str | None = None
    marker: tuple[str, str] | None = None
    kept: tuple[str, ...] = ()

    def wants_database(self, name: str) -> bool:
        return _selects(self.databases, name)

    def wants(self, name: str) -> bool:
        """Returns whether the patterns select the table `database.table`."""
        database, table = parts(name)
        return self.wants_database(database) and _selects(self.tables, table)


@dataclass(frozen=True)
class Catalog:
    """A catalog and its rules. A sync may unregister at most the share `most_dropped` of the catalog's tables, but
    always one table."""

    name: str
    source: Source
    shown_address: str
    declared: Declarations = field(repr=False)
    roots: tuple[str, ...] = ()
    new: OnNew = OnNew.REPORT
    moved: OnMoved = OnMoved.REPORT
    dropped: OnDropped = OnDropped.REPORT
    most_dropped: float = 0.1
    every_seconds: float = 3600.0


@dataclass(frozen=True)
class Entry:
    """A table of a catalog. `qualified` returns such a `name`. `location` and `owner` are unchanged texts of the
    catalog."""

    name: str
    location: str
    owner: str | None = None
    input_format: str = ""
    provider: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


def qualified(database: str, table: str) -> str:
    """Returns `database.table`. A table whose name has a dot or a backtick is quoted as in SQL, because the database
    may have dots, too."""
    escaped = table.replace("`", "``")
    return f"{database}.`{escaped}`" if "." in table or "`" in table else f"{database}.{table}"


def parts(name: str) -> tuple[str, str]:
    """Returns the database and the table of a `qualified` name."""
    if found := _QUOTED.fullmatch(name):
        return found[1], found[2].replace("``", "`")
    database, _, table = name.rpartition(".")
    return database, table


def true_location(location: str | None, serde: Mapping[str, str] | None) -> str:
    """Returns where the files of a table are, by its storage in a metastore."""
    place = location or ""
    of_spark = (serde or {}).get("path")
    return of_spark if of_spark and place.rstrip("/").endswith(_PLACEHOLDER) else place


@dataclass(frozen=True)
class Broken:
    """An entry that cannot be used, or a database whose tables cannot be listed. The `name` of a database ends in
    `.*`."""

    name: str
    problem: Problem


def tables_of(
    database: str, pages: Iterable[Sequence[_Table]], entry: Callable[[str, _Table], Entry]
) -> Iterator[Entry | Broken | None]:
    """Yields the tables of a database, and None after each page. After an error that concerns only this database,
    yields `Broken` instead of raising: other databases may be permitted, and a database that was dropped meanwhile is
    not listed the next time."""
    try:
        for page in pages:
            yield None
            yield from (entry(database, table) for table in page)
    except errors.OF_ALL:
        raise
    except errors.CatalogError as error:
        yield Broken(f"{database}.*", error.problem())


def _selects(patterns: Sequence[str], name: str) -> bool:
    """Returns whether a pattern matches the name, and no pattern that begins with `!` matches it. Upper and lower case
    do not differ, as in catalogs."""
    found = [each for each in patterns if fnmatchcase(name.lower(), each.removeprefix("!").lower())]
    only_excludes = all(each.startswith("!") for each in patterns)
    return (bool(found) or only_excludes) and not any(each.startswith("!") for each in found)
