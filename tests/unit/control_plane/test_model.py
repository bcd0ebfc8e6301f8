import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.contract import BucketIndex, JobKind, TableLock
from jobs.kinds.registry import READING
from service.access.secret_cipher import SecretCipher
from service.access.token import Bearer, Role, Token, digest
from service.catalog.registration import Registration, Writers
from service.model.storage_errors import StorageError
from service.queue.job import Job, mutates

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_instants_are_kept_in_order_and_once() -> None:
    job = Job("job_1", "tbl_1", JobKind.CLEANING, NOW, NOW, instants=("001", "002"))
    assert job.with_instants(["002", "003"]) == ("001", "002", "003")


def test_a_work_order_has_the_instants_of_earlier_attempts() -> None:
    job = Job("job_1", "tbl_1", JobKind.CLEANING, NOW, NOW, params={"retain": 3}, attempt=2, instants=("001",))
    table = Registration(
        "tbl_1",
        "/lake/t",
        "t",
        NOW,
        NOW,
        index=BucketIndex(4, ("id",)),
        lock=TableLock("zookeeper", {"a": "b"}),
        writers=Writers(hudi_version="1.2.0"),
        hudi_options={"x": "y"},
    )
    plan = job.work_order(table.to_contract({}, SecretCipher([])), 60)
    assert (plan.attempt, plan.earlier_instants, plan.params, plan.timeout_seconds) == (2, ("001",), {"retain": 3}, 60)
    assert plan.table.index == BucketIndex(4, ("id",))
    assert plan.table.writers_hudi_version == "1.2.0"
    assert plan.table.lock.options == {"a": "b"}


def test_audits_and_dry_runs_write_nothing() -> None:
    assert not any(mutates(kind, dry_run=False) for kind in READING)
    assert not mutates(JobKind.COMPACTION, dry_run=True)
    assert all(mutates(kind, dry_run=False) for kind in JobKind if kind not in READING)


def test_roles_cover_the_ones_below_and_workers_only_themselves() -> None:
    assert Role.ADMIN.covers(Role.READER)
    assert Role.OPERATOR.covers(Role.OPERATOR)
    assert not Role.READER.covers(Role.OPERATOR)
    assert not Role.ADMIN.covers(Role.WORKER)
    assert not Role.WORKER.covers(Role.READER)
    assert Role.WORKER.covers(Role.WORKER)


def test_a_bearer_token_survives_the_way_through_text_and_shows_no_secret() -> None:
    bearer = Bearer.new()
    assert Bearer.parse(str(bearer)) == bearer
    assert bearer.secret not in repr(bearer)


@pytest.mark.parametrize("text", ["", "gk", "gk_", "gk__x", "gk_ab", "xx_ab_cd", "gk_a\0b_cd", "Bearer gk_a_b"])
def test_a_malformed_token_is_refused(text: str) -> None:
    assert Bearer.parse(text) is None


def test_a_revoked_token_matches_nothing() -> None:
    token = Token("a", "n", Role.READER, digest("s"), NOW)
    assert token.matches("s", NOW)
    assert not token.matches("t", NOW)
    assert not replace(token, revoked_at=NOW).matches("s", NOW)


def test_a_token_matches_until_it_expires() -> None:
    token = Token("a", "n", Role.READER, digest("s"), NOW, expires_at=NOW + timedelta(days=1))
    assert token.matches("s", NOW + timedelta(hours=23))
    assert not token.matches("s", NOW + timedelta(days=1))


def test_an_error_shows_no_secret_that_a_storage_or_a_library_put_into_its_text() -> None:
    error = StorageError("GET https://lake/c?sig=hush failed, see jdbc:x://u:hush@db")
    for shown in (error, pickle.loads(pickle.dumps(error))):
        assert "hush" not in f"{shown!r} {shown} {shown.problem()}"
        assert "GET https://lake/c" in shown.detail
