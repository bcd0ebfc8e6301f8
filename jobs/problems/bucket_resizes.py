"""Refusals of a resize of the buckets of consistent hashing."""

from __future__ import annotations

from typing import Final

from jobs.problems.problem_type import ProblemType

NO_CONSISTENT_HASHING: Final = ProblemType(
    "no-consistent-hashing",
    "The table has no consistent-hashing bucket index",
    why="Only this index keeps ranges of hashes, which can be split and merged one by one. Other tables have no such"
    " ranges: the folder `.hoodie/.bucket_index/consistent_hashing_metadata` does not exist.",
    hint="Change a simple bucket index by a `bucket_expansion`, `bucket_contraction` or `bucket_count`. For a table"
    " without a bucket index, merge its small files by a `clustering`.",
)
HASH_FIELDS_NOT_PROVED: Final = ProblemType(
    "hash-fields-not-proved",
    "The fields that writers hash are neither declared nor proved",
    why="Writers of a table whose record key has several fields may hash some of them only"
    " (`hoodie.bucket.index.hash.field`), which no file says. Rows prove the fields only if two buckets of a"
    " partition have at least 30 rows each, because a single bucket holds every hash.",
    hint='PATCH the table\'s `hudi_options` with `{"hoodie.bucket.index.hash.field": ...}`, as its writers have it.',
)
HASHING_METADATA_NOT_SOUND: Final = ProblemType(
    "hashing-metadata-not-sound",
    "The table does not agree with its hashing metadata",
    why="A resize divides rows by the ranges in the hashing metadata. If these are missing or damaged, or if rows or"
    " file groups do not belong to their ranges, rows would be moved where no writer looks for them.",
    example="rows-in-wrong-hash-range: 12 in 'dt=2026-01-01'",
    hint="Run an `audit` with `rows`: it names the damages and what to do. If only the hash fields are wrong here,"
    ' PATCH the table\'s `hudi_options` with `{"hoodie.bucket.index.hash.field": ...}`.',
)
