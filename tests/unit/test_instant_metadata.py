from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from service.lake.instant_metadata import parse_metadata, schema_digest
from service.lake.storage import open_storage
from service.model.storage_errors import StorageError
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("version", [6, 9])
def test_a_commit_tells_what_it_wrote(tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    base, log = base_file(bucket_id(0), "001"), log_file(bucket_id(1), "001")
    table.commit("001", {"p=1": {base: 100}, "p=2": {log: 30}}, rows=7, replaced={"p=3": ["old-0"]})
    name = "001_002.deltacommit" if version == 9 else "001.deltacommit"
    found = parse_metadata("deltacommit", (table.timeline / name).read_bytes(), name)
    assert (found.operation, found.rows_written, found.rows_deleted, found.bytes_written) == ("UPSERT", 14, 0, 130)
    assert found.partitions == ("p=1", "p=2", "p=3")
    assert found.file_groups == 3
    assert found.replaced == {"p=3": ("old-0",)}
    assert found.base_rows == {"p=1": {base: 7}}
    assert found.written == {"p=1": {bucket_id(0): 7}, "p=2": {bucket_id(1): 7}}
    assert found.repaired == ()
    assert found.schema


def test_rows_that_a_base_file_had_before_do_not_count_as_rows_of_the_commit() -> None:
    """`numWrites` of copy-on-write tables counts all rows of the new file."""
    stat = {"fileId": "a", "path": "p/a_0-1-1_001.parquet", "numWrites": 100}
    stat |= {"numInserts": 3, "numUpdateWrites": 2, "numDeletes": 1}
    content = json.dumps({"partitionToWriteStats": {"p": [stat]}, "operationType": "UPSERT"}).encode()
    found = parse_metadata("commit", content, "")
    assert found.written == {"p": {"a": 6}}
    assert found.base_rows == {"p": {"a_0-1-1_001.parquet": 100}}


def test_a_commit_tells_which_ones_it_repaired() -> None:
    content = json.dumps({"extraMetadata": {"groundskeeper.repaired": "001,003"}}).encode()
    assert parse_metadata("commit", content, "").repaired == ("001", "003")


def test_a_clean_and_a_rollback_tell_the_partitions(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.clean("001", ("a", "b"))
    table.rollback("003", "002", ("c",))
    clean = parse_metadata("clean", (table.timeline / "001_002.clean").read_bytes(), "")
    rollback = parse_metadata("rollback", (table.timeline / "003_004.rollback").read_bytes(), "")
    assert clean.partitions == ("a", "b")
    assert (rollback.partitions, rollback.rolled_back) == (("c",), ("002",))
    assert clean.rows_written is None


def test_a_clean_that_names_no_partitions_says_so() -> None:
    assert parse_metadata("clean", b"{}", "").partitions is None


def test_a_restore_is_the_sum_of_its_rollbacks() -> None:
    undone = {"5": [{"commitsRollback": ["5"], "partitionMetadata": {"a": {}}}], "4": [{"commitsRollback": ["4"]}]}
    found = parse_metadata("restore", json.dumps({"hoodieRestoreMetadata": undone}).encode(), "")
    assert (found.partitions, found.rolled_back) == (("a",), ("5", "4"))


@pytest.mark.parametrize("action", ["savepoint", "indexing", "schemacommit"])
def test_other_actions_name_no_partitions(action: str) -> None:
    assert parse_metadata(action, b"{}", "").partitions == ()


@pytest.mark.parametrize("content", [b"Obj\x01 damaged", b"{half", b"[]", b'{"partitionToWriteStats": 3}'])
def test_damage_is_told_with_the_place(content: bytes) -> None:
    with pytest.raises(StorageError, match="/lake/t/001"):
        parse_metadata("commit", content, "/lake/t/001.commit")


def test_an_empty_file_is_an_instant_without_metadata() -> None:
    assert parse_metadata("commit", b"", "").rows_written == 0


def _record(*fields: tuple[str, Any], name: str = "r") -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]})


def test_schemas_of_the_same_columns_are_equal_whoever_wrote_them() -> None:
    nested = {"type": "record", "name": "spark_item", "fields": [{"name": "a", "type": "int"}]}
    renamed = {**nested, "name": "flink_item", "namespace": "x"}
    spark = _record(("_hoodie_record_key", "string"), ("id", ["null", "string"]), ("items", nested))
    flink = _record(("id", ["string", "null"]), ("items", renamed), name="other")
    assert schema_digest(spark) == schema_digest(flink)


@pytest.mark.parametrize(
    "changed",
    [
        _record(("id", "string"), ("new", "int")),
        _record(("id", "long")),
        _record(("other", "string")),
        _record(("id", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})),
    ],
)
def test_other_columns_are_another_schema(changed: str) -> None:
    assert schema_digest(changed) != schema_digest(_record(("id", "string")))


def test_a_decimal_of_another_precision_is_another_schema() -> None:
    one, other = (
        _record(("x", {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}))
        for precision in (10, 12)
    )
    assert schema_digest(one) != schema_digest(other)


def test_a_text_that_is_no_schema_has_no_digest() -> None:
    assert schema_digest("not json") is None


def test_names_are_listed_at_least_cost_and_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.begin("001")
    names = open_storage(str(table.base), {}).names(".hoodie/timeline")
    assert sorted(names) == ["001.deltacommit.inflight", "001.deltacommit.requested"]
