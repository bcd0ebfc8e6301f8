from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import BucketIndex, WriterEngine
from service.lake.table import TableType
from service.writer_options.options import WriterOptions, writer_options
from service.writer_options.written_table import Callback, Target

SPARK, SPARK_SQL, FLINK = WriterEngine.SPARK, WriterEngine.SPARK_SQL, WriterEngine.FLINK
BEFORE_1_0 = {"hoodie.cleaner.policy.failed.writes": "LAZY", "hoodie.clean.async": "false"}
FROM_1_0 = {"hoodie.clean.failed.writes.policy": "LAZY", "hoodie.clean.async.enabled": "false"}


def options(version: str, engine: WriterEngine = SPARK, **more: Any) -> WriterOptions:
    shape = {"index": BucketIndex(4, ("id",)), "num_buckets": 4, "ordering_fields": ("ts",), "has_flink": True, **more}
    target = Target("/lake/t", "t", TableType.MERGE_ON_READ, hudi_version=version, **shape)
    return writer_options(target, engine, callback=Callback("http://gk"), manager="http://gk")


@pytest.mark.parametrize("engine", list(WriterEngine))
def test_each_option_has_the_name_that_the_version_knows(engine: WriterEngine) -> None:
    for version, these, others in (("0.15.0", BEFORE_1_0, FROM_1_0), ("1.0.2", FROM_1_0, BEFORE_1_0)):
        found = options(version, engine).options
        assert these.items() <= found.items()
        assert not others.keys() & found.keys()


def test_options_that_came_later_are_left_out() -> None:
    pruning, streaming = "hoodie.bucket.index.query.pruning", "hoodie.metadata.streaming.write.enabled"
    expected = {"0.14.1": set(), "0.15.0-amzn-1": set(), "1.0.2": {pruning}, "1.1.1": {pruning, streaming}}
    for version, names in expected.items():
        found = options(version)
        assert found.options.keys() & {pruning, streaming} == names
        assert any(pruning in note for note in found.notes) == (pruning in names)


@pytest.mark.parametrize(
    ("version", "table", "ordering"),
    [
        ("0.15.0", None, ["hoodie.datasource.write.precombine.field"]),
        ("1.0.2", "8", ["hoodie.datasource.write.precombine.field"]),
        ("1.1.1", "9", ["hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields"]),
        ("1.2.0", "9", ["hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields"]),
    ],
)
def test_a_new_table_gets_its_order_and_a_version_that_stays(
    version: str, table: str | None, ordering: list[str]
) -> None:
    found = options(version, exists=False).options
    assert [name for name in found if found[name] == "ts"] == ordering
    assert found.get("hoodie.write.table.version") == table
    assert found.get("hoodie.write.auto.upgrade") == (table and "false")
    sql = options(version, SPARK_SQL, exists=False).sql["tblproperties"]
    assert ("orderingFields" in sql, "preCombineField" in sql) == (len(ordering) == 2, len(ordering) == 1)
    flink = options(version, FLINK, exists=False).options
    assert [name for name in flink if flink[name] == "ts"] == [
        "ordering.fields" if len(ordering) == 2 else "precombine.field"
    ]


def test_no_writer_upgrades_a_table_that_exists() -> None:
    assert options("1.2.0", table_version=6).options["hoodie.write.table.version"] == "6"
    assert options("1.2.0", table_version=6).options["hoodie.write.auto.upgrade"] == "false"
    assert "hoodie.write.table.version" not in options("1.2.0").options


def test_a_writer_that_knows_no_hashing_config_is_told_to_start_again_after_an_expansion() -> None:
    for version, is_told in (("0.15.0", True), ("1.0.2", True), ("1.1.1", False), ("1.2.0", False)):
        assert any("start it again with the new number" in note for note in options(version).notes) == is_told


def test_a_writer_of_hudi_1_0_is_told_where_its_bundle_belongs() -> None:
    for version, is_told in (("0.15.0", False), ("1.0.2", True), ("1.1.1", False)):
        assert any("HoodieDeleteRecord" in note for note in options(version).notes) == is_told


def test_a_lock_provider_that_the_version_lacks_is_named() -> None:
    provider = "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"
    assert any("does not have this lock provider" in note for note in options("0.15.0", lock_provider=provider).notes)
    assert not any("does not have this lock" in note for note in options("1.0.2", lock_provider=provider).notes)
