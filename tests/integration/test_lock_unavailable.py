"""A lock whose server is unreachable or silent, or whose provider cannot be loaded, is not reported as held by
another."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from jobs.contract import Outcome, TableLock
from jobs.errors import CancelledError, JobError
from jobs.format.lock_providers import DYNAMODB, HIVE, IN_STORAGE, PREFIX
from jobs.hudi import lock as lock_module
from jobs.hudi.lock import TableLock as Lock
from jobs.hudi.lock import for_at_most
from jobs.job_context import JobContext
from jobs.lock_errors import LockUnavailableError, LockUnusableError, TableLockedError
from tests.integration import tables
from tests.integration.run import hudi_table, run_job
from tests.support import zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import Json

DYNAMODB_OPTIONS = {
    f"{PREFIX}dynamodb.table": "locks",
    f"{PREFIX}dynamodb.region": "us-east-1",
    f"{PREFIX}dynamodb.endpoint_url": "http://127.0.0.1:1",
    f"{PREFIX}dynamodb.partition_key": "trips",
}
UNUSABLE = [
    pytest.param(TableLock(DYNAMODB[1], DYNAMODB_OPTIONS), "org.apache.hudi:hudi-aws-bundle:1.2.0", id="no jar of AWS"),
    pytest.param(TableLock(IN_STORAGE), "S3, GCS and Azure only", id="no storage with conditional writes"),
    pytest.param(TableLock("com.example.Missing"), "the jar with com.example.Missing", id="no class"),
    pytest.param(TableLock("zookeeper", {f"{PREFIX}zookeeper.url": ":2181"}), "PATCH the table", id="no host"),
]


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("locked") / "trips"
    tables.write_table(spark, path, count=60, partitioned=False)
    return path


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A closed port, which no other process can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening.getsockname()[1]


def _zookeeper(port: int) -> TableLock:
    return zookeeper.lock_at(port, "trips")


def _metastore(port: int) -> TableLock:
    names = {"database": "default", "table": "trips", "uris": f"thrift://127.0.0.1:{port}"}
    return TableLock(HIVE, {f"{PREFIX}hivemetastore.{name}": value for name, value in names.items()})


def _refusals(spark: SparkSession, base: Path, lock: TableLock) -> list[Json]:
    result = run_job(spark, base, "compaction", dry_run=True, lock=lock)
    assert result.outcome is Outcome.SUCCEEDED
    told = {"provider": lock.provider, "reachable": not result.details["refusals"]}
    assert result.details["lock"] | told == result.details["lock"]
    found: list[Json] = result.details["refusals"]
    return found


def test_a_dry_run_says_that_the_lock_can_be_taken_and_that_its_server_is_away(
    spark: SparkSession, base: Path, closed_port: int
) -> None:
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    assert _refusals(spark, base, TableLock()) == []
    with zookeeper.running() as server:
        assert _refusals(spark, base, server.lock("trips")) == []
    for lock in (_zookeeper(closed_port), _metastore(closed_port)):
        (refusal,) = _refusals(spark, base, lock)
        assert refusal["type"] == "lock-unavailable"
        assert refusal["retriable"]
        assert f"127.0.0.1:{closed_port}: Connection refused" in refusal["detail"]
    assert {path: path.read_bytes() for path in base.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(("lock", "hint"), UNUSABLE)
def test_a_provider_that_cannot_be_loaded_is_named_with_its_jar_and_not_tried_again(
    spark: SparkSession, base: Path, lock: TableLock, hint: str
) -> None:
    (refusal,) = _refusals(spark, base, lock)
    assert refusal["type"] == "lock-unusable"
    assert hint in refusal["hint"]
    assert not refusal["retriable"]
    with (
        pytest.raises(LockUnusableError),
        Lock(hudi_table(spark, base, None, lock=lock), "job").held(JobContext().checkpoint),
    ):
        pass


def test_a_job_whose_lock_is_out_of_reach_fails_in_a_bounded_time_and_may_be_tried_again(
    spark: SparkSession, base: Path, closed_port: int, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "AWAY_SECONDS", 2.0)
    for lock in (_zookeeper(closed_port), _metastore(closed_port), _zookeeper(silent_port)):
        started = time.monotonic()
        with pytest.raises(LockUnavailableError) as failed:
            run_job(spark, base, "bucket_expansion", {"factor": 2}, lock=lock)
        assert failed.value.problem().retriable
        assert time.monotonic() - started < 120
    assert tables.left_behind(base) == []


def test_a_job_that_waits_for_a_server_ends_soon_when_it_is_cancelled(
    spark: SparkSession, base: Path, closed_port: int, silent_port: int
) -> None:
    for port in (closed_port, silent_port):
        cancelled_at = time.monotonic() + 2

        def checkpoint(waits_for: str = "", at: float = cancelled_at) -> None:
            if time.monotonic() > at:
                raise CancelledError

        with (
            pytest.raises(CancelledError),
            Lock(hudi_table(spark, base, None, lock=_zookeeper(port)), "job").held(checkpoint),
        ):
            pass
        assert time.monotonic() - cancelled_at < 30


@pytest.mark.exhaustive
def test_a_lock_that_another_holds_is_waited_for_and_no_reason_to_refuse(spark: SparkSession, base: Path) -> None:
    with zookeeper.running() as server:
        table = hudi_table(spark, base, None, lock=server.lock("trips"))
        with Lock(table, "a writer").held(JobContext().checkpoint) as held:
            assert _refusals(spark, base, server.lock("trips")) == []
            waited_since = time.monotonic()
            with pytest.raises(TableLockedError), Lock(table, "job").held(for_at_most(3)):
                pass
            assert 3 <= time.monotonic() - waited_since < 8
            held.verify()


def test_jobs_that_need_a_proof_are_refused_with_a_lock_that_cannot_give_one(spark: SparkSession, base: Path) -> None:
    lock = TableLock("com.example.Missing")
    for kind, params in (("bucket_expansion", {"factor": 2}), ("clustering", {"sort_by": ["id"]}), ("repair", {})):
        refusals = run_job(spark, base, kind, params, dry_run=True, lock=lock).details["refusals"]
        assert "lock-not-provable" in [each["type"] for each in refusals]
    with pytest.raises(JobError) as refused:
        run_job(spark, base, "clustering", {"sort_by": ["id"]}, lock=lock)
    assert refused.value.problem().type == "lock-not-provable"
