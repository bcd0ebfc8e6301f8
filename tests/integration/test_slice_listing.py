"""Compares the latest file slices and the partitions of the metadata table with those of a listing of the storage."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi import lent_reader, slice_listing
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.plans import plan_of
from jobs.hudi.records import file_slice_of
from jobs.hudi.table import HudiTable
from jobs.services import compaction
from tests.integration import tables
from tests.integration.run import hudi_table
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.records import FileSlice


def _by_hudi(table: HudiTable) -> set[FileSlice]:
    """Returns the slices by Hudi's own calls, each of which opens the metadata table anew."""
    jvm = table.jvm
    config = jvm.hudi.common.config.HoodieMetadataConfig.newBuilder().enable(table.is_listed_by_metadata).build()
    meta = HudiTable(jvm, table.declared).meta
    view = jvm.hudi.common.table.view.FileSystemViewManager.createInMemoryFileSystemView(
        jvm.engine_context, meta, config
    )
    paths = jvm.hudi.common.fs.FSUtils.getAllPartitionPaths(jvm.engine_context, meta, table.is_listed_by_metadata)
    as_json, transfer = jvm.hudi.common.util.JsonUtils.toString, jvm.hudi.common.table.timeline.dto.FileSliceDTO
    return {
        file_slice_of(json.loads(as_json(transfer.fromFileSlice(each))))
        for path in paths
        for each in jvm.items(view.getLatestFileSlices(path))
    }


@pytest.mark.parametrize(
    "metadata",
    [pytest.param(True, id="metadata-table"), pytest.param(False, id="listing", marks=pytest.mark.exhaustive)],
)
def test_partitions_and_files_are_read_by_one_reader(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, *, metadata: bool
) -> None:
    opened: list[bool] = []
    listing = slice_listing.listing

    def counted(table: HudiTable, *, from_metadata: bool) -> Any:
        opened.append(from_metadata)
        return listing(table, from_metadata=from_metadata)

    monkeypatch.setattr(slice_listing, "listing", counted)
    options = tables.writer_options(base, metadata=metadata)
    tables.upsert(tables.rows(spark, 0, 40), base, options)
    table = hudi_table(spark, base, INDEX)
    with table.reading() as reader:
        assert set(table.file_slices()) == _by_hudi(table)
        partitions = table.partitions()
        with table.reading() as same:
            assert same is reader
        assert opened == [metadata]
        # A reader that is opened after another commit sees that commit.
        tables.upsert(tables.rows(spark, 0, 80, ts=1), base, options)
        with table.reading() as other:
            assert other is not reader
            slices = set(table.file_slices())
        assert opened == [metadata] * 2
        assert slices == _by_hudi(table)
        assert any(each.log_files for each in slices)
        assert set(table.partitions()) >= set(partitions)


def test_an_open_reader_is_asked_once_for_the_partitions_and_not_again_after_a_writer_has_added_one(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    relative = slice_listing.relative

    def noted(path: str, what: str) -> str:
        asked.append(path)
        return relative(path, what)

    monkeypatch.setattr(slice_listing, "relative", noted)
    options = tables.writer_options(base)
    tables.upsert(tables.rows(spark, 0, 40, partitions=2), base, options)
    table = hudi_table(spark, base, INDEX)
    with table.reading():
        before = table.partitions()
        table.file_slices()
        assert table.partitions() == before
        assert sorted(asked) == before
        # What the open reader has said ends with the writer's commit, inside its context as well.
        tables.upsert(tables.rows(spark, 40, 80, partitions=3), base, options)
        assert set(table.partitions()) > set(before)
        assert {item.partition for item in table.file_slices()} == set(table.partitions())
        with table.reading():
            asked.clear()
            after = table.partitions()
            assert table.partitions() == after
            assert sorted(asked) == after
    assert table.partitions() == after
    assert set(table.file_slices()) == _by_hudi(table)


@pytest.mark.exhaustive
@pytest.mark.parametrize("partitions", [2, 20])
def test_hudis_planner_goes_by_the_reader_that_is_open(
    spark: SparkSession, tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    lent: list[bool | None] = []
    planned = lent_reader.planned_compaction

    def noted(*given: Any) -> bool | None:
        lent.append(planned(*given))
        return lent[-1]

    monkeypatch.setattr(lent_reader, "planned_compaction", noted)
    options = tables.writer_options(base)
    for ts in range(2):
        tables.upsert(tables.rows(spark, 0, 40, ts=ts, partitions=partitions), base, options)
    shutil.copytree(base, tmp_path / "hudis")
    plans = []
    for path, is_ours in ((base, True), (tmp_path / "hudis", False)):
        table = hudi_table(spark, path, INDEX)
        with table.reading() as reader, WriteClient(table, UNDER_OUR_LOCK, compaction.DUE) as client:
            assert len(table.jvm.read(reader.getAllPartitionPaths())) == partitions
            # A write that commits now has to be in the plan.
            tables.upsert(tables.rows(spark, 0, 10, ts=5, partitions=1), path, options)
            if is_ours:
                instant = client.schedule_compaction()
            else:
                instant = client._client.scheduleCompaction(table.jvm.nothing()).get()
        plan = plan_of(table, str(instant))
        plans.append(
            {
                (each["partitionPath"], each["fileId"]): (each["dataFilePath"], len(each["deltaFilePaths"]))
                for each in plan["operations"]
            }
        )
        with WriteClient(table, UNDER_OUR_LOCK, compaction.DUE) as client:
            assert client.schedule_compaction() is None
    assert plans[0] == plans[1]
    assert sum(logs for _, logs in plans[0].values()) > len(plans[0])
    assert lent == ([True, False, False] if partitions < 16 else [None] * 3)
