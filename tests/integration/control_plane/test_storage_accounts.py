"""The service reads tables by accounts that assume roles, against STS and S3 (moto's) that check signatures, policies
and trust, and end sessions."""

from __future__ import annotations

import json
import pickle
import time
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from jobs.storage import accounts, aws_session
from jobs.storage.stores import store_of
from service.cli.main import app
from service.lake.storage import open_storage
from service.model import storage_errors
from tests.integration.certificate import self_signed
from tests.support.aws_company import EXTERNAL_ID, HUB, LAKE, Company, company, role

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = "s3a://lake/orders"
FILE = ".hoodie/hoodie.properties"


@pytest.fixture(scope="module")
def own() -> Iterator[Company]:
    with company() as found:
        with store_of(TABLE, found.options()).filesystem().open_output_stream(f"lake/orders/{FILE}") as file:
            # Arrow reads no longer answer than the file, so that it shows no reason of a refusal that is longer.
            file.write(b"hoodie.table.version=9".ljust(1500))
        yield found


def _read(company: Company, *, names: bool = False, base: str = TABLE, **changes: Any) -> object:
    storage = open_storage(base, company.options(**changes))
    return storage.names(".hoodie") if names else storage.read(FILE)


def test_a_chain_of_roles_with_an_external_id_is_assumed_anew_before_its_sessions_end(own: Company) -> None:
    own.server.counted(needs_keys=1, session_seconds=4)
    options = own.options(roles=[HUB, {**LAKE, "session_name": "short"}])
    storage = open_storage(TABLE, options)
    ends = time.monotonic() + 6.5
    while time.monotonic() < ends:
        assert storage.read(FILE)
        # A task gets the store, not the file system.
        assert pickle.loads(pickle.dumps(store_of(TABLE, options))) == store_of(TABLE, options)
        time.sleep(0.3)
    counts = own.server.counted(needs_keys=1)
    # Each session lasts 4 s and is renewed after 3 s, by two calls, one for each role.
    assert 4 <= counts["STS 200"] <= 10, counts
    assert counts["GET"] > 3


@pytest.mark.parametrize(
    ("changes", "expected", "said"),
    [
        ({"access_key": "AKIAOFNOBODY00000000"}, storage_errors.StorageLoginError, "InvalidClientTokenId"),
        ({"secret_key": "wrong"}, storage_errors.StorageLoginError, "SignatureDoesNotMatch"),
        ({"access_key": "AKIAOFNOBODY00000000", "roles": []}, storage_errors.StorageLoginError, "key"),
        (
            {"roles": [HUB, {**LAKE, "external_id": "wrong"}]},
            storage_errors.StorageRoleError,
            "role/lake: AccessDenied",
        ),
        ({"roles": [LAKE]}, storage_errors.StorageRoleError, "user/gk is not authorized"),
        ({"roles": [role("idle")]}, storage_errors.StorageDeniedError, "orders"),
        ({"roots": ["s3a://sea"]}, storage_errors.StorageUnknownError, "sea"),
        ({"endpoint": "http://s3.invalid"}, storage_errors.StorageUnknownError, "s3.invalid"),
        ({"sts_endpoint": "http://sts.invalid"}, storage_errors.StorageUnknownError, "sts.invalid"),
        (
            {"source": "web_identity", "access_key": None, "secret_key": None, "token_file": "/nowhere/token"},
            storage_errors.StorageLoginError,
            "/nowhere/token",
        ),
        (
            {"source": "container", "access_key": None, "secret_key": None},
            storage_errors.StorageLoginError,
            "container",
        ),
        (
            {"source": "profile", "profile": "nobody", "access_key": None, "secret_key": None},
            storage_errors.StorageLoginError,
            "nobody",
        ),
    ],
)
def test_each_failure_has_its_own_name_and_shows_no_secret(
    own: Company, changes: dict[str, Any], expected: type[storage_errors.StorageError], said: str
) -> None:
    base = TABLE.replace("lake", "sea") if "roots" in changes else TABLE
    with pytest.raises(storage_errors.StorageError) as failed:
        # Only a listing, which every poll makes, distinguishes a missing bucket from a missing file.
        _read(own, names=base != TABLE, base=base, **changes)
    error = failed.value
    assert type(error) is expected, error
    assert said in error.detail
    assert not {EXTERNAL_ID, own.declared["secret_key"]} & {*str(error.problem()).split()}
    assert own.declared["secret_key"] not in str(error.problem())


