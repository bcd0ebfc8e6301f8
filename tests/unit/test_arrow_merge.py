"""Tests which plans and schemas Arrow may merge, and the write stats of a merged file."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.dataplane.compacted_file import CompactedFile
from jobs.dataplane.driver_processes import MOST_BYTES
from jobs.dataplane.slice_merge import MergeCounts, SliceFiles
from jobs.protocol.arrow_merge import columns_with_default, of_schema, reasons_against_plan, slices_of

LOG = ".00000001-aaaa-0_20260101000000000.log.1_0-1-2"


def operation(**more: Any) -> dict[str, Any]:
    return {
        "partitionPath": "dt=1",
        "fileId": "00000001-aaaa-0",
        "dataFilePath": "00000001-aaaa-0_0-1-2_20260101000000000.parquet",
        "deltaFilePaths": [LOG],
        "metrics": {"TOTAL_IO_READ_MB": 1.0},
        **more,
    }


def test_columns_whose_default_is_not_null_are_known() -> None:
    inner = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "default": 0}]}
    fields = [
        {"name": "id", "type": "string"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "fare", "type": "double", "default": 0.0},
        {"name": "place", "type": ["null", inner], "default": None},
        {"name": "places", "type": {"type": "array", "items": inner}},
    ]
    schema = {"type": "record", "name": "t", "fields": fields}
    assert columns_with_default(schema) == {"fare", "place", "places"}


def test_sizes_below_a_megabyte_count_as_small_and_unknown_sizes_do_not() -> None:
    tiny = [operation(fileId=str(number), metrics={"TOTAL_IO_READ_MB": 0.0}) for number in range(50)]
    assert sum(each.bytes for each in slices_of({"operations": tiny})) < MOST_BYTES
    (unknown,) = slices_of({"operations": [operation(metrics=None)]})
    assert unknown.bytes > MOST_BYTES


def test_the_slices_of_a_plan_come_with_the_largest_first() -> None:
    small, large = operation(), operation(fileId="2", metrics={"TOTAL_IO_READ_MB": 7.0}, dataFilePath=None)
    found = slices_of({"operations": [small, large]})
    assert found == [
        SliceFiles("dt=1", "2", None, (f"dt=1/{LOG}",)),
        SliceFiles("dt=1", "00000001-aaaa-0", "dt=1/00000001-aaaa-0_0-1-2_20260101000000000.parquet", (f"dt=1/{LOG}",)),
    ]
    # Older plans have whole paths; the root of the table is a partition as well.
    at_root = operation(partitionPath="", deltaFilePaths=[f"file:/t/{LOG}"], metrics=None)
    assert slices_of({"operations": [at_root]})[0].logs == (LOG,)
    assert slices_of({}) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, []),
        ({"bootstrapFilePath": "/old/1.parquet"}, ["bootstrapped-table"]),
        ({"deltaFilePaths": [f"{LOG}.cdc"]}, ["log-files-not-covered"]),
        ({"deltaFilePaths": [LOG, "something.hfile"]}, ["log-files-not-covered"]),
    ],
)
def test_a_plan_with_files_of_another_kind_is_left_to_hudi(more: dict[str, Any], expected: list[str]) -> None:
    assert [each.type for each in reasons_against_plan({"operations": [operation(), operation(**more)]})] == expected


FIXED = {"type": "fixed", "name": "f", "size": 9}
NESTED = {"type": "record", "name": "r", "fields": [{"name": "x", "type": {"type": "array", "items": "long"}}]}


@pytest.mark.parametrize(
    ("kind", "is_covered"),
    [
        ("long", True),
        (["null", "string"], True),
        ({"type": "string", "avro.java.string": "String"}, True),
        ({**FIXED, "logicalType": "decimal", "precision": 20, "scale": 4}, True),
        ({"type": "long", "logicalType": "timestamp-micros"}, True),
        (["null", NESTED], True),
        ({"type": "map", "values": {"type": "int", "logicalType": "date"}}, True),
        ({"type": "long", "logicalType": "timestamp-millis"}, False),
        ({"type": "int", "logicalType": "time-millis"}, False),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, False),
        (FIXED, False),
        (["null", "string", "long"], False),
        ({"type": "array", "items": {"type": "enum", "name": "e", "symbols": ["A"]}}, False),
        ("a.name.that.was.defined.before", False),
    ],
    ids=str,
)
def test_columns_of_types_that_are_not_sparks_own_are_left_to_hudi(kind: Any, is_covered: bool) -> None:
    found = list(of_schema({"fields": [{"name": "_hoodie_record_key", "type": "string"}, {"name": "c", "type": kind}]}))
    assert [each.type for each in found] == ([] if is_covered else ["types-not-covered"])
    assert all(each.detail.startswith("c: ") for each in found)


def test_rows_that_carry_their_operation_are_left_to_hudi() -> None:
    [found] = of_schema({"fields": [{"name": "_hoodie_operation", "type": ["null", "string"]}]})
    assert found.type == "operation-field"


def test_the_statistics_name_the_file_that_was_replaced() -> None:
    counts = MergeCounts(log_files=2, log_records=9, log_keys=8, updates=5, inserts=2, deletes=1, rows=40)
    file = CompactedFile("", "f-0", "f-0_0-3-4_20260102000000000.parquet", 123, counts, 0.5)
    stat = file.write_stat("f-0_0-1-2_20260101000000000.parquet")
    assert (stat["path"], stat["prevCommit"]) == (file.file_name, "20260101000000000")
    assert stat["prevBaseFile"] == "f-0_0-1-2_20260101000000000.parquet"
    assert (stat["numWrites"], stat["numUpdateWrites"], stat["numInserts"], stat["numDeletes"]) == (40, 5, 2, 1)
    assert stat["runtimeStats"]["totalUpsertTime"] == 500
    of_logs_alone = CompactedFile("dt=1", "f-0", file.file_name, 1, counts, 0.0).write_stat(None)
    assert (of_logs_alone["path"], of_logs_alone["prevCommit"]) == (f"dt=1/{file.file_name}", "null")
    assert of_logs_alone["prevBaseFile"] is None
