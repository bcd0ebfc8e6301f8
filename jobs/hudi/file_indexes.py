"""Reads the indexes that have entries by file (Bloom filters of record keys, and expression indexes), with Hudi's own
reader of the metadata table (1.2.0)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.index_definitions import EXPRESSION, IndexDefinition
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_table import FOLDER, reader
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable


def mixed_in(table: HudiTable, partition: str) -> list[str]:
    """Returns the names of the files of expression indexes in a partition of the metadata table that belongs to another
    index. Hudi 1.2.0 then looks entries up in the wrong file groups (`EXPRESSION_INDEX`)."""
    file_ids = EXPRESSION.replace("_", "-")
    return sorted(name for name in table.files_in(f"{FOLDER}/{partition}") if name.lstrip(".").startswith(file_ids))


def filters(table: HudiTable, index: str, files: Sequence[FileSlice]) -> dict[str, tuple[str, bytes]]:
    """Returns the type and the serialized form of each Bloom filter in an index, by the name of the base file."""
    pair = table.jvm.hudi.common.util.collection.Pair
    with translated(f"reading {index}"), reader(table) as metadata:
        keys = [pair.of(item.partition, item.base_name) for item in files]
        stored = metadata.getBloomFilters(table.jvm.objects(keys), index)
        found = {str(key.getRight()): each for key in keys if (each := stored.get(key)) is not None}
        return {
            name: (str(each.getBloomFilterTypeCode().name()), str(each.serializeToString()).encode())
            for name, each in found.items()
        }


def has_filter(table: HudiTable, item: FileSlice) -> bool:
    """Returns whether the footer of a Parquet base file has a Bloom filter, which is the source of the index."""
    with translated("reading a Bloom filter"):
        return _of_footer(table, item) is not None


def filter_bytes(table: HudiTable, item: FileSlice) -> int:
    """Returns the size of the Bloom filter in the footer of a Parquet base file; 0 if there is none."""
    with translated("reading a Bloom filter"):
        found = _of_footer(table, item)
        return len(str(found.serializeToString())) if found is not None else 0


def _of_footer(table: HudiTable, item: FileSlice) -> Any:
    hudi, storage = table.jvm.hudi, table.storage
    formats = hudi.io.storage.HoodieIOFactory.getIOFactory(storage)
    footers = formats.getFileFormatUtils(hudi.common.model.HoodieFileFormat.PARQUET)
    return footers.readBloomFilterFromMetadata(storage, hudi.storage.StoragePath(item.base_file))


def ranges(table: HudiTable, index: IndexDefinition, files: Sequence[FileSlice]) -> dict[str, dict[str, Any]]:
    """Returns the entries (`HoodieMetadataColumnStats`) of an expression index, by the name of the base file."""
    hudi = table.jvm.hudi
    (column,) = index.columns
    with translated(f"reading {index.name}"), reader(table) as metadata:
        keys = [hudi.metadata.ColumnStatsIndexRawKey(item.partition, item.base_name, column) for item in files]
        eager = hudi.common.data.HoodieListData.eager(table.jvm.objects(keys))
        payloads = metadata.readIndexRecordsWithKeys(eager, index.name).values().collectAsList()
        # Avro prints a record as JSON.
        found = [json.loads(str(each.getColumnStatMetadata().get().toString())) for each in payloads]
    return {each["fileName"]: each for each in found}


def source(index: IndexDefinition) -> Column:
    """Returns the column of an expression index."""
    (name,) = index.columns
    return F.col(".".join(f"`{part}`" for part in name.split(".")))


def expression(table: HudiTable, index: IndexDefinition) -> Column:
    """Returns the expression of an index, as Hudi computes it with the index's options."""
    definition = table.meta.getIndexMetadata().get().getIndex(index.name).get()
    computed = table.jvm.hudi.index.expression.HoodieSparkExpressionIndex(definition)
    return Column(computed.apply(table.jvm.objects([source(index)._jc])))
