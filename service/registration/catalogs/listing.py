"""The parsed listing of a catalog. Number, size and time are limited, because a catalog may be wrong, slow or
hostile."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module

from jobs.redaction import redacted
from service.catalog.ownership import MOST_TAGS, OWNER, TAG_KEY, TAG_VALUE, fits
from service.lake.location import canonical
from service.model.errors import GroundskeeperError
from service.registration.catalogs.catalog import Broken, CatalogKind, Entry, Source
from service.registration.catalogs.errors import CatalogError

_MOST_NAME, _MOST_LOCATION, _MOST_BROKEN = 400, 4096, 200
_HUDI = "hudi"
# `org.apache.hudi.hadoop.HoodieParquetInputFormat` and other classes of its package, which was Uber's before Hudi 0.5.
_INPUT_FORMATS = ("org.apache.hudi.", "com.uber.hoodie.")
# `HiveSyncTool` creates up to three tables, at the same location, for one merge-on-read table.
_VIEW = re.compile(r"_(ro|rt)`?$")


@dataclass(frozen=True)
class ReadLimits:
    tables: int = 20_000
    entries: int = 500_000
    seconds: float = 30.0


@dataclass(frozen=True)
class Listed:
    """A Hudi table of the catalog, with its canonical base path, and the owner and the tags that its entry gives."""

    name: str
    base_path: str
    owner: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """The Hudi tables of a catalog. `tables` has one table for each location, in the order of their names. `entries` is
    the number of tables of all kinds that the patterns select. `is_complete` is False if a limit ended the reading."""

    tables: tuple[Listed, ...]
    broken: tuple[Broken, ...]
    entries: int
    is_complete: bool

    def lacks(self, name: str) -> bool:
        """Returns whether it is certain that the catalog has no such table any more."""
        # A name may have further dots besides the one after the database.
        return self.is_complete and not any(
            name == each.name or (each.name.endswith(".*") and name.startswith(each.name[:-1])) for each in self.broken
        )


def read(source: Source, limits: ReadLimits | None = None) -> Listing:
    """Reads a catalog until a limit is reached. Raises the errors of catalogs."""
    limits = limits or ReadLimits()
    module = import_module(f"service.registration.catalogs.{source.kind.value}")
    # A source yields None after each answer, because answers without entries take time too.
    entries: Callable[[Source], Iterator[Entry | Broken | None]] = module.entries
    end = time.monotonic() + limits.seconds
    found: dict[str, Listed] = {}
    broken: list[Broken] = []
    number = wanted = 0
    is_complete = True
    for each in entries(source):
        one: Listed | Broken | None = each if isinstance(each, Broken) else None
        if isinstance(each, Entry):
            number += 1
            if source.wants(each.name):
                wanted += 1
                one = _listed(source, each)
        if isinstance(one, Broken):
            broken.append(one)
        elif one is not None:
            known = found.get(one.base_path)
            if known is None or _rank(one) < _rank(known):
                found[one.base_path] = one
        # If there are more broken entries than are kept, nobody can tell which tables are gone.
        if len(found) >= limits.tables or number >= limits.entries or len(broken) > _MOST_BROKEN:
            is_complete = False
            break
        if time.monotonic() > end:
            is_complete = False
            break
    tables, repeated = _by_name(found.values())
    return Listing(tables, (*broken[:_MOST_BROKEN], *repeated), wanted, is_complete)


def _by_name(found: Iterable[Listed]) -> tuple[tuple[Listed, ...], list[Broken]]:
    """Returns the tables in the order of their names; and as broken the names that the catalog has with several
    locations."""
    by_name: dict[str, list[Listed]] = {}
    for each in sorted(found, key=lambda each: each.name):
        by_name.setdefault(each.name, []).append(each)
    repeated = [
        Broken(name, CatalogError(f"The catalog lists this name with {len(those)} locations.").problem())
        for name, those in by_name.items()
        if len(those) > 1
    ]
    return tuple(those[0] for those in by_name.values() if len(those) == 1), repeated


def _rank(each: Listed) -> tuple[bool, str]:
    return _VIEW.search(each.name) is not None, each.name


def _listed(source: Source, entry: Entry) -> Listed | Broken | None:
    """Returns the parsed entry; None if it is not a Hudi table."""
    if not _is_hudi(source, entry):
        return None
    name = redacted(entry.name)[:_MOST_NAME]
    try:
        if name != entry.name or not name.isprintable():
            raise CatalogError(f"The name is longer than {_MOST_NAME} characters, or not printable.")
        if not 0 < len(entry.location) <= _MOST_LOCATION:
            raise CatalogError(f"The entry has no location of at most {_MOST_LOCATION} characters.")
        base_path = canonical(entry.location)
    except GroundskeeperError as error:
        return Broken("".join(each for each in name if each.isprintable()), error.problem())
    owner = entry.owner if entry.owner and fits(entry.owner, OWNER) else None
    return Listed(name, base_path, owner, _tags(source, entry.parameters))


def _is_hudi(source: Source, entry: Entry) -> bool:
    if source.kind is CatalogKind.SQL or entry.input_format.startswith(_INPUT_FORMATS):
        return True
    providers = [entry.parameters.get(name, "") for name in ("spark.sql.sources.provider", "connector", "provider")]
    if any(value.lower() == _HUDI for value in (*providers, entry.provider)):
        return True
    return source.marker is not None and entry.parameters.get(source.marker[0]) == source.marker[1]


def _tags(source: Source, parameters: Mapping[str, str]) -> dict[str, str]:
    """Returns the parameters that the catalog's patterns select. Parameters that cannot be tags are left out."""
    chosen = (
        (key, value)
        for key, value in sorted(parameters.items())
        if any(fnmatchcase(key, pattern) for pattern in source.kept)
        and re.fullmatch(TAG_KEY, key)
        and fits(value, TAG_VALUE)
    )
    return dict(list(chosen)[:MOST_TAGS])


def named(error: GroundskeeperError, address: str) -> GroundskeeperError:
    """Returns an error of a catalog with the catalog's address."""
    if not isinstance(error, CatalogError) or error.detail.startswith(address):
        return error
    return type(error)(f"{address}: {error.detail}", hint=error.hint)
