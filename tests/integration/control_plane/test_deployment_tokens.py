"""Tests the tokens that a deployment brings, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from service.access import deployment_tokens, token_store
from service.access.token import Bearer, Role
from service.db.engine import open_engine, reading, writing
from service.model.errors import SettingsError
from tests.integration.serving import Serving
from tests.support.commands import called

if TYPE_CHECKING:
    from pathlib import Path

    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

NAME = "GROUNDSKEEPER_ADMIN_TOKEN"


def test_replicas_that_start_together_store_a_token_once(engine: sa.Engine, database: str, clock: FakeClock) -> None:
    token, together = str(Bearer.new()), threading.Barrier(2)

    def start() -> None:
        own = open_engine(database)
        with writing(own) as connection:
            deployment_tokens.accept(connection, NAME, token, Role.ADMIN, clock())
        own.dispose()

    def start_together() -> None:
        together.wait()
        start()

    with ThreadPoolExecutor(2) as pool:
        for replica in [pool.submit(start_together) for _ in range(2)]:
            replica.result()
    start()
    with reading(engine) as connection:
        (stored,) = token_store.every(connection)
    bearer = Bearer.parse(token)
    assert bearer is not None
    assert (stored.id, stored.role) == (bearer.id, Role.ADMIN)
    assert stored.matches(bearer.secret, clock())


def test_another_secret_or_role_under_the_same_id_is_refused(sqlite: sa.Engine, clock: FakeClock) -> None:
    with writing(sqlite) as connection:
        deployment_tokens.accept(connection, NAME, f"gk_a_{'1' * 32}", Role.ADMIN, clock())
    for text, role in ((f"gk_a_{'2' * 32}", Role.ADMIN), (f"gk_a_{'1' * 32}", Role.WORKER)):
        with pytest.raises(SettingsError, match="another token"), writing(sqlite) as connection:
            deployment_tokens.accept(connection, NAME, text, role, clock())


@pytest.mark.parametrize("text", ["", "hunter2", f"gk_a_{'1' * 31}", f"gk_{'a' * 33}_{'1' * 32}", f"gk_a-b_{'1' * 32}"])
def test_a_malformed_token_of_a_deployment_is_refused_without_being_shown(
    sqlite: sa.Engine, clock: FakeClock, text: str
) -> None:
    with pytest.raises(SettingsError) as caught, writing(sqlite) as connection:
        deployment_tokens.accept(connection, NAME, text, Role.ADMIN, clock())
    assert NAME in caught.value.detail
    assert not text or text not in caught.value.detail


def test_the_first_token_never_replaces_a_file(sqlite: sa.Engine, clock: FakeClock, tmp_path: Path) -> None:
    file = tmp_path / "first-token"
    file.write_text("of another database")
    with pytest.raises(SettingsError, match="File exists"), writing(sqlite) as connection:
        deployment_tokens.make_first(connection, file, clock())
    with reading(sqlite) as connection:
        assert not token_store.exist(connection)
    assert file.read_text() == "of another database"


def test_keda_finds_the_wanted_slots_with_the_token_and_the_address_of_the_manifests(tmp_path: Path) -> None:
    printed = called(["manifests", "kubernetes", "--max-workers", "3"]).stdout
    of_kind = {each["kind"]: each.get("spec") for each in yaml.safe_load_all(printed)}
    (secret,) = of_kind["TriggerAuthentication"]["secretTargetRef"]
    trigger = of_kind["ScaledObject"]["triggers"][0]["metadata"]
    address = urlsplit(trigger["url"])
    (port,) = of_kind["Service"]["ports"]
    assert (address.hostname, address.port) == ("groundskeeper.default", port["port"])

    tokens = {name: str(Bearer.new()) for name in ("GROUNDSKEEPER_ADMIN_TOKEN", secret["key"])}
    settings = {name.removeprefix("GROUNDSKEEPER_"): token for name, token in tokens.items()}
    with Serving(tmp_path, **settings) as service, httpx.Client(base_url=service.url) as keda:
        asked = f"{address.path}?{address.query}"
        assert keda.get(asked).status_code == 401
        keda.headers["Authorization"] = f"Bearer {tokens[secret['key']]}"
        found = keda.get(asked).json()
        for name in trigger["valueLocation"].split("."):
            found = found[name]
        assert found == 0
        assert keda.post("/v1/webhooks", json={"url": "https://example.com"}).status_code == 403
