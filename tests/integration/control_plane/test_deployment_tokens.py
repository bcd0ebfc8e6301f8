"""Tests the tokens that a deployment brings, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from service.access import deployment_tokens, token_store
from service.access.token import Bearer, Role
from service.db.engine import open_engine, reading, writing
from service.model.errors import SettingsError

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
def test_what_is_no_token_is_refused_without_being_shown(sqlite: sa.Engine, clock: FakeClock, text: str) -> None:
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
