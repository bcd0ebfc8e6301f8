"""Refusals of syncs with a Hive metastore."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import JobExplanation

SYNCS: Final = {
    "no-commit": JobExplanation(
        "The columns for the metastore come from the schema that the latest commit carries. This table has no"
        " commit, so the metastore would get a table without columns. Run the job again after the first"
        " write.",
        "",
        title="The table has no commit yet, so it has no columns",
    ),
    "metastore-name-unsuited": JobExplanation(
        "A Hive metastore accepts only letters, digits and underscores in names. It would refuse the table in"
        " the middle of the sync, or create one that SQL cannot name.",
        "trips-2026",
        title="A metastore has no tables of this name",
        hint="Give another name as `table`: letters, digits and underscores.",
    ),
    "metastore-database-missing": JobExplanation(
        "A database has an owner and a location, so the job does not create one unless it is told to: with a"
        " mistyped name the table would appear where nobody looks for it.",
        "analytcs",
        title="There is no such database",
        hint="Create it, or send `create_database`.",
    ),
    "partition-values-unsuited": JobExplanation(
        "The metastore keeps a value per partition column and partition. If the extractor reads wrong values"
        " from a path, or the same for two paths, queries with a filter would leave out rows without any"
        " error.",
        "'2026/01/01' has 3 values for dt",
        title="The partition paths do not give the values of the partition columns",
        hint="Choose the `partition_extractor`, or other `partition_fields`; a name that is no column gets text.",
    ),
    "metastore-table-elsewhere": JobExplanation(
        "The name belongs to another table. If the sync changed its location, all queries of that name would"
        " suddenly read this table, and no longer find the other one.",
        "analytics.trips: s3a://lake/other/trips",
        title="The metastore has a table of this name at another path",
        hint="Give another `table` or `database`; or drop that one, if it is this table before it was moved.",
    ),
    "metastore-table-not-hudi": JobExplanation(
        "The table in the metastore is of another format, and queries of it use another reader. Changing it"
        " into a Hudi table could break them, and what it had there could not be restored.",
        "analytics.trips",
        title="The metastore has a table of this name that is no Hudi table",
        hint="Give another `table` or `database`, or drop that one.",
    ),
    "metastore-partitioning-differs": JobExplanation(
        "A metastore cannot change the partition columns of a table, only create it anew. Partitions added"
        " under other columns would have values that do not belong to them, and queries would leave out rows.",
        "analytics.trips: dt, not year, month",
        title="The metastore's table has other partition columns, and they cannot be changed",
        hint="Send its `partition_fields`, or drop it from the metastore (an external table keeps its files).",
    ),
    "metastore-columns-incompatible": JobExplanation(
        "The metastore compares the types of columns by position, and refuses changes that it takes for"
        " incompatible. It would refuse this one too, so the job does not begin it.",
        "analytics.trips: fare int to string",
        title="The metastore does not allow this change of the columns",
        hint=(
            "Set hive.metastore.disallow.incompatible.col.type.changes=false in the metastore, or drop its table"
            " and sync again (an external table keeps its files)."
        ),
    ),
}
