"""A repair whose files are gone fails, unless a later base file is proved to have their rows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from jobs.errors import FilesGoneError
from tests.integration import tables
from tests.integration.hidden import hidden, write_stale
from tests.integration.run import proved, run_job
from tests.integration.tables import completed_files, newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
COMPACTED = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


def test_a_base_file_of_a_dead_writer_does_not_prove_that_the_rows_are_there(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    options = tables.write_table(spark, base, count=100, table_type=COW, partitioned=False)
    count_buckets(spark, base, 4, 7)
    with hidden(base, newest(base), tmp_path / "away"):
        stale = write_stale(tables.rows(spark, 0, 100, ts=5), base, options)
    for path in list(base.glob(f"*_{stale}.parquet")):
        file_id = path.name.partition("_")[0]
        shutil.move(path, base / f"{file_id}_0-999-999_{int(stale) + 1000}.parquet")

    with pytest.raises(FilesGoneError, match=stale):
        run_job(spark, base, "repair", {"instants": [stale]})

    assert [each["instant"] for each in run_job(spark, base, "audit").details["stale_writes"]] == [stale]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_compaction_proves_only_logs_that_had_completed(
    spark: SparkSession, tmp_path: Path, base: Path, version: int, *, is_late: bool
) -> None:
    options = tables.write_table(spark, base, count=100, version=version, partitioned=False)
    count_buckets(spark, base, 4, 7)
    rows = tables.rows(spark, 0, 100, ts=5)
    before = {path.name for path in completed_files(base)}
    with hidden(base, newest(base), tmp_path / "away"):
        write_stale(rows, base, {**options, **COMPACTED})
    new = sorted(path for path in completed_files(base) if path.name not in before)
    write = next(path for path in new if path.name.endswith(".deltacommit"))
    (compaction,) = [path for path in new if path.name.endswith(".commit")]
    stale = write.name.partition("_")[0].partition(".")[0]
    logs = [path for path in base.glob(".*.log.*") if not path.name.endswith(".crc")]
    for path in logs:
        if version == 6 or f"_{stale}.log" in path.name:
            path.unlink()
    if is_late and version == 9:
        after = int(compaction.name.partition("_")[0]) + 1
        write.rename(write.with_name(f"{stale}_{after}.deltacommit"))
    elif is_late:
        write.touch()

    if is_late:
        with pytest.raises(FilesGoneError):
            run_job(spark, base, "repair", {"instants": [stale]})
    else:
        assert run_job(spark, base, "repair", {"instants": [stale]}).details["rows"] == 100
        found, expected = texts(spark, base, rows)
        assert found == expected
        assert len(proved(spark, base, 7, index_of(4))) == 100
