"""Checks the file groups of tables with a bucket index (`BucketIdentifier`, Hudi 1.2.0)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.format.adopted_index import ADOPTED_KEY, is_given_up
from jobs.format.file_names import bucket_of
from jobs.format.stale_writes import stale_writes
from jobs.hudi import hashing_config
from jobs.kinds.results import Cure
from jobs.problems.bucket_indexes import HASH_FIELDS_NOT_IN_KEY, OF_ANOTHER_KEY
from jobs.services.checks import bucket_number
from jobs.services.checks.finding import Examined, Finding, named
from jobs.services.checks.row_counts import in_logs_alone

if TYPE_CHECKING:
    from collections.abc import Iterator


# One random file id in forty has the form of a bucket's id, but only one in four thousand names a bucket that a table
# may have.
_MOST_BY_CHANCE = 0.1
_MADE_ANEW = (
    "Hardly any file group of the table belongs to a bucket. If somebody has made the table anew, and its writers"
    " have another index, PATCH its `index` with null, and repair nothing. Otherwise:"
)


def file_groups(examined: Examined) -> Iterator[Finding]:
    """Finds buckets with several file groups, file ids that name no bucket, and file ids of buckets that the table does
    not have."""
    rules = examined.rules
    if rules is None:
        return
    if unknown := examined.table.hash_fields_not_in_key:
        key = ", ".join(examined.table.record_key_fields) or "generated"
        yield Finding(
            HASH_FIELDS_NOT_IN_KEY.type,
            "The registered hash fields are not fields of the record key",
            {name: f"{name}; the record key is {key}" for name in unknown},
            "Jobs are refused, and nothing shows whether rows are in their buckets.",
            OF_ANOTHER_KEY,
        )
    buckets = {item.key: _bucket_of(item.file_id) for item in examined.listed_slices}
    # A stale write to a copy-on-write table creates a second file group in the bucket, whose id ends in another number.
    stale_by = stale_writes(each.write for each in examined.commits)
    if stale := {group for write in stale_by for group in write.groups} & buckets.keys():
        yield Finding(
            "stale-file-groups-in-bucket",
            "A stale write has given buckets a second file group",
            named([_place(*group) for group in sorted(stale)]),
            "Every later write to such a bucket fails until a repair, and readers see rows twice.",
            "A commit wrote to file groups that had been replaced, such as an `UPDATE` of a long Spark SQL session."
            " Start a `repair` now: it moves the rows to where they belong, and writers can go on.",
            Cure(kind=JobKind.REPAIR, params={}),
        )
    buckets = {group: bucket for group, bucket in buckets.items() if group not in stale}
    if without_bucket := [_place(*key) for key, bucket in buckets.items() if bucket is None]:
        yield Finding(
            "file-ids-without-bucket",
            "File groups have ids that name no bucket",
            named(without_bucket),
            "Upserts fail with a NumberFormatException (Hudi #8906, #11875), or write the same keys again to other "
            "files.",
            f"{_MADE_ANEW if has_no_buckets(examined) else ''}A write without the bucket index's options made them"
            " (bulk_insert, insert_overwrite, clustering). A `repair` that names these commits moves their rows to the"
            " right buckets, and keeps the newest of each key. If no key exists twice, a `bucket_index` with `adopt`"
            " moves them, too. Otherwise write them again with the options of `writer-options`.",
        )
    per_bucket = Counter((partition, bucket) for (partition, _), bucket in buckets.items() if bucket is not None)
    if several := [_place(partition, f"bucket {bucket}") for (partition, bucket), n in per_bucket.items() if n > 1]:
        yield Finding(
            "several-file-groups-in-bucket",
            "Buckets have more than one file group",
            named(several),
            "Every write to such a bucket fails, and Flink does not start (Hudi #7216, #9303, #19907); a key may be in"
            " both file groups.",
            "A `bulk_insert` into buckets that had rows, two writers without a lock, or a restart of Flink before its"
            " first commit made them. If the `bulk_insert` is the latest commit, a `rollback` of it helps. Otherwise"
            " read the partition, and write it again (`insert_overwrite`), or restore a savepoint: no job can know"
            " which of two rows with the same key is the right one.",
        )
    beyond = [
        _place(partition, f"bucket {bucket} of {rules.buckets_of(partition)}")
        for (partition, bucket) in per_bucket
        if bucket >= rules.buckets_of(partition)
    ]
    if beyond:
        yield Finding(
            "bucket-beyond-number",
            "File groups are in buckets that the table does not have",
            named(beyond),
            "Their keys are written again to other buckets: readers see rows twice (Hudi #12210, #13241).",
            "A writer had a larger number of buckets, or Flink's options give the partition a number of its own"
            " (`hoodie.bucket.index.partition.expressions`). Stop it, and write its rows again with the right number."
            " If the whole table was made anew with a larger number (an audit of the rows says so:"
            " `bucket-number-differs`), PATCH its `index` instead.",
        )


def has_no_buckets(examined: Examined) -> bool:
    """Returns whether the table may have no bucket index, although it is registered with one: nearly all file ids have
    the form of another index, and the table has no hashing config."""
    ids = [item.file_id for item in examined.listed_slices]
    with_bucket = sum(_bucket_of(each) is not None for each in ids)
    is_of_another = bool(ids) and with_bucket <= len(ids) * _MOST_BY_CHANCE
    return is_of_another and not hashing_config.is_in_force(examined.table)


def given_up(examined: Examined) -> Iterator[Finding]:
    """Finds rows that are only in logs, because a writer still uses the bucket index that the table has given up. Reads
    the keys of the slices that have logs."""
    marks = [number for number, commit in enumerate(examined.commits) if ADOPTED_KEY in commit.extra]
    if examined.table.declared.index or not marks or not is_given_up(examined.commits[marks[-1]].extra):
        return
    since = {commit.write.instant for commit in examined.commits[marks[-1] :]}
    slices = [item for item in examined.slices if item.log_files]
    if hidden := {each: count for each, count in in_logs_alone(examined.table, slices).items() if each in since}:
        yield Finding(
            "rows-in-logs-alone",
            "A writer has added rows to logs, where no Bloom or simple index looks for them",
            {instant: f"{count} rows of {instant}" for instant, count in hidden.items()},
            "The next write of such a key adds a second row.",
            "A writer goes on with the bucket index that the table has given up. Give it the options of the table's"
            " index, then run a `compaction`: afterwards every index finds these rows. An audit counts keys that exist"
            " twice by then.",
        )


def _bucket_of(file_id: str) -> int | None:
    bucket = bucket_of(file_id)
    return bucket if bucket is not None and bucket < bucket_number.MOST_BUCKETS else None


def _place(partition: str, what: str) -> str:
    return f"{partition}/{what}" if partition else what
