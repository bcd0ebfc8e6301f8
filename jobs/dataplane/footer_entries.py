"""The key-value entries of a base file's footer: which belong to that file alone, and what the others depend on.

Hudi's writers put there what readers without the table's schema need, such as the columns that are vectors
(`HoodieSchema.VECTOR_COLUMNS_METADATA_KEY`, Hudi 1.2). Other writers have entries of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.dataplane.key_footer import KEY_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Mapping

AVRO_SCHEMA = b"parquet.avro.schema"
# Readers of Spark know by this and the two `legacy` entries how old dates and timestamps are meant; without any of
# them, they refuse those before 1582 (`DataSourceUtils`).
SPARK_VERSION = b"org.apache.spark.version"
VECTOR_COLUMNS = b"hoodie.vector.columns"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_TIME_ZONE = b"org.apache.spark.timeZone"
_FIRST_WITHOUT_LEGACY = b"3.0.0"
# All that Hudi 1.2 writes for one file (`HoodieBloomFilterWriteSupport`), and the writers of the pages that its copier
# has put together (`HoodieParquetBinaryCopyBase.ORIGINAL_CREATED_BY_KEY`).
_OF_ONE_FILE = KEY_ENTRIES | {b"original.created.by"}
# What describes the columns of the file, or how their values are meant: wrong beside another schema, or for rows that a
# reader of Hudi has converted.
_OF_SCHEMA = frozenset(
    {
        AVRO_SCHEMA,
        SPARK_VERSION,
        VECTOR_COLUMNS,
        *_LEGACY,
        _TIME_ZONE,
        b"org.apache.spark.sql.parquet.row.metadata",
        b"writer.model.name",
        b"ARROW:schema",
        b"pandas",
        b"iceberg.schema",
        b"parquet.proto.class",
        b"parquet.proto.descriptor",
    }
)


def lasting(footer: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """Returns the entries that hold for each file with this schema and rows of this one."""
    return {key: value for key, value in (footer or {}).items() if key not in _OF_ONE_FILE}


def foreign(footer: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """Returns those of the lasting entries that hold under another schema too."""
    return {key: value for key, value in lasting(footer).items() if key not in _OF_SCHEMA}


def calendar(footer: Mapping[bytes, bytes] | None) -> tuple[object, ...]:
    """Returns what a footer says of the calendar of its dates and timestamps (`DataSourceUtils.datetimeRebaseSpec` of
    Spark 3.5). Values of files that differ in it must not go to one file as they are."""
    footer = footer or {}
    legacy = tuple(name for name in _LEGACY if name in footer)
    version = footer.get(SPARK_VERSION)
    is_old = version is not None and version < _FIRST_WITHOUT_LEGACY
    return version is None, is_old, legacy, footer.get(_TIME_ZONE) if legacy else None
