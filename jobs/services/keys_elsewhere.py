"""Decides about stray rows whose keys have rows in other partitions, too. A writer whose index finds a key in all
partitions (`GLOBAL_BLOOM`, `GLOBAL_SIMPLE`, the global record index) would not have left both rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import refuse
from jobs.format.index_definitions import GLOBAL_TYPES, INDEX_TYPE, RECORDS
from jobs.format.meta_columns import PARTITION_PATH, RECORD_KEY
from jobs.hudi import indexes
from jobs.problems.tables import KEYS_IN_OTHER_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from jobs.hudi.table import HudiTable

_IN_PARTITION = frozenset({"BLOOM", "SIMPLE", "BUCKET", "RECORD_LEVEL_INDEX"})
_THERE, _IS_NEWER = "_groundskeeper_there", "_groundskeeper_is_newer"
_NAMED = 5


def without_overtaken(table: HudiTable, chosen: DataFrame, now: DataFrame, is_newer: Column) -> DataFrame:
    """Returns the chosen stray rows without those that a newer row of another partition has overtaken. `now` are the
    rows that the table keeps, and `is_newer` compares a stray row with one of these. Raises RefusedError if a stray row
    is the newer one, because only its writer's options say which of the two partitions keeps the key. Raises
    RefusedError as well if nothing tells whether the writers' index looks in other partitions."""
    is_global = _finds_everywhere(table)
    if is_global is False:
        return chosen
    strays = chosen.drop(*(name for name in now.columns if name not in (PARTITION_PATH, RECORD_KEY)))
    others = now.withColumnRenamed(PARTITION_PATH, _THERE)
    found = strays.join(others, RECORD_KEY).where(F.col(_THERE) != F.col(PARTITION_PATH))
    found = found.select(PARTITION_PATH, RECORD_KEY, _THERE, is_newer.alias(_IS_NEWER)).cache()
    wanted = strays.select(PARTITION_PATH, RECORD_KEY)
    twice = wanted.join(wanted.withColumnRenamed(PARTITION_PATH, _THERE), RECORD_KEY)
    twice = twice.where(F.col(_THERE) > F.col(PARTITION_PATH)).distinct().withColumn(_IS_NEWER, F.lit(True))
    doubtful = found.unionByName(twice)
    named = (doubtful.where(_IS_NEWER) if is_global else doubtful).limit(_NAMED).collect()
    if named and not (is_global is None and _repeats_others(now, doubtful)):
        texts = sorted(f"'{row[RECORD_KEY]}' in '{row[PARTITION_PATH]}' and '{row[_THERE]}'" for row in named)
        refuse([KEYS_IN_OTHER_PARTITIONS.because(", ".join(texts))])
    return chosen.join(found, [PARTITION_PATH, RECORD_KEY], "left_anti") if is_global else chosen


def _finds_everywhere(table: HudiTable) -> bool | None:
    """Returns whether the writers' index finds a key in all partitions. None if nothing says so: Bloom and simple
    indexes leave no mark on the table."""
    if table.declared.index or table.has_consistent_hashing() or not table.partition_fields:
        return False
    kind = table.declared.hudi_options.get(INDEX_TYPE, "").upper()
    if kind in GLOBAL_TYPES | _IN_PARTITION:
        return kind in GLOBAL_TYPES
    if RECORDS in table.metadata_partitions:
        return not indexes.indexes_of(table).has_records_by_partition
    return None


def _repeats_others(now: DataFrame, doubtful: DataFrame) -> bool:
    """Returns whether other keys are in several partitions, too, which no global index allows."""
    others = now.join(doubtful.select(RECORD_KEY), RECORD_KEY, "left_anti")
    places = others.groupBy(RECORD_KEY).agg(F.countDistinct(PARTITION_PATH).alias(_THERE))
    return bool(places.where(F.col(_THERE) > 1).limit(1).collect())
