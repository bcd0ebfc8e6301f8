"""The service finds and registers the tables below a folder among other files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi.testclient import TestClient

from jobs.storage.permissions import Permissions
from service.access.token import Role
from service.api import discovery as of_api
from service.api.app import create_app
from service.model.errors import GroundskeeperError, SettingsError
from service.registration import discovery
from service.registration.detection import examine
from service.runtime import settings
from tests.integration.serving import Serving, eventually
from tests.support.contexts import changed
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.api.dependencies import AppContext

LOCK = {"provider": "zookeeper", "options": {"hoodie.write.lock.zookeeper.url": "zk:2181"}}


def table(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    SmallTable(path).commit("20260101120000000", completed="20260101120001000")
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    for name in ("shop/orders", "shop/eu/returns", "trips"):
        table(lake / name)
    (lake / "plain" / "2026").mkdir(parents=True)
    return lake


@pytest.fixture
def context(app_context: AppContext, lake: Path) -> AppContext:
    return changed(app_context, examine=examine, permissions=Permissions((str(lake),)))


@pytest.fixture
def api(context: AppContext) -> Iterator[TestClient]:
    headers = {"Content-Type": "application/json"}
    with TestClient(create_app(context), base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def discover(api: TestClient, root: Path | str, status: int = 200, **more: Any) -> Any:
    answer = api.post("/v1/discover", json={"root": str(root), **more})
    assert answer.status_code == status, answer.text
    return answer.json()


def states(found: Any, lake: Path) -> dict[str, str]:
    return {each["base_path"].removeprefix(f"{lake}/"): each["state"] for each in found["items"]}


def test_tables_are_listed_and_then_registered_each_with_its_audit_entry(api: TestClient, lake: Path) -> None:
    known = api.post("/v1/tables", json={"base_path": str(lake / "trips")}).json()["id"]
    found = discover(api, lake)
    assert states(found, lake) == {
        "shop/eu/returns": "can-be-registered",
        "shop/orders": "can-be-registered",
        "trips": "registered",
    }
    assert (found["is_complete"], found["skipped"]) == (True, [])
    assert len(api.get("/v1/tables").json()["items"]) == 1
    done = discover(api, f"{lake}/", pattern="shop/*", register=True, lock=LOCK, writers={"engines": ["spark"]})
    assert states(done, lake) == {"shop/eu/returns": "registered", "shop/orders": "registered"}
    assert [each["is_new"] for each in done["items"]] == [True, True]
    for each in done["items"]:
        stored = api.get(f"/v1/tables/{each['table_id']}").json()
        assert (stored["base_path"], stored["lock"]["provider"]) == (each["base_path"], "zookeeper")
        assert stored["writers"]["engines"] == ["spark"]
    entries = api.get("/v1/audit", params={"operation": "discoverTables", "object_type": "table"}).json()["items"]
    assert {each["object_id"] for each in entries} == {each["table_id"] for each in done["items"]}
    assert all(each["before"] is None and each["after"]["lock"]["provider"] == "zookeeper" for each in entries)
    again = discover(api, lake, register=True)
    assert {each["table_id"] for each in again["items"]} == {known, *(each["table_id"] for each in done["items"])}
    assert not any(each["is_new"] for each in again["items"])


def test_hostile_folders_do_not_stop_the_others(api: TestClient, lake: Path, tmp_path: Path) -> None:
    outside = table(tmp_path / "outside")
    (lake / "link").symlink_to(outside)
    (lake / "loop").mkdir()
    (lake / "loop" / "again").symlink_to(lake / "loop")
    (lake / "inside").symlink_to(lake / "trips")
    (table(lake / "garbled") / ".hoodie" / "hoodie.properties").write_bytes(b"\xff\x00=\x80" * 100)
    (table(lake / "old") / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=x\nhoodie.table.version=5\n")
    (lake / "empty" / ".hoodie").mkdir(parents=True)
    (lake / "file" / ".hoodie" / "hoodie.properties").mkdir(parents=True)
    closed = lake / "closed"
    closed.mkdir(mode=0)
    odd = table(lake / "o'd d\n%")
    try:
        found = discover(api, lake, register=True)
    finally:
        closed.chmod(0o700)
    by_path = states(found, lake)
    assert by_path.pop(str(odd).removeprefix(f"{lake}/")) == "registered"
    for name in ("garbled", "old"):
        assert by_path.pop(name) == "refused", name
    assert by_path.pop("file", "refused") == "refused"
    assert by_path == {"shop/eu/returns": "registered", "shop/orders": "registered", "trips": "registered"}
    reasons = {each["base_path"].rpartition("/")[2]: each["reason"] for each in found["items"] if each["reason"]}
    assert reasons["old"]["type"] == "/problems/table-not-supported"
    skipped = {each["path"]: each["reason"]["type"] for each in found["skipped"]}
    assert skipped["link"] == "/problems/path-outside-table"
    if os.geteuid() != 0:
        assert skipped["closed"] == "/problems/storage-access-denied"
    assert not any(str(outside) in each["base_path"] for each in api.get("/v1/tables").json()["items"])


def test_only_allowed_roots_are_searched(api: TestClient, lake: Path, tmp_path: Path) -> None:
    for root, status, kind in (
        (tmp_path, 403, "path-not-allowed"),
        (f"{lake}/../", 403, "path-not-allowed"),
        (lake / "none", 422, "path-not-found"),
        ("ftp://host/x", 422, "storage-not-supported"),
    ):
        assert discover(api, root, status)["type"] == f"/problems/{kind}"


def test_only_an_administrator_may_look(
    api: TestClient, lake: Path, make_token: Callable[[Role], dict[str, str]]
) -> None:
    for role in (Role.READER, Role.OPERATOR, Role.WORKER):
        assert api.post("/v1/discover", json={"root": str(lake)}, headers=make_token(role)).status_code == 403


def test_the_search_is_bounded_in_every_way(lake: Path) -> None:
    def walk(**limits: Any) -> discovery.Walk:
        return discovery.walk(
            str(lake),
            pattern="*",
            storage_options={},
            allowed_roots=None,
            limits=discovery.WalkLimits(**limits),
        )

    assert (len(walk().tables), walk().is_complete) == (3, True)
    assert (len(walk(depth=1).tables), walk(depth=1).is_complete) == (1, False)
    assert (len(walk(tables=2).tables), walk(tables=2).is_complete) == (2, False)
    assert (walk(folders=1).tables, walk(folders=1).is_complete) == ((), False)
    assert (walk(seconds=-1).tables, walk(seconds=-1).is_complete) == ((), False)
    for number in range(30):
        (lake / "plain" / str(number)).mkdir()
    assert [each.path for each in walk(entries=20).skipped] == ["plain"]
    with pytest.raises(GroundskeeperError):
        walk(entries=2)


def test_one_call_registers_a_limited_number_and_the_next_calls_the_rest(api: TestClient, lake: Path) -> None:
    first = discover(api, lake, register=True, limit=2)
    assert (len(first["items"]), first["is_complete"]) == (2, False)
    second = discover(api, lake, register=True, limit=2)
    assert ([each["is_new"] for each in second["items"]], second["is_complete"]) == ([False, False, True], True)


def test_a_process_searches_for_one_caller_at_a_time(api: TestClient, lake: Path) -> None:
    with of_api._turn:
        assert discover(api, lake, 503)["type"] == "/problems/service-busy"
    discover(api, lake)


def test_the_settings_register_tables_by_themselves(lake: Path, tmp_path: Path) -> None:
    wanted = [{"root": str(lake / "none")}, {"root": str(lake), "pattern": "shop/*", "writers": {"stopped": True}}]
    with Serving(tmp_path, AUTOMATIC="false", DISCOVER=json.dumps(wanted), DISCOVER_SECONDS="1") as service:

        def listed() -> set[str]:
            items = httpx.get(f"{service.url}/v1/tables").json()["items"]
            return {each["base_path"] for each in items if each["writers"]["stopped"]}

        assert eventually(lambda: listed() == {str(lake / "shop/orders"), str(lake / "shop/eu/returns")}, 60)
        entries = httpx.get(f"{service.url}/v1/audit").json()["items"]
        assert {(each["who"], each["operation"]) for each in entries} == {("GROUNDSKEEPER_DISCOVER", "discoverTables")}
        assert len(entries) == 2


RULED = {
    "rules": ["{owner}/*", "{team}/{tier}/*", "**/{leaf}"],
    "owner": "nobody",
    "tags": {"tier": "none", "lake": ""},
}


def test_rules_give_tables_owner_and_tags_by_their_paths(api: TestClient, lake: Path) -> None:
    found = {each["base_path"].rpartition("/")[2]: each for each in discover(api, lake, **RULED)["items"]}
    gets = {name: (each["owner"], each["tags"]) for name, each in found.items()}
    assert gets == {
        "orders": ("shop", {"tier": "none", "lake": "", "leaf": "orders"}),
        "returns": ("nobody", {"tier": "eu", "lake": "", "leaf": "returns", "team": "shop"}),
        "trips": ("nobody", {"tier": "none", "lake": "", "leaf": "trips"}),
    }
    assert api.get("/v1/tables").json()["items"] == []
    discover(api, lake, register=True, **RULED)
    tables = api.get("/v1/tables").json()["items"]
    assert {each["base_path"].rpartition("/")[2]: (each["owner"], each["tags"]) for each in tables} == gets


@pytest.mark.parametrize(
    "rule", ["shop/*", "{a}{b}", "{a}/{a}", "a//{b}", "{}", "{a b}", "{a}*", "**/**/{a}", "{a", "a}", "*{a}", "{-a}"]
)
def test_an_invalid_rule_is_refused(api: TestClient, lake: Path, rule: str) -> None:
    refused = discover(api, lake, 422, rules=[rule])
    assert refused["errors"][0]["field"] == "rules[0]"


def test_a_folder_whose_name_is_not_a_valid_tag_gives_no_tag(api: TestClient, lake: Path) -> None:
    table(lake / "password=geheim" / "t")
    table(lake / ("x" * 200) / "t")
    found = discover(api, lake, rules=["{team}/*"], pattern="*/t")
    assert [each["tags"] for each in found["items"]] == [{}, {}]


def test_the_setting_takes_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDSKEEPER_DISCOVER", json.dumps([{"root": "s3a://lake/", "rules": ["{team}/*"]}]))
    assert settings.load().discover[0]["rules"] == ["{team}/*"]
    monkeypatch.setenv("GROUNDSKEEPER_DISCOVER", json.dumps([{"root": "s3a://lake/", "rules": ["*"]}]))
    with pytest.raises(SettingsError):
        settings.load()
