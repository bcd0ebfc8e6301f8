"""Refusals of syncs to a metastore."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

NO_COMMIT: Final = ProblemType(
    "no-commit",
    "The table has no commit yet, so it has no columns",
    why="The columns for the metastore come from the schema that the latest commit carries. This table has no commit,"
    " so the metastore would get a table without columns. Run the job again after the first write.",
)
METASTORE_NAME_UNSUITED: Final = ProblemType(
    "metastore-name-unsuited",
    "A metastore has no tables of this name",
    why="A Hive metastore accepts only letters, digits and underscores in names. The metastore would refuse the table"
    " in the middle of the sync, or create one that SQL cannot name.",
    example="trips-2026",
    hint="Give another name as `table`: letters, digits and underscores.",
)
METASTORE_DATABASE_MISSING: Final = ProblemType(
    "metastore-database-missing",
    "There is no such database",
    why="A database has an owner and a location, so the job does not create one unless it is told to: with a mistyped"
    " name the table would appear where nobody looks for it.",
    example="analytcs",
    hint="Create it, or send `create_database`.",
)
PARTITION_VALUES_UNSUITED: Final = ProblemType(
    "partition-values-unsuited",
    "The partition paths do not give the values of the partition columns",
    why="The metastore keeps a value per partition column and partition. If the extractor reads wrong values from a"
    " path, or the same for two paths, queries with a filter would leave out rows without any error.",
    example="'2026/01/01' has 3 values for dt",
    hint="Choose the `partition_extractor`, or other `partition_fields`; a field that is not a column of the table gets"
    " the type text.",
)
METASTORE_TABLE_ELSEWHERE: Final = ProblemType(
    "metastore-table-elsewhere",
    "The metastore has a table of this name at another path",
    why="The name belongs to another table. If the sync changed its location, all queries of that name would suddenly"
    " read this table, and no longer find the other one.",
    example="analytics.trips: s3a://lake/other/trips",
    hint="Give another `table` or `database`; or drop the metastore's table, if it is this one at its former path.",
)
METASTORE_TABLE_NOT_HUDI: Final = ProblemType(
    "metastore-table-not-hudi",
    "The metastore has a table of this name that is not a Hudi table",
    why="The table in the metastore is of another format, and queries of it use another reader. Changing it into a "
    "Hudi table could break these queries, and its present definition could not be restored.",
    example="analytics.trips",
    hint="Give another `table` or `database`, or drop the other table.",
)
METASTORE_PARTITIONING_DIFFERS: Final = ProblemType(
    "metastore-partitioning-differs",
    "The metastore's table has other partition columns, and they cannot be changed",
    why="A metastore cannot change the partition columns of a table, only create it anew. Partitions added under other"
    " columns would have values that do not belong to them, and queries would leave out rows.",
    example="analytics.trips: dt, not year, month",
    hint="Send its `partition_fields`, or drop it from the metastore (an external table keeps its files).",
)
METASTORE_COLUMNS_INCOMPATIBLE: Final = ProblemType(
    "metastore-columns-incompatible",
    "The metastore does not allow this change of the columns",
    why="The metastore compares the types of columns by position, and refuses changes that it takes for incompatible."
    " This change would be refused too, so the job does not begin it.",
    example="analytics.trips: fare int to string",
    hint="Set hive.metastore.disallow.incompatible.col.type.changes=false in the metastore, or drop its table and sync"
    " again (an external table keeps its files).",
)
