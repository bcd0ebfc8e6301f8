"""The history of a table's schema that Hudi's schema on read keeps (`FileBasedInternalSchemaStorageManager` and
`SerDeHelper.toJson`, Hudi 1.2.0): each version with the instant that brought it, and an id for each column."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Columns = dict[int, tuple[str, str]]
"""Full name and type of each column, also inside structs, arrays and maps, by its id."""

LATEST = "latest_schema"
"""The key under which a commit has its version of the schema (`SerDeHelper.LATEST_SCHEMA`)."""

_DECIMAL = re.compile(r"decimal\w*\(\d+, *(\d+)\)")
_NESTED = ("element", "key", "value")
_UNREADABLE = (KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class SchemaHistory:
    """All versions of a schema, in their order. A version is the number of its instant; the schema before the first
    change has version 0. A table without schema on read has no versions."""

    versions: tuple[tuple[int, Columns], ...] = ()

    def at(self, instant: int) -> Columns:
        """Returns the columns by which readers read a file of this instant (`InternalSchemaUtils.searchSchema`)."""
        place = bisect_right(self.versions, instant, key=lambda each: each[0])
        return self.versions[place - 1][1] if place else {}

    @cached_property
    def names(self) -> dict[int, set[str]]:
        """All names that each column has had, by its id."""
        return self._all_by_id(0)

    @cached_property
    def kinds(self) -> dict[int, set[str]]:
        """All types that each column has had, by its id."""
        return self._all_by_id(1)

    def _all_by_id(self, part: int) -> dict[int, set[str]]:
        found = defaultdict(set)
        for _, columns in self.versions:
            for number, column in columns.items():
                found[number].add(column[part])
        return found

    @cached_property
    def since(self) -> dict[int, int]:
        """The first version of each column, by its id."""
        return {number: version for version, columns in reversed(self.versions) for number in columns}

    @cached_property
    def named_since(self) -> dict[str, int]:
        """The first version in which a column had this name."""
        return {name: version for version, columns in reversed(self.versions) for name, _ in columns.values()}

    def changed(self, *, types: bool = True) -> dict[str, int]:
        """Returns the columns that were renamed, got another type (unless `types` is false), or have the name of a
        dropped column, each with the latest version that did so. Files of earlier instants store such a column
        differently."""
        found: dict[str, int] = {}
        ids: dict[str, set[int]] = {}
        before: Columns = {}
        for version, now in self.versions:
            for number, (name, kind) in now.items():
                old = before.get(number, (name, kind))
                if old[0] != name:
                    found[f"{old[0]} -> {name}"] = version
                elif old[1] != kind and types:
                    found[f"{name}: {old[1]} -> {kind}"] = version
                if ids.setdefault(name, set()) - {number}:
                    found[name] = version
            for number, (name, _) in now.items():
                ids[name].add(number)
            before |= now
        return found


def parsed(history: str) -> SchemaHistory:
    """Reads a history, which is empty for a table without one. Raises ValueError if it is unreadable."""
    if not history:
        return SchemaHistory()
    try:
        versions = sorted(json.loads(history)["schemas"], key=lambda each: int(each["version_id"]))
        return SchemaHistory(tuple((int(each["version_id"]), dict(_columns(each, ""))) for each in versions))
    except _UNREADABLE as error:
        raise ValueError(f"the history of the schema is unreadable: {error!r}") from error


def reads_as(stored: str, expected: str) -> bool:
    """Returns whether a reader that expects a type finds the values of a column that is stored as another one. Spark
    (3.5) reads a decimal with another precision, and no other type as another one."""
    return _scaled(stored) == _scaled(expected)


def _scaled(kind: str) -> str:
    """Returns the type, a decimal without its precision: `decimal(20, 4)` and `decimal_fixed(20, 4)[9]` are alike."""
    decimal = _DECIMAL.match(kind)
    return f"decimal {decimal[1]}" if decimal else kind


def columns_of(schema: str) -> Columns:
    """Reads the schema of one commit (`LATEST`). Raises ValueError if it is unreadable."""
    try:
        return dict(_columns(json.loads(schema), ""))
    except _UNREADABLE as error:
        raise ValueError(f"the schema of the commit is unreadable: {error!r}") from error


def _columns(kind: dict[str, Any], path: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields id, full name and type of each column in a record, an array or a map."""
    parts = [(each["id"], each["name"], each["type"]) for each in kind.get("fields", ())]
    parts += [(kind[f"{name}_id"], name, kind[name]) for name in _NESTED if f"{name}_id" in kind]
    for number, name, of in parts:
        full = f"{path}.{name}" if path else name
        nested = isinstance(of, dict)
        yield int(number), (full, str(of["type"]) if nested else str(of))
        if nested:
            yield from _columns(of, full)
