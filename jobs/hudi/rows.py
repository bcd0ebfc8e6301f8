"""Reads a table's rows with Spark, through Hudi's own data source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import HudiError, RefusedError
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME, OPERATION, PARTITION_PATH, RECORD_KEY
from jobs.hudi import merging
from jobs.hudi.jvm import translated
from jobs.hudi.partition_pruning import narrowed
from jobs.hudi.stored_values import with_stored_values
from jobs.problems.tables import TYPES_NOT_READABLE

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import SparkSession

    from jobs.contract import Problem
    from jobs.format.stale_writes import Group
    from jobs.hudi.table import HudiTable

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
    OPERATION,
)


# Data skipping and bucket pruning of Hudi 1.2 skip files that have matching rows. If a compaction ends during a write,
# the partition statistics of that write cover only its own rows (none, for a DELETE). Filters then miss the partition's
# other rows until the next commit to the partition. Bucket pruning finds nothing on a table with a hashing config
# (`writer_engines`).
_SKIP_NOTHING = {"hoodie.enable.data.skipping": "false", "hoodie.bucket.index.query.pruning": "false"}


def current(
    table: HudiTable,
    *,
    as_of: str | None = None,
    by_listing: bool = False,
    without_logs: bool = False,
    all_columns: bool = False,
    as_queries_do: bool = False,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Returns all rows with meta columns, as of now, or as of the completion of the instant `as_of`.

    Filters skip no files. `by_listing`: files are found by listing the storage, not by the metadata table.
    `without_logs`: only base files are read, so that filters skip row groups. `all_columns`: the caller reads all
    columns. `as_queries_do`: partition columns have the values in the paths, so that a read fails where queries of
    users fail. Otherwise they have the values in the files, because a job must write these values again. `spark` is the
    session to read with, a new one by default. Raises `RefusedError` for a table with types that Spark does not know.
    """
    reader = readable_by(table, spark or table.jvm.spark.newSession()).read.format("hudi").options(**_reading(table))
    by_metadata = table.is_listed_by_metadata and not by_listing
    reader = reader.option("hoodie.metadata.enable", str(by_metadata).lower())
    if without_logs:
        reader = reader.option("hoodie.datasource.query.type", "read_optimized")
    try:
        with translated("opening the table's rows"):
            frame = (reader.option("as.of.instant", as_of) if as_of else reader).load(table.base_path)
            if not as_queries_do:
                frame = with_stored_values(table, frame)
            if not (all_columns or without_logs) and _misreads_some_columns(table):
                frame = _reading_all_columns(frame)
            return with_times(table, frame)
    except HudiError as error:
        if problems := not_readable(table):
            raise RefusedError(problems) from error
        raise


def is_kept(table: HudiTable, as_of: str) -> bool:
    """Returns whether no clean has removed rows as of the completion of this instant, which Hudi refuses to read then
    (`TimelineUtils.validateTimestampAsOf`)."""
    try:
        with translated("looking for cleaned rows", expected=HudiError):
            table.jvm.hudi.common.table.timeline.TimelineUtils.validateTimestampAsOf(table.meta, as_of)
    except HudiError as error:
        if "Cleaner cleaned up" not in error.detail:
            raise
        return False
    return True


def _misreads_some_columns(table: HudiTable) -> bool:
    """Returns whether Hudi's readers need all columns of this table. If a payload class merges rows, some rows of logs
    have only the columns of the query, but are read by the positions of all columns (`BufferedRecord.project`, 1.2.0).
    That fails, or takes one column for another of the same type."""
    if not table.is_merge_on_read:
        return False
    try:
        return merging.merging_of(table).mode == "CUSTOM"
    except RefusedError:
        return False  # Hudi's readers fail.


def _reading_all_columns(frame: DataFrame) -> DataFrame:
    """Returns the same rows in a form of which Spark always reads all columns, whatever a query selects."""
    spark = frame.sparkSession
    java: Any = frame._jdf
    rows = java.queryExecution().toRdd()
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(rows, java.schema(), False), spark)


