"""Tests that a base file's footer tells its columns, and how many values are in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.dataplane.stored_columns import columns_of
from jobs.storage.paths import Storage

if TYPE_CHECKING:
    from pathlib import Path

KIND = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
ROWS: list[dict[str, Any]] = [
    {"city": 1, "point": {"x": 1, "tags": ["a", None]}, "items": [{"a": 1}, {"a": None}], "scores": [("p", 1.5)]},
    {"city": None, "point": None, "items": [], "scores": None},
    {"city": 3, "point": {"x": None, "tags": []}, "items": None, "scores": [("p", None), ("q", 2.0)]},
    {"city": 4, "point": {"x": 4, "tags": None}, "items": [{"a": 4}], "scores": []},
]
INSTANTS = ["20260101000000000", "20260102000000000", "20260103000000000", "20260104000000000"]
VALUES = {
    "_hoodie_commit_time": 4,
    "city": 3,
    "point": None,
    "point.x": 2,
    "point.tags": None,
    "point.tags.element": 1,
    "items": None,
    "items.element": None,
    "items.element.a": 2,
    "scores": None,
    "scores.key": 3,
    "scores.value": 2,
}


KINDS = {
    "_hoodie_commit_time": "string",
    "city": "int",
    "point.x": "long",
    "point.tags.element": "string",
    "items.element.a": "long",
    "scores.key": "string",
    "scores.value": "double",
}


def written(path: Path, **options: Any) -> str:
    fields = {"city": pa.int32(), "point": KIND, "items": pa.list_(pa.struct([("a", pa.int64())]))}
    fields["scores"] = pa.map_(pa.string(), pa.float64())
    columns = {name: pa.array([row[name] for row in ROWS], kind) for name, kind in fields.items()}
    table = pa.table({"_hoodie_commit_time": INSTANTS, **columns})
    pq.write_table(table, path, row_group_size=3, **options)
    return str(path)


@pytest.mark.parametrize("options", [{}, {"use_compliant_nested_type": False}], ids=["lists", "lists of old writers"])
def test_columns_have_the_names_of_hudi_and_the_number_of_their_values(tmp_path: Path, options: dict[str, Any]) -> None:
    path = written(tmp_path / "file.parquet", **options)
    (found,) = columns_of(Storage(str(tmp_path)), path, {})
    assert (found.path, found.values, found.earliest, found.older) == (path, VALUES, int(INSTANTS[0]), {})
    assert found.kinds == KINDS


def test_without_statistics_nothing_is_said_about_values(tmp_path: Path) -> None:
    path = written(tmp_path / "file.parquet", write_statistics=False)
    (found,) = columns_of(Storage(str(tmp_path)), path, {"city": int(INSTANTS[2])})
    assert found.values == dict.fromkeys(VALUES)
    assert (found.earliest, found.older) == (0, {"city": 1})


def test_values_of_rows_before_an_instant_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "file.parquet")
    third = int(INSTANTS[2])
    before = {name: third for name in VALUES if name[0] != "_"} | {"nobody": third}
    (found,) = columns_of(Storage(str(tmp_path)), path, before)
    assert found.older == {
        "city": 1,
        "point": 1,
        "point.x": 1,
        "point.tags": 1,
        "point.tags.element": 1,
        "items": 2,
        "items.element": 2,
        "items.element.a": 1,
        "scores": 1,
        "scores.key": 1,
        "scores.value": 1,
    }
    (none,) = columns_of(Storage(str(tmp_path)), path, dict.fromkeys(before, int(INSTANTS[0])))
    assert none.older == {}
