"""Reasons for which Hudi's own executor merges a table, and why a job that asks for Arrow is refused."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import JobExplanation

ARROW_MERGES: Final = {
    "table-version-not-covered": JobExplanation(
        "Files and logs of another table version may have other blocks and other rules by which rows are merged. The"
        " merge by Arrow is proved to be equal to Hudi's own for the versions 6, 8 and 9. Hudi's executor merges the"
        " table: `engine` `hudi` or `auto`.",
        "10",
        title="Arrow does not merge tables of this version",
    ),
    "merge-mode-not-covered": JobExplanation(
        "Of two rows with the same key Arrow keeps the one with the later event time or commit time. If the table"
        " decides by another rule, or has no field to compare, the wrong row would stay and the other would be lost."
        " Hudi's executor merges the table: `engine` `hudi` or `auto`.",
        "CUSTOM",
        title="Rows of this table are not merged by event or commit time",
    ),
    "log-order-not-proved": JobExplanation(
        "Of two versions of a row in the logs, Hudi before 1.0 keeps the one with the greater ordering value, with its"
        " default payload; Hudi since 1.0 takes the later one. So a compaction could change what the table's owner"
        " reads. It is done by Arrow, where all versions are compared and both rules keep the same row; a clustering"
        " without a bucket index is not done while there are logs.",
        "20260101120000000 was written by a Hudi before 1.0",
        title="Older versions of Hudi may merge rows in the logs otherwise, so other rows could stay",
        hint="Compact the table first, by Arrow, or with the version of Hudi that writes it.",
    ),
    "payload-not-covered": JobExplanation(
        "A payload class can compute a row from the old one and the new one, for example by adding up values. Arrow"
        " runs no such class, so the merged row would be another than that of Hudi. Hudi's executor merges the table:"
        " `engine` `hudi` or `auto`.",
        "org.example.OurPayload",
        title="A payload class merges the rows of this table",
    ),
    "merge-properties-not-covered": JobExplanation(
        "These properties make a merge do more than take the newer row, for example keep the old values of some"
        " columns. Arrow does not do so, and values would be lost. Hudi's executor merges the table: `engine` `hudi`"
        " or `auto`.",
        "hoodie.table.partial.update.mode",
        title="Properties of the table change its merges",
    ),
    "options-not-covered": JobExplanation(
        "These options, which the registration has, change the rows that Hudi's executor merges or the files that it"
        " writes. Arrow does not know them, and its files would differ. Hudi's executor merges the table: `engine`"
        " `hudi` or `auto`.",
        "hoodie.parquet.outputtimestamptype",
        title="Hudi options of the table change its merges or files",
    ),
    "schema-on-read": JobExplanation(
        "With Hudi's schema on read, columns are renamed or get other types without the files being rewritten, so"
        " files have to be read by the history of the schema. Arrow would take a renamed column for a new one and lose"
        " its values. Hudi's executor merges the table: `engine` `hudi` or `auto`.",
        "",
        title="The table's commits carry a schema of Hudi's schema on read",
    ),
    "operation-field": JobExplanation(
        "The field says whether a row is an insert, an update or a delete. A merge that only takes the newer row would"
        " keep rows that are to be deleted. Hudi's executor merges the table: `engine` `hudi` or `auto`.",
        "_hoodie_operation",
        title="Rows carry the operation that wrote them, which may be a delete",
    ),
    "types-not-covered": JobExplanation(
        "For these types it is not proved that the values in a file written by Arrow are the same as in one of Hudi."
        " A reader could get other values after the compaction. Hudi's executor merges the table: `engine` `hudi` or"
        " `auto`.",
        "payment: union",
        title="The table has columns of types that Arrow does not merge",
    ),
    "log-files-not-covered": JobExplanation(
        "The plan names a log file whose name is not that of a log with rows, such as one of changes. Its content"
        " would be missing in the new base file, or be taken for rows. Hudi's executor merges the table: `engine`"
        " `hudi` or `auto`.",
        "partition 'dt=2026-01-01', file group 00000003-5c1f-4c27-9b0e-8f6f1f0d6c11-0",
        title="A plan reads log files that hold something else than rows",
    ),
    "arrow-failed": JobExplanation(
        "An error came while Arrow merged the file slices, and nothing of it was committed. The same plan can still be"
        " executed by Hudi's own executor (`engine` `hudi`).",
        "ArrowInvalid: Float value was truncated converting to int64",
        title="Merging by Arrow has failed",
        hint="The log of the worker has the details.",
    ),
}
