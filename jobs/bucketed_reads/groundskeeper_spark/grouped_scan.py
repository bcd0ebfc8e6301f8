"""Hudi's own read of a table with one task per bucket, and data sets over it with a declared partitioning.

Hudi's relation plans a scan of file slices; the scan's file partitions are replaced by one for each bucket, so
that Hudi's file group reader, the pushed filters and the pruned columns stay. `HashPartitioning` declares more than is
true: rows are placed by Hudi's hash, not by Spark's. So no data set with it leaves this package; `sealed` hides it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark.fused_plan import fused
from groundskeeper_spark.table import NotColocatedError, Snapshot, Table, bucket_of_file, snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = {"string", "tinyint", "smallint", "int", "bigint"}
_ATTEMPTS = 3


@dataclass(frozen=True)
class Opened:
    """A table whose keys can be co-located: its snapshot, its rows of that snapshot or a later one, and the types of
    its hash fields."""

    table: Table
    snapshot: Snapshot
    rows: DataFrame
    types: tuple[str, ...]


@dataclass(frozen=True)
class GroupedScan:
    """The rows of a table: partition i of `rdd`, which `plan` makes, has the rows of bucket i, modulo `modulus`.
    `listed` are the buckets of all files of the listing, also of those that are not read."""

    table: Table
    snapshot: Snapshot
    attributes: Any
    plan: Any
    rdd: Any
    bytes_of_buckets: list[int]
    listed: frozenset[int]


def own_session(spark: SparkSession) -> Any:
    """Returns a session of the JVM that plans joins of co-located buckets, with the user's other settings."""
    session = spark._jsparkSession.cloneSession()
    session.conf().set("spark.sql.adaptive.enabled", "false")
    session.conf().set("spark.sql.requireAllClusterKeysForCoPartition", "false")
    return session


def opened(spark: SparkSession, session: Any, table: Table) -> Opened:
    """Raises `NotColocatedError` unless the table has simple buckets and equal values of its keys have equal texts."""
    found = snapshot(spark, table)
    rows = read(spark, session, table)
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    for name in table.hash_fields:
        if types.get(name) not in _TYPES:
            raise NotColocatedError(f"the hash field {name} has the type {types.get(name)}, whose text is not fixed")
    return Opened(table, found, rows, tuple(types[name] for name in table.hash_fields))


def read(spark: SparkSession, session: Any, table: Table) -> DataFrame:
    return DataFrame(session.read().format("hudi").load(table.path), spark)


def scan(
    spark: SparkSession,
    session: Any,
    found: Opened,
    modulus: int,
    narrowed: Any,
    *,
    only: Collection[int] | None = None,
) -> GroupedScan:
    """Plans the read of one snapshot, narrowed by columns and filters. If `only` is given, it reads only these buckets.

    Raises `NotColocatedError` if commits keep landing meanwhile, or a file group is not of the layout.
    """
    table = found.table
    for _ in range(_ATTEMPTS):
        place = _remainder(_hash(spark, table.hash_fields), modulus) == F.spark_partition_id()
        wrong = (
            f"groundskeeper: {table.path} has a row outside of its bucket. Check the declared buckets and hash fields."
        )
        checked = F.when(place, F.lit(True)).otherwise(F.raise_error(F.lit(wrong)).cast("boolean"))
        # Where buckets are left out, all rows of the others are checked: a filter by key would hide the misplaced ones.
        rows = narrowed(found.rows).where(checked) if only is None else narrowed(found.rows.where(checked))
        query = rows._jdf.queryExecution()
        plan = query.executedPlan()
        sizes, listed = _regroup(spark, plan, modulus, only)
        if snapshot(spark, table) == found.snapshot:
            return GroupedScan(table, found.snapshot, query.analyzed().output(), plan, query.toRdd(), sizes, listed)
        found = opened(spark, session, table)
    raise NotColocatedError(f"commits kept landing in {table.path} while it was planned")


def _hash(spark: SparkSession, fields: Sequence[str]) -> Column:
    """Returns `BucketIdentifier`'s hash: `List.hashCode()` of Java's texts."""
    code = F.lit(1).cast("bigint")
    for name in fields:
        of_text = _java_hash_code(spark, F.coalesce(F.col(name).cast("string"), F.lit(""))).cast("bigint")
        # The sum stays a 32-bit number, as in Java.
        code = (code * 31 + of_text).bitwiseAND(0xFFFFFFFF)
    return code.bitwiseAND(0x7FFFFFFF)


def _remainder(code: Column, modulus: int) -> Column:
    is_power_of_two = modulus & (modulus - 1) == 0
    return code.bitwiseAND(modulus - 1) if is_power_of_two else F.pmod(code, F.lit(modulus))


