"""Compacts copies of one table with Hudi's executor and with Arrow, and compares the results."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812

from jobs.dataplane import parquet_layout
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex, Result

# Members that depend on the file or on a clock, not on the rows.
_OWN = {"path", "totalWriteBytes", "fileSizeInBytes", "totalLogReadTimeMs", "runtimeStats"}
FILE_NAME, RECORD_KEY = "_hoodie_file_name", "_hoodie_record_key"
_BLOOM_FILTER = b"org.apache.hudi.bloomfilter"
_RANGE = (b"hoodie_min_record_key", b"hoodie_max_record_key")
Group = tuple[str, str]


@dataclass
class Compacted:
    """A copy of the table that one engine has compacted. `stats` are the `HoodieWriteStat`s of the commit by file
    group, `metadata` the other members of the commit."""

    base: Path
    result: Result
    stats: dict[Group, dict[str, Any]]
    metadata: dict[str, Any]

    def files(self) -> dict[Group, Path]:
        return {group: self.base / stat["path"] for group, stat in self.stats.items()}


def compacted(
    spark: SparkSession, base: Path, engine: str, *, index: BucketIndex | None = INDEX, **params: Any
) -> Compacted:
    """Compacts a copy of the table. The copy has no lock file, because a writer may be about to release the original's
    lock."""
    copy = base.parent / engine / base.name
    shutil.copytree(base, copy, ignore=shutil.ignore_patterns("lock", ".lock.crc"))
    result = run_job(spark, copy, "compaction", {"engine": engine, **params}, index=index)
    table = hudi_table(spark, copy, index)
    timeline = table.meta.reloadActiveTimeline().getWriteTimeline().filterCompletedInstants()
    [commit] = [
        item for item in table.jvm.items(timeline.getInstantsAsStream()) if item.requestedTime() in result.instants
    ]
    metadata = table.jvm.read(timeline.readCommitMetadata(commit))
    written = metadata.pop("partitionToWriteStats").values()
    stats = {(stat["partitionPath"], stat["fileId"]): stat for each in written for stat in each}
    return Compacted(copy, result, stats, metadata)


def require_equal(spark: SparkSession, hudi: Compacted, arrow: Compacted) -> None:
    """Asserts that both copies hold the same rows in all columns, in files of the same file groups with the same
    schema, footers and statistics."""
    assert [each["engine"] for each in hudi.result.details["engines"]] == ["hudi"]
    assert [each["engine"] for each in arrow.result.details["engines"]] == ["arrow"], arrow.result.details["engines"]
    assert hudi.metadata == arrow.metadata
    assert hudi.stats.keys() == arrow.stats.keys()
    for group, ours in arrow.files().items():
        theirs = hudi.files()[group]
        for name, value in hudi.stats[group].items():
            assert name in _OWN or arrow.stats[group][name] == value, (group, name, arrow.stats[group][name], value)
        assert arrow.stats[group]["fileSizeInBytes"] == ours.stat().st_size
        require_same_file(theirs, ours)
    assert statistics(spark, arrow.base) == statistics(spark, hudi.base)
    assert tables.snapshot(spark, arrow.base) == tables.snapshot(spark, hudi.base)
    assert tables.left_behind(arrow.base) == []


def statistics(spark: SparkSession, base: Path) -> list[str]:
    """The metadata table's column statistics without sizes, and with the file groups instead of the files."""
    metadata = base / ".hoodie" / "metadata"
    if not (metadata / "column_stats").exists():
        return []
    found = spark.read.format("hudi").load(str(metadata)).where("type = 3").select("ColumnStatsMetadata.*")
    names = ["columnName", "minValue", "maxValue", "valueCount", "nullCount", "isDeleted"]
    group = F.substring_index("fileName", "_", 1)
    rows = found.select(group.alias("group"), F.col("fileName").endswith(".parquet").alias("base"), *names).collect()
    return sorted(str(row) for row in rows)


def newest_files(base: Path) -> dict[str, Path]:
    """The base files of the newest instant by partition and bucket."""
    newest = max(path.stem.rpartition("_")[2] for path in base.rglob("0*.parquet"))
    found = list(base.rglob(f"0*_{newest}.parquet"))
    by_place = {f"{path.parent.relative_to(base)}/{path.name[:8]}": path for path in found}
    assert len(by_place) == len(found) > 0
    return by_place


def require_same_newest_files(theirs: Path, ours: Path) -> None:
    expected, found = newest_files(theirs), newest_files(ours)
    assert expected.keys() == found.keys()
    for place, file in found.items():
        require_same_file(expected[place], file)


def require_same_file(theirs: Path, ours: Path) -> None:
    with pq.ParquetFile(theirs) as expected, pq.ParquetFile(ours) as found:
        parquet_layout.require_reproducible(parquet_layout.of_file(expected), found.schema, ours.name)
        assert _footer(found) == _footer(expected)
        require_range_for_readers(found)
        assert set(found.read([FILE_NAME])[FILE_NAME].to_pylist()) <= {ours.name}
        # The values are compared as texts, because NaN is not equal to itself.
        rows, others = ([str(row) for row in _rows(file)] for file in (found, expected))
        assert sorted(rows) == sorted(others)


def _rows(file: pq.ParquetFile) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = file.read().drop_columns([FILE_NAME]).to_pylist()
    return rows


def _footer(file: pq.ParquetFile) -> dict[bytes, bytes]:
    """Returns the footer without the range of the keys. Hudi's writer of Spark rows computes the range in the order of
    UTF-8 (`UTF8String`), but its readers compare in the order of UTF-16 (`BloomIndexFileInfo`), so they may skip a file
    with letters beyond U+FFFF."""
    metadata = file.metadata.metadata or {}
    return {name: value for name, value in metadata.items() if name not in _RANGE}


def require_range_for_readers(file: pq.ParquetFile) -> None:
    """Asserts that the range of the keys is that of Java's `String.compareTo`."""
    keys = sorted(file.read([RECORD_KEY])[RECORD_KEY].to_pylist(), key=lambda key: key.encode("utf-16-be"))
    footer = file.metadata.metadata or {}
    if _BLOOM_FILTER in footer:
        ends = (keys[0].encode(), keys[-1].encode()) if keys else (None, None)
        assert tuple(map(footer.get, _RANGE)) == ends