def readable_by(table: HudiTable, spark: SparkSession) -> SparkSession:
    """Returns this session, changed so that Spark can read the table if its key generator makes paths of times. Hudi's
    readers (1.2.0) take the field of such a time for a text (`SparkParsePartitionUtil.getPartitionSchema`), and Spark's
    vectorized reader cannot make a text of a time (NullPointerException)."""
    if _has_times_in_paths(table):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
        # In zones with summer time two times an hour apart would have the same text.
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


def with_times(table: HudiTable, frame: DataFrame) -> DataFrame:
    """Returns the rows of a `readable_by` session with times in place of the texts that Hudi's readers make of them. If
    the time is in a log, the text is a number of milliseconds or microseconds; if it is in a base file, a date and a
    time of day."""
    if not _has_times_in_paths(table) or not frame.columns:
        return frame
    of_number = {'"timestamp-millis"': F.timestamp_millis, '"timestamp-micros"': F.timestamp_micros}
    for field in json.loads(table.schema())["fields"]:
        name, kind = field["name"], json.dumps(field["type"])
        for unit, made in of_number.items():
            if name in table.partition_fields and unit in kind:
                text = F.col(f"`{name}`")
                number = F.when(text.rlike("^-?[0-9]+$"), text.cast("long"))
                frame = frame.withColumn(name, F.coalesce(made(number), text.cast("timestamp")))
    return frame


def _has_times_in_paths(table: HudiTable) -> bool:
    # Before table version 8 there is only the class, such as `TimestampBasedAvroKeyGenerator`.
    of_class = table.properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    return (table.properties.get("hoodie.table.keygenerator.type") or of_class).upper().startswith("TIMESTAMP")


def in_folders(table: HudiTable, partitions: Collection[str], frame: DataFrame | None = None) -> DataFrame:
    """Returns the rows in the folders of these partitions, of `frame` (`current`) or else as of now. All other rows are
    there, too, unless Hudi certainly finds each of these folders by the values of the partition fields."""
    found = current(table) if frame is None else frame
    narrow = narrowed(table, found, partitions)
    return narrow.rows if narrow and set(partitions) <= narrow.paths else found


def of_partitions(table: HudiTable, partitions: Collection[str], frame: DataFrame | None = None) -> DataFrame:
    """Returns the rows of these partition paths, of `frame` (`current`) or else as of now. A row counts for the path in
    its meta column. If it is in the folder of another partition, it may be left out."""
    return in_folders(table, partitions, frame).where(F.col(PARTITION_PATH).isin(sorted(partitions)))


def _reading(table: HudiTable) -> dict[str, str]:
    # If values of partition fields contain slashes, Hudi cannot split a path into values. Hudi then reads the columns
    # from the files, but only if it lists the partitions eagerly.
    eager = {"hoodie.datasource.read.file.index.listing.mode": "eager"} if len(table.partition_fields) > 1 else {}
    return {**_SKIP_NOTHING, **eager}


def not_readable(table: HudiTable) -> list[Problem]:
    """Returns the refusals of jobs that read or merge rows with Hudi on Spark 3.5: if Hudi does not find out how to
    merge, if it cannot read the schema on read, and if the table has a VARIANT column, which cannot be read there
    although Hudi's writers store it (`HoodieSparkSchemaConverters`, 1.2.0)."""
    is_variant = '"logicalType": "variant"'
    columns = [field for field in json.loads(table.schema())["fields"] if is_variant in json.dumps(field["type"])]
    problems = [*merging.unclear(table), *merging.unreadable_schema(table)]
    if not columns:
        return problems
    return [*problems, TYPES_NOT_READABLE.because(", ".join(f"{field['name']}: variant" for field in columns))]


def count_by_partition(table: HudiTable, partitions: Collection[str]) -> dict[str, int]:
    """Returns the number of rows of each of these partition paths, 0 for one without rows."""
    with translated("counting the rows of partitions"):
        wanted = of_partitions(table, partitions)
        counted = {row[0]: int(row[1]) for row in wanted.groupBy(PARTITION_PATH).count().collect()}
    return {partition: counted.get(partition, 0) for partition in partitions}