def _java_hash_code(spark: SparkSession, text: Column) -> Column:
    """Returns `String.hashCode()` in generated code; `java_method` would call it by reflection for each row.

    The string is made from the bytes where they are, because `UTF8String.toString()` copies them first.
    """
    jvm: Any = spark._jvm
    # Each name of a package is a question to the JVM, so packages are asked for once.
    types, objects = jvm.org.apache.spark.sql.types, jvm.org.apache.spark.sql.catalyst.expressions.objects
    integer, binary = types.DataType.fromDDL("int"), types.DataType.fromDDL("binary")
    nothing = _seq(jvm)

    def invoke(of: Any, name: str, returned: Any) -> Any:
        return objects.Invoke(of, name, returned, nothing, nothing, True, False, True)

    def of_java(name: str) -> Any:
        return types.ObjectType(jvm.java.lang.Class.forName(name))

    bytes_of_text = text._jc.expr()
    buffer = invoke(bytes_of_text, "getByteBuffer", of_java("java.nio.ByteBuffer"))
    place = [
        invoke(buffer, "array", binary),
        invoke(buffer, "position", integer),
        invoke(bytes_of_text, "numBytes", integer),
    ]
    string = objects.StaticInvoke(
        jvm.org.apache.spark.util.Utils.classForName("org.apache.hudi.common.util.StringUtils", True, False),
        of_java("java.lang.String"),
        "fromUTF8Bytes",
        _seq(jvm, *place),
        nothing,
        True,
        False,
        True,
    )
    return Column(jvm.org.apache.spark.sql.Column(invoke(string, "hashCode", integer)))


def _seq(jvm: Any, *members: Any) -> Any:
    found = jvm.java.util.ArrayList()
    for each in members:
        found.add(each)
    return jvm.PythonUtils.toSeq(found)


def _regroup(
    spark: SparkSession, plan: Any, modulus: int, only: Collection[int] | None
) -> tuple[list[int], frozenset[int]]:
    """Gives the scan of a plan one partition for each bucket, and returns the bytes of their files, and the buckets of
    all files."""
    jvm: Any = spark._jvm
    leaves = plan.collectLeaves()
    if leaves.size() != 1 or leaves.apply(0).getClass().getSimpleName() != "FileSourceScanExec":
        raise NotColocatedError("Hudi has planned no scan of file slices")
    leaf = leaves.apply(0)
    old = leaf.inputRDD()
    if old.getClass().getSimpleName() != "FileScanRDD":
        raise NotColocatedError(f"Hudi reads by {old.getClass().getSimpleName()}")
    buckets: list[list[Any]] = [[] for _ in range(modulus)]
    sizes, listed = [0] * modulus, set()
    partitions = old.filePartitions()
    for at in range(partitions.size()):
        for file in partitions.apply(at).files():
            number = bucket_of_file(str(file.filePath()))
            listed.add(number)
            bucket = number % modulus
            if only is None or bucket in only:
                buckets[bucket].append(file)
                sizes[bucket] += int(file.length())
    gateway: Any = spark.sparkContext._gateway
    datasources = jvm.org.apache.spark.sql.execution.datasources
    grouped = []
    for at, files in enumerate(buckets):
        array = gateway.new_array(datasources.PartitionedFile, len(files))
        for index, file in enumerate(files):
            array[index] = file
        grouped.append(datasources.FilePartition(at, array))
    field = _field(old, "filePartitions")
    field.set(old, _seq(jvm, *grouped))
    return sizes, frozenset(listed)


def _field(of: Any, name: str) -> Any:
    field = of.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field


def declared(spark: SparkSession, session: Any, found: GroupedScan) -> DataFrame:
    """Returns rows that Spark takes for partitioned by the hash fields. Such rows must be sealed before they leave."""
    jvm: Any = spark._jvm
    by_name = {found.attributes.apply(at).name(): found.attributes.apply(at) for at in range(found.attributes.size())}
    keys = _seq(jvm, *(by_name[name] for name in found.table.hash_fields))
    partitioning = jvm.org.apache.spark.sql.catalyst.plans.physical.HashPartitioning(keys, len(found.bytes_of_buckets))
    return _rows(spark, session, found.attributes, found.rdd, partitioning)


def sealed(spark: SparkSession, rows: DataFrame, scans: Sequence[GroupedScan]) -> tuple[DataFrame, str]:
    """Returns the rows without the declared partitioning, by which Spark would misplace the rows of a third table, and
    their plan.

    Raises `NotColocatedError` if the plan moves rows between tasks.
    """
    query = rows._jdf.queryExecution()
    if "Exchange" in query.executedPlan().toString():
        raise NotColocatedError("Spark plans an exchange although the rows are co-located")
    jvm: Any = spark._jvm
    plan = fused(jvm, query, {found.rdd.id(): found.plan for found in scans})
    # The tasks get the settings by which the plan was made, as those of a `toRdd` do.
    rdd = jvm.org.apache.spark.sql.execution.SQLExecutionRDD(plan.execute(), query.sparkSession().sessionState().conf())
    unknown = jvm.org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning(rdd.getNumPartitions())
    return _rows(spark, spark._jsparkSession, query.analyzed().output(), rdd, unknown), str(plan.toString())


def _rows(spark: SparkSession, session: Any, attributes: Any, rdd: Any, partitioning: Any) -> DataFrame:
    jvm: Any = spark._jvm
    none = jvm.scala.Option.empty()
    relation = jvm.org.apache.spark.sql.execution.LogicalRDD
    plan = relation(attributes, rdd, partitioning, _seq(jvm), False, session, none, none)
    return DataFrame(jvm.org.apache.spark.sql.Dataset.ofRows(session, plan), spark)