def test_a_session_that_ends_and_cannot_be_renewed_is_used_until_its_end(own: Company, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("fresh.token")
    own.server.counted(needs_keys=1, session_seconds=4)
    changes = {"source": "web_identity", "access_key": None, "secret_key": None, "token_file": str(token)}
    storage = open_storage(TABLE, own.options(**changes, roles=[{**LAKE, "external_id": ""}]))
    begun = time.monotonic()
    assert storage.read(FILE)
    token.write_text("stale.token")

    def read_on() -> None:
        while time.monotonic() < begun + 60:
            storage.read(FILE)
            time.sleep(0.2)

    with pytest.raises(storage_errors.StorageLoginError, match="ExpiredTokenException"):
        read_on()
    # The server gives the end in whole seconds.
    assert time.monotonic() >= begun + 3
    # Kubernetes replaces the token's file.
    token.write_text("next.token")
    own.server.counted(needs_keys=1)
    assert storage.read(FILE)


def test_two_roots_of_one_bucket_are_read_by_their_own_roles(own: Company) -> None:
    finance = {**own.declared, "roots": ["s3a://lake/finance"], "roles": [role("idle")]}
    options = accounts.options(accounts.parse([own.declared, finance]))
    assert open_storage(TABLE, options).read(FILE)
    with pytest.raises(storage_errors.StorageDeniedError):
        open_storage("s3a://lake/finance/orders", options).read(FILE)
    only = accounts.options(accounts.parse([finance]))
    with pytest.raises(storage_errors.StorageUnsupportedError, match="is above s3a://lake/orders"):
        open_storage(TABLE, only)


def test_a_key_that_may_not_be_used_is_not_called_a_missing_permission_of_the_bucket(own: Company) -> None:
    own.server.counted(needs_keys=1, key_denied=1)
    try:
        with pytest.raises(storage_errors.StorageKeyError, match="kms:Decrypt"):
            _read(own)
    finally:
        own.server.counted(needs_keys=1)


def test_a_profile_of_the_users_files_is_the_first_link_of_a_chain(
    own: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = own.declared
    file = tmp_path / "credentials"
    file.write_text(f"[gk]\naws_access_key_id={keys['access_key']}\naws_secret_access_key={keys['secret_key']}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-somebody-else")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert _read(own, source="profile", profile="gk", access_key=None, secret_key=None)
    with pytest.raises(storage_errors.StorageLoginError):
        _read(own, source="environment", access_key=None, secret_key=None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["secret_key"])
    aws_session._sessions.clear()
    assert _read(own, source="environment", access_key=None, secret_key=None)


def test_an_endpoint_with_a_private_authority_is_reached_by_its_file_only(tmp_path: Path) -> None:
    certificate = self_signed("localhost", tmp_path)
    with company(certificate=(certificate.public, certificate.private)) as own:
        storage = open_storage(TABLE, own.options())
        assert storage.list() == []
        with pytest.raises(storage_errors.StorageCertificateError, match="CERTIFICATE_VERIFY_FAILED"):
            open_storage(TABLE, own.options(ca_file=None)).list()
        plain = own.options(ca_file=None, roles=[])
        with pytest.raises(storage_errors.StorageCertificateError):
            open_storage(TABLE, plain).list()


def test_doctor_names_the_role_that_cannot_be_assumed(own: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {**own.declared, "roles": [HUB, {**LAKE, "external_id": "wrong"}]}
    monkeypatch.setenv("GROUNDSKEEPER_STORAGE_ACCOUNTS", json.dumps([declared]))
    monkeypatch.setenv("GROUNDSKEEPER_ALLOWED_ROOTS", "s3a://lake")
    monkeypatch.setenv("GROUNDSKEEPER_URL", "http://127.0.0.1:1")
    said = " ".join(CliRunner().invoke(app, ["doctor"]).output.split())
    assert "assuming the role arn:aws:iam::123456789012:role/lake: AccessDenied" in said
    assert "external id" in said
    assert own.declared["secret_key"] not in said
