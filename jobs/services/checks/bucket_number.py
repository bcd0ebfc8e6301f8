"""Distinguishes two kinds of tables whose rows do not fit the registered number of buckets. In one kind, some rows are
in wrong buckets, and a repair moves them. In the other kind, the table has another number of buckets than registered,
because somebody has created it again or has overwritten all of it. There each row is where its writer looks for it; if
a repair moved the rows, the writer would write their keys a second time."""

from __future__ import annotations

import math
import re
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from jobs.format import bucket_hash
from jobs.format.meta_columns import FILE_NAME, RECORD_KEY
from jobs.hudi import hashing_config
from jobs.hudi.jvm import translated
from jobs.hudi.rows import current
from jobs.problems.rescales import BUCKET_INDEX_CONTRADICTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobs.contract import Problem
    from jobs.hudi.table import HudiTable

# Fewer rows may fit another number by chance. If a table with two buckets has this many rows, the chance is one in
# 2^20.
_ENOUGH_ROWS = 20
# Another number gives at least half of the keys another bucket, unless few buckets have rows.
_MISPLACED_SHARE = 0.3
MOST_BUCKETS = 1_000_000
"""The greatest number of buckets that a job accepts."""

_BUCKET_FILE_ID = re.compile(r"^\d{8}-")


def other_number(table: HudiTable, misplaced: int, rows: int | None = None) -> int | None:
    """Returns the only number of buckets by which every row is in the bucket of its key; None if there is no such
    number, or if a hashing config sets the numbers. `misplaced` rows are in wrong buckets by the registered number;
    `rows` is the number of all rows, if they were counted. Reads the key of every row, unless too few rows are
    misplaced."""
    index = table.declared.index
    if index is None or misplaced < _ENOUGH_ROWS or hashing_config.is_in_force(table):
        return None
    if rows is not None and misplaced < rows * _MISPLACED_SHARE:
        return None
    hash_fields = index.hash_fields

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            keys, files = batch.columns
            names = files.to_pylist()
            divisor, highest = 1, MOST_BUCKETS  # No number fits a file group without a bucket.
            if all(map(_BUCKET_FILE_ID.match, names)):
                buckets = np.array([int(name[:8]) for name in names], np.int64)
                codes = bucket_hash.hash_codes(keys, hash_fields).astype(np.int64) & 0x7FFFFFFF
                divisor = int(np.gcd.reduce(np.abs(codes - buckets), initial=0))
                highest = int(buckets.max(initial=-1))
            yield pa.RecordBatch.from_arrays([pa.array([divisor]), pa.array([highest])], names=["divisor", "highest"])

    with translated("looking for the number of buckets that the rows have"):
        keys = current(table).select(RECORD_KEY, FILE_NAME)
        found = keys.mapInArrow(judge, "divisor long, highest long").collect()
    # A number fits if it divides (code - bucket) of every key, and is above every bucket.
    divisor = reduce(math.gcd, (row[0] for row in found), 0)
    highest = max((row[1] for row in found), default=-1)
    fitting = [each for each in range(highest + 1, min(divisor, MOST_BUCKETS) + 1) if each and divisor % each == 0]
    return fitting[0] if len(fitting) == 1 else None


def refusals(table: HudiTable, misplaced: int) -> list[Problem]:
    """Returns the refusal to move rows to the buckets of the registered number, if another number puts every row into
    its bucket."""
    number = other_number(table, misplaced)
    if number is None or table.declared.index is None:
        return []
    registered = table.declared.index.num_buckets
    return [
        BUCKET_INDEX_CONTRADICTED.because(
            f"every row is in its bucket by {number}, and {misplaced} are not by the registered {registered}",
            title="The table has another number of buckets than it is registered with",
            hint=advice(number, registered),
        )
    ]


def advice(number: int, registered: int) -> str:
    return (
        f"Somebody has made the table anew, or has written all of it again, with {number} buckets. If the writers go on"
        f' with {number}, PATCH the table: `{{"index": {{"type": "bucket", "num_buckets": {number}, ...}}}}`. If they'
        f" have {registered}, stop them and run a `bucket_index` with `adopt`, which moves all rows."
    )
