"""Makes Hudi's data source read the values of partition columns from the files, where writers have put them.

Hudi (1.2.0) takes these values from the paths (`HoodieBaseHadoopFsRelationFactory.partitionColumnsToRead`), which do
not have all of them: an empty text reads as null, `a=b` as `b`, `10%20` as `10 `, the day 2026-01-01 of slash-separated
dates as `2026/01/01`, and every timestamp of the simple key generator as null. Queries show these values. But a job
that rewrites files would store them, and the values of the writers would be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.hudi.table import HudiTable

# `HoodieFileGroupReaderBasedFileFormat`: partition columns that are read from the files. Hudi names the fields of
# timestamp-based and custom key generators there, and the ordering field.
_FROM_FILES = "mandatoryFields"
_RELATION, _OF_FILES = "LogicalRelation", "HadoopFsRelation"


def with_stored_values(table: HudiTable, frame: DataFrame) -> DataFrame:
    """Returns the rows of a table with the values of partition columns that are in its files. Files of which a writer
    has dropped these columns have none. Partitions are chosen by the values in the paths as before."""
    # A field of a struct is in the files anyway, with its struct.
    names = [name for name in table.partition_fields if name and "." not in name]
    if not names or table.drops_partition_columns:
        return frame
    java: Any = frame._jdf
    leaves = java.queryExecution().analyzed().collectLeaves()
    for at in range(leaves.size()):
        if (leaf := leaves.apply(at)).getClass().getSimpleName() == _RELATION:
            _read_from_files(table, leaf.relation(), names)
    return frame


def _read_from_files(table: HudiTable, relation: Any, names: list[str]) -> None:
    if relation.getClass().getSimpleName() != _OF_FILES:
        return  # an empty table
    format_ = relation.fileFormat()
    declared = format_.getClass().getDeclaredField(_FROM_FILES)
    declared.setAccessible(True)
    found = declared.get(format_)
    known = {str(found.apply(at)) for at in range(found.size())}
    every = table.jvm.java.java.util.ArrayList()
    for name in [*sorted(known), *(each for each in names if each not in known)]:
        every.add(name)
    declared.set(format_, table.jvm.java.org.apache.spark.api.python.PythonUtils.toSeq(every))
