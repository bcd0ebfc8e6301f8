"""Compares each row of a table with the rows that its Flink job must have written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.format.bucket_hash import bucket_ids

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.job import Row

_COLUMNS = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name", "id", "ver", "val", "num", "part"]


@dataclass(frozen=True)
class Differences:
    """Counts of rows; `buckets` are the bucket numbers in use, over all partitions.

    `lost` have no version at all, `old` are not the latest, `misplaced` are in a file of another bucket than theirs.
    `misplaced` and `buckets` are 0 if the caller gives no number of buckets, because the table may have none.
    """

    rows: int
    lost: int
    old: int
    wrong: int
    extra: int
    duplicate: int
    misplaced: int
    buckets: int

    @property
    def none(self) -> bool:
        return not (self.lost or self.old or self.wrong or self.extra or self.duplicate or self.misplaced)

    def __str__(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in asdict(self).items())


def differences(
    spark: SparkSession, base: Path | str, expected: Mapping[str, Row], *, num_buckets: int = 0, metadata: bool = True
) -> Differences:
    """Compares by Spark: hudi-rs does not read file groups without a base file, as Flink first makes them.

    `metadata` says whether the files are found by the metadata table, or by listing the folders.
    """
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", str(metadata).lower()).load(str(base))
    return _compare([row.asDict() for row in frame.select(*_COLUMNS).collect()], expected, num_buckets)


def _other_columns(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("val", "num", "part", "_hoodie_partition_path", "_hoodie_record_key"))


def _compare(found: list[dict[str, Any]], expected: Mapping[str, Row], num_buckets: int) -> Differences:
    versions: dict[str, int] = {}
    old = wrong = extra = duplicate = 0
    for row in found:
        want = expected.get(row["id"])
        duplicate += row["id"] in versions
        versions[row["id"]] = row["ver"]
        if want is None:
            extra += 1
        elif row["ver"] != want.ver:
            old += 1
        elif _other_columns(row) != (want.val, want.num, want.part, want.part, row["id"]):
            wrong += 1
    buckets: list[int] = []
    misplaced = 0
    if num_buckets and found:
        buckets = [int(row["_hoodie_file_name"].lstrip(".")[:8]) for row in found]
        right = bucket_ids(pa.array([row["_hoodie_record_key"] for row in found]), ["id"], num_buckets)
        misplaced = sum(int(one) != other for one, other in zip(right, buckets, strict=True))
    return Differences(
        rows=len(found),
        lost=sum(key not in versions for key in expected),
        old=old,
        wrong=wrong,
        extra=extra,
        duplicate=duplicate,
        misplaced=misplaced,
        buckets=len(set(buckets)),
    )
