"""The layout of base files with the table's latest schema."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from jobs.dataplane import footer_entries, parquet_layout
from jobs.hudi.jvm import translated

if TYPE_CHECKING:
    from jobs.dataplane.parquet_layout import Layout
    from jobs.hudi.table import HudiTable


def latest_layout(table: HudiTable, codec: str | None) -> Layout:
    """Returns the layout of base files with the table's latest schema, converted from Avro by Hudi's own converter.

    Uses an empty file, since this is the only form of a Parquet schema that both Hudi and pyarrow can read. The layouts
    are cached by schema.
    """
    jvm = table.jvm
    text = table.schema(with_meta_fields=True)
    key = (jvm.java, text, codec)
    if key not in _layouts:
        if len(_layouts) >= _MOST:
            _layouts.clear()
        _layouts[key] = _converted(table, text, codec)
    return _layouts[key]


_MOST = 1000
_layouts: dict[tuple[Any, str, str | None], Layout] = {}


def _converted(table: HudiTable, text: str, codec: str | None) -> Layout:
    jvm = table.jvm
    with TemporaryDirectory() as folder, translated("converting the table's schema"):
        path = f"{folder}/schema.parquet"
        avro = table.schema_resolver().getTableSchema(True)
        converters = jvm.java.org.apache.parquet.avro.HoodieAvroParquetSchemaConverter
        # Lists get three levels, as Arrow always writes them, because in the old lists of two levels no element can be
        # null.
        conf = jvm.java.org.apache.hadoop.conf.Configuration(jvm.hadoop_conf)
        conf.setBoolean("parquet.avro.write-old-list-structure", False)
        message = converters.getAvroSchemaConverter(conf).convert(avro)
        target = jvm.java.org.apache.hadoop.fs.Path(f"file:{path}")
        writer = jvm.java.org.apache.parquet.hadoop.ParquetFileWriter(jvm.hadoop_conf, message, target)
        writer.start()
        writer.end(jvm.map({}))
        entries = {
            footer_entries.AVRO_SCHEMA: text.encode(),
            footer_entries.SPARK_VERSION: jvm.spark.version.encode(),
        }
        if vectors := jvm.hudi.common.schema.HoodieSchema.buildVectorColumnsMetadataValue(avro):
            entries[footer_entries.VECTOR_COLUMNS] = vectors.encode()
        with pq.ParquetFile(path) as empty:
            layout = parquet_layout.of_schema(empty, entries, codec)
            parquet_layout.require_reproducible(layout, empty.schema, "the table's schema")
            return layout
