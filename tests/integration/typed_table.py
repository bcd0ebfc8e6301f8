"""A Hudi table with the types of Hudi 1.2 that Parquet stores as bytes and structs: vectors and BLOBs, and a variant as
Spark 3.5 knows it, which is a struct of its two parts."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as t

from jobs.dataplane.footer_entries import lasting
from tests.integration import tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ROW_WRITER = {
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.row.writer.enable": "true",
}
VECTORS = "f32:VECTOR(4),f64:VECTOR(3, DOUBLE),i8:VECTOR(5, INT8)"
# The last of the nearest vectors has no other at the same distance.
_SEARCHED = {
    "f32": "array(11.2f, 1.5f, 1.25f, -2.0f)",
    "f64": "array(3.6d, 0.1d, 1.0d)",
    "i8": "array(9.0f, -1.0f, -128.0f, 127.0f, 1.0f)",
}


def _schema(variant_type: dict[str, str]) -> t.StructType:
    reference = t.StructType(
        [
            t.StructField("external_path", t.StringType(), nullable=False),
            t.StructField("offset", t.LongType()),
            t.StructField("length", t.LongType()),
            t.StructField("managed", t.BooleanType(), nullable=False),
        ]
    )
    blob = t.StructType(
        [
            t.StructField("type", t.StringType(), nullable=False),
            t.StructField("data", t.BinaryType()),
            t.StructField("reference", reference),
        ]
    )
    variant = t.StructType([t.StructField(name, t.BinaryType(), nullable=False) for name in ("metadata", "value")])
    vectors = {"f32": ("VECTOR(4)", t.FloatType()), "f64": ("VECTOR(3, DOUBLE)", t.DoubleType())}
    vectors["i8"] = ("VECTOR(5, INT8)", t.ByteType())
    return t.StructType(
        [
            t.StructField("id", t.StringType(), nullable=False),
            t.StructField("ts", t.LongType()),
            *(
                t.StructField(name, t.ArrayType(element, containsNull=False), metadata={"hudi_type": kind})
                for name, (kind, element) in vectors.items()
            ),
            t.StructField("pic", blob, metadata={"hudi_type": "BLOB"}),
            t.StructField("price", t.DecimalType(12, 2)),
            t.StructField("variant", variant, metadata=variant_type),
        ]
    )


def rows(
    spark: SparkSession, first: int, last: int, ts: int, outside: Path, variant_type: dict[str, str] | None = None
) -> DataFrame:
    """Returns the rows first..last-1. A third of the BLOBs is in the file `outside`, which is created if it is
    missing."""
    if not outside.exists():
        outside.write_bytes(bytes(range(256)) * 8)

    def pic(number: int) -> Any:
        if number % 3 == 0:
            return None
        if number % 3 == 1:
            return "INLINE", bytes([number % 256, ts]) * 5, None
        return "OUT_OF_LINE", None, (str(outside), number * 10, 10, False)

    values = [
        (
            f"k{number}",
            ts,
            [float(number), 1.5, ts + 0.25, -2.0] if number % 5 else None,
            [number / 2, 0.1, float(ts)],
            [number % 127, -1, -128, 127, ts],
            pic(number),
            Decimal(number) / 100,
            (b"\x01\x00\x00", bytes([12, number % 100])),
        )
        for number in range(first, last)
    ]
    return spark.createDataFrame(values, _schema(variant_type or {})).repartition(1)


@dataclass(frozen=True)
class Read:
    """The results of all readers: all rows with and without the metadata table, the nearest vectors, the bytes of the
    BLOBs, the columns with statistics in the metadata table, and the types in readers without Hudi."""

    rows: list[str]
    listed: list[str]
    nearest: dict[str, list[str]]
    blobs: dict[str, bytes | None]
    with_statistics: list[str]

    @classmethod
    def of(cls, spark: SparkSession, base: Path) -> Read:
        spark.conf.set("hoodie.read.blob.inline.mode", "CONTENT")
        spark.read.format("hudi").load(str(base)).createOrReplaceTempView("typed")
        nearest = {
            column: sorted(
                f"{row['id']} {row['_hudi_distance']:.6f}"
                for row in spark.sql(
                    f"select id, _hudi_distance from hudi_vector_search('typed', '{column}', {vector}, 3, 'l2')"
                ).collect()
            )
            for column, vector in _SEARCHED.items()
        }
        blobs = spark.sql("select id, read_blob(pic) from typed").collect()
        metadata = spark.read.format("hudi").load(f"{base}/.hoodie/metadata")
        columns = metadata.where("type = 3").select("ColumnStatsMetadata.columnName").distinct().collect()
        return cls(
            tables.snapshot(spark, base),
            tables.snapshot(spark, base, metadata=False),
            nearest,
            {row[0]: None if row[1] is None else bytes(row[1]) for row in blobs},
            sorted(row[0] for row in columns),
        )


def base_files(base: Path, instants: tuple[str, ...] | None = None) -> list[Path]:
    """Returns all base files, or those that these instants wrote."""
    found = (path for path in base.rglob("*.parquet") if ".hoodie" not in path.relative_to(base).parts)
    return sorted(path for path in found if instants is None or path.stem.rpartition("_")[2] in instants)


def stored(paths: list[Path]) -> pa.Table:
    """Returns the rows of base files as Parquet has them, in the order of their keys."""
    found = pa.concat_tables(pq.read_table(path, partitioning=None).replace_schema_metadata() for path in paths)
    return found.drop_columns(["_hoodie_file_name"]).sort_by("_hoodie_record_key")


def shapes(paths: list[Path]) -> set[tuple[str, frozenset[tuple[bytes, bytes]]]]:
    """Returns the Parquet schemas below the root, and the footer entries that do not belong to one file only."""
    footers = [pq.ParquetFile(path) for path in paths]
    return {
        ("\n".join(str(each.schema).splitlines()[2:]), frozenset(lasting(each.metadata.metadata).items()))
        for each in footers
    }
