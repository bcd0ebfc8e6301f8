"""Tests the owners and tags of tables, their declaration and the filters by them, on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from service.access.token import Role
from service.api.app import create_app
from service.db.engine import reading
from service.health import table_store
from service.model.clock import utc_now
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.support.contexts import context_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock, FakeExamine

TABLES: dict[str, dict[str, Any]] = {
    "orders": {"owner": "shop", "tags": {"team": "shop", "tier": "gold", "pii": ""}},
    "returns": {"owner": "shop", "tags": {"team": "shop", "a.b/c": "x=y"}},
    "clicks": {"owner": "Web & Co", "tags": {"team": "web", "tier": "gold"}},
    "plain": {},
}


@pytest.fixture
def api(engine: sa.Engine, clock: FakeClock, examine: FakeExamine) -> Iterator[TestClient]:
    """A client of the API on each kind of database."""
    app = create_app(context_of(engine, examine=examine, clock=clock))
    headers = {"Content-Type": "application/json"}
    with TestClient(app, base_url="http://127.0.0.1/v1", headers=headers) as client:
        yield client


@pytest.fixture
def ids(api: TestClient, clock: FakeClock) -> dict[str, str]:
    """The ids of registered tables, by name."""
    found = {}
    for name, more in TABLES.items():
        answer = api.post("/tables", json={"base_path": f"/lake/{name}", "name": name, **more})
        assert answer.status_code == 201, answer.text
        found[name] = answer.json()["id"]
        clock.advance(1)
    return found


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"owner": "shop"}, ["orders", "returns"]),
    ({"owner": ["shop", "Web & Co"]}, ["orders", "returns", "clicks"]),
    ({"owner": "Shop"}, []),
    ({"tag": "tier"}, ["orders", "clicks"]),
    ({"tag": "pii"}, ["orders"]),
    ({"tag": "pii="}, ["orders"]),
    ({"tag": "pii=no"}, []),
    ({"tag": "team=shop"}, ["orders", "returns"]),
    ({"tag": ["team=shop", "tier=gold"]}, ["orders"]),
    ({"tag": "a.b/c=x=y"}, ["returns"]),
    ({"owner": "shop", "tag": "tier=gold"}, ["orders"]),
    ({}, list(TABLES)),
]


def test_tables_the_overview_and_jobs_are_filtered_by_owner_and_tags(api: TestClient, ids: dict[str, str]) -> None:
    for table_id in ids.values():
        assert api.post(f"/tables/{table_id}/jobs", json={"kind": "audit"}).status_code == 202
    names = {table_id: name for name, table_id in ids.items()}
    for query, wanted in FILTERS:

        def items(path: str, query: dict[str, Any] = query) -> Any:
            answer = api.get(path, params=query)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert [each["name"] for each in items("/tables")["items"]] == wanted
        rows = items("/overview")["tables"]
        assert {each["name"] for each in rows["items"]} == set(wanted)
        assert (rows["matching"], rows["total"]) == (len(wanted), len(TABLES))
        assert {names[each["table_id"]] for each in items("/jobs")["items"]} == set(wanted)


@pytest.mark.mostly_sqlite
def test_problems_are_filtered_by_owner_and_tags(api: TestClient, ids: dict[str, str], clock: FakeClock) -> None:
    for name in ("orders", "clicks"):
        path = f"/tables/{ids[name]}/policy"
        assert api.put(path, json={"worker_group": f"of-{name}"}).status_code == 200
        assert api.post(f"/tables/{ids[name]}/jobs", json={"kind": "audit"}).status_code == 202
    clock.advance(30 * 86_400)

    def tables_with_problems(**query: Any) -> set[str]:
        return {each["table_id"] for each in api.get("/problems", params=query).json()["items"]}

    every = tables_with_problems()
    assert set(ids.values()) <= every
    assert tables_with_problems(owner="shop") == {ids["orders"], ids["returns"]}
    assert tables_with_problems(tag="team=web") == {ids["clicks"]}
    assert tables_with_problems(owner="nobody") == set()


@pytest.mark.mostly_sqlite
def test_problems_are_found_by_the_policies_of_tags(engine: sa.Engine, api: TestClient, ids: dict[str, str]) -> None:
    """The facts of problems merge the policies of all tables at once."""
    assert api.put("/policies/tag:tier=gold", json={"compaction": {"commits": 9}}).status_code == 201
    with reading(engine) as connection:
        found = {
            each.name: each.policy.compaction.commits for each in table_store.facts(connection, utc_now(), ids.values())
        }
    assert found == {"orders": 9, "returns": 5, "clicks": 9, "plain": 5}


@pytest.mark.mostly_sqlite
def test_owner_and_tags_are_declared_changed_and_taken_away(api: TestClient, ids: dict[str, str]) -> None:
    path = f"/tables/{ids['orders']}"
    shown = api.get(path).json()
    assert {"owner": shown["owner"], "tags": shown["tags"]} == TABLES["orders"]
    row = next(each for each in api.get("/overview").json()["tables"]["items"] if each["name"] == "orders")
    assert {"owner": row["owner"], "tags": row["tags"]} == TABLES["orders"]
    assert api.patch(path, json={"name": "o"}).json()["tags"] == TABLES["orders"]["tags"]
    changed = api.patch(path, json={"owner": None, "tags": {"team": "web"}}).json()
    assert (changed["owner"], changed["tags"]) == (None, {"team": "web"})
    assert api.patch(path, json={"tags": None}).json()["tags"] == {}
    again = {"base_path": "/lake/orders", "name": "orders", **TABLES["orders"]}
    assert api.put("/tables/by-path", json=again).json()["owner"] == "shop"
    updated_at = api.put("/tables/by-path", json=again).json()["updated_at"]
    assert api.put("/tables/by-path", json=again).json()["updated_at"] == updated_at
    without = api.put("/tables/by-path", json={"base_path": "/lake/orders"}).json()
    assert (without["name"], without["owner"], without["tags"]) == ("orders", None, {})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"owner": ""}, "owner"),
        ({"owner": "two\nlines"}, "owner"),
        ({"owner": "o" * 201}, "owner"),
        ({"tags": {"": "x"}}, "tags"),
        ({"tags": {"a=b": "x"}}, "tags"),
        ({"tags": {"k" * 64: "x"}}, "tags"),
        ({"tags": {"team": "v" * 129}}, "tags"),
        ({"tags": {"team": "a\u0000b"}}, "tags"),
        ({"tags": {"team": 1}}, "tags"),
        ({"tags": {f"k{number}": "" for number in range(33)}}, "tags"),
    ],
)
def test_invalid_owners_and_tags_are_refused(client: TestClient, table_id: str, body: Any, field: str) -> None:
    answer = client.patch(f"/v1/tables/{table_id}", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith(field)


@pytest.mark.parametrize("query", [{"tag": "="}, {"tag": "a b"}, {"owner": ""}, {"tag": ["a"] * 21}])
def test_a_filter_that_cannot_select_anything_is_refused(client: TestClient, query: Any) -> None:
    for path in ("/v1/tables", "/v1/jobs", "/v1/problems", "/v1/overview"):
        assert client.get(path, params=query).status_code == 422


def test_only_an_admin_declares_owners_of_many_tables_by_one_call(
    client: TestClient, table_id: str, make_token: Callable[[Role], dict[str, str]]
) -> None:
    label = {"action": "label", "tables": [table_id], "owner": "shop"}
    policy = {"action": "policy", "tables": [table_id], "policy": {"priority": 3}}
    for role, allowed in ((Role.READER, ()), (Role.OPERATOR, (policy,)), (Role.ADMIN, (policy, label))):
        headers = make_token(role)
        for body in (policy, label):
            answer = client.post("/v1/tables/bulk", json=body, headers=headers)
            assert answer.status_code == (200 if body in allowed else 403), answer.text
    path = "/v1/problems/prb_1/acknowledgement"
    assert client.put(path, json={}, headers=make_token(Role.READER)).status_code == 403
    assert client.put(path, json={}, headers=make_token(Role.OPERATOR)).status_code == 404


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("owners")) as cli:
        yield cli


def test_the_command_line_declares_owners_and_tags_and_lists_by_them(cli: CommandLine) -> None:
    cli.table("orders", "--owner", "shop", "--tag", "team=shop", "--tag", "pii")
    cli.table("clicks", "--name", "clicks")

    def listed(*options: str) -> list[str]:
        return [each["name"] for each in cli.json("tables", "list", *options)["items"]]

    assert listed("--owner", "shop") == listed("--tag", "pii") == ["orders"]
    assert listed("--tag", "team=web") == []
    assert "shop   pii team=shop" in " ".join(cli.run("tables", "list").stdout.split(" "))
    shown = cli.run("tables", "show", "orders").stdout
    assert "pii, team=shop" in shown
    changed = cli.json("tables", "set", "orders", "--tag", "tier=gold", "--untag", "pii")
    assert (changed["owner"], changed["tags"]) == ("shop", {"team": "shop", "tier": "gold"})
    assert cli.json("tables", "set", "orders", "--untag", "tier")["tags"] == {"team": "shop"}
    assert cli.json("tables", "set", "orders", "--owner", "")["owner"] is None
    assert "tags" in cli.refused("tables", "set", "orders", "--tag", "a b=c", code=1)
    job = cli.json("jobs", "run", "audit", "orders", "--dry-run")["id"]
    assert [each["id"] for each in cli.json("jobs", "list", "--tag", "team=shop")["items"]] == [job]
    assert cli.json("jobs", "list", "--owner", "nobody")["items"] == []
    assert cli.json("problems", "--owner", "nobody")["items"] == []
