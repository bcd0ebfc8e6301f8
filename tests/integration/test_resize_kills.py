"""After a SIGKILL of the worker, or a failed commit, at any step of a resize, no row and no range is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome
from jobs.errors import HudiError
from jobs.format.consistent_hashing import FOLDER
from jobs.hudi.client import WriteClient
from tests.integration import dying_job
from tests.integration.dying_job import DyingJob
from tests.integration.run import run_job, work_order
from tests.integration.tables import duplicates, rows, snapshot, upsert
from tests.integration.test_bucket_resize import MERGE, SPLIT
from tests.integration.test_consistent_hashing import PARTITION, findings, num_buckets, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

PLANNED = {"at": "after", "name": "inflight"}
WRITTEN = {"at": "before", "name": "the hashing metadata"}
SAVED = {"at": "after", "name": "the hashing metadata"}
COMMITTING = {"at": "file", "name": ".hoodie/metadata/.hoodie/timeline/*.deltacommit.inflight"}
COMMITTED = {"at": "after", "name": "the commit"}

_LONG = [
    (9, SPLIT, (SAVED,)),
    (9, MERGE, (SAVED,)),
    (9, SPLIT, (PLANNED, SAVED)),
    (9, SPLIT, (WRITTEN,)),
    (9, SPLIT, (SAVED, WRITTEN, COMMITTED)),
    (9, MERGE, (COMMITTING,)),
    (9, SPLIT, ({**SAVED, "only": "jvm"},)),
    (6, SPLIT, (SAVED,)),
    (6, MERGE, (COMMITTED,)),
]


def metadata_files(base: Path, partition: str = PARTITION) -> set[str]:
    return {each.name for each in (base / FOLDER / partition).iterdir() if not each.name.startswith(".")}


@pytest.mark.timeout(1800)
@dying_job.cases("version params points", (9, SPLIT, (SAVED,)), _LONG)
def test_wherever_the_worker_is_killed_the_next_attempt_succeeds(
    spark: SparkSession,
    base: Path,
    spares_if_killed: Spares | None,
    version: int,
    params: dict[str, Any],
    points: tuple[dict[str, Any], ...],
) -> None:
    partition = PARTITION if spares_if_killed else ""
    options = write(spark, base, version=version, partitioned=bool(partition))
    before = snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "bucket_resize", params, index=None), spares_if_killed)
    for point, death in zip(points, job.deaths(points), strict=True):
        assert death.result is None or point.get("only")
        assert snapshot(spark, base) == snapshot(spark, base, metadata=False) == before
    done = job.finish()
    assert done.outcome is Outcome.SUCCEEDED
    number = 8 if params is SPLIT else 1
    assert (num_buckets(base, partition), snapshot(spark, base), findings(spark, base)) == (number, before, {})
    (last,) = done.instants
    names = {"00000000000000.hashing_meta", f"{last}.hashing_meta", f"{last}.commit"}
    assert names <= metadata_files(base, partition) <= {*names, "00000000000000.commit"}
    upsert(rows(spark, 0, 400, ts=1, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base), findings(spark, base)) == (400, 0, {})


@pytest.mark.exhaustive
def test_a_commit_that_fails_leaves_no_metadata(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write(spark, base)
    before, files = snapshot(spark, base), metadata_files(base)

    def fail(*_: Any) -> None:
        assert len(metadata_files(base)) == len(files) + 1
        raise HudiError("the storage is away")

    with monkeypatch.context() as patched:
        patched.setattr(WriteClient, "commit_replacement", fail)
        with pytest.raises(HudiError, match="away"):
            run_job(spark, base, "bucket_resize", {**SPLIT, "max_buckets": 5}, index=None)
    assert (metadata_files(base), snapshot(spark, base), findings(spark, base)) == (files, before, {})
    upsert(rows(spark, 0, 300, ts=1, partitions=2), base, options)
    assert (len(snapshot(spark, base)), duplicates(spark, base), num_buckets(base)) == (300, 0, 4)
