"""Which columns Hudi's schema on read has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.format.schema_history import changed_columns

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
def test_columns_that_old_files_store_differently(versions: list[Columns], changed: dict[str, int]) -> None:
    assert changed_columns(history(*versions)) == changed


def test_a_table_without_a_history_and_one_whose_history_is_damaged() -> None:
    assert changed_columns("") == {}
    for damaged in ("{", "[]", '{"schemas": [{"version_id": 1, "fields": [{"id": 1}]}]}'):
        with pytest.raises(ValueError, match=r"unreadable|Expecting"):
            changed_columns(damaged)
