"""Tests tokens whose role holds on some tables only, against calls about all other tables and the service itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from service.access import token_store
from service.access.token import Role, issued
from service.db.engine import writing

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa
    from starlette.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

Headers = dict[str, str]

_READS = {"get", "head"}
# Readers may make these calls, which change at most the reader's own objects, or the time of a table's next poll.
_OF_READERS = re.compile(r"/v1/(session|callbacks/hudi|policy-preview|policies/simulate|tables/\{table_id\}/evaluate)$")


@pytest.fixture
def tables(client: TestClient) -> dict[str, str]:
    """Ids of tables that were registered before any token existed, each with a job."""
    found = {}
    for name, tags in {"orders": {"team": "shop"}, "returns": {"team": "shop"}, "clicks": {"team": "web"}}.items():
        answer = client.post("/v1/tables", json={"base_path": f"/lake/{name}", "name": name, "tags": tags})
        found[name] = str(answer.json()["id"])
        client.post(f"/v1/tables/{found[name]}/jobs", json={"kind": "audit"})
    return found


@pytest.fixture
def limited(sqlite: sa.Engine, clock: FakeClock, tables: dict[str, str]) -> Callable[..., Headers]:
    """Returns the headers of a caller whose role holds on the tables of these patterns."""

    def make(role: Role, *patterns: str) -> Headers:
        bearer, token = issued("shop", role, clock(), tables=patterns)
        with writing(sqlite) as connection:
            token_store.add(connection, token)
        return {"Authorization": f"Bearer {bearer}"}

    return make


@pytest.mark.parametrize("pattern", ["tag:team=shop", "orders", "ord*"])
def test_the_role_holds_on_the_tables_of_the_patterns(
    client: TestClient, tables: dict[str, str], limited: Callable[..., Headers], pattern: str
) -> None:
    shop = limited(Role.OPERATOR, pattern)
    own, other = tables["orders"], tables["clicks"]
    assert client.get("/v1/tables", headers=shop).json()["items"].__len__() == 3
    assert client.post(f"/v1/tables/{own}/jobs", json={"kind": "cleaning"}, headers=shop).status_code == 202
    refused = client.post(f"/v1/tables/{other}/jobs", json={"kind": "cleaning"}, headers=shop)
    assert refused.status_code == 403
    assert f"on the tables {pattern} only" in refused.json()["detail"]
    [job] = client.get("/v1/jobs", params={"table_id": other}, headers=shop).json()["items"]
    assert client.post(f"/v1/jobs/{job['id']}/cancel", headers=shop).status_code == 403
    jobs = client.get("/v1/jobs", params={"table_id": own}, headers=shop).json()["items"]
    assert {client.post(f"/v1/jobs/{each['id']}/cancel", headers=shop).status_code for each in jobs} == {202}
    assert client.get("/v1/session", headers=shop).json()["tables"] == [pattern]
    assert client.patch(f"/v1/tables/{own}", json={"owner": "me"}, headers=shop).status_code == 403


def test_one_call_for_many_tables_is_checked_for_each(
    client: TestClient, tables: dict[str, str], limited: Callable[..., Headers]
) -> None:
    shop = limited(Role.OPERATOR, "tag:team=shop")

    def outcomes(**wanted: Any) -> dict[str, str]:
        body = {"tables": [*tables.values(), "tbl_none"], **wanted}
        answer = client.post("/v1/tables/bulk", json=body, headers=shop)
        assert answer.status_code == 200, answer.text
        names = {table_id: name for name, table_id in tables.items()}
        return {names.get(each["table_id"], "none"): each["outcome"] for each in answer.json()["items"]}

    wanted = {"orders": "done", "returns": "done", "clicks": "refused", "none": "refused"}
    assert outcomes(action="pause") == wanted
    assert outcomes(action="run", job={"kind": "cleaning"}) == wanted
    label = {"tables": list(tables.values()), "action": "label", "owner": "me"}
    assert client.post("/v1/tables/bulk", json=label, headers=shop).status_code == 403
    admin = limited(Role.ADMIN, "tag:team=shop")
    items = client.post("/v1/tables/bulk", json=label, headers=admin).json()["items"]
    assert [each["outcome"] for each in items] == ["done", "done", "refused"]
    reader = limited(Role.READER)
    assert client.post("/v1/tables/bulk", json={**label, "action": "pause"}, headers=reader).status_code in (403, 422)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_no_call_changes_the_service_or_another_table(
    client: TestClient, tables: dict[str, str], limited: Callable[..., Headers], role: Role
) -> None:
    """The calls are listed by the API's document, so a new call is covered."""
    shop = limited(role, "tag:team=shop")
    [job] = client.get("/v1/jobs", params={"table_id": tables["clicks"]}, headers=shop).json()["items"]
    ids = {"table_id": tables["clicks"], "job_id": job["id"]}
    document = client.get("/openapi.json").json()
    answers = {
        f"{method} {path}": client.request(
            method, re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], "x"), path), json={}, headers=shop
        ).status_code
        for path, methods in document["paths"].items()
        for method in methods
        if method not in _READS
        and path.startswith("/v1/")
        and not _OF_READERS.search(path)
        and path != "/v1/tables/bulk"
    }
    # An incident that does not exist has no table.
    allowed = {
        call for call, status in answers.items() if status != 403 and not ("{incident_id}" in call and status == 404)
    }
    assert allowed == set()
    assert len(answers) > 40


def test_a_table_that_leaves_the_patterns_is_out_of_reach_at_once(
    client: TestClient, tables: dict[str, str], limited: Callable[..., Headers]
) -> None:
    admin = limited(Role.ADMIN, "tag:team=shop")
    call = f"/v1/tables/{tables['orders']}"
    assert client.patch(call, json={"tags": {"team": "web"}}, headers=admin).status_code == 200
    assert client.patch(call, json={"tags": {"team": "shop"}}, headers=admin).status_code == 403
    assert client.delete(call, headers=admin).status_code == 403
