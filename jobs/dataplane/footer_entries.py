"""The key-value entries of a base file's footer: which ones belong to that file alone, and what the others depend on.
Hudi's writers store there what readers without the table's schema need, such as the names of vector columns
(`HoodieSchema.VECTOR_COLUMNS_METADATA_KEY`, Hudi 1.2). Other writers have entries of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.dataplane.key_footer import KEY_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Mapping

AVRO_SCHEMA = b"parquet.avro.schema"
# Spark's readers learn from this entry and the two `legacy` ones how old dates and timestamps are stored; without any
# of them, the readers refuse values before 1582 (`DataSourceUtils`).
SPARK_VERSION = b"org.apache.spark.version"
VECTOR_COLUMNS = b"hoodie.vector.columns"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_TIME_ZONE = b"org.apache.spark.timeZone"
_FIRST_WITHOUT_LEGACY = b"3.0.0"
# The entries that Hudi 1.2 writes about the file itself (`HoodieBloomFilterWriteSupport`), and the entry of its copier
# about the writers of the pages (`HoodieParquetBinaryCopyBase.ORIGINAL_CREATED_BY_KEY`).
_OF_ONE_FILE = KEY_ENTRIES | {b"original.created.by"}
# Entries that describe the columns of the file, or how their values are stored. Such entries are wrong with another
# schema, or for rows that Hudi's reader has converted.
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
    """Returns the entries that stay true in any file with the same schema and with rows of this file."""
    return {key: value for key, value in (footer or {}).items() if key not in _OF_ONE_FILE}


def foreign(footer: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    """Returns the lasting entries that do not depend on the schema."""
    return {key: value for key, value in lasting(footer).items() if key not in _OF_SCHEMA}


def calendar(footer: Mapping[bytes, bytes] | None) -> tuple[object, ...]:
    """Returns the entries about the calendar of the file's dates and timestamps (`DataSourceUtils.datetimeRebaseSpec`
    of Spark 3.5). Values of files with different calendars must not go unchanged to one file."""
    footer = footer or {}
    legacy = tuple(name for name in _LEGACY if name in footer)
    version = footer.get(SPARK_VERSION)
    is_old = version is not None and version < _FIRST_WITHOUT_LEGACY
    return version is None, is_old, legacy, footer.get(_TIME_ZONE) if legacy else None
