"""The history of a table's schema that Hudi's schema on read keeps (`FileBasedInternalSchemaStorageManager` and
`SerDeHelper.toJson`, Hudi 1.2.0): each version with the instant that brought it, and an id for each column."""

from __future__ import annotations

import json
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

_NESTED = ("element", "key", "value")
_UNREADABLE = (KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class SchemaHistory:
    """All versions of a schema, in their order. A version is the number of its instant; that of the schema before the
    first change is 0. A table without schema on read has none."""

    versions: tuple[tuple[int, Columns], ...] = ()

    def at(self, instant: int) -> Columns:
        """Returns the columns by which readers read a file of this instant (`InternalSchemaUtils.searchSchema`)."""
        place = bisect_right(self.versions, instant, key=lambda each: each[0])
        return self.versions[place - 1][1] if place else {}

    @cached_property
    def names(self) -> dict[int, set[str]]:
        """All names that each column has had, by its id."""
        found = defaultdict(set)
        for _, columns in self.versions:
            for number, (name, _) in columns.items():
                found[number].add(name)
        return found

    @cached_property
    def since(self) -> dict[int, int]:
        """The first version of each column, by its id."""
        return {number: version for version, columns in reversed(self.versions) for number in columns}

    @cached_property
    def named_since(self) -> dict[str, int]:
        """The first version in which a column had this name."""
        return {name: version for version, columns in reversed(self.versions) for name, _ in columns.values()}

    def changed(self) -> dict[str, int]:
        """Returns the columns that were renamed, got another type, or have the name of a dropped column, each with the
        latest version that did so. Files of earlier instants store such a column differently."""
        found: dict[str, int] = {}
        ids: dict[str, set[int]] = {}
        before: Columns = {}
        for version, now in self.versions:
            for number, (name, kind) in now.items():
                old = before.get(number, (name, kind))
                if old[0] != name:
                    found[f"{old[0]} -> {name}"] = version
                elif old[1] != kind:
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
