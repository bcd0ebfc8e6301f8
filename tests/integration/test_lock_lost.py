"""A worker that holds the table's lock is suspended until the lock's server gives the lock to a writer, and then
continues."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import JobKind, Table, WorkOrder
from tests.integration import tables
from tests.integration.doomed import Spares
from tests.integration.lock_servers import SERVERS, started
from tests.integration.run import proved, run_job
from tests.integration.tables import INDEX
from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.integration.doomed import Doomed
    from tests.integration.lock_servers import LockServer

TRIES = 3
METADATA_COMMIT = ".hoodie/metadata/.hoodie/timeline/*.deltacommit.requested"

# Before the commit the job fails and is retried; during the commit this is too late, and the writer's commit is
# repaired.
POINTS = {
    "when it begins to commit": {"at": "step", "name": "committing"},
    "right before the commit": {"at": "before", "name": "the commit"},
    "in the midst of the commit": {"at": "file", "name": METADATA_COMMIT},
    "right after the commit": {"at": "after", "name": "the commit"},
}
EXPANSION = (JobKind.BUCKET_EXPANSION, {"factor": 2, "settle_seconds": 3, "engine": "arrow"})
SORTING = (JobKind.CLUSTERING, {"sort_by": ["region", "city"], "engine": "arrow"})
COMPACTION = (JobKind.COMPACTION, {"engine": "arrow"})


@pytest.fixture(
    scope="module", params=[SERVERS[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SERVERS[1:])]
)
def server(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[LockServer]:
    with started(request.param, spark) as found:
        yield found


@pytest.fixture
def spares(spark: SparkSession, server: LockServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spares]:
    found = Spares(jars_of(spark), tmp_path_factory.mktemp("victims"), server.surroundings)
    yield found
    found.end()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "place",
    [
        "when it begins to commit",
        "right before the commit",
        "in the midst of the commit",
        "right after the commit",
    ],
)
def test_commits_of_a_writer_while_the_worker_is_frozen_are_correct(
    spark: SparkSession, tmp_path: Path, server: LockServer, spares: Spares, place: str
) -> None:
    base = server.base(tmp_path)
    if isinstance(base, str) and POINTS[place]["at"] == "file":
        pytest.skip("its files are watched on a disk only")
    frozen = Frozen(spark, base, server, place.replace(" ", "_"), updates=0)
    # The rows go to a new partition, so Hudi finds no conflict, whatever their buckets are.
    new_rows = tables.rows(spark, 10_000, 10_200, ts=5).withColumn("dt", F.lit("2026-02-01"))
    result = frozen.run(spares, EXPANSION, POINTS[place], meanwhile=new_rows)
    num_buckets = 8 if result["outcome"] == "succeeded" else 4
    assert len(proved(spark, base, num_buckets)) == 800
    # The writer uses its old option.
    tables.upsert(tables.rows(spark, 0, 700, ts=9), base, frozen.options)
    tables.upsert(new_rows.withColumn("ts", F.lit(9).cast("long")), base, frozen.options)
    assert len(proved(spark, base, num_buckets)) == 900
    assert spark.read.format("hudi").load(str(base)).where("ts = 9").count() == 900


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("job", "place"),
    [
        (EXPANSION, POINTS["right before the commit"]),
        (SORTING, POINTS["right before the commit"]),
        (COMPACTION, {"at": "step", "name": "comparing the record keys"}),
        (COMPACTION, {"at": "before", "name": "the commit of the compaction"}),
        (COMPACTION, {"at": "after", "name": "the commit of the compaction"}),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else value[0],
)
def test_no_row_of_merged_logs_is_lost_with_the_lock(
    spark: SparkSession,
    tmp_path: Path,
    server: LockServer,
    spares: Spares,
    job: tuple[JobKind, dict[str, Any]],
    place: dict[str, Any],
) -> None:
    base = server.base(tmp_path)
    frozen = Frozen(spark, base, server, f"{job[0]}_{place['at']}", updates=2)
    before = _versions(spark, base)
    assert set(before.values()) == {0, 2}
    # A rewrite would conflict with the logs of others; a compaction does not.
    others = tables.rows(spark, 150, 450, ts=5)
    if job is not COMPACTION:
        others = others.withColumn("dt", F.lit("2026-02-01"))
    frozen.run(spares, job, place, meanwhile=others)
    # The next attempt does the remaining work.
    if job is COMPACTION:
        run_job(spark, base, "compaction", {"engine": "arrow"}, lock=frozen.declared.lock)
    expected = before | {(row["dt"], row["id"]): 5 for row in others.select("dt", "id").collect()}
    assert _versions(spark, base) == expected
    num_buckets = 8 if tables.misplaced(spark, base, 4) else 4
    proved(spark, base, num_buckets)
    tables.upsert(tables.rows(spark, 0, 700, ts=9), base, frozen.options)
    proved(spark, base, num_buckets)
    assert list(_versions(spark, base).values()).count(9) == 700


class Frozen:
    """A table with a lock on a server, and a suspended worker."""

    def __init__(self, spark: SparkSession, base: Path | str, server: LockServer, name: str, *, updates: int) -> None:
        self.options = tables.write_table(spark, base, updates=updates, **server.writer_options(name))
        self.declared = Table(str(base), "trips", INDEX, server.lock(name), writers_hudi_version="1.2.0")
        self._server = server

    def run(
        self, spares: Spares, job: tuple[JobKind, dict[str, Any]], place: dict[str, Any], *, meanwhile: DataFrame
    ) -> dict[str, Any]:
        """Returns the result of the job. The writer commits `meanwhile` while the job is suspended."""

        def writer_commits() -> None:
            time.sleep(self._server.holds_seconds + 2)
            for _ in range(TRIES):
                try:
                    return tables.upsert(meanwhile, self.declared.base_path, self.options)
                except Exception as error:  # both may write the metadata table; then a batch is written again
                    last = error
            raise last

        doomed: Doomed = spares.take(is_last=True)
        order = WorkOrder("job_frozen", 1, job[0], self.declared, job[1])
        death = doomed.run(order, {**place, "freeze": True}, meanwhile=writer_commits)
        assert death.result is not None, doomed.log.read_text()[-4000:]
        is_retried = death.result["outcome"] == "failed" and death.result["error"]["retriable"]
        assert is_retried or death.result["outcome"] == "succeeded", death.result
        return death.result


def _versions(spark: SparkSession, base: Path | str) -> dict[tuple[str, str], int]:
    """Returns the `ts` of each row by its partition and key."""
    found = spark.read.format("hudi").load(str(base)).select("dt", "id", "ts").collect()
    versions = {(row["dt"], row["id"]): row["ts"] for row in found}
    assert len(versions) == len(found)
    return versions
