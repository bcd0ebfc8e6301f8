"""Tests contexts, the forms of output, and guesses for misspelt words."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.integration.control_plane.command_line import serving_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.control_plane.command_line import CommandLine

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("contexts")) as cli:
        cli.table("orders", "--lock", "filesystem", "--engine", "spark")
        yield cli


def without_variables(folder: Path) -> dict[str, str | None]:
    return {"GROUNDSKEEPER_URL": None, "GROUNDSKEEPER_TOKEN": None, "XDG_CONFIG_HOME": str(folder)}


def test_a_context_names_a_service_and_the_file_of_its_token(cli: CommandLine, tmp_path: Path) -> None:
    alone = without_variables(tmp_path)
    token = tmp_path / "token"
    token.write_text(cli.environment["GROUNDSKEEPER_TOKEN"] or "")
    cli.run("context", "add", "prod", "--url", cli.serving.url, "--token-file", str(token), **alone)
    cli.run("context", "add", "test", "--url", NOWHERE, **alone)
    assert [each["name"] for each in cli.json("tables", "list", **alone)["items"]] == ["orders"]
    file = tmp_path / "groundskeeper" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert cli.environment["GROUNDSKEEPER_TOKEN"] not in file.read_text()
    cli.run("context", "use", "test", **alone)
    cli.run("tables", "list", code=5, **alone)
    # Variables and options win, and a token of a context goes nowhere else.
    cli.run("tables", "list", XDG_CONFIG_HOME=str(tmp_path))
    cli.run("context", "use", "prod", **alone)
    cli.run("tables", "list", code=4, **{**alone, "GROUNDSKEEPER_URL": cli.serving.url})
    in_use = {each["name"]: each["in_use"] for each in cli.json("context", "list", **alone)["items"]}
    assert in_use == {"prod": True, "test": False}
    assert "Is prod meant?" in cli.refused("context", "remove", "prd", code=3, **alone)
    cli.run("context", "remove", "prod", **alone)
    cli.run("tables", "list", "--url", cli.serving.url, code=4, **alone)


@pytest.mark.parametrize("content", ["{", "[]", '{"contexts": {"a": {}}}', "\xff", "x" * 2_000_000])
def test_a_damaged_file_of_contexts_is_named(cli: CommandLine, tmp_path: Path, content: str) -> None:
    (tmp_path / "groundskeeper").mkdir()
    (tmp_path / "groundskeeper" / "contexts.json").write_text(content, encoding="latin-1")
    assert "contexts.json" in " ".join(cli.refused("tables", "list", code=2, **without_variables(tmp_path)).split())


def test_lists_and_objects_have_four_forms(cli: CommandLine) -> None:
    as_json = cli.json("tables", "show", "orders")
    assert json.loads(cli.run("tables", "show", "orders", "-o", "json").stdout) == as_json
    assert yaml.safe_load(cli.run("tables", "show", "orders", "-o", "yaml").stdout) == as_json
    assert cli.run("tables", "list", "-o", "name").stdout == as_json["id"] + "\n"
    assert cli.run("tables", "show", "orders", "-o", "name").stdout == as_json["id"] + "\n"
    assert cli.run("tables", "list", "-o", "table").stdout.startswith("ID ")


def test_misspelt_words_get_a_guess_in_plain_words(cli: CommandLine) -> None:
    refused = " ".join(cli.refused("jobs", "run", "compactoin", "orders", code=2).replace("│", " ").split())
    assert "'compactoin' is not one of 'compaction'," in refused
    assert "Is compaction meant?" in refused
    assert "Value error" not in refused
    assert "Is orders meant?" in cli.refused("tables", "show", "ordres", code=3)


def test_a_poll_says_what_it_found(cli: CommandLine) -> None:
    cli.run("tables", "poll", "orders")
    assert "orders: the poll found nothing new; the last commit is 2026" in cli.run("tables", "poll", "orders").stdout
