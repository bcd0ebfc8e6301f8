"""The storage stores a file and its answer is lost, so the client takes the file for not written. Here S3 (moto's
server) answers each repetition of the request with an error, too."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, TableLock
from jobs.errors import JobError
from jobs.job_context import JobContext
from tests.integration import tables
from tests.integration.run import perform_order, run_job, work_order
from tests.integration.test_bucket_resize import SPLIT
from tests.integration.test_consistent_hashing import ENGINE
from tests.integration.test_index_builds import order as of_index
from tests.integration.test_upgrade import DECLARED
from tests.support import s3
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.s3 import Server

BUCKET = "unheard"
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
TWO, THREE = BucketIndex(2, ("id",)), BucketIndex(3, ("id",))
# The clients try each request twice, so that the test is short.
IMPATIENT = {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "1", "fs.s3a.retry.interval": "50ms"}

OF_TABLE, OF_METADATA = r"trips/\.hoodie/timeline/", r"metadata/\.hoodie/timeline/"
COMPLETED = re.compile(r"\d+_\d+\.\w+$")
PENDING = r"\d+\.(\w+\.)?(requested|inflight)$"


@dataclass(frozen=True)
class Case:
    """A job, the files whose answers are lost, and the table: `shape` are arguments of `tables.writer_options`."""

    kind: str
    params: dict[str, Any]
    loses: str
    shape: dict[str, Any] = field(default_factory=dict)
    index: BucketIndex | None = TWO
    then: BucketIndex | None = TWO
    declared: dict[str, Any] = field(default_factory=dict)


COUNT = ("bucket_count", {"num_buckets": 3})
RANGES: dict[str, Any] = {"shape": ENGINE, "index": None, "then": None}
# A write of a client that has failed counts as in flight until its heartbeat has expired.
SOON = {"hudi_options": {"hoodie.client.heartbeat.interval_in_ms": "1000"}}
STOPPED = {"declared": {"writers_stopped": True, **SOON}}
PROPERTIES = r"/hoodie\.properties(\.\w+)?$"
PLAIN = {"num_buckets": None, "table_type": COW}
OF_A_SHORT_RUN = "index given up, completed"
CASES = {
    "number of buckets, completed": Case(*COUNT, OF_TABLE + COMPLETED.pattern, then=THREE),
    "number of buckets, metadata completed": Case(*COUNT, OF_METADATA + COMPLETED.pattern, then=THREE),
    "number of buckets, pending": Case(*COUNT, OF_TABLE + PENDING, then=THREE),
    "number of buckets, config": Case(*COUNT, r"\.hashing_config$", then=THREE),
    "hash ranges, completed": Case("bucket_resize", SPLIT, OF_TABLE + COMPLETED.pattern, **RANGES),
    "hash ranges, metadata": Case("bucket_resize", SPLIT, r"\.hashing_meta$", **RANGES),
    "hash ranges, confirmed": Case("bucket_resize", SPLIT, r"consistent_hashing_metadata/.*\.commit$", **RANGES),
    "compaction, completed": Case("compaction", {}, OF_TABLE + COMPLETED.pattern),
    "compaction, metadata completed": Case("compaction", {}, OF_METADATA + COMPLETED.pattern),
    "compaction, pending": Case("compaction", {}, OF_TABLE + PENDING),
    "index given up, completed": Case(
        "bucket_index", {"action": "drop"}, OF_TABLE + r"\d+_\d+\.deltacommit$", then=None, **STOPPED
    ),
    "cleaning, completed": Case("cleaning", {"retain": 1}, OF_TABLE + COMPLETED.pattern, {"table_type": COW}),
    "version, properties": Case("upgrade", {"to_version": 9}, PROPERTIES, {"version": 8}, declared=DECLARED),
    "version, completed": Case("upgrade", {"to_version": 8}, r"timeline/" + COMPLETED.pattern, declared=DECLARED),
    "index, properties": Case("index", of_index("build", "record"), PROPERTIES, PLAIN, None, None),
    "index, completed": Case("index", of_index("build", "record"), OF_METADATA + COMPLETED.pattern, PLAIN, None, None),
    "sorting, completed": Case("clustering", {"sort_by": ["city"]}, OF_TABLE + COMPLETED.pattern),
}


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[Server]:
    with s3.running() as running:
        running.files.create_dir(BUCKET)
        with reached_by(spark, running.options | IMPATIENT, f"s3a://{BUCKET}"):
            yield running


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.exhaustive if each != OF_A_SHORT_RUN else ()) for each in CASES]
)
def test_a_file_that_the_storage_keeps_without_an_answer_changes_no_row(
    spark: SparkSession, server: Server, tmp_path: Path, name: str
) -> None:
    case, base = CASES[name], f"s3a://{BUCKET}/{name.replace(' ', '_').replace(',', '')}/trips"
    lock = TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})
    shape: dict[str, Any] = {"num_buckets": 2, "table_type": MOR, "partitioned": False, **case.shape}
    options = tables.writer_options(base, **shape, **lock.options)
    tables.upsert(tables.rows(spark, 0, 60), base, options)
    for ts in (1, 2):
        tables.upsert(tables.rows(spark, 0, 30, ts=ts), base, options)
    before = tables.snapshot(spark, base)
    order = work_order(base, case.kind, case.params, index=case.index, lock=lock, declared=case.declared)
    context = JobContext()

    server.counted(loses=case.loses)
    error: JobError | None = None
    try:
        perform_order(spark, order, context)
    except JobError as failed:
        error = failed
    lost = {each.removeprefix("lost ") for each in server.counted() if each.startswith("lost ")}

    assert lost
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    if error:
        perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    # A reader, or the service, may have seen an instant of the table that has completed.
    assert not case.loses.startswith(OF_TABLE) or set(filter(COMPLETED.fullmatch, lost)) <= timeline(server, base)
    assert of_dead_clients(server, base) == set()
    audit = run_job(spark, base, "audit", index=case.then, lock=lock).details
    assert (audit["clean"], audit["pending_instants"]) == (True, []), audit
    if not case.then and case.index:
        plain = tables.writer_options(base, **{**shape, "num_buckets": None}, **lock.options)
        options = {**plain, "hoodie.index.type": "SIMPLE"}
    tables.upsert(tables.rows(spark, 20, 80, ts=9), base, options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (80, 0)
    assert found == tables.snapshot(spark, base, metadata=False)


def timeline(server: Server, base: str) -> set[str]:
    return server.names(f"{base.removeprefix('s3a://')}/.hoodie/timeline")


def of_dead_clients(server: Server, base: str) -> set[str]:
    """Returns markers and heartbeats."""
    names = server.names(f"{base.removeprefix('s3a://')}/.hoodie")
    return {each for each in names if each.startswith((".temp/", ".heartbeat/"))}
