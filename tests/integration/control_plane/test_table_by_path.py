"""Tests registration as a declared state: PUT /v1/tables/by-path."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.redaction import MASK
from service.access.secret_cipher import SecretCipher
from service.api.app import create_app
from tests.support.contexts import changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock, FakeExamine

pytestmark = pytest.mark.mostly_sqlite

PATH = "/v1/tables/by-path"
BODY: dict[str, Any] = {
    "base_path": "/lake/orders",
    "name": "orders",
    "index": {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]},
    "lock": {
        "provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "options": {"hoodie.aws.secret.key": "hush", "hoodie.write.lock.dynamodb.table": "locks"},
        "wait_seconds": 60,
    },
    "writers": {"hudi_version": "1.2.0", "engines": ["spark"]},
    "hudi_options": {"hoodie.parquet.max.file.size": "1000"},
}


@pytest.fixture
def api(app_context: AppContext, engine: sa.Engine) -> Iterator[TestClient]:
    context = changed(app_context, engine=engine, cipher=SecretCipher.fresh())
    headers = {"Content-Type": "application/json"}
    with TestClient(create_app(context), base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def test_the_same_body_is_the_same_table(api: TestClient, clock: FakeClock, examine: FakeExamine) -> None:
    first = api.put(PATH, json=BODY)
    assert first.status_code == 201, first.text
    clock.advance(60)
    for spelling in ("/lake/orders", "/lake/orders/", "/lake/./orders", "file:///lake/orders"):
        again = api.put(PATH, json={**BODY, "base_path": spelling})
        assert (again.status_code, again.json()) == (200, first.json())
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["location"] == first.headers["location"]
    # A table that has not changed is not examined again.
    assert len(examine.asked) == 1
    assert len(api.get("/v1/tables").json()["items"]) == 1
    shown = {**BODY, "lock": {**BODY["lock"], "options": first.json()["lock"]["options"]}}
    assert shown["lock"]["options"]["hoodie.aws.secret.key"] == MASK
    assert api.put(PATH, json=shown).headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    ("member", "value", "shown"),
    [
        ("name", "sales", "sales"),
        ("lock", {"provider": "filesystem"}, {"provider": "filesystem", "options": {}, "wait_seconds": None}),
        ("hudi_options", {}, {}),
        ("index", {"type": "bucket", "num_buckets": 4, "hash_fields": ["key"]}, None),
        ("writers", {"stopped": True}, None),
    ],
)
def test_members_that_are_declared_differently_are_changed(
    api: TestClient, clock: FakeClock, member: str, value: Any, shown: Any
) -> None:
    first = api.put(PATH, json=BODY).json()
    clock.advance(60)
    answer = api.put(PATH, json={**BODY, member: value})
    assert (answer.status_code, answer.json()["id"]) == (200, first["id"])
    assert answer.headers["etag"] == api.get(f"/v1/tables/{first['id']}").headers["etag"]
    changed = {name for name, was in first.items() if answer.json()[name] != was}
    assert changed == {member, "updated_at"}
    if shown is not None:
        assert answer.json()[member] == shown
    entry = api.get("/v1/audit", params={"operation": "putTableByPath"}).json()["items"][0]
    assert (entry["object_type"], entry["object_id"], entry["status"]) == ("table", first["id"], 200)
    assert entry["before"][member] != entry["after"][member]


def test_missing_members_get_their_default_or_detected_value(api: TestClient) -> None:
    first = api.put(PATH, json=BODY).json()
    answer = api.put(PATH, json={"base_path": "/lake/orders"}).json()
    assert (answer["name"], answer["index"]) == (first["name"], first["index"])
    assert (answer["lock"]["provider"], answer["hudi_options"]) == ("filesystem", {})
    assert (answer["writers"]["engines"], answer["writers"]["hudi_version"]) == (None, None)


def test_a_refused_change_changes_nothing(api: TestClient) -> None:
    first = api.put(PATH, json=BODY)
    other = {**BODY, "index": {**BODY["index"], "num_buckets": 8}}
    refused = api.put(PATH, json=other)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/bucket-index-contradicted")
    for body in (other, {**BODY, "name": "sales"}, BODY):
        stale = api.put(PATH, json=body, headers={"If-Match": '"0000000000000000"'})
        assert (stale.status_code, stale.json()["type"]) == (412, "/problems/changed-meanwhile")
    assert api.get(f"/v1/tables/{first.json()['id']}").json() == first.json()
    assert api.put(PATH, json={**BODY, "name": "b"}, headers={"If-Match": first.headers["etag"]}).status_code == 200
    new = api.put(PATH, json={"base_path": "/lake/new"}, headers={"If-Match": "*"})
    assert (new.status_code, len(api.get("/v1/tables").json()["items"])) == (412, 1)


def test_only_one_of_many_concurrent_calls_registers_the_table(api: TestClient) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: api.put(PATH, json=BODY), range(6)))
    assert sorted(each.status_code for each in answers) == [200] * 5 + [201]
    assert len({each.json()["id"] for each in answers}) == 1
