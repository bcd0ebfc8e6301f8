"""Tests jobs on a table of S3 that only a chain of roles may use, and whose sessions end during a job (moto's STS,
S3)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, Outcome, TableLock
from jobs.errors import JobError, RefusedError
from jobs.hudi import storage_login
from jobs.storage import accounts
from jobs.storage_errors import StorageCertificateError, StorageDeniedError, StorageLoginError, StorageRoleError
from tests.integration import tables
from tests.integration.certificate import self_signed
from tests.integration.run import run_job
from tests.support.aws_company import HUB, LAKE, Company, company, role
from tests.support.session_storage import reached_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

INDEX = BucketIndex(2, ("id",))
BASE = "s3a://lake/orders"


@pytest.fixture(scope="module")
def own() -> Iterator[Company]:
    with company() as found:
        yield found


@pytest.fixture
def lock(tmp_path: Path) -> TableLock:
    return TableLock("filesystem", {"hoodie.write.lock.filesystem.path": f"file://{tmp_path}/locks"})


@contextmanager
def _as(spark: SparkSession, options: dict[str, str]) -> Iterator[None]:
    """The Spark session, set up as a worker with these accounts in its settings does it."""
    storage_login.set_up(spark, options)
    with reached_by(spark, options, "s3a://lake"):
        yield


def _written(spark: SparkSession, lock: TableLock, base: str = BASE) -> dict[str, str]:
    shape = {"table_type": "MERGE_ON_READ", "num_buckets": 2, "partitioned": False, "metadata": False}
    options = tables.writer_options(base, **shape, **lock.options)  # type: ignore[arg-type]
    tables.upsert(tables.rows(spark, 0, 200), base, options)
    tables.upsert(tables.rows(spark, 0, 100, ts=1), base, options)
    return options


def test_jobs_outlive_the_sessions_of_a_chain_of_roles(spark: SparkSession, own: Company, lock: TableLock) -> None:
    own.server.counted(needs_keys=1, session_seconds=3)
    with _as(spark, own.options()):
        _written(spark, lock)
        before = tables.snapshot(spark, BASE)
        own.server.counted(needs_keys=1, session_seconds=3)

        # Hudi's client in the JVM does the first job, and Arrow in the tasks the second one.
        assert run_job(spark, BASE, "compaction", index=INDEX, lock=lock).outcome is Outcome.SUCCEEDED
        grown = run_job(
            spark, BASE, "bucket_expansion", {"factor": 2}, index=INDEX, lock=lock, writers_query_pruning_off=True
        )

        assert grown.outcome is Outcome.SUCCEEDED
        counts = own.server.counted(needs_keys=1)
        assert counts["STS 200"] >= 4, counts
        assert tables.snapshot(spark, BASE) == before
        assert tables.misplaced(spark, BASE, 4) == 0
        assert run_job(spark, BASE, "audit", index=INDEX, lock=lock).details["clean"] is True


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"secret_key": "wrong"}, StorageLoginError),
        ({"access_key": "AKIAOFNOBODY00000000"}, StorageLoginError),
        ({"roles": [HUB, {**LAKE, "external_id": "wrong"}]}, StorageRoleError),
        ({"roles": [role("idle")]}, StorageDeniedError),
        (
            {"source": "web_identity", "access_key": None, "secret_key": None, "token_file": "/nowhere"},
            StorageLoginError,
        ),
        ({"source": "container", "access_key": None, "secret_key": None}, StorageLoginError),
        ({"source": "profile", "profile": "it's nobody", "access_key": None, "secret_key": None}, StorageLoginError),
    ],
)
def test_the_jvm_gives_each_failure_its_name(
    spark: SparkSession, own: Company, lock: TableLock, changes: dict[str, Any], expected: type[JobError]
) -> None:
    with _as(spark, own.options()):
        _written(spark, lock, "s3a://lake/failing")
    with _as(spark, own.options(**changes)), pytest.raises(JobError) as failed:
        run_job(spark, "s3a://lake/failing", "compaction", index=INDEX, lock=lock)
    assert type(failed.value) is expected, failed.value
    assert own.declared["secret_key"] not in str(failed.value.problem())
    assert not failed.value.problem().retriable


@pytest.mark.exhaustive
def test_the_jvm_takes_a_web_identity_and_a_profile(
    spark: SparkSession, own: Company, lock: TableLock, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("fresh.token")
    keyless = {"source": "web_identity", "access_key": None, "secret_key": None}
    with _as(spark, own.options(**keyless, token_file=str(token), roles=[{**LAKE, "external_id": ""}])):
        _written(spark, lock, "s3a://lake/web")
        assert run_job(spark, "s3a://lake/web", "audit", index=INDEX, lock=lock).details["clean"] is True


@pytest.mark.exhaustive
def test_the_jvm_trusts_the_authority_of_an_account(spark: SparkSession, lock: TableLock, tmp_path: Path) -> None:
    certificate = self_signed("localhost", tmp_path)
    with company(certificate=(certificate.public, certificate.private)) as own:
        with _as(spark, own.options(ca_file=None)), pytest.raises(StorageCertificateError):
            run_job(spark, BASE, "compaction", index=INDEX, lock=lock)
        with _as(spark, own.options()):
            _written(spark, lock)
            assert run_job(spark, BASE, "audit", index=INDEX, lock=lock).details["clean"] is True


def test_a_worker_with_another_account_for_the_bucket_refuses_the_table(spark: SparkSession, own: Company) -> None:
    finance = {**own.declared, "roots": ["s3a://lake/finance"], "roles": [role("idle")]}
    for declared, said in (([own.declared, finance], "has 2 accounts"), ([finance], "is for s3a://lake/finance")):
        with _as(spark, accounts.options(accounts.parse(declared))), pytest.raises(RefusedError) as refused:
            run_job(spark, BASE, "compaction", index=INDEX)
        [reason] = refused.value.reasons
        assert reason.type == "storage-account-unsuited"
        assert said in reason.detail
