"""Tests the commands that need no service, because they open the database themselves or show the settings."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from service.model.errors import SettingsError, TokenNotFoundError
from service.runtime.settings import Settings
from tests.support.commands import called

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result as Ended


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _run(*arguments: str, **environment: str) -> Ended:
    return called(arguments, environment)


@pytest.mark.parametrize("command", [("list",), ("revoke", "none")])
def test_a_mistyped_database_is_named_and_not_created(command: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"There is no database sqlite:///{tmp_path}/tokenz.db"):
        _run("token", *command, "--database", "sqlite:///tokenz.db")
    assert not list(tmp_path.iterdir())


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE theirs (id)")
    with pytest.raises(SettingsError, match="was not made by Groundskeeper"):
        _run("token", "list", "--database", "sqlite:///other.db")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_commands_say_which_database_they_opened_and_whether_it_is_new(tmp_path: Path) -> None:
    shown = f"sqlite:///{tmp_path}/groundskeeper.db"
    made = _run("token", "create", "--role", "admin", "--name", "Ada")
    assert f"New database: {shown}\n" in made.stderr
    assert made.stdout.startswith("gk_")
    listed = _run("token", "list")
    assert listed.stderr == f"Database: {shown}\n"
    assert "Ada" in listed.stdout
    assert _run("migrate").stdout.startswith(f"The database {shown} is at revision ")
    with pytest.raises(TokenNotFoundError):
        _run("token", "revoke", "none")


def _settings(**environment: str) -> dict[str, Any]:
    document = json.loads(_run("config", "show", "--json", **environment).stdout)
    return {each["name"].removeprefix("GROUNDSKEEPER_"): each for each in document["settings"]}


def test_config_show_tells_every_setting_and_where_it_comes_from() -> None:
    found = _settings(GROUNDSKEEPER_PORT="9")
    assert found.keys() == {name.upper() for name in Settings.model_fields} | {"URL", "TOKEN"}
    assert (found["PORT"]["value"], found["PORT"]["source"]) == (9, "environment")
    assert (found["HOST"]["value"], found["HOST"]["source"]) == ("127.0.0.1", "default")
    changed = _run("config", "show", "--changed", GROUNDSKEEPER_PORT="9").stdout
    assert [line.split() for line in changed.splitlines()[1:]] == [["GROUNDSKEEPER_PORT", "9", "environment"]]


def test_config_show_masks_secrets() -> None:
    secret = "abcdefghijkl"
    ended = _run(
        "config",
        "show",
        GROUNDSKEEPER_DATABASE=f"postgresql://user:{secret}@host/name",
        GROUNDSKEEPER_WORKER_TOKEN=secret,
        GROUNDSKEEPER_TOKEN=secret,
        GROUNDSKEEPER_SECRET_KEYS=f"{secret},{secret}",
        GROUNDSKEEPER_STORAGE_OPTIONS=json.dumps({"fs.s3a.secret.key": secret, "fs.s3a.endpoint": "http://s3"}),
    )
    assert secret not in ended.stdout
    assert "http://s3" in ended.stdout
    assert "postgresql://user:" in ended.stdout


def test_an_unknown_variable_is_refused_with_the_name_of_the_nearest_setting() -> None:
    with pytest.raises(
        SettingsError, match="GROUNDSKEEPER_POL_SECONDS is no setting; the nearest one is GROUNDSKEEPER_POLL_"
    ):
        _run("config", "show", GROUNDSKEEPER_POL_SECONDS="1")
