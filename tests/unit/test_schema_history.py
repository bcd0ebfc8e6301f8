"""Tests which columns Hudi's schema on read has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.format.schema_history import columns_of, parsed

Columns = list[tuple[int, str, Any]]


def history(*versions: Columns) -> str:
    """Returns the history in the form of Hudi 1.2.0, with the versions 0, 10, 20 and so on, the latest first."""
    schemas = [
        {
            "version_id": number * 10,
            "type": "record",
            "fields": [{"id": column, "name": name, "optional": True, "type": kind} for column, name, kind in columns],
        }
        for number, columns in enumerate(versions)
    ]
    return json.dumps({"schemas": schemas[::-1]})


CITY: Columns = [(0, "id", "string"), (1, "city", "int")]


def of_items(name: str) -> dict[str, Any]:
    fields = [{"id": 3, "name": name, "optional": True, "type": "long"}]
    element = {"type": "record", "fields": fields}
    return {"type": "array", "element_id": 2, "element": element, "element_optional": True}


@pytest.mark.parametrize(
    ("versions", "changed"),
    [
        ([CITY], {}),
        ([CITY, [*CITY, (2, "note", "string")]], {}),
        ([CITY, CITY[::-1]], {}),
        ([CITY, CITY[:1]], {}),
        ([CITY, [CITY[0], (1, "town", "int")]], {"city -> town": 10}),
        ([CITY, [CITY[0], (1, "city", "long")]], {"city: int -> long": 10}),
        ([CITY, CITY[:1], [CITY[0], (2, "city", "int")]], {"city": 20}),
        (
            [[(0, "id", "string"), (1, "items", of_items("a"))], [(0, "id", "string"), (1, "items", of_items("b"))]],
            {"items.element.a -> items.element.b": 10},
        ),
    ],
    ids=["one", "added", "moved", "dropped", "renamed", "widened", "added again", "nested"],
)
def test_columns_that_old_files_store_differently_are_found(versions: list[Columns], changed: dict[str, int]) -> None:
    found = parsed(history(*versions))
    assert found.changed() == changed
    assert found.changed(types=False) == {name: since for name, since in changed.items() if ": " not in name}


def test_a_missing_history_has_no_changes_and_a_damaged_one_is_an_error() -> None:
    assert parsed("").changed() == {}
    assert parsed("").at(5) == {}
    for damaged in ("{", "[]", '{"schemas": [{"version_id": 1, "fields": [{"id": 1}]}]}'):
        with pytest.raises(ValueError, match=r"unreadable|Expecting"):
            parsed(damaged)
    with pytest.raises(ValueError, match="unreadable"):
        columns_of('{"fields": [{"id": 1}]}')


def test_the_columns_of_a_file_are_those_of_the_last_version_before_it() -> None:
    added_again = parsed(history(CITY, CITY[:1], [CITY[0], (2, "city", "int")]))
    assert [sorted(added_again.at(instant)) for instant in (0, 9, 10, 25)] == [[0, 1], [0, 1], [0], [0, 2]]
    assert added_again.since == {0: 0, 1: 0, 2: 20}
    assert added_again.named_since == {"id": 0, "city": 0}
    renamed = parsed(history(CITY, [CITY[0], (1, "town", "int")]))
    assert renamed.names[1] == {"city", "town"}
