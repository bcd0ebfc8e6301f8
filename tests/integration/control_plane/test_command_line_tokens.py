"""The command line makes tokens that expire, and a real service refuses them afterwards."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from service.access.known_tokens import KEPT_SECONDS
from service.db import schema
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.control_plane.command_line import CommandLine, serving_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("tokens")) as cli:
        cli.environment["GROUNDSKEEPER_DATABASE"] = str(cli.serving.engine.url)
        yield cli


def _created(cli: CommandLine, *options: str) -> tuple[str, str]:
    """Returns the token and its id."""
    ended = cli.run("token", "create", "--role", "reader", *options)
    match = re.search(r"^Token (\w+) with role reader", ended.stderr, re.MULTILINE)
    assert match, ended.stderr
    return ended.stdout.strip(), match.group(1)


def _line(cli: CommandLine, token_id: str) -> str:
    [line] = [line for line in cli.run("token", "list").stdout.splitlines() if line.startswith(token_id)]
    return line


def test_a_token_for_days_is_listed_with_its_end_and_refused_after_it(cli: CommandLine) -> None:
    before = utc_now()
    bearer, token_id = _created(cli, "--name", "for a day", "--days", "1.5")
    shown = re.search(r"valid until (\d{4}-\d\d-\d\d \d\d:\d\d)  for a day$", _line(cli, token_id))
    assert shown
    until = datetime.fromisoformat(f"{shown[1]}+00:00")
    end = before + timedelta(days=1.5)
    assert timedelta(minutes=-1) < until - end < timedelta(minutes=2)
    cli.run("tables", "list", GROUNDSKEEPER_TOKEN=bearer)

    with writing(cli.serving.engine) as connection:
        tokens = schema.tokens
        past = utc_now() - timedelta(seconds=5)
        connection.execute(tokens.update().where(tokens.c.id == token_id).values(expires_at=past))
    time.sleep(KEPT_SECONDS)
    assert f"  expired {past:%Y-%m-%d %H:%M}  for a day" in _line(cli, token_id)
    assert "token" in cli.refused("tables", "list", code=4, GROUNDSKEEPER_TOKEN=bearer)


def test_a_token_without_days_has_no_end_and_a_revoked_one_says_so(cli: CommandLine) -> None:
    bearer, token_id = _created(cli, "--name", "for ever")
    assert _line(cli, token_id).endswith("  valid  for ever")
    _, short = _created(cli, "--name", "gone", "--days", "7")
    for each in (token_id, short):
        cli.run("token", "revoke", each)
    assert re.search(r"  revoked \S+ \S+  gone$", _line(cli, short))
    assert "token" in cli.refused("tables", "list", code=4, GROUNDSKEEPER_TOKEN=bearer)


@pytest.mark.parametrize("days", ["0", "-1", "36501", "nan", "soon"])
def test_days_out_of_bounds_make_no_token(cli: CommandLine, days: str) -> None:
    before = cli.run("token", "list").stdout
    assert "--days" in cli.refused("token", "create", "--role", "reader", "--days", days, code=2)
    assert cli.run("token", "list").stdout == before


def test_a_role_can_be_limited_to_tables(cli: CommandLine) -> None:
    options = ("--name", "shop", "--tables", "tag:team=shop", "--tables", "orders_*")
    ended = cli.run("token", "create", "--role", "operator", *options)
    assert cli.run("token", "list").stdout.rstrip().endswith("  shop (tag:team=shop, orders_*)")
    token = {"GROUNDSKEEPER_TOKEN": ended.stdout.strip()}
    refused = cli.refused("freezes", "set", "x", "--from", "2026-01-01", "--to", "2026-01-02", code=4, **token)
    assert "on the tables tag:team=shop, orders_* only" in " ".join(refused.split())
    told = " ".join(cli.refused("token", "create", "--role", "reader", "--tables", "a", code=2).split())
    assert "only the roles operator and admin can be limited" in told
