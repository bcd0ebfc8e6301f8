"""The latest file slices and the partitions, as the metadata table and as a listing of the storage say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi import slice_listing
from jobs.hudi.records import file_slice_of
from jobs.hudi.table import HudiTable
from tests.integration import tables
from tests.integration.run import hudi_table
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.records import FileSlice


def _by_hudi(table: HudiTable) -> set[FileSlice]:
    """The slices by Hudi's own calls, each of which opens the metadata table anew."""
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


@pytest.mark.parametrize("metadata", [True, False], ids=["metadata-table", "listing"])
def test_partitions_and_files_are_read_by_one_reader(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, metadata: bool
) -> None:
    opened: list[bool] = []
    listing = slice_listing.listing

    def counted(table: HudiTable, *, from_metadata: bool) -> Any:
        opened.append(from_metadata)
        return listing(table, from_metadata=from_metadata)

    monkeypatch.setattr(slice_listing, "listing", counted)
    base = tmp_path / "trips"
    options = tables.writer_options(base, metadata=metadata)
    tables.upsert(tables.rows(spark, 0, 40), base, options)
    table = hudi_table(spark, base, INDEX)
    assert set(table.file_slices()) == _by_hudi(table)
    assert opened == [metadata]
    # Another commit is seen by another reader.
    tables.upsert(tables.rows(spark, 0, 40, ts=1), base, options)
    slices = set(table.file_slices())
    assert slices == _by_hudi(table)
    assert any(each.log_files for each in slices)
    assert opened == [metadata] * 2
