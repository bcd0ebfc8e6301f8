"""Joins, groups and look-ups that use the buckets, or fall back to Spark's own plan with the reason."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark.grouped_scan import opened, scan, sealed
from groundskeeper_spark.java_plan import begin
from groundskeeper_spark.table import NotColocatedError, Table, java_hash

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from groundskeeper_spark.grouped_scan import GroupedScan

_log = logging.getLogger(__name__)
_JOINS = {"inner", "left", "right", "full", "semi", "anti"}
_SIDES = ("left", "right")
_MOST_KEYS = 10_000
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Result:
    """The rows, and how they are read.

    `fallback` is the reason for Spark's own plan, or None if the buckets are used. `instants` are the snapshots of
    the tables. `skew` has for each table the size of its largest bucket, divided by the mean size.
    """

    rows: DataFrame
    fallback: str | None
    instants: tuple[str, ...] = ()
    skew: tuple[float, ...] = ()
    plan: str = ""


def join(
    spark: SparkSession,
    left: Table,
    right: Table,
    on: Sequence[str],
    how: str = "inner",
    *,
    columns: tuple[Sequence[str], Sequence[str]] | None = None,
    where: tuple[Column | None, Column | None] = (None, None),
    in_memory: str | None = None,
) -> Result:
    """Joins by the key `on`. `columns` and `where` are those of each table, before the join; keys stay in any case.
    `in_memory` is `left` or `right` if the wanted rows of each bucket of that table fit into the memory of a task: then
    Spark puts them into a hash map and sorts no table. A task whose rows do not fit fails.

    Raises ValueError for another kind of join, or a side that such a join cannot have in memory.
    """
    if how not in _JOINS:
        raise ValueError(f"how is one of {', '.join(sorted(_JOINS))}, not {how!r}")
    if in_memory not in (None, *_SIDES) or (in_memory == "left" and how in ("semi", "anti")):
        raise ValueError(f"in_memory is left or right, and right for semi and anti joins, not {in_memory!r}")
    keys = list(on)
    chosen = columns or (None, None)
    narrowed = [_narrowed(keys, each, only) for each, only in zip(chosen, where, strict=True)]
    tables = (left, right)

    def by_buckets() -> Result:
        if left.hash_fields != right.hash_fields:
            raise NotColocatedError(f"the hash fields differ: {left.hash_fields} and {right.hash_fields}")
        _within(left, keys)
        plan = begin(spark)
        both = [opened(spark, plan, table) for table in tables]
        if both[0].types != both[1].types:
            raise NotColocatedError(f"the types of the keys differ: {both[0].types} and {both[1].types}")
        numbers = [each.snapshot.modulus for each in both]
        modulus = gcd(*numbers)
        if modulus != min(numbers):
            raise NotColocatedError(f"no number of buckets is a multiple of the other: {numbers[0]} and {numbers[1]}")
        scans = [scan(spark, plan, each, modulus, of) for each, of in zip(both, narrowed, strict=True)]
        sides = [found.rows._jdf for found in scans]
        hint = "shuffle_hash" if in_memory else "merge"
        rows = plan.joined(*sides, json.dumps(keys), how, in_memory != "right", hint)
        return _result(spark, plan, DataFrame(rows, spark), scans)

    def by_spark() -> DataFrame:
        sides = [of(_read(spark, table)) for table, of in zip(tables, narrowed, strict=True)]
        return sides[0].join(sides[1], keys, how)

    return _either(by_buckets, by_spark)


def group_by(
    spark: SparkSession, table: Table, keys: Sequence[str], aggregates: Sequence[Column], *, where: Column | None = None
) -> Result:
    """Groups by `keys`, which hold all hash fields of the table."""

    def narrowed(rows: DataFrame) -> DataFrame:
        return rows if where is None else rows.where(where)

    def by_buckets() -> Result:
        _within(table, keys)
        plan = begin(spark)
        one = opened(spark, plan, table)
        names = json.loads(plan.needed(one.rows.groupBy(*keys).agg(*aggregates)._jdf))
        columns = ["*"] if names is None else [_quoted(name) for name in names]

        def needed(rows: DataFrame) -> DataFrame:
            return narrowed(rows).select(*columns)

        found = scan(spark, plan, one, one.snapshot.modulus, needed)
        return _result(spark, plan, found.rows.groupBy(*keys).agg(*aggregates), [found])

    def by_spark() -> DataFrame:
        return narrowed(_read(spark, table)).groupBy(*keys).agg(*aggregates)

    return _either(by_buckets, by_spark)


def lookup(spark: SparkSession, table: Table, keys: Sequence[Any], *, columns: Sequence[str] | None = None) -> Result:
    """Reads the rows with these values of the hash fields (tuples, if there are several), from their buckets only.

    Raises ValueError for more than 10 000 keys, which are a table to join.
    """
    if len(keys) > _MOST_KEYS:
        raise ValueError(f"a look-up takes {_MOST_KEYS} keys, not {len(keys)}: join a table of keys")
    values = [key if isinstance(key, tuple) else (key,) for key in keys]
    fields = list(table.hash_fields)
    if any(len(value) != len(fields) for value in values):
        raise ValueError(f"each key has a value for each of {fields}")

    def by_buckets() -> Result:
        plan = begin(spark)
        one = opened(spark, plan, table)
        expected = [str if name == "string" else int for name in one.types]
        for value in values:
            if any(type(part) is not kind for part, kind in zip(value, expected, strict=True)):
                raise NotColocatedError(f"a key is not of the types {one.types}")
            if any(_is_split(str(part), len(fields)) for part in value):
                raise NotColocatedError("Hudi splits the text of a key, so that its bucket is not certain")
        modulus = one.snapshot.modulus
        buckets = {java_hash(value) % modulus for value in values}

        def narrowed(rows: DataFrame) -> DataFrame:
            # A literal for each key would take two messages to the JVM.
            wanted = plan.wanted(rows._jdf, json.dumps(fields), json.dumps(values, ensure_ascii=False))
            return _narrowed(fields, columns, None)(DataFrame(wanted, spark))

        found = scan(spark, plan, one, modulus, narrowed, only=buckets)
        # Only rows that are read prove the declaration, so a bucket without files proves nothing.
        if not all(found.bytes_of_buckets[bucket] for bucket in buckets):
            raise NotColocatedError("a key's bucket has no file")
        # A few rows may fit a wrong number by chance, while the row of a key is in a file that is not read.
        if found.snapshot.is_declared and found.listed != set(range(modulus)):
            raise NotColocatedError(f"the files of {table.path} do not prove that it has {modulus} buckets")
        return _result(spark, plan, found.rows, [found])

    def by_spark() -> DataFrame:
        rows = _read(spark, table)
        return _narrowed(fields, columns, _equal_one(rows, fields, values))(rows)

    return _either(by_buckets, by_spark)


def _equal_one(rows: DataFrame, fields: Sequence[str], values: Sequence[tuple[Any, ...]]) -> Column:
    if not values:
        return F.lit(False)
    if len(fields) == 1:
        return F.col(fields[0]).isin([value[0] for value in values])
    # Structs are equal only if their types are, and a wider type loses no value.
    kinds = ["string" if rows.schema[name].dataType.simpleString() == "string" else "bigint" for name in fields]
    columns = (F.col(name).cast(kind).alias(name) for name, kind in zip(fields, kinds, strict=True))
    tuples = [
        F.struct(
            *(
                (F.lit(part) if isinstance(part, str) else F.lit(part).cast(kind)).alias(name)
                for name, part, kind in zip(fields, value, kinds, strict=True)
            )
        )
        for value in values
    ]
    return F.struct(*columns).isin(tuples)


def _is_split(text: str, fields: int) -> bool:
    """Returns whether `KeyGenUtils.extractRecordKeysByFields`, which takes a record key apart at commas and colons,
    would take this value apart."""
    return "," in text or (fields > 1 and (":" in text or text in {"__null__", "__empty__"}))


def _within(table: Table, keys: Sequence[str]) -> None:
    if not table.hash_fields or not set(table.hash_fields) <= set(keys):
        raise NotColocatedError(f"the key {list(keys)} does not hold the hash fields {list(table.hash_fields)}")


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


def _read(spark: SparkSession, table: Table) -> DataFrame:
    return spark.read.format("hudi").load(table.path)


def _narrowed(
    keys: Sequence[str], columns: Sequence[str] | None, where: Column | None
) -> Callable[[DataFrame], DataFrame]:
    def narrowed(rows: DataFrame) -> DataFrame:
        kept = rows if where is None else rows.where(where)
        if columns is None:
            return kept
        return kept.select(*dict.fromkeys([*keys, *columns]))

    return narrowed


def _result(spark: SparkSession, plan: Any, rows: DataFrame, scans: Sequence[GroupedScan]) -> Result:
    skew = [
        max(found.bytes_of_buckets) * len(found.bytes_of_buckets) / (sum(found.bytes_of_buckets) or 1)
        for found in scans
    ]
    found_rows, text = sealed(spark, plan, rows)
    return Result(found_rows, None, tuple(found.snapshot.instant for found in scans), tuple(skew), text)


def _either(by_buckets: Callable[[], Result], by_spark: Callable[[], DataFrame]) -> Result:
    try:
        return by_buckets()
    except NotColocatedError as error:
        reason = str(error)
    except Exception as error:
        # Another version of Spark or Hudi has other internals, which fail in any way. A mistake in the user's own
        # columns fails in Spark's plan, too, and is raised from there.
        # An error of the JVM has its reason in the second line.
        lines = " ".join(str(error).splitlines()[:2])[:_LONGEST_REASON]
        reason = f"the read by buckets cannot be planned: {type(error).__name__}: {lines}"
    _log.warning("Spark's own plan is used: %s", reason)
    return Result(by_spark(), reason)
