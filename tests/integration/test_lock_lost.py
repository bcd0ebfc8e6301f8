"""A worker stands still with the table's lock in hand until its server gives the lock to a writer, and wakes up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import JobKind, Table, WorkOrder
from tests.integration import tables
from tests.integration.doomed import Spares
from tests.integration.lock_servers import SERVERS, started
from tests.integration.run import proved
from tests.integration.tables import INDEX
from tests.session_jars import jars_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Doomed
    from tests.integration.lock_servers import LockServer

# For the writer's commit, after the server has given the lock away. The metastore's client takes seconds to start. What
# commits after the worker's watch is found by the service.
# One of DynamoDB waits out the lease of a holder that it finds.
TO_WRITE_SECONDS = {"zookeeper": 10, "hive metastore": 25, "storage": 15, "dynamodb": 20}
TRIES = 3
METADATA_COMMIT = ".hoodie/metadata/.hoodie/timeline/*.deltacommit.requested"

# Before the commit the job gives up and starts over; inside it, it is too late, and what slipped in is put right.
POINTS = {
    "when it begins to commit": {"at": "step", "name": "committing"},
    "right before the commit": {"at": "before", "name": "the commit"},
    "in the midst of the commit": {"at": "file", "name": METADATA_COMMIT},
    "right after the commit": {"at": "after", "name": "the commit"},
}


@pytest.fixture(
    scope="module", params=[SERVERS[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in SERVERS[1:])]
)
def server(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[LockServer]:
    with started(request.param, spark) as found:
        yield found


@pytest.fixture(scope="module")
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
def test_what_a_writer_commits_while_the_worker_stands_still_is_right(
    spark: SparkSession, tmp_path: Path, server: LockServer, spares: Spares, place: str
) -> None:
    base = server.base(tmp_path)
    if isinstance(base, str) and POINTS[place]["at"] == "file":
        pytest.skip("its files are watched on a disk only")
    name = place.replace(" ", "_")
    options = tables.write_table(spark, base, **server.writer_options(name))
    before = len(tables.snapshot(spark, base))
    # A new partition: nothing in Hudi conflicts with it, in whatever buckets its rows are.
    new_rows = tables.rows(spark, 10_000, 10_200, ts=5).withColumn("dt", F.lit("2026-02-01"))

    def writer_commits() -> None:
        time.sleep(server.holds_seconds + 2)
        for _ in range(TRIES):
            try:
                return tables.upsert(new_rows, base, options)
            except Exception as error:  # the metadata table may be in the hands of both; then a batch is written again
                last = error
        raise last

    job = WorkOrder(
        "job_frozen",
        1,
        JobKind.BUCKET_EXPANSION,
        Table(str(base), "trips", INDEX, server.lock(name), writers_hudi_version="1.2.0"),
        {"factor": 2, "settle_seconds": 3},
    )
    doomed: Doomed = spares.take()
    stands_still = {"freeze": server.holds_seconds + TO_WRITE_SECONDS[server.kind]}
    death = doomed.run(job, {**POINTS[place], **stands_still}, meanwhile=writer_commits)

    assert death.result is not None, doomed.log.read_text()[-4000:]
    if death.result["outcome"] == "failed":
        assert death.result["error"]["retriable"], death.result
        num_buckets = 4
    else:
        assert death.result["outcome"] == "succeeded", death.result
        num_buckets = 8
    assert len(proved(spark, base, num_buckets)) == before + 200
    # A writer that goes by its old option.
    tables.upsert(tables.rows(spark, 0, 700, ts=9), base, options)
    tables.upsert(new_rows.withColumn("ts", F.lit(9).cast("long")), base, options)
    assert len(proved(spark, base, num_buckets)) == before + 300
    assert spark.read.format("hudi").load(str(base)).where("ts = 9").count() == 900
