"""Verifies a table.

Every row is in its bucket's file, no key exists twice, each bucket has one file group, nothing dangles, and no commit
wrote rows to file groups that had been replaced.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import Outcome, Result
from jobs.dataplane import key_digest
from jobs.dataplane.key_digest import KeyDigest
from jobs.format import bucket_hash
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.format.stale_writes import stale_writes
from jobs.hudi import hashing_config
from jobs.hudi.jvm import translated
from jobs.hudi.rows import current, hidden_by_statistics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobs.contract import WorkOrder
    from jobs.format.bucket_rules import BucketRules
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

_PROBED_PARTITIONS = 200
_HALF = 1 << 32
_BUCKET_FILE_ID = re.compile(r"^\d{8}-")


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:  # noqa: ARG001 - all jobs are run alike
    """Returns counts as details: `rows`, `files`, `misplaced`, `duplicates`, ...; `clean` if nothing is wrong.

    `key_digest` is that of all rows' keys; it changes only when rows come or go.

    A row is misplaced when the bucket of its key, by the number of buckets valid for its partition, is not that of its
    file. A duplicate is a row beyond the first with the same key in the same partition. A key is hidden by
    statistics when a query with a filter does not find it, because Hudi's data skipping leaves its file out; the first
    and the last key of up to `_PROBED_PARTITIONS` partitions are looked for.
    """
    context.step("listing")
    slices = table.file_slices()
    rules = table.bucket_rules()
    stale = stale_writes(commit.write for commit in table.commits())
    per_bucket = Counter((item.partition, item.file_id[:8]) for item in slices)
    dangling = hashing_config.dangling(table)
    details = {
        "file_groups": len(slices),
        "files": sum(bool(item.base_file) + len(item.log_files) for item in slices),
        "bytes": sum(item.bytes for item in slices),
        "partitions": len({item.partition for item in slices}),
        "buckets_with_several_file_groups": sum(count > 1 for count in per_bucket.values()) if rules else 0,
        "file_groups_without_bucket": sum(not _BUCKET_FILE_ID.match(item.file_id) for item in slices) if rules else 0,
        "dangling_hashing_configs": dangling,
        # Committed, but invisible to readers: rows of writers that wrote to replaced file groups.
        "stale_writes": [
            {"instant": item.instant, "operation": item.operation, "file_groups": len(item.groups)} for item in stale
        ],
        "pending_instants": [f"{item.requested} {item.action} {item.state}" for item in table.pending()],
    }
    context.step("counting rows", bytes_total=sum(item.bytes for item in slices))
    found = count_rows(table, rules)
    details |= {
        "rows": sum(each.rows for each in found),
        "misplaced": sum(each.misplaced for each in found),
        "duplicates": sum(each.duplicates for each in found),
        "key_digest": str(KeyDigest.sum(each.digest for each in found)),
    }
    context.step("looking for rows that statistics hide")
    details["keys_hidden_by_statistics"] = hidden_by_statistics(table, _probes(found))
    wrong = (
        "buckets_with_several_file_groups",
        "file_groups_without_bucket",
        "misplaced",
        "duplicates",
        "stale_writes",
        "keys_hidden_by_statistics",
    )
    details["clean"] = not dangling and not any(details[name] for name in wrong)
    return Result(Outcome.SUCCEEDED, details=details)


@dataclass(frozen=True)
class PartitionRows:
    """The rows of one partition by their keys."""

    path: str
    rows: int
    misplaced: int
    duplicates: int
    first_key: str
    last_key: str
    high_halves: int
    low_halves: int

    @property
    def digest(self) -> KeyDigest:
        return KeyDigest(self.rows, self.high_halves * _HALF + self.low_halves)


def _probes(found: list[PartitionRows]) -> set[tuple[str, str]]:
    """Returns the keys that wrong statistics hide first: those at the ends of the partitions' ranges."""
    some = found[:: -(-len(found) // _PROBED_PARTITIONS) or 1]
    return {(each.path, key) for each in some for key in (each.first_key, each.last_key)}


def count_rows(table: HudiTable, rules: BucketRules | None) -> list[PartitionRows]:
    """Reads the key of every row, and counts those that are misplaced or duplicates (see `run`)."""
    index = table.declared.index
    hash_fields = index.hash_fields if index else ()

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            partitions, keys, files = batch.columns
            wrong = (
                [False] * batch.num_rows if rules is None else misplaced(keys, partitions, files, rules, hash_fields)
            )
            # In halves, whose sums do not overflow.
            high, low = np.divmod(key_digest.numbers(keys), np.uint64(_HALF))
            halves = [pa.array(half.astype(np.int64)) for half in (high, low)]
            columns = [partitions, keys, pa.array(wrong), *halves]
            yield pa.RecordBatch.from_arrays(columns, names=["p", "k", "wrong", "high", "low"])

    with translated("counting the rows"):
        judged = (
            current(table)
            .select(PARTITION_PATH, RECORD_KEY, FILE_NAME)
            .mapInArrow(judge, "p string, k string, wrong boolean, high long, low long")
        )
        wrong = F.sum(F.col("wrong").cast("long")).alias("w")
        halves = [F.sum(name).alias(name) for name in ("high", "low")]
        per_key = judged.groupBy("p", "k").agg(F.count("*").alias("n"), wrong, *halves)
        sums = (F.sum("n"), F.sum("w"), F.sum(F.col("n") - 1), F.min("k"), F.max("k"), *halves)
        return [PartitionRows(*row) for row in per_key.groupBy("p").agg(*sums).orderBy("p").collect()]


def misplaced(
    keys: pa.Array, partitions: pa.Array, files: pa.Array, rules: BucketRules, hash_fields: tuple[str, ...]
) -> list[bool]:
    """Returns for each row whether its file (`_hoodie_file_name`) does not belong to the bucket of its record key."""
    codes = (bucket_hash.hash_codes(keys, hash_fields) & 0x7FFFFFFF).tolist()
    number = {partition: rules.buckets_of(partition) for partition in set(partitions.to_pylist())}
    return [
        not _BUCKET_FILE_ID.match(name) or code % number[partition] != int(name[:8])
        for code, partition, name in zip(codes, partitions.to_pylist(), files.to_pylist(), strict=True)
    ]
