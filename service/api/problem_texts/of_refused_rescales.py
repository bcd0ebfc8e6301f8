"""Refusals of jobs that change the number of buckets, or end such a change."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import JobExplanation

RESCALES: Final = {
    "num-buckets-not-a-multiple": JobExplanation(
        "In an expansion each bucket is split by itself into a whole number of new ones, because the bucket"
        " is the hash modulo the number. With another number, rows of one bucket would belong to new buckets"
        " that other tasks write.",
        "partition 'dt=2026-01-01' has 8 buckets, 12 were asked for",
        title="The new number of buckets is not a multiple of the present one",
        hint="Ask for 16, 24 or 32 buckets, or for a `factor`.",
    ),
    "num-buckets-not-a-divisor": JobExplanation(
        "In a contraction whole buckets are merged into one, because the bucket is the hash modulo the"
        " number. With a number that does not divide the present one, rows of one bucket would belong to"
        " several new ones.",
        "partition 'dt=2026-01-01' has 8 buckets, 3 were asked for",
        title="The new number of buckets does not divide the present one",
        hint="Ask for 4 or 2 or 1 buckets.",
    ),
    "bucket-rules-unsupported": JobExplanation(
        "The table's hashing config gives the number of buckets by regular expressions on partition paths. If"
        " Java and Python might read an expression differently, the job could compute other buckets than the"
        " writers do, and rows would be written twice.",
        "unknown extension ?<, in (?<year>2026).*",
        title="The table's bucket rules cannot be applied here",
        hint="Hudi itself may know them. Write them with the regex syntax that Java and Python share.",
    ),
    "writers-too-old": JobExplanation(
        "The new number of buckets is in a hashing config, which Hudi follows since 1.1. An older writer uses"
        " the number in its own options, does not find existing rows in the buckets of that number, and"
        " writes them a second time. The commits of table version 6 show which of them Hudi before 1.0 made: of what is"
        " declared and what the last ten commits show, the older version counts.",
        "table version 6, writers declared: none",
        title="Writers older than Hudi 1.1 would keep the old number of buckets and duplicate rows",
        hint=(
            "Declare the version that the writers have. If it is older than 1.1: stop them, PATCH the table with"
            ' `{"writers": {"stopped": true}}`, change the number for all partitions, and start them again with the new'
            " number in their options."
        ),
    ),
    "readers-too-old": JobExplanation(
        "A session of Hudi 1.0 whose options name the bucket index reads, for a filter on the hash field, only the"
        " bucket that the number in these options gives: with another number, a row that exists is not found (19 of 40"
        " rows in a trial with 1.0.2). Hudi before 1.0 does not prune so, and Hudi since 1.1 follows the table.",
        "readers declared: Hudi 1.0.2",
        title="Readers with Hudi 1.0 would miss rows, because they prune by the number of buckets in their options",
        hint=(
            "Set hoodie.bucket.index.query.pruning=false wherever the table is read, and PATCH the table with"
            ' `{"writers": {"query_pruning_off": true}}`.'
        ),
    ),
    "flink-may-be-running": JobExplanation(
        "A Flink job reads the number of buckets when it is submitted, and file ids once per task. It would"
        " go on writing to file groups that were replaced, where no reader sees its rows. A batch that Hudi"
        " rejects is lost, since its checkpoint is done.",
        "Flink is a declared or detected writer",
        title="A Flink job keeps using the file groups and the number of buckets that it has read; stop it first",
        hint=(
            "Stop it with a savepoint and confirm that for the job (POST /v1/jobs/{id}/writers-stopped); or, if"
            ' no Flink job writes the table any more, PATCH the table with `{"writers": {"engines": ["spark"],'
            " ...}}`."
        ),
    ),
    "sql-statements-lose-rows": JobExplanation(
        'When a table has a hashing config, Hudi 1.2 mistakes "any bucket" for "no bucket" as it plans a'
        " query by SQL. An UPDATE or DELETE then reads no rows, commits without a change, and reports success.",
        "Spark SQL is a declared writer (Hudi 1.2, PartitionBucketIndexSupport)",
        title="When a table's number of buckets was changed, Spark SQL's UPDATE, DELETE and SELECT miss rows",
        hint=(
            "Set hoodie.bucket.index.query.pruning=false for every session that reads or writes the table by SQL,"
            ' or for the table, and declare it: PATCH the table with `{"writers": {"query_pruning_off": true,'
            " ...}}`."
        ),
    ),
    "no-hashing-config": JobExplanation(
        "The job would retire the hashing config of a table, or put a retired one back. There is none, so all"
        " writers use the number of buckets in their own options already, and nothing needs to be done.",
        "",
        title="The table has no hashing config that could be retired",
    ),
    "hashing-config-dangling": JobExplanation(
        "The commit to which this config belongs was rolled back or never completed. Some writers may have"
        " followed it, so its rows have to be checked before anything is retired: run a `repair` job with"
        " `leftovers`, which does both.",
        "20260101120000000",
        title="A hashing config has no completed commit",
    ),
    "partitions-differ": JobExplanation(
        "Without a hashing config every writer uses one number of buckets for all partitions. In partitions"
        " with another number it would not find the existing rows, and would write them a second time.",
        "dt=2026-01-01 has 8 buckets, .* has 16",
        title="Partitions have different numbers of buckets, which only a hashing config can express",
        hint="Expand or contract the other partitions to the same number first.",
    ),
    "writers-have-the-old-number": JobExplanation(
        "Once the hashing config is retired, each writer uses the number in its own options. A writer that"
        " still has the old number would look for rows in other buckets and silently write them a second time.",
        "declared: 8; the table has 16",
        title="The writers' declared number of buckets is not that of the table",
        hint=(
            "Give every writer hoodie.bucket.index.num.buckets=16, restart it, and PATCH the table's `index` with"
            " that number. A writer that keeps the old number silently duplicates rows."
        ),
    ),
    "hashing-config-in-force": JobExplanation(
        "The job was asked to put a retired hashing config back. A config that is in force now may have other"
        " numbers, and to replace it would make writers look for rows in the wrong buckets. There is nothing"
        " to undo.",
        "",
        title="The table already has a hashing config in force",
    ),
    "rename-not-atomic": JobExplanation(
        "The hashing config is retired by renaming its folder. On an object storage a rename copies one file"
        " after the other, and a reader or writer that comes in between fails, or uses an incomplete config.",
        "s3a",
        title="On this storage renaming a folder is not atomic, so writers could see a part of it",
        hint=(
            "Keep the hashing config, and set hoodie.bucket.index.query.pruning=false wherever the table is read"
            " by SQL."
        ),
    ),
    "rules-before-unknown": JobExplanation(
        "Before a config without a commit is removed, each row is compared with the rules that were valid"
        " before it. These cannot be read, so it is not known whether rows would be found afterwards. Restore"
        " the config before it from a backup.",
        "20260101120000000",
        title="The rules before a dangling hashing config are not known",
    ),
    "written-by-dangling-config": JobExplanation(
        "Some rows are in the buckets of a config that has no commit. If it were removed, writers would look"
        " for these rows in other buckets, would not find them, and would write them a second time.",
        "449 rows are not in their bucket by the rules before it, .*,8",
        title="Rows were written by the hashing config that has no commit",
        hint="Write the partitions of these rows again (`insert_overwrite`), by the one rule or by the other.",
    ),
}
