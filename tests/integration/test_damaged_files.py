"""An error names the damaged file, the job is not retried, and restoring the file repairs the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import JobError
from jobs.table_errors import DamagedFileError
from tests.integration import tables
from tests.integration.run import run_job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


def _base_file(base: Path) -> Path:
    return min(each for each in base.rglob("*.parquet") if ".hoodie" not in each.parts)


def _last_commit(base: Path) -> Path:
    return max((base / ".hoodie" / "timeline").glob("*_*.deltacommit"))


def _garbage(content: bytes) -> bytes:
    return b"nothing that anybody can read " * 20


def _half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _empty(content: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    ("kind", "params", "of", "harm"),
    [
        ("compaction", {"engine": "auto"}, _base_file, _garbage),
        pytest.param("bucket_expansion", {"factor": 2}, _base_file, _empty, marks=pytest.mark.exhaustive),
        pytest.param("compaction", {}, _last_commit, _garbage, marks=pytest.mark.exhaustive),
        pytest.param("compaction", {"engine": "hudi"}, _base_file, _half, marks=pytest.mark.exhaustive),
        pytest.param("bucket_expansion", {"factor": 2}, _base_file, _half, marks=pytest.mark.exhaustive),
        pytest.param("clustering", {"sort_by": ["fare"]}, _base_file, _garbage, marks=pytest.mark.exhaustive),
        pytest.param("cleaning", {"retain": 1}, _last_commit, _garbage, marks=pytest.mark.exhaustive),
    ],
)
def test_a_damaged_file_is_named_and_restoring_it_repairs_the_table(
    spark: SparkSession,
    base: Path,
    kind: str,
    params: dict[str, Any],
    of: Callable[[Path], Path],
    harm: Callable[[bytes], bytes],
) -> None:
    options = tables.write_table(spark, base, count=40, updates=2, partitioned=False)
    before = tables.in_order(spark, base, 4)
    file = of(base)
    good = file.read_bytes()
    file.write_bytes(harm(good))
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises(JobError) as failed:
        run_job(spark, base, kind, params)
    assert isinstance(failed.value, DamagedFileError), failed.value
    assert not failed.value.problem().retriable
    if of is _base_file:
        assert file.name in failed.value.detail
        _is_found(spark, base, file)
    file.write_bytes(good)
    run_job(spark, base, kind, params)
    buckets = 8 if kind == "bucket_expansion" else 4
    assert tables.in_order(spark, base, buckets) == before
    assert run_job(spark, base, "audit").details["clean"]
    tables.upsert(tables.rows(spark, 0, 5, ts=9), base, options)
    assert len(tables.in_order(spark, base, buckets)) == 40


def _is_found(spark: SparkSession, base: Path, file: Path) -> None:
    """Asserts that an audit names the file, makes all possible checks, and has a finding with those that it could not
    make. Spark reads no rows from an empty file."""
    details = run_job(spark, base, "audit").details
    sized, finding, *of_checks = details["findings"]
    not_made = [each["check"] for each in details["unchecked"]]
    assert [each["type"] for each in of_checks] == ["checks-not-made"] * len(of_checks)
    assert all(any(f"{name} (" in each["detail"] for each in of_checks) for name in not_made), details
    assert {each["check"] for each in of_checks} <= set(not_made)
    assert sized["type"] == "file-sizes-differ"
    assert finding["type"] == ("base-files-damaged" if file.stat().st_size else "commit-rows-differ")
    assert file.name in finding["detail"]
    assert not details["clean"]
    assert "files of commits" in details["checked"]
