"""Tests contexts, the forms of output, and guesses for misspelt words."""

from __future__ import annotations

import json
import re
import stat
from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from service.cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.control_plane.command_line import CommandLine

NOWHERE = "http://127.0.0.1:9"


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
    assert "Is compaction meant?" in cli.refused("policy", "set", "orders", "compation.commits=3", code=1)


def test_the_help_of_commands_is_wrapped_by_the_terminal(cli: CommandLine) -> None:
    shown = cli.run("mcp", "-h", COLUMNS="200").stdout
    assert "the token of --token-file, GROUNDSKEEPER_TOKEN or the context. --http serves" in shown


def test_a_poll_says_what_it_found(cli: CommandLine) -> None:
    cli.run("tables", "poll", "orders")
    assert "orders: the poll found nothing new; the last commit is 2026" in cli.run("tables", "poll", "orders").stdout


def completed(cli: CommandLine, words: str, **environment: str | None) -> list[str]:
    """Returns the completions that a shell shows after these words."""
    asked = {"_GROUNDSKEEPER_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"groundskeeper {words}"}
    ended = CliRunner().invoke(app, [], env={**cli.environment, **asked, **environment}, prog_name="groundskeeper")
    return re.findall(r'(?:^|\(\()"([^"]*)"', ended.stdout, re.MULTILINE)


def test_a_shell_completes_tables_kinds_jobs_and_settings(cli: CommandLine) -> None:
    assert completed(cli, "tables show or") == ["orders"]
    assert completed(cli, "jobs run compac") == ["compaction"]
    job = cli.json("jobs", "run", "audit", "orders")["id"]
    assert completed(cli, "jobs show job_") == [job]
    assert completed(cli, "policy set orders compaction.co") == ["compaction.commits=", "compaction.codec="]
    assert completed(cli, "tables show or", GROUNDSKEEPER_URL=NOWHERE) == []
    assert completed(cli, "tables show or", GROUNDSKEEPER_TOKEN="gk_nobody_nothing") == []


def test_policies_are_listed_shown_with_units_and_previewed(cli: CommandLine) -> None:
    (cli.folder / "night.json").write_text(
        '{"windows": [{"start": "22:00", "end": "04:30", "days": ["fri"]}], "compaction": {"seconds": 5400}}'
    )
    cli.run("policy", "set", "--pattern", "ord*", "--file", str(cli.folder / "night.json"))
    (line,) = [each for each in cli.run("policy", "list").stdout.splitlines() if each.startswith("ord*")]
    assert line.split("  ")[0] == "ord*"
    assert "orders" in line
    assert "windows fri 22:00-04:30" in line
    assert "compaction.seconds 90 min" in line
    lines = {each.split()[0]: each for each in cli.run("policy", "show", "orders").stdout.splitlines()}
    assert lines["bucket_expansion.max_bucket_bytes"].split() == (
        ["bucket_expansion.max_bucket_bytes", "3", "GiB", "default", "3", "GiB", "from", "1", "MiB"]
    )
    assert "90 min" in lines["compaction.seconds"]
    assert "1 s to 365 days" in lines["compaction.seconds"]
    shown = cli.run("policy", "preview", "ord*", "compaction.commits=9").stdout
    assert re.search(r"^orders +5 +9 +compaction.commits$", shown, re.MULTILINE)
    assert cli.json("policy", "preview", "ord*", "--delete")["tables"] == 1
    assert "moons: is not known here" in " ".join(
        cli.run("policy", "preview", "ord*", "moons=1", code=1).stderr.split()
    )


def test_freezes_are_set_listed_and_removed(cli: CommandLine) -> None:
    cli.run("freezes", "set", "sale", "--from", "1h", "--to", "2999-01-01", "--reason", "the sale")
    assert cli.run("freezes", "list").stdout.splitlines()[1].split()[:2] == ["sale", "lasts"]
    assert "--yes" in cli.refused("freezes", "remove", "sale", code=2)
    assert cli.json("freezes", "remove", "sale", "--yes")["tables"] == ["*"]
    cli.refused("freezes", "remove", "sale", "--yes", code=3)
