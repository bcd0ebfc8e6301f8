"""Refusals of the adoption of a bucket index, and of the way back."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

BUCKET_INDEX_IN_PLACE: Final = ProblemType(
    "bucket-index-in-place",
    "The table has a bucket index already",
    why="The job routes the rows of a table with another index, or none, to buckets. All rows of this table are in the"
    " buckets of its keys, or a hashing config says how many buckets each partition has. Another number of buckets"
    " needs no shuffle.",
    example="registered with 8 buckets, and every row is in its bucket",
    hint="Run a `bucket_count` for another number of buckets. If the table is registered without its index, PATCH its"
    " `index`.",
)
BUCKET_INDEX_NOT_REGISTERED: Final = ProblemType(
    "bucket-index-not-registered",
    "The table has adopted a bucket index, but is registered without one",
    why="Hudi's clustering gives the rows file groups that belong to no bucket, and the next upsert of a writer with"
    " the bucket index fails (NumberFormatException). A commit on the timeline says that it has adopted a bucket"
    " index for this table, and all file groups are buckets. The worker of that job may have died before the table"
    " was registered with the index.",
    example="20260101120000000 has adopted 8 buckets by id",
    hint="Start a `bucket_index` job with `adopt` again: if all rows are in their buckets, it changes no file, and the"
    " service registers the index.",
)
KEYS_TWICE_IN_PARTITION: Final = ProblemType(
    "keys-twice-in-partition",
    "Keys exist more than once in their partition",
    why="Rows with the same key go to the same bucket, where Hudi takes them for versions of one row: an update"
    " changes all of them in a base file, a delete removes all, and a merge with logs keeps one. The present index"
    " may leave some of these rows alone. So no bucket index would keep all of them as they are.",
    example="12 rows in '2026-01-01'",
    hint="Decide which row is right, and write the partition again without the others (`insert_overwrite`).",
)
ROWS_OF_NO_PARTITION: Final = ProblemType(
    "rows-of-no-partition",
    "Rows name a partition that is not the one whose folder they are in",
    why="The job routes each row by its `_hoodie_partition_path`. These rows lie in the folder of another partition,"
    " for example because files were copied or a folder was renamed, or a writer computed"
    " the path in another way. Nothing shows to which of the two partitions they belong.",
    example="3 rows of 'dt=2026-01-01'",
    hint="Write the rows again by a Hudi writer (`insert_overwrite` of the partition whose folder they are in).",
)
HASH_FIELDS_NOT_IN_KEY: Final = ProblemType(
    "hash-fields-not-in-key",
    "The hash fields are not fields of the record key",
    why="The bucket of a row is computed from its stored record key, so each hash field must be a field of the key."
    " Hudi refuses a writer with any other hash field (`HoodieIndexConfig`). A table without a record key, whose"
    " keys Hudi generates, cannot have a bucket index, because no writer could find a row again.",
    example="hash field city; the record key is id",
    hint="Leave `hash_fields` out, or name fields of the record key.",
)
OF_ANOTHER_KEY: Final = (
    "Somebody has made the table anew with another record key, or has changed `hoodie.table.recordkey.fields`. PATCH"
    " the table's `index`: with the hash fields of its writers, or null if they have no bucket index."
)
"""The hint where a table is registered with hash fields that are not in its key."""
HASHING_CONFIG_STAYS: Final = ProblemType(
    "hashing-config-stays",
    "The bucket index cannot be given up while the table has a hashing config",
    why="The hashing config tells every reader and writer with the options of a bucket index how many buckets each"
    " partition has. If it stayed in the table, such a reader would leave files out whose rows are in other buckets.",
    example="rules .*,8",
    hint="Run a `finish_expansion` job first, which retires the hashing config.",
)
ROWS_OF_UNKNOWN_COMMITS: Final = ProblemType(
    "rows-of-unknown-commits",
    "File groups without a bucket hold rows of commits that no repair can read",
    why="A repair takes such file groups out of use and writes their rows to the right buckets. The repair goes"
    " through the commits one after the other, because a row of a later commit or of another bucket may be the"
    " newer one. A repair cannot do so for commits that the active timeline no longer has, that an earlier repair"
    " has marked, or that only copied rows, such as a clustering.",
    example="120 rows of 20260101120000000",
    hint="Stop the writers and run a `bucket_index` job with `adopt`: it routes all rows again.",
)
