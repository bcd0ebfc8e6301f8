"""The history of a table's schema that Hudi's schema on read keeps (`FileBasedInternalSchemaStorageManager` and
`SerDeHelper.toJson`, Hudi 1.2.0): each version with the instant that brought it, and an id for each column."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_NESTED = ("element", "key", "value")


def changed_columns(history: str) -> dict[str, int]:
    """Returns the columns that were renamed, got another type, or have the name of a dropped column, each with the
    latest version that did so. A version is the number of its instant. Files of earlier instants store such a column
    differently. `history` is empty for a table without one. Raises ValueError if it is unreadable."""
    if not history:
        return {}
    try:
        versions = sorted(json.loads(history)["schemas"], key=lambda each: int(each["version_id"]))
        columns = [(int(each["version_id"]), dict(_columns(each, ""))) for each in versions]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the history of the schema is unreadable: {error!r}") from error
    found: dict[str, int] = {}
    ids: dict[str, set[int]] = {}
    before: dict[int, tuple[str, str]] = {}
    for version, now in columns:
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
