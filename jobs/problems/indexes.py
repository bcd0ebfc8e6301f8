"""Refusals to build or to drop an index of the metadata table."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

INDEX_NOT_OFFERED: Final = ProblemType(
    "index-not-offered",
    "Indexes of this type are not built by a job",
    why="Hudi 1.2 takes the entries of a secondary index from the record index. Hudi uses an expression index for"
    " every filter on its column, whatever the expression is, so queries miss rows. A job does not build an index that"
    " it cannot prove to give all rows.",
    example="expression",
    hint="`CREATE INDEX` of Spark SQL builds it. The job can verify and drop it.",
)
INDEX_NOT_PROVED: Final = ProblemType(
    "index-not-proved",
    "A build of this index on such a table is not proved",
    why="The build was not tested with such tables, or Hudi's writers of this table version do not know the index. A"
    " wrong record index leads to duplicate rows, and wrong statistics hide rows from queries.",
    example="partitioned_record on version 6: it was tried on version 9",
)
INDEX_NOT_KEPT: Final = ProblemType(
    "index-not-kept",
    "The table may have writers or readers for which the index is not proved to work",
    why="Every commit has to write the entries of the index for its rows. A commit without them leaves rows that"
    " lookups and queries do not find. Only writers and readers of Spark with Hudi 1.1 and later were tested with"
    " an index that a job has built.",
    example="writers declared: Hudi 0.15.0",
    hint="Give them a newer Hudi first, and declare its version. Flink: PATCH the table with"
    ' `{"writers": {"engines": ["spark"], ...}}` if no Flink job writes it any more.',
)
INDEX_IN_USE: Final = ProblemType(
    "index-in-use",
    "Something needs the index",
    why="Hudi reads a secondary index by way of the record index, and writers with `hoodie.index.type=RECORD_INDEX`"
    " look up keys in it. Without the record index they fail or build it again.",
    example="record_index is needed by secondary_index_city",
    hint="Drop what needs it first, or give the writers another index.",
)
NO_METADATA_TABLE: Final = ProblemType(
    "no-metadata-table",
    "The table has no metadata table",
    why="Indexes are partitions of the metadata table. The first build of that table is the work of a writer, because "
    "writers with `hoodie.metadata.enable=false` would delete it again.",
    hint="Let a writer commit with `hoodie.metadata.enable=true`.",
)
OTHER_RECORD_INDEX: Final = ProblemType(
    "other-record-index",
    "The table has a record index of the other type",
    why="A global and a partitioned record index are the same partition of the metadata table. A client that takes one"
    " for the other updates the wrong file groups.",
    example="record_index is global",
    hint="Drop it first.",
)
EXPRESSION_INDEX: Final = ProblemType(
    "expression-index",
    "Cleaning beside this expression index stops all writers of the table",
    why="When a clean deletes files, Hudi 1.2 writes the entries of an expression index into the partition of the"
    " metadata table that has the same type (`column_stats` or `bloom_filters`). File groups of two indexes are then"
    " mixed up there: almost every later write fails with `mismatched partition path`, and lookups miss entries.",
    example="expr_index_day in column_stats",
    hint="Drop the expression index (`DROP INDEX`), clean, and create it again; or drop the other index. Switch"
    " cleaning off in the writers (`hoodie.clean.automatic=false`), because Hudi's own cleaner does the same.",
)
INDEXING_PENDING: Final = ProblemType(
    "indexing-pending",
    "Another indexer has begun to build an index",
    why="Hudi's indexer keeps a pending instant while it works, and a second indexer at the same time would delete the"
    " files of the first one. Nobody can tell from the storage whether the first indexer is still alive.",
    example="20260101120000000 (inflight), partitions in flight: column_stats",
    hint="Wait until the indexer has ended. If it is dead, `DROP INDEX` of Spark SQL removes what it has left.",
    retriable=True,
)
