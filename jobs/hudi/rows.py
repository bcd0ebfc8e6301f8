"""Reads and writes a table's rows with Spark, through Hudi's own data source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import Problem
from jobs.errors import HudiError, RefusedError
from jobs.format.meta_columns import PARTITION_PATH, RECORD_KEY
from jobs.hudi.jvm import translated
from jobs.hudi.options import UNDER_OUR_LOCK, bucket_index_options, client_options

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from jobs.hudi.table import HudiTable

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    "_hoodie_operation",
)


# In Hudi 1.2 both skip files that hold wanted rows. The partition statistics of a write during which a compaction ended
# cover only what it wrote itself (nothing, for a DELETE), so filters miss the partition's other rows until its next
# commit; and bucket pruning finds nothing on a table with a hashing config (`writer_engines`).
_SKIP_NOTHING = {"hoodie.enable.data.skipping": "false", "hoodie.bucket.index.query.pruning": "false"}


def current(
    table: HudiTable, *, as_of: str | None = None, by_listing: bool = False, spark: SparkSession | None = None
) -> DataFrame:
    """Returns all rows with meta columns, as of now, or as of the completion of the instant `as_of`.

    Filters skip no files. `by_listing`: the files are those of the storage, whatever the metadata table says. `spark`
    is the session to read with, a new one by default. Raises `RefusedError` for a table with types that Spark does not
    know.
    """
    reader = (spark or table.jvm.spark.newSession()).read.format("hudi").options(**_SKIP_NOTHING)
    by_metadata = "files" in table.metadata_partitions and not by_listing
    reader = reader.option("hoodie.metadata.enable", str(by_metadata).lower())
    try:
        with translated("opening the table's rows"):
            return (reader.option("as.of.instant", as_of) if as_of else reader).load(table.base_path)
    except HudiError as error:
        if problems := not_readable(table):
            raise RefusedError(problems) from error
        raise


def not_readable(table: HudiTable) -> list[Problem]:
    """Returns the refusal of what reads rows by Hudi on Spark 3.5, or lets Hudi merge them, if a column cannot be read:
    a VARIANT (`HoodieSparkSchemaConverters`, 1.2.0), which Hudi's writers store all the same."""
    is_variant = '"logicalType": "variant"'
    columns = [field for field in json.loads(table.schema())["fields"] if is_variant in json.dumps(field["type"])]
    if not columns:
        return []
    return [
        Problem(
            "types-not-readable",
            "The table has columns of types that Spark 3.5 cannot read",
            ", ".join(f"{field['name']}: variant" for field in columns),
            "Hudi reads a VARIANT with Spark 4 only: let a writer there compact and cluster the table. File groups"
            " without logs can be rewritten here all the same.",
        )
    ]


def count_by_partition(table: HudiTable, partitions: Collection[str]) -> dict[str, int]:
    """Returns the number of rows of each of these partition paths, 0 for one without rows."""
    with translated("counting the rows of partitions"):
        wanted = current(table).where(F.col(PARTITION_PATH).isin(sorted(partitions)))
        counted = {row[0]: int(row[1]) for row in wanted.groupBy(PARTITION_PATH).count().collect()}
    return {partition: counted.get(partition, 0) for partition in partitions}


def hidden_by_statistics(table: HudiTable, keys: Collection[tuple[str, str]]) -> int:
    """Returns how many of these rows a query with a filter does not find, since Hudi's statistics are wrong.

    `keys` are partition paths and record keys of rows that the table holds.
    """
    if not keys or not table.metadata_partitions & {"column_stats", "partition_stats"}:
        return 0
    with translated("looking for rows that statistics hide"):
        options = {**_SKIP_NOTHING, "hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}
        frame = table.jvm.spark.newSession().read.format("hudi").options(**options).load(table.base_path)
        found = frame.where(F.col(RECORD_KEY).isin(sorted({key for _, key in keys}))).select(PARTITION_PATH, RECORD_KEY)
        return len(set(keys) - {(row[0], row[1]) for row in found.collect()})


def write(table: HudiTable, frame: DataFrame, operation: str, extra: Mapping[str, str]) -> str:
    """Writes one commit of these rows by `upsert` or `delete`; returns its instant.

    The table's lock must be held, since no lock is taken here. `frame` has the table's columns; its meta columns are
    left out. `extra` goes into the commit's extra metadata; all its keys must begin with `groundskeeper.`.
    """
    before = {item.requested for item in table.instants()}
    options = {**_options(table), "hoodie.datasource.write.operation": operation, **extra}
    with translated(f"writing rows ({operation})"):
        frame.drop(*META_COLUMNS).write.format("hudi").options(**options).mode("append").save(table.base_path)
    done = [item.requested for item in table.instants() if item.state == "COMPLETED" and item.requested not in before]
    return max(done)


def _options(table: HudiTable) -> dict[str, str]:
    """Returns options like those of the table's own writers.

    Keys, partitions and ordering are those stored in the table.
    """
    properties = table.properties
    options = client_options(table)
    if table.declared.index:
        options |= bucket_index_options(table.declared.index, table.record_key_fields, None)
    stored = {
        "hoodie.datasource.write.table.type": properties.get("hoodie.table.type"),
        "hoodie.datasource.write.recordkey.field": ",".join(table.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": properties.get("hoodie.table.partition.fields", ""),
        "hoodie.datasource.write.precombine.field": ",".join(table.ordering_fields) or None,
        "hoodie.datasource.write.keygenerator.class": properties.get("hoodie.table.keygenerator.class"),
        "hoodie.datasource.write.keygenerator.type": properties.get("hoodie.table.keygenerator.type"),
        "hoodie.datasource.write.hive_style_partitioning": properties.get(
            "hoodie.datasource.write.hive_style_partitioning"
        ),
        "hoodie.datasource.write.partitionpath.urlencode": properties.get(
            "hoodie.datasource.write.partitionpath.urlencode"
        ),
    }
    options |= {key: value for key, value in stored.items() if value is not None}
    if "timestamp-millis" in table.schema():
        # Flink's TIMESTAMP(3). Spark has no such type: without this its microseconds would be a change of the schema.
        options |= {"hoodie.datasource.write.reconcile.schema": "true"}
    return {
        **options,
        **UNDER_OUR_LOCK,
        "hoodie.datasource.write.commitmeta.key.prefix": "groundskeeper.",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
