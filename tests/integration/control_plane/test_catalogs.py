"""Tables are found in catalogs, registered, followed and dropped by the rules of each catalog."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from jobs.storage.permissions import Permissions
from service.access.token import Role
from service.api.app import create_app
from service.api.catalog_forms import CatalogIn
from service.db.engine import writing
from service.model.errors import SettingsError
from service.registration.catalogs import store
from service.registration.catalogs.catalog import CatalogKind, Source
from service.registration.catalogs.listing import ReadLimits, read
from service.registration.detection import examine
from service.runtime import setting_rounds, settings
from tests.integration.control_plane.listed_lake import QUERY, Lake
from tests.support.contexts import changed
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.api.dependencies import AppContext
    from service.registration.catalogs.comparison import KnownTable
    from tests.integration.control_plane.conftest import FakeClock

ALL = {"new": "register", "moved": "follow", "dropped": "unregister"}


class Catalogs:
    """The API with one catalog."""

    def __init__(self, context: AppContext, lake: Lake, clock: FakeClock) -> None:
        self.lake, self.clock = lake, clock
        context = replace(context, database=replace(context.database, clock=clock))
        self._context = changed(context, examine=examine, permissions=Permissions((str(lake.path),)))
        self._clients: list[TestClient] = []

    def context_with(self, *, context: AppContext | None = None, **members: Any) -> AppContext:
        context = context or self._context
        wanted = CatalogIn.model_validate(self.lake.declared(**members))
        catalog = wanted.to_catalog(context.database, context.lake, ())
        others = tuple(each for each in context.catalogs if each.name != catalog.name)
        return replace(context, catalogs=(*others, catalog))

    def api(self, context: AppContext | None = None, **members: Any) -> TestClient:
        context = context or self.context_with(**members)
        setting_rounds.declare_catalogs(context)
        headers = {"Content-Type": "application/json"}
        client = TestClient(create_app(context), base_url="http://127.0.0.1", headers=headers)
        client.__enter__()
        self._clients.append(client)
        return client

    def close(self) -> None:
        for each in self._clients:
            each.__exit__()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def catalogs(app_context: AppContext, lake: Lake, clock: FakeClock) -> Iterator[Catalogs]:
    found = Catalogs(app_context, lake, clock)
    yield found
    found.close()


def sync(api: TestClient, status: int = 200, name: str = "lake", **more: Any) -> Any:
    answer = api.post(f"/v1/catalogs/{name}/sync", json=more)
    assert answer.status_code == status, answer.text
    return answer.json()


def outcome(report: Any) -> dict[str, tuple[str, str, bool]]:
    return {each["name"]: (each["kind"], each["action"], each["is_done"]) for each in report["findings"]}


def rows(context: AppContext) -> dict[str, KnownTable]:
    with writing(context.database.engine) as connection:
        return store.tables(connection, "lake")


def paths(api: TestClient) -> set[str]:
    return {each["base_path"].rpartition("/lake/")[2] for each in api.get("/v1/tables").json()["items"]}


def test_a_dry_run_says_what_a_sync_then_does_with_owner_and_tags(catalogs: Catalogs, tmp_path: Path) -> None:
    lake = catalogs.lake
    lake.table("shop.orders", owner="shop@example.com", team="shop")
    lake.table("shop.returns", team="password=geheim")
    SmallTable(tmp_path / "outside").commit("20260101120000000", completed="20260101120001000")
    lake.entry("shop.outside", str(tmp_path / "outside"))
    lake.entry("shop.gone", str(lake.path / "gone"))
    lake.entry("shop.nowhere", None)
    lake.entry("shop.strange", "ftp://host/x")
    api = catalogs.api(new="register", owner="lake@example.com", tags={"tier": "gold"})
    planned = sync(api, dry_run=True)
    assert paths(api) == set()
    assert outcome(planned) == {
        "shop.orders": ("new", "register", False),
        "shop.returns": ("new", "register", False),
        "shop.outside": ("refused", "none", False),
        "shop.gone": ("refused", "none", False),
        "shop.nowhere": ("broken", "none", False),
        "shop.strange": ("broken", "none", False),
    }
    reasons = {each["name"]: each["reason"]["type"] for each in planned["findings"] if each["reason"]}
    assert reasons["shop.outside"] == "/problems/path-not-allowed"
    assert reasons["shop.strange"] == "/problems/storage-not-supported"
    assert api.get("/v1/catalogs/lake").json()["synced_at"] is None

    done = sync(api)

    assert paths(api) == {"shop.orders", "shop.returns"}
    assert {name for name, (_, _, is_done) in outcome(done).items() if is_done} == {"shop.orders", "shop.returns"}
    tables = {each["base_path"].rpartition("/")[2]: each for each in api.get("/v1/tables").json()["items"]}
    assert (tables["shop.orders"]["owner"], tables["shop.orders"]["tags"]) == (
        "shop@example.com",
        {"tier": "gold", "team": "shop"},
    )
    # A secret in a parameter does not become a tag.
    assert (tables["shop.returns"]["owner"], tables["shop.returns"]["tags"]) == ("lake@example.com", {"tier": "gold"})
    assert {each["operation"] for each in api.get("/v1/audit", params={"object_type": "table"}).json()["items"]} == {
        "syncCatalog"
    }
    shown = api.get("/v1/catalogs").json()["items"][0]
    assert shown["report"]["counts"] == {"refused": 2, "broken": 2}
    [problem] = api.get("/v1/problems").json()["items"]
    assert (problem["kind"], problem["about"]["type"]) == ("catalog-differs", "catalog")
    assert "2 not readable, 2 refused" in problem["detail"]
    again = sync(api)
    assert (again["in_step"], len(again["findings"])) == (2, 4)


def test_by_default_everything_is_only_reported(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    base = lake.table("shop.orders")
    lake.table("shop.returns")
    api = catalogs.api()
    api.post("/v1/tables", json={"base_path": str(base)})
    assert outcome(sync(api)) == {"shop.returns": ("new", "none", False)}
    lake.table("shop.orders", at="moved")
    assert outcome(sync(api))["shop.orders"] == ("moved", "none", False)
    lake.drop("shop.orders")
    assert outcome(sync(api))["shop.orders"] == ("dropped", "none", False)
    assert paths(api) == {"shop.orders"}


def test_a_moved_table_is_followed_with_what_was_declared_about_it(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    lake.table("shop.orders", owner="shop")
    api = catalogs.api(**ALL)
    sync(api)
    [table] = api.get("/v1/tables").json()["items"]
    lock = {"provider": "zookeeper", "options": {"hoodie.write.lock.zookeeper.url": "zk:2181"}}
    api.patch(f"/v1/tables/{table['id']}", json={"lock": lock, "tags": {"tier": "gold"}})
    lake.table("shop.orders", at="elsewhere")
    assert outcome(sync(api, dry_run=True)) == {"shop.orders": ("moved", "follow", False)}
    assert outcome(sync(api)) == {"shop.orders": ("moved", "follow", True)}
    [moved] = api.get("/v1/tables").json()["items"]
    assert moved["base_path"].endswith("/elsewhere")
    assert (moved["lock"]["provider"], moved["tags"], moved["owner"]) == ("zookeeper", {"tier": "gold"}, "shop")
    assert moved["lock"]["options"] == lock["options"]
    assert sync(api)["findings"] == []
    # A location without a table is refused, and the old registration stays.
    lake.entry("shop.orders", str(lake.path / "nothing"))
    [finding] = sync(api)["findings"]
    assert (finding["kind"], finding["is_done"], finding["reason"]["type"]) == (
        "moved", False, "/problems/path-not-found",
    )  # fmt: skip
    assert paths(api) == {"elsewhere"}


def test_a_dropped_table_is_unregistered_by_the_second_sync_and_its_files_stay(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    base = lake.table("shop.orders")
    lake.table("shop.returns")
    by_hand = lake.table("shop.by_hand")
    api = catalogs.api(**ALL)
    api.post("/v1/tables", json={"base_path": str(by_hand)})
    sync(api)
    lake.drop("shop.orders")
    assert outcome(sync(api)) == {"shop.orders": ("dropped", "none", False)}
    assert "shop.orders" in paths(api)
    # The table comes back for one sync, so its absence counts anew.
    lake.table("shop.orders")
    assert sync(api)["findings"] == []
    lake.drop("shop.orders")
    for seconds in (0, 1800, 1000):
        catalogs.clock.advance(seconds)
        assert outcome(sync(api)) == {"shop.orders": ("dropped", "none", False)}
    catalogs.clock.advance(800)
    assert outcome(sync(api)) == {"shop.orders": ("dropped", "unregister", True)}
    assert paths(api) == {"shop.returns", "shop.by_hand"}
    assert (base / ".hoodie" / "hoodie.properties").exists()
    entry = api.get("/v1/audit", params={"object_type": "table"}).json()["items"][0]
    assert (entry["before"]["base_path"], entry["after"]) == (str(base), None)
    # Somebody had registered this table before the sync found it, so the sync only reports that it was dropped.
    lake.drop("shop.by_hand")
    sync(api)
    catalogs.clock.advance(3600)
    [finding] = sync(api)["findings"]
    assert (finding["action"], "only tables that a sync has registered" in finding["because"]) == ("none", True)
    assert "shop.by_hand" in paths(api)


@pytest.mark.parametrize("gone", ["%", "shop.t1%"], ids=["nothing", "half of it"])
def test_a_catalog_that_forgets_its_tables_unregisters_no_fleet(catalogs: Catalogs, gone: str) -> None:
    lake = catalogs.lake
    for number in range(5, 15):
        lake.table(f"shop.t{number}")
    api = catalogs.api(**ALL, most_dropped=0.2)
    sync(api)
    lake.drop(gone)
    sync(api)
    for _ in range(2):
        catalogs.clock.advance(3600)
        report = sync(api)
        assert {each["action"] for each in report["findings"]} == {"none"}
        assert all("limit" in each["because"] or "no table at all" in each["because"] for each in report["findings"])
    assert len(paths(api)) == 10


def test_patterns_that_exclude_a_table_leave_it_registered(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    lake.table("shop.orders")
    lake.table("scratch.orders")
    sync(catalogs.api(**ALL))
    narrower = catalogs.context_with(**ALL, databases=["!scratch"])
    api = catalogs.api(narrower)
    for _ in range(2):
        assert sync(api)["findings"] == []
        catalogs.clock.advance(3600)
    assert paths(api) == {"shop.orders", "scratch.orders"}
    assert set(rows(narrower)) == {"shop.orders"}


def test_a_moved_table_with_a_policy_of_its_own_is_not_followed(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    lake.table("shop.orders")
    api = catalogs.api(**ALL)
    sync(api)
    [table] = api.get("/v1/tables").json()["items"]
    api.put(f"/v1/tables/{table['id']}/policy", json={"compaction": {"enabled": False}}).raise_for_status()
    base = lake.table("elsewhere.orders")
    lake.drop("elsewhere.orders")
    lake.run(f"UPDATE entries SET location = '{base}' WHERE name = 'shop.orders'")
    [finding] = sync(api)["findings"]
    assert (finding["kind"], finding["action"]) == ("moved", "none")
    assert finding["because"].startswith("The policy that is set for the table")


def test_a_name_with_two_locations_is_reported_as_broken_and_registers_no_table(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    lake.table("shop.orders")
    lake.table("shop.returns")
    lake.run("UPDATE entries SET name = 'shop.orders'")
    api = catalogs.api(**ALL)
    assert outcome(sync(api)) == {"shop.orders": ("broken", "none", False)}
    assert paths(api) == set()


def test_a_table_that_another_catalog_lists_or_somebody_unregistered_is_left_alone(catalogs: Catalogs) -> None:
    lake = catalogs.lake
    base = lake.table("shop.orders")
    lake.table("shop.returns")
    both = catalogs.context_with(**ALL)
    both = catalogs.context_with(context=both, name="other", tables=["orders"], new="report")
    api = catalogs.api(both)
    sync(api)
    sync(api, name="other")
    lake.run("UPDATE entries SET name = 'hidden.orders' WHERE name = 'shop.orders'")
    sync(api)
    # The table is still the same under its new name.
    assert set(rows(both)) == {"hidden.orders", "shop.returns"}
    assert all(each.is_ours for each in rows(both).values())
    lake.drop("hidden.orders")
    sync(api)
    [finding] = sync(api)["findings"]
    assert finding["because"] == "Another catalog lists the table."
    lake.table("shop.orders")
    assert sync(api)["findings"] == []
    for each in api.get("/v1/tables").json()["items"]:
        if each["base_path"] == str(base):
            api.delete(f"/v1/tables/{each['id']}")
    [finding] = sync(api)["findings"]
    assert (finding["kind"], finding["action"]) == ("new", "none")
    assert "Somebody has unregistered the table" in finding["because"]
    assert paths(api) == {"shop.returns"}


def test_patterns_views_and_limits_decide_which_entries_are_listed(lake: Lake) -> None:
    for name in ("shop.orders", "shop.orders_ro", "shop.orders_rt"):
        lake.table(name, at="orders")
    lake.table("shop.tmp_x")
    lake.table("test.orders")

    def listed(limits: ReadLimits | None = None, **members: Any) -> Any:
        return read(Source(CatalogKind.SQL, f"sqlite:///{lake.database}", query=QUERY, **members), limits)

    assert [each.name for each in listed(databases=("*", "!test")).tables] == ["shop.orders", "shop.tmp_x"]
    assert [each.name for each in listed(databases=("SHOP",), tables=("!tmp_*",)).tables] == ["shop.orders"]
    assert not listed(ReadLimits(tables=1)).is_complete
    assert not listed(ReadLimits(entries=2)).is_complete
    assert not listed(ReadLimits(seconds=-1)).is_complete
    for number in range(250):
        lake.entry(f"shop.broken{number}", None)
    found = listed()
    assert (found.is_complete, len(found.broken)) == (False, 200)
    lake.drop("shop.broken%")
    lake.entry("shop." + "x" * 500, str(lake.path / "orders"))
    lake.entry("shop.\x1b[31m", str(lake.path / "orders2"))
    assert len(listed().broken) == 2
    assert all(each.name.isprintable() and len(each.name) <= 400 for each in listed().broken)


def test_a_failing_catalog_keeps_its_last_report_and_shows_no_secret(
    catalogs: Catalogs, clock: FakeClock, make_token: Callable[[Role], dict[str, str]]
) -> None:
    lake = catalogs.lake
    lake.table("shop.orders")
    context = catalogs.context_with(**ALL)
    api = catalogs.api(context)
    sync(api)
    broken = catalogs.context_with(query="SELECT location FROM entries")
    broken = catalogs.context_with(
        context=broken, name="away", address="postgresql+psycopg://reader:geheim@127.0.0.1:1/x?password=geheim"
    )
    api = catalogs.api(broken)
    assert sync(api, 502)["type"] == "/problems/catalog-failed"
    refused = sync(api, 502, name="away")
    assert refused["type"] == "/problems/catalog-unavailable"
    shown = api.get("/v1/catalogs").json()
    [of_lake] = [each for each in shown["items"] if each["name"] == "lake"]
    assert of_lake["report"]["in_step"] == 0
    assert of_lake["error"]["type"] == "/problems/catalog-failed"
    assert of_lake["failing_since"] is not None
    problems = api.get("/v1/problems").json()["items"]
    assert {(each["kind"], each["about"]["name"]) for each in problems} == {
        ("catalog-failing", "lake"),
        ("catalog-failing", "away"),
    }
    assert "geheim" not in json.dumps([shown, refused])
    assert sync(api, 404, name="none")["type"] == "/problems/catalog-not-found"
    for other in (Role.READER, Role.OPERATOR, Role.WORKER):
        assert api.post("/v1/catalogs/lake/sync", json={}, headers=make_token(other)).status_code == 403


def test_the_background_syncs_a_catalog_when_it_is_due(catalogs: Catalogs, clock: FakeClock) -> None:
    lake = catalogs.lake
    lake.table("shop.orders")
    context = catalogs.context_with(**ALL, every_seconds=100)
    context = replace(context, database=replace(context.database, clock=clock))
    setting_rounds.declare_catalogs(context)
    assert setting_rounds.sync_catalogs(context).startswith("registered or unregistered 1 ")
    lake.table("shop.returns")
    assert setting_rounds.sync_catalogs(context).startswith("registered or unregistered 0 ")
    clock.advance(101)
    assert setting_rounds.sync_catalogs(context).startswith("registered or unregistered 1 ")
    assert set(rows(context)) == {"shop.orders", "shop.returns"}


def test_the_setting_is_checked_and_never_shown(monkeypatch: pytest.MonkeyPatch, lake: Lake) -> None:
    good = lake.declared(roots=["/lake"])
    for bad in (
        {**good, "roots": []},
        {**good, "query": None},
        {**good, "kind": "glue"},
        {**good, "token": "geheim"},
        {**good, "address": "geheim"},
        {**good, "kind": "hive", "query": None, "address": "https://host"},
        {**good, "most_dropped": 2},
        {**good, "kind": "glue", "query": None, "address": "glue://glue", "account": "s3a://lake"},
    ):
        monkeypatch.setenv("GROUNDSKEEPER_CATALOGS", json.dumps([bad]))
        with pytest.raises(SettingsError) as refused:
            settings.load()
        assert "geheim" not in str(refused.value)
    monkeypatch.setenv("GROUNDSKEEPER_CATALOGS", json.dumps([good, good]))
    with pytest.raises(SettingsError):
        settings.load()
    monkeypatch.setenv("GROUNDSKEEPER_CATALOGS", json.dumps([good]))
    assert settings.load().catalogs[0].name == "lake"
