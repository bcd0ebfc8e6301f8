"""Reasons for which Hudi's own executor merges a table, and why a job that asks for Arrow is refused."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

TABLE_VERSION_NOT_COVERED: Final = ProblemType(
    "table-version-not-covered",
    "Arrow does not merge tables of this version",
    why="Files and logs of another table version may have other blocks and other rules by which rows are merged. The"
    " merge by Arrow is proved to be equal to Hudi's own for the versions 6, 8 and 9. Hudi's executor merges the"
    " table: `engine` `hudi` or `auto`.",
    example="10",
)
MERGE_MODE_NOT_COVERED: Final = ProblemType(
    "merge-mode-not-covered",
    "This table merges rows by another rule than event time or commit time",
    why="When two rows have the same key, Arrow keeps the one with the later event time or commit time. If the table "
    "decides by another rule, or has no field to compare, Arrow could keep the wrong row and lose the right one. "
    "Hudi's executor merges the table: `engine` `hudi` or `auto`.",
    example="CUSTOM",
)
LOG_ORDER_NOT_PROVED: Final = ProblemType(
    "log-order-not-proved",
    "Older versions of Hudi may merge rows in the logs differently, so other rows could be kept",
    why="Hudi before 1.0, with its default payload, keeps the version of a row in the logs that has the greater"
    " ordering value; Hudi since 1.0 takes the later version. So a compaction could change what the table's owner"
    " reads. The compaction is done by Arrow, if a comparison of all versions shows that both rules keep the same row;"
    " a clustering without a bucket index is not done while there are logs.",
    example="20260101120000000 was written by a Hudi before 1.0",
    hint="Compact the table first, by Arrow, or with the version of Hudi that writes it.",
)
PAYLOAD_NOT_COVERED: Final = ProblemType(
    "payload-not-covered",
    "A payload class merges the rows of this table",
    why="A payload class can compute a row from the old one and the new one, for example by adding up values. Arrow "
    "runs no such class, so its merged row would differ from Hudi's. Hudi's executor merges the table: `engine` `hudi` "
    "or `auto`.",
    example="org.example.OurPayload",
)
MERGE_PROPERTIES_NOT_COVERED: Final = ProblemType(
    "merge-properties-not-covered",
    "Properties of the table change its merges",
    why="These properties make a merge do more than take the newer row, for example keep the old values of some"
    " columns. Arrow does not do so, and values would be lost. Hudi's executor merges the table: `engine` `hudi` or"
    " `auto`.",
    example="hoodie.table.partial.update.mode",
)
OPTIONS_NOT_COVERED: Final = ProblemType(
    "options-not-covered",
    "Hudi options of the table change its merges or files",
    why="These options, which the registration has, change the rows that Hudi's executor merges or the files that it"
    " writes. Arrow does not know them, and its files would differ. Hudi's executor merges the table: `engine` `hudi`"
    " or `auto`.",
    example="hoodie.parquet.outputtimestamptype",
)
SCHEMA_ON_READ: Final = ProblemType(
    "schema-on-read",
    "The table's commits carry a schema of Hudi's schema on read",
    why="Hudi's schema on read renames columns or gives them other types without rewriting the files, so files have to"
    " be read by the history of the schema. Arrow would take a renamed column for a new one and lose its values."
    " Hudi's executor merges the table: `engine` `hudi` or `auto`.",
)
OPERATION_FIELD: Final = ProblemType(
    "operation-field",
    "Rows carry the operation that wrote them, which may be a delete",
    why="The field says whether a row is an insert, an update or a delete. A merge that only takes the newer row would"
    " keep rows that are to be deleted. Hudi's executor merges the table: `engine` `hudi` or `auto`.",
    example="_hoodie_operation",
)
TYPES_NOT_COVERED: Final = ProblemType(
    "types-not-covered",
    "The table has columns of types that Arrow does not merge",
    why="For these types it is not proved that a file written by Arrow has the same values as one written by Hudi. A "
    "reader could get other values after the compaction. Hudi's executor merges the table: `engine` `hudi` or `auto`.",
    example="payment: union",
)
LOG_FILES_NOT_COVERED: Final = ProblemType(
    "log-files-not-covered",
    "A plan reads log files that do not hold rows",
    why="The plan names a log file that does not hold rows by its name, such as a log of changes. Arrow would leave "
    "its content out of the new base file, or take it for rows. Hudi's executor merges the table: `engine` `hudi` or "
    "`auto`.",
    example="partition 'dt=2026-01-01', file group 00000003-5c1f-4c27-9b0e-8f6f1f0d6c11-0",
)
ARROW_FAILED: Final = ProblemType(
    "arrow-failed",
    "Merging by Arrow has failed",
    why="An error occurred while Arrow merged the file slices, and nothing was committed. The same plan can still be "
    "executed by Hudi's own executor (`engine` `hudi`).",
    example="ArrowInvalid: Float value was truncated converting to int64",
    hint="The log of the worker has the details.",
)
