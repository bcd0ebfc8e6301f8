"""Reads and writes a table's rows with Spark, through Hudi's own data source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.meta_columns import PARTITION_PATH, RECORD_KEY
from jobs.hudi.jvm import translated
from jobs.hudi.options import UNDER_OUR_LOCK, bucket_index_options, client_options, stored_options

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
    is the session to read with, a new one by default.
    """
    reader = (spark or table.jvm.spark.newSession()).read.format("hudi").options(**_SKIP_NOTHING)
    by_metadata = table.is_listed_by_metadata and not by_listing
    reader = reader.option("hoodie.metadata.enable", str(by_metadata).lower())
    with translated("opening the table's rows"):
        return (reader.option("as.of.instant", as_of) if as_of else reader).load(table.base_path)


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
    if not keys or not table.has_meta_fields or not table.metadata_partitions & {"column_stats", "partition_stats"}:
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
    options = client_options(table)
    if table.declared.index:
        options |= bucket_index_options(table.declared.index, table.record_key_fields, None)
    options |= stored_options(table)
    if "timestamp-millis" in table.schema():
        # Flink's TIMESTAMP(3). Spark has no such type: without this its microseconds would be a change of the schema.
        options |= {"hoodie.datasource.write.reconcile.schema": "true"}
    return {
        **options,
        **UNDER_OUR_LOCK,
        "hoodie.datasource.write.commitmeta.key.prefix": "groundskeeper.",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
