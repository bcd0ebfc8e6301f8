"""Refusals of expansions and contractions, and of what follows them."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

NUM_BUCKETS_NOT_A_MULTIPLE: Final = ProblemType(
    "num-buckets-not-a-multiple",
    "The new number of buckets is not a multiple of the present one",
    why="The bucket of a row is its hash modulo the number of buckets. So with a multiple of the present number, each "
    "bucket splits into new buckets of its own. If it were another number, rows of several old buckets would go to the "
    "same new bucket.",
    example="partition 'dt=2026-01-01' has 8 buckets, 12 were asked for",
    hint="Ask for 16, 24 or 32 buckets, or for a `factor`; or run a `bucket_count`, which takes any number.",
)
NUM_BUCKETS_NOT_A_DIVISOR: Final = ProblemType(
    "num-buckets-not-a-divisor",
    "The new number of buckets does not divide the present one",
    why="The bucket of a row is its hash modulo the number of buckets. So with a divisor of the present number, whole "
    "buckets merge into one. If it were another number, rows of one bucket would belong to several new buckets.",
    example="partition 'dt=2026-01-01' has 8 buckets, 3 were asked for",
    hint="Ask for 4 or 2 or 1 buckets; or run a `bucket_count`, which takes any number.",
)
NUM_BUCKETS_UNCHANGED: Final = ProblemType(
    "num-buckets-unchanged",
    "Every partition has this number of buckets already",
    why="A `bucket_count` rewrites the partitions that have another number than the one that was asked for. There is "
    "none, and nothing needs to be done.",
    example="8 buckets",
)
NO_FILE_GROUPS: Final = ProblemType(
    "no-file-groups",
    "The table has no file groups, so no buckets could be changed",
    why="The commit that changes the number of buckets replaces the file groups of these buckets. A table that nobody "
    "has written to, or whose rows an overwrite has replaced by none, has no file groups.",
    hint="Submit the job again after the first write. Where no earlier job has changed the number, you can instead give"
    " the writers the new number, and then register the table with it.",
)
NUM_BUCKETS_TOO_UNLIKE: Final = ProblemType(
    "num-buckets-too-unlike",
    "The two numbers of buckets have too small a common divisor",
    why="If g is the greatest common divisor of both numbers, the rows of each old bucket go to M/g of the M new ones. "
    "A task writes 16 files at once and reads all rows again for the next 16. So with more than 1024 such files the "
    "job would read the table more than 64 times.",
    example="partition 'dt=2026-01-01' has 2000 buckets, 2001 were asked for",
    hint="Ask for a number that shares a larger divisor with the present one, such as 2002 instead of 2001.",
)
BUCKET_RULES_UNSUPPORTED: Final = ProblemType(
    "bucket-rules-unsupported",
    "The table's bucket rules cannot be applied here",
    why="The table's hashing config gives the number of buckets by regular expressions on partition paths. If Java and"
    " Python might read an expression differently, the job could compute other buckets than the writers do, and rows"
    " would be written twice.",
    example="unknown extension ?<, in (?<year>2026).*",
    hint="Hudi itself may accept these rules. Write them with the regex syntax that Java and Python share.",
)
WRITERS_TOO_OLD: Final = ProblemType(
    "writers-too-old",
    "Writers older than Hudi 1.1 would keep the old number of buckets and duplicate rows",
    why="The new number of buckets is in a hashing config, which Hudi follows since 1.1. An older writer uses the "
    "number in its own options, does not find existing rows in the buckets of that number, and writes them a second "
    "time. In table version 6 a commit shows whether Hudi before 1.0 made it. If the last ten commits show an older "
    "version than the declared one, the older one counts.",
    example="table version 6, writers declared: none",
    hint="Declare the version that the writers have. If it is older than 1.1: stop them, PATCH the table with"
    ' `{"writers": {"stopped": true}}`, change the number for all partitions, and start them again with the new number'
    " in their options.",
)
READERS_TOO_OLD: Final = ProblemType(
    "readers-too-old",
    "Readers with Hudi 1.0 would miss rows, because they prune by the number of buckets in their options",
    why="A session of Hudi 1.0 may have the bucket index in its options. A query that filters by the hash field then"
    " reads only one bucket, computed by the number in these options. If that number is not the table's, it misses"
    " rows that exist (19 of 40 rows in a trial with 1.0.2). Hudi before 1.0 does not prune by buckets, and Hudi"
    " since 1.1 uses the table's number.",
    example="readers declared: Hudi 1.0.2",
    hint="Set hoodie.bucket.index.query.pruning=false wherever the table is read, and PATCH the table with"
    ' `{"writers": {"query_pruning_off": true}}`.',
)
FLINK_MAY_BE_RUNNING: Final = ProblemType(
    "flink-may-be-running",
    "A Flink job keeps using the file groups and the number of buckets that it has read; stop it first",
    why="A Flink job reads the number of buckets when it is submitted, and file ids once per task. The job would go on "
    "writing to file groups that were replaced, where no reader sees its rows. A batch that Hudi rejects is lost, "
    "because Flink has completed its checkpoint and does not send it again.",
    example="Flink is a declared or detected writer",
    hint="Stop it with a savepoint and confirm that for the job (POST /v1/jobs/{id}/writers-stopped); or, if no Flink"
    ' job writes the table any more, PATCH the table with `{"writers": {"engines": ["spark"], ...}}`.',
    retriable=True,
)
SQL_STATEMENTS_LOSE_ROWS: Final = ProblemType(
    "sql-statements-lose-rows",
    "When a table's number of buckets was changed, Spark SQL's UPDATE, DELETE and SELECT miss rows",
    why='When a table has a hashing config, Hudi 1.2 mistakes "any bucket" for "no bucket" as it plans a query by SQL.'
    " An UPDATE or DELETE then reads no rows, commits without a change, and reports success.",
    example="Spark SQL is a declared writer (Hudi 1.2, PartitionBucketIndexSupport)",
    hint="Set hoodie.bucket.index.query.pruning=false for every session that reads or writes the table by SQL, or for"
    ' the table, and declare it: PATCH the table with `{"writers": {"query_pruning_off": true, ...}}`.',
)
NO_HASHING_CONFIG: Final = ProblemType(
    "no-hashing-config",
    "The table has no hashing config that could be retired",
    why="The job would retire the hashing config of a table, or put a retired one back. The table has no such config: "
    "all writers use the number of buckets in their own options already, and nothing needs to be done.",
)
HASHING_CONFIG_DANGLING: Final = ProblemType(
    "hashing-config-dangling",
    "A hashing config has no completed commit",
    why="The commit to which this config belongs was rolled back or never completed. Some writers may have followed "
    "it, so their rows have to be checked before the config is removed: run a `repair` job with `leftovers`, which "
    "does both.",
    example="20260101120000000",
)
PARTITIONS_DIFFER: Final = ProblemType(
    "partitions-differ",
    "Partitions have different numbers of buckets, which only a hashing config can express",
    why="Without a hashing config every writer uses one number of buckets for all partitions. In partitions with"
    " another number it would not find the existing rows, and would write them a second time.",
    example="dt=2026-01-01 has 8 buckets, .* has 16",
    hint="Expand or contract the other partitions to the same number first.",
)
WRITERS_HAVE_THE_OLD_NUMBER: Final = ProblemType(
    "writers-have-the-old-number",
    "The writers' declared number of buckets is not the table's number",
    why="Once the hashing config is retired, each writer uses the number in its own options. A writer that still has"
    " the old number would look for rows in other buckets and silently write them a second time.",
    example="declared: 8; the table has 16",
    hint="Give every writer hoodie.bucket.index.num.buckets=16, restart it, and PATCH the table's `index` with that"
    " number. A writer that keeps the old number silently duplicates rows.",
)
HASHING_CONFIG_IN_FORCE: Final = ProblemType(
    "hashing-config-in-force",
    "The table already has a hashing config in force",
    why="The job was asked to put a retired hashing config back. A config that is in force now may have other numbers,"
    " and to replace it would make writers look for rows in the wrong buckets. There is nothing to undo.",
)
RENAME_NOT_ATOMIC: Final = ProblemType(
    "rename-not-atomic",
    "On this storage renaming a folder is not atomic, so writers could see a part of it",
    why="The hashing config is retired by renaming its folder. On an object storage a rename copies one file after the "
    "other. A reader or writer that looks meanwhile fails, or uses an incomplete config.",
    example="s3a",
    hint="Keep the hashing config, and set hoodie.bucket.index.query.pruning=false wherever the table is read by SQL.",
)
RULES_BEFORE_UNKNOWN: Final = ProblemType(
    "rules-before-unknown",
    "The rules before a dangling hashing config are not known",
    why="Before a config without a commit is removed, each row is compared with the rules that were valid before it."
    " Those rules cannot be read, so nobody knows whether rows would be found afterwards. Restore the config before it"
    " from a backup.",
    example="20260101120000000",
)
WRITTEN_BY_DANGLING_CONFIG: Final = ProblemType(
    "written-by-dangling-config",
    "Rows were written by the hashing config that has no commit",
    why="Some rows are in the buckets of a config that has no commit. If it were removed, writers would look for these"
    " rows in other buckets, would not find them, and would write them a second time.",
    example="449 rows are not in their bucket by the rules before it, .*,8",
    hint="Stop the writers, and run an audit: its finding `rows-in-wrong-bucket` names the commits for a `repair`,"
    " which removes the config and moves their rows.",
)
WRITERS_NOT_STOPPED: Final = ProblemType(
    "writers-not-stopped",
    "The writers were not stopped in time",
    why="The job can only run while the table's Flink job, or every writer, is stopped. Either nobody stopped the "
    "Flink job within `hand_over_seconds`, or nobody has declared that all writers are stopped.",
    example="The job waited until 2026-01-01 12:00:00 UTC.",
    hint="Stop the writers when the job waits, or let the service stop them (`writers.flink`).",
)
BUCKET_INDEX_CONTRADICTED: Final = ProblemType(
    "bucket-index-contradicted",
    "Rows are in files of another bucket than their keys belong to",
    why="The job hashes the record keys of a few base files and compares the resulting buckets with those in the "
    "files' names. The declared number of buckets and hash fields give other buckets, and an expansion with wrong "
    "values would duplicate rows.",
    example="partition 'dt=2026-01-01', file group of bucket 3",
    hint="The table may have been written with another number of buckets, with other hash fields, or by a Flink job"
    " whose options give partitions numbers of their own (`hoodie.bucket.index.partition.expressions`). Run an audit.",
)