def count_in_groups(table: HudiTable, groups: Collection[Group]) -> int:
    """Returns the number of rows of these file groups, logs merged."""
    with translated("counting the rows of file groups"):
        wanted = of_partitions(table, {partition for partition, _ in groups})
        ids = sorted({file_id for _, file_id in groups})
        return int(wanted.where(F.substring_index(FILE_NAME, "_", 1).isin(ids)).count())


def count_of_instants(table: HudiTable, instants: Collection[str], *, in_logs: bool = False) -> dict[str, int]:
    """Returns the number of rows of each of these instants. If no base file has rows of any of them, the result is
    empty, unless rows `in_logs` count as well."""
    if not instants:
        return {}
    with translated("counting the rows of instants"):
        wanted = F.col(COMMIT_TIME).isin(sorted(instants))
        if not in_logs and current(table, without_logs=True).where(wanted).isEmpty():
            return {}
        # Logs may have replaced or deleted these rows since.
        counted = current(table).where(wanted).groupBy(COMMIT_TIME).count()
        return {row[0]: int(row[1]) for row in counted.collect()}


def keys_there_twice(
    table: HudiTable, partitions: Collection[str] | None, *, by_partition: bool, most: int
) -> dict[str, list[str]]:
    """Returns the duplicate record keys in these partitions (by default, in all that the storage lists), each with the
    partitions of its rows. If `by_partition`, a key may occur once in each partition."""
    with translated("looking for duplicate keys"):
        wanted = current(table, by_listing=True) if partitions is None else of_partitions(table, partitions)
        columns = [RECORD_KEY, PARTITION_PATH] if by_partition else [RECORD_KEY]
        paths = F.sort_array(F.collect_list(PARTITION_PATH)).alias("paths")
        twice = wanted.groupBy(*columns).agg(F.count("*").alias("rows"), paths).where("rows > 1")
        return {row[RECORD_KEY]: list(row["paths"]) for row in twice.orderBy(*columns).limit(most).collect()}


def rows_there_twice(table: HudiTable, instants: Collection[str], partitions: Collection[str]) -> dict[str, int]:
    """Returns, by instant, the number of keys that have several rows in these partitions, one of which this instant
    wrote."""
    if not instants or not partitions:
        return {}
    with translated("looking for duplicate keys"):
        key = [PARTITION_PATH, RECORD_KEY]
        times = of_partitions(table, partitions).groupBy(*key).agg(F.collect_list(COMMIT_TIME).alias("times"))
        each = times.where(F.size("times") > 1).select(F.explode(F.array_distinct("times")).alias("instant"))
        counted = each.where(F.col("instant").isin(sorted(instants))).groupBy("instant").count()
        return {row[0]: int(row[1]) for row in counted.collect()}


def hidden_by_statistics(table: HudiTable, keys: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns which of these rows a query with a filter misses because Hudi's statistics are wrong.

    `keys` are partition paths and record keys of rows that the table holds.
    """
    if not keys or not table.has_meta_fields or not table.metadata_partitions & {"column_stats", "partition_stats"}:
        return set()
    with translated("looking for rows that statistics hide"):
        options = {**_reading(table), "hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}
        reader = readable_by(table, table.jvm.spark.newSession()).read.format("hudi").options(**options)
        frame = reader.load(table.base_path)
        # The second condition is never true. Without that condition Hudi would look the keys up in a record index,
        # where it does not find keys of several fields (`RecordLevelIndexSupport`).
        wanted = F.col(RECORD_KEY).isin(sorted({key for _, key in keys})) | (F.col(RECORD_KEY) < "")
        rows = frame.where(wanted)
        if _misreads_some_columns(table):
            rows = _reading_all_columns(rows)
        found = rows.select(PARTITION_PATH, RECORD_KEY)
        return set(keys) - {(row[0], row[1]) for row in found.collect()}
