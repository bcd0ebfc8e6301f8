"""An impossible job is refused with a problem type, and changes no file of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.storage import listing
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.acceptance.daemon import Daemon


@pytest.fixture(scope="module")
def bases(spark: SparkSession, lake: Path) -> dict[str, Path]:
    """Writes three tables: merge-on-read with buckets, copy-on-write with buckets, and one without a bucket index."""
    shapes: dict[str, dict[str, Any]] = {
        "merged": {"updates": 1},
        "copied": {"table_type": "COPY_ON_WRITE", "partitioned": False},
        "plain": {"table_type": "COPY_ON_WRITE", "partitioned": False, "num_buckets": None},
    }
    for name, shape in shapes.items():
        tables.write_table(spark, lake / name, count=100, **shape)
    return {name: lake / name for name in shapes}


@pytest.fixture(scope="module")
def registered(daemon: Daemon, bases: dict[str, Path]) -> dict[str, str]:
    return {name: daemon.register(base, None if name == "plain" else 4) for name, base in bases.items()}


@pytest.fixture(autouse=True)
def _untouched(bases: dict[str, Path]) -> Iterator[None]:
    before = {name: listing(base) for name, base in bases.items()}
    yield
    assert {name: listing(base) for name, base in bases.items()} == before


@pytest.mark.parametrize(
    ("table", "kind", "params", "wanted"),
    [
        ("merged", "bucket_expansion", {"num_buckets": 6}, "num-buckets-not-a-multiple"),
        ("merged", "bucket_expansion", {"num_buckets": 4}, "num-buckets-not-a-multiple"),
        ("merged", "bucket_expansion", {"num_buckets": 2}, "num-buckets-not-a-multiple"),
        ("merged", "bucket_expansion", {"factor": 2, "partitions": ["2026-12-31"]}, "partition-unknown"),
        ("merged", "clustering", {"sort_by": ["city", "town"]}, "column-unknown"),
        ("merged", "clustering", {"sort_by": ["items"]}, "column-not-sortable"),
        ("merged", "clustering", {"sort_by": ["scores"], "layout": "zorder"}, "column-not-sortable"),
        ("merged", "cleaning", {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 1}, "retain-too-small"),
        ("copied", "compaction", {}, "not-merge-on-read"),
        ("plain", "bucket_expansion", {"factor": 2}, "no-bucket-index"),
        ("plain", "clustering", {"sort_by": ["town"]}, "column-unknown"),
    ],
)
def test_an_impossible_job_fails_with_a_type_and_its_dry_run_has_the_same(
    daemon: Daemon, registered: dict[str, str], table: str, kind: str, params: dict[str, Any], wanted: str
) -> None:
    job = daemon.run(registered[table], kind, **params)
    assert (job["state"], job["attempt"]) == ("failed", 1)
    assert job["error"]["type"].removeprefix("/problems/") == wanted
    assert job["error"]["retriable"] is False
    assert job["instants"] == []
    plan = daemon.succeed(registered[table], kind, dry_run=True, **params)
    assert wanted in [refusal["type"] for refusal in plan["refusals"]]


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("cleaning", {"retain": 0}),
        ("clustering", {"sort_by": []}),
        ("clustering", {"sort_by": ["city"], "layout": "spiral"}),
        ("bucket_expansion", {}),
        ("bucket_expansion", {"factor": 2, "num_buckets": 8}),
        ("vacuum", {}),
    ],
)
def test_invalid_parameters_are_refused_at_once(
    daemon: Daemon, registered: dict[str, str], kind: str, params: dict[str, Any]
) -> None:
    answer = daemon.call("POST", f"/v1/tables/{registered['merged']}/jobs", {"kind": kind, "params": params})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


def test_a_job_on_a_table_that_is_not_registered_is_refused(daemon: Daemon, registered: dict[str, str]) -> None:
    answer = daemon.call("POST", "/v1/tables/tbl_0000000000000000/jobs", {"kind": "audit"})
    assert (answer.status_code, answer.json()["type"]) == (404, "/problems/table-not-found")


def test_a_path_outside_the_allowed_roots_is_refused_however_it_is_spelt(
    daemon: Daemon, spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    tables.write_table(spark, outside, count=20)
    before = listing(outside)
    link = lake / "link-to-outside"
    link.symlink_to(outside)
    for path in (outside, link, f"file:{outside}", f"{lake}/../{outside.relative_to(lake.parents[-1])}", f"{lake}/.."):
        answer = daemon.call("POST", "/v1/tables", {"base_path": str(path)})
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/path-not-allowed"), path
    assert listing(outside) == before


def test_another_spelling_of_a_registered_path_is_a_duplicate(
    daemon: Daemon, registered: dict[str, str], bases: dict[str, Path], lake: Path
) -> None:
    base = bases["merged"]
    link = lake / "link-to-merged"
    link.symlink_to(base)
    for path in (base, f"{base}/", f"{base}//", link, f"{lake}/plain/../merged", f"file://{base}", f"{link}/"):
        answer = daemon.call("POST", "/v1/tables", {"base_path": str(path)})
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/table-already-registered"), path
        assert answer.json()["table_id"] == registered["merged"]


def test_a_claimed_number_of_buckets_that_the_keys_contradict_is_refused_with_the_counts(
    daemon: Daemon, spark: SparkSession, lake: Path
) -> None:
    base = lake / "claimed"
    tables.write_table(spark, base, count=100)
    before = listing(base)
    index = {"type": "bucket", "num_buckets": 8, "hash_fields": ["id"]}
    answer = daemon.call("POST", "/v1/tables", {"base_path": str(base), "index": index})
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (409, "/problems/bucket-index-contradicted")
    counts = {key: value for key, value in problem.items() if isinstance(value, int) and key != "status"}
    assert counts, problem
    assert daemon.call("GET", "/v1/tables").text.count(str(base)) == 0
    assert listing(base) == before


def test_a_place_without_a_hudi_table_is_refused(daemon: Daemon, lake: Path) -> None:
    (lake / "empty").mkdir()
    for path, wanted in ((lake / "empty", "not-a-hudi-table"), (lake / "nothing", "path-not-found")):
        answer = daemon.call("POST", "/v1/tables", {"base_path": str(path)})
        assert (answer.status_code, answer.json()["type"]) == (422, f"/problems/{wanted}"), answer.text
