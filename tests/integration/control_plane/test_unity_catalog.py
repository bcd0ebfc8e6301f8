"""Tests the client of Unity Catalog against a stand-in, whose paths, pages and status codes follow the reference of the
open-source server. The tests show what the client does with such answers, not that a real server sends them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from service.api.catalog_forms import CatalogIn
from service.registration.catalogs import rounds, store
from service.registration.catalogs.catalog import CatalogKind, Source
from service.registration.catalogs.errors import CatalogError, CatalogLoginError, CatalogThrottledError
from service.registration.catalogs.listing import read
from tests.support.stand_in import Answer, Asked, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.api.dependencies import AppContext

_PATH = "/api/2.1/unity-catalog/"


class Unity:
    """`tables` by schema; a schema without a list is forbidden. `refused` requests get 429."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]] | None] = {}
        self.refused = 0
        self.expired: tuple[int, str] | None = None
        self.address = ""
        self.is_circular = False

    def answer(self, kind: str, asked: dict[str, str], token: str | None) -> tuple[int, dict[str, Any]]:
        if token != "Bearer right":
            return 401, {"error_code": "UNAUTHENTICATED"}
        if self.refused:
            self.refused -= 1
            return 429, {"error_code": "RESOURCE_EXHAUSTED"}
        if kind == "tables" and self.expired:
            return self.expired[0], {"error_code": "X", "message": self.expired[1]}
        if kind == "tables":
            found = self.tables[asked["schema_name"]]
            if found is None:
                return 403, {"error_code": "PERMISSION_DENIED"}
        else:
            found = [{"name": name} for name in (self.tables if kind == "schemas" else ("unity",))]
        first = int(asked.get("page_token", "0"))
        after = "0" if self.is_circular else str(first + 2) if first + 2 < len(found) else ""
        return 200, {kind: found[first : first + 2], "next_page_token": after}


@contextmanager
def running() -> Iterator[Unity]:
    unity = Unity()

    def answer(asked: Asked) -> Answer:
        url = urlsplit(asked.path)
        kind = url.path.removeprefix(_PATH)
        status, body = unity.answer(kind, dict(parse_qsl(url.query)), asked.headers.get("Authorization"))
        return Answer.of(body, status, **{"Retry-After": "0"})

    with StandIn(answer) as server:
        unity.address = server.url
        yield unity


@pytest.fixture
def unity() -> Iterator[Unity]:
    with running() as found:
        yield found


def test_pages_are_read_to_the_end_and_refusals_are_reported(unity: Unity, tmp_path: Path) -> None:
    def table(number: int, **more: Any) -> dict[str, Any]:
        return {"name": f"t{number}", "storage_location": f"file://{tmp_path}/t{number}", **more}

    unity.tables["shop"] = [table(number, properties={"provider": "hudi"}) for number in range(5)]
    unity.tables["shop"].append(table(9, data_source_format="DELTA"))
    unity.tables["closed"] = None
    unity.tables["other"] = [table(7, data_source_format="HUDI", owner="fleet")]
    source = Source(CatalogKind.UNITY, unity.address, token="right")
    unity.refused = 2
    found = read(source)
    assert [each.name for each in found.tables] == ["unity.other.t7", *(f"unity.shop.t{number}" for number in range(5))]
    assert (found.tables[0].owner, found.entries) == ("fleet", 7)
    assert [each.name for each in found.broken] == ["unity.closed.*"]
    assert not found.lacks("unity.closed.t1")
    assert found.lacks("unity.shop.t8")
    with pytest.raises(CatalogLoginError) as refused:
        read(Source(CatalogKind.UNITY, unity.address, token="geheim"))
    assert "geheim" not in str(refused.value)
    unity.is_circular = True
    with pytest.raises(CatalogError, match="names itself"):
        read(source)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (403, "Invalid access token."),
        (403, "Access token has been revoked."),
        (500, "The Token has expired on 2026-11-29T10:00:00Z."),
    ],
)
def test_a_token_that_ends_while_tables_are_listed_is_no_missing_permission(
    unity: Unity, status: int, said: str
) -> None:
    unity.tables["shop"] = []
    unity.expired = status, said
    with pytest.raises(CatalogLoginError, match=said):
        read(Source(CatalogKind.UNITY, unity.address, token="right"))


def test_a_catalog_that_refuses_calls_is_asked_less_and_less_often(unity: Unity, app_context: AppContext) -> None:
    declared = {"name": "u", "kind": "unity", "address": unity.address, "token": "right", "every_seconds": 100}
    database = app_context.database
    catalog = CatalogIn.model_validate(declared).to_catalog(database, app_context.lake, ())
    with database.engine.begin() as connection:
        store.declare(connection, ["u"], database.clock())
    pauses = []
    for _ in range(6):
        unity.refused = 100
        before = database.clock()
        with pytest.raises(CatalogThrottledError):
            rounds.run(database, app_context.lake, catalog)
        pauses.append(round((rounds.states(database)["u"].next_at - before).total_seconds(), -2))
    assert pauses == [200, 400, 800, 1600, 1600, 1600]
    assert rounds.states(database)["u"].failures == 6
    unity.refused, unity.tables = 0, {"shop": []}
    rounds.run(database, app_context.lake, catalog)
    state = rounds.states(database)["u"]
    assert (state.error, state.failing_since, state.failures) == (None, None, 0)
