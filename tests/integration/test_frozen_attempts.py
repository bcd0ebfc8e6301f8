"""A worker's Python and its JVM are suspended (SIGSTOP) until the next attempt has ended and a writer has gone on. Then
they continue, and change nothing.

Spark's Python workers are no part of the suspended process group, so they go on with their files meanwhile.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome
from jobs.hudi.client import WriteClient
from jobs.hudi.held_lock import FRESH_SECONDS
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.services.compaction import DUE
from jobs.table_errors import MetadataTableBusyError
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, perform_order, run_job, work_order
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import WorkOrder
    from tests.integration.doomed import Spares

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
COUNT = 60
SUSPENDED = {"freeze": True, "overtaken": True}
# The metadata table's commit comes before the table's own.
IN_METADATA = {"at": "file", "name": ".hoodie/metadata/files/.files-*"}
AFTER_METADATA = {"at": "file", "name": ".hoodie/metadata/.hoodie/timeline/*_*.deltacommit"}
AFTER_OLD_METADATA = {"at": "file", "name": ".hoodie/metadata/.hoodie/*.deltacommit"}


@dataclass(frozen=True)
class Case:
    """A job, the point at which its first attempt is suspended, and the shape of its table."""

    kind: str
    point: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict)
    version: int = 9
    table_type: str = MOR
    index: BucketIndex | None = INDEX
    given: bool = False  # The job gets the plan of a writer.


DOUBLED = {"factor": 2}
SORTED = {"sort_by": ["city"]}
BY_HUDI = {"engine": "hudi"}
NEWEST = {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2}


def case(kind: str, point: dict[str, Any], *more: Any, **shape: Any) -> Any:
    name = " ".join(str(each) for each in (kind, point["at"], point["name"][-20:], *shape.values()))
    return pytest.param(Case(kind, point, *more, **shape), id=name.replace("/", "-"))


def planned_clustering(spark: SparkSession, base: Path) -> str:
    with WriteClient(hudi_table(spark, base, INDEX), UNDER_OUR_LOCK, DUE) as client:
        plan = client.schedule_compaction()
    assert plan
    return plan


def metadata_files(base: Path) -> dict[Path, int]:
    """Returns the times of the files of the metadata table, except for its timeline and checksums."""
    files = (base / ".hoodie" / "metadata").glob("[!.]*/*")
    return {file: file.stat().st_mtime_ns for file in files if file.suffix != ".crc"}


def suspend(
    spark: SparkSession,
    base: Path,
    spares: Spares,
    order: WorkOrder,
    point: dict[str, Any],
    *,
    wanted: list[str] | None,
    write: Callable[[], None],
    by_hudi_rs: bool = True,
) -> None:
    """Suspends a worker at this point of a job until the next attempt has ended, with the `wanted` rows if they are
    known, and a writer has gone on (`write`). Then the worker continues, and must change no row, and no file of the
    metadata table."""
    suspended = spares.take(is_last=True)
    expected: list[str] = []
    metadata: dict[Path, int] = {}

    def the_next_attempt_ends_and_a_writer_goes_on() -> None:
        until = time.monotonic() + FRESH_SECONDS
        following = replace(order, attempt=2, earlier_instants=tuple(suspended.death.stored))
        assert outcome(spark, following) is Outcome.SUCCEEDED
        found = tables.snapshot(spark, base)
        assert tables.snapshot(spark, base, metadata=False) == found == (wanted or found)
        write()
        expected.extend(tables.snapshot(spark, base))
        metadata.update(metadata_files(base))
        # A service begins the next attempt only after the end of a lease, which lasts for longer.
        time.sleep(max(0.0, until - time.monotonic()))

    death = suspended.run(order, {**SUSPENDED, **point}, meanwhile=the_next_attempt_ends_and_a_writer_goes_on)

    assert expected, suspended.log.read_text()[-4000:]
    # An attempt may also report success: the service refuses the report, because another attempt has the job.
    result = death.result or {}
    assert death.is_lost or result["outcome"] == "succeeded" or result["error"]["type"] == "lock-lost", death
    assert metadata_files(base) == metadata
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == expected
    if by_hudi_rs:
        assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)


def outcome(spark: SparkSession, order: WorkOrder) -> Outcome:
    """Performs the order as often as it has to wait for the heartbeat of the suspended worker."""
    while True:
        try:
            return perform_order(spark, order).outcome
        except MetadataTableBusyError:
            time.sleep(0.5)


@pytest.mark.parametrize(
    "case",
    [
        case("bucket_expansion", {"at": "step", "name": "rewriting"}, DOUBLED),
        case("bucket_expansion", {"at": "after", "name": "the hashing config"}, DOUBLED),
        case("bucket_expansion", IN_METADATA, DOUBLED),
        case("bucket_expansion", AFTER_METADATA, DOUBLED),
        case("bucket_expansion", AFTER_OLD_METADATA, DOUBLED, version=6, table_type=COW),
        case("bucket_expansion", {"at": "after", "name": "the commit"}, DOUBLED),
        case("compaction", {"at": "file", "name": "*.parquet"}),
        case("compaction", {"at": "file", "name": "*.parquet"}, BY_HUDI),
        case("compaction", {"at": "before", "name": "the commit of the compaction"}),
        case("compaction", IN_METADATA),
        case("compaction", AFTER_METADATA),
        case("compaction", AFTER_OLD_METADATA, version=6),
        case("compaction", IN_METADATA, given=True),
        case("compaction", AFTER_METADATA, given=True),
        case("clustering", {"at": "file", "name": "*.parquet"}, SORTED, table_type=COW, index=None),
        case("clustering", AFTER_METADATA, SORTED, table_type=COW, index=None),
        case("clustering", AFTER_METADATA, SORTED),
        case("cleaning", {"at": "before", "name": "the clean"}, NEWEST, table_type=COW),
        case("cleaning", {"at": "file", "name": ".hoodie/timeline/*.clean.inflight"}, NEWEST, table_type=COW),
        case("cleaning", AFTER_METADATA, NEWEST, table_type=COW),
    ],
)
def test_an_attempt_that_is_suspended_beyond_its_lease_changes_nothing_afterwards(
    spark: SparkSession, base: Path, spares: Spares, case: Case
) -> None:
    index = case.index
    shape = {"table_type": case.table_type, "version": case.version, "partitioned": False}
    options = tables.write_table(
        spark, base, count=COUNT, updates=2, num_buckets=index.num_buckets if index else None, **shape
    )
    before = tables.snapshot(spark, base)
    params = {"plans": [planned_clustering(spark, base)]} if case.given else case.params
    order = work_order(base, case.kind, params, index=index)
    suspend(
        spark,
        base,
        spares,
        order,
        case.point,
        wanted=before,
        write=lambda: tables.upsert(tables.rows(spark, 20, 70, ts=5), base, options),
    )
    assert tables.left_behind(base) == []
    # The writer keeps the options that it had before the job.
    tables.upsert(tables.rows(spark, 0, 80, ts=9), base, options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (80, 0)
    assert found == tables.snapshot(spark, base, metadata=False)
    audit = run_job(spark, base, "audit", index=index).details
    assert (audit["clean"], audit["rows"], audit["pending_instants"]) == (True, 80, []), audit
