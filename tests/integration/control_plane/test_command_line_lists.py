"""Tests the filters of the command line's lists with a real service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from service.db.engine import writing
from service.incidents import store as incident_store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.model.clock import utc_now
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.integration.serving import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("lists")) as cli:
        (cli.folder / "shop").mkdir()
        for name in ("shop/orders", "shop/returns", "trips"):
            cli.table(name, "--name", name.rpartition("/")[2])
        yield cli


def _names(page: dict[str, Any]) -> list[str]:
    return [each["name"] for each in page["items"]]


def test_tables_are_listed_by_a_pattern_of_names_and_by_folder(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _names(cli.json("tables", "list", "--name", "?r*")) == ["orders", "trips"]
    assert _names(cli.json("tables", "list", "--path", f"{cli.folder}/shop/")) == ["orders", "returns"]
    assert _names(cli.json("tables", "list", "--path", f"{cli.folder}/trips")) == ["trips"]
    assert _names(cli.json("tables", "list", "--path", str(cli.folder), "--name", "RET*")) == ["returns"]
    monkeypatch.chdir(cli.folder)
    assert _names(cli.json("tables", "list", "--path", "shop")) == ["orders", "returns"]
    ended = cli.run("tables", "list", "--name", "nothing")
    assert (ended.stdout, ended.stderr) == ("", "There are no such tables.\n")
    assert "name" in cli.refused("tables", "list", "--name", "*" * 9, code=1)


def test_many_tables_get_settings_an_owner_and_tags_by_one_call(cli: CommandLine) -> None:
    answer = cli.json("tables", "set-policy", "orders", "trips", "--set", "compaction.commits=9", "--unset", "priority")
    assert (answer["done"], answer["unchanged"], answer["refused"]) == (2, 0, 0)
    for name in ("orders", "trips"):
        assert cli.json("policy", "show", name)["policy"]["compaction"]["commits"] == 9
    assert cli.json("tables", "set-policy", "--all", "*", "--unset", "compaction")["unchanged"] == 1
    shown = cli.run("tables", "label", "--all", "?r*", "--owner", "shop", "--tag", "tier=gold", "--tag", "pii").stdout
    assert "orders" in shown
    assert cli.json("tables", "label", "orders", "--owner", "", "--untag", "pii")["done"] == 1
    tables = {each["name"]: (each["owner"], each["tags"]) for each in cli.json("tables", "list")["items"]}
    assert tables["orders"] == (None, {"tier": "gold"})
    assert tables["trips"] == ("shop", {"tier": "gold", "pii": ""})
    assert "Nothing to" in cli.refused("tables", "set-policy", "orders", code=2)
    assert "Nothing to" in cli.refused("tables", "label", "orders", code=2)


def test_one_problem_is_acknowledged_for_some_hours(cli: CommandLine) -> None:
    table = cli.json("tables", "show", "returns")["id"]
    with writing(cli.serving.engine) as connection:
        found = Incident(
            "inc_1", table, IncidentKind.STALE_WRITE, "20260101110000000", IncidentState.OPEN, utc_now(), details={}
        )
        incident_store.add(connection, [found])
    [problem] = cli.json("problems", "--kind", "incident-standing", code=1)["items"]
    ended = cli.run("acknowledge", problem["id"], "--hours", "8", "--reason", "the move")
    assert "the move" in ended.stdout
    shown = cli.run("problems", code=1).stdout
    assert problem["id"] in shown
    assert "by Ada" in shown
    cli.run("unacknowledge", problem["id"])
    assert cli.json("problems", "--kind", "incident-standing", code=1)["items"][0]["acknowledged"] is None
    assert "prb_none" in cli.refused("acknowledge", "prb_none", code=3)
    cli.run("incidents", "close", "inc_1", "--reason", "written again")


def test_jobs_are_listed_by_several_states_and_kinds_and_by_time(cli: CommandLine) -> None:
    def submit_dry_run(kind: str) -> str:
        return str(cli.json("jobs", "run", kind, "orders", "--dry-run")["id"])

    def listed(*options: str) -> list[str]:
        return [each["id"] for each in cli.json("jobs", "list", *options)["items"]]

    audit, cleaning = submit_dry_run("audit"), submit_dry_run("cleaning")
    between = datetime.now(UTC).isoformat()
    compaction = submit_dry_run("compaction")
    cli.run("jobs", "cancel", audit)
    assert listed() == [compaction, cleaning, audit]
    assert listed("--kind", "audit", "--kind", "compaction") == [compaction, audit]
    assert listed("--state", "cancelled", "--state", "running") == [audit]
    assert listed("--state", "cancelled", "--state", "queued") == [compaction, cleaning, audit]
    assert listed("--state", "queued", "--kind", "audit", "--kind", "cleaning") == [cleaning]
    assert listed("--since", between) == [compaction]
    assert listed("--until", between, "--limit", "1") == [cleaning]
    assert listed("--since", "1h", "--until", between) == [cleaning, audit]
    assert listed("--until", "1h") == []
    cli.refused("jobs", "list", "--state", "finished", code=2)
    assert "neither an age" in cli.refused("jobs", "list", "--since", "soon", code=2)


def test_problems_are_listed_by_several_kinds(cli: CommandLine) -> None:
    table_id = cli.json("tables", "show", "trips")["id"]
    incident = Incident(
        "inc_0", table_id, IncidentKind.STALE_WRITE, "20260101110000000", IncidentState.OPEN, utc_now(), details={}
    )
    with writing(cli.serving.engine) as connection:
        incident_store.add(connection, [incident])
    webhook = cli.json("webhooks", "add", "https://hooks.example.com/lake")["id"]
    cli.run("webhooks", "disable", webhook)

    def listed(*kinds: str) -> set[str]:
        options = [word for kind in kinds for word in ("--kind", kind)]
        code = 1 if "incident-standing" in kinds else 0
        return {each["kind"] for each in cli.json("problems", *options, code=code)["items"]}

    assert eventually(lambda: listed("webhook-disabled") == {"webhook-disabled"}, 60)
    assert listed("webhook-disabled", "incident-standing") == {"webhook-disabled", "incident-standing"}
    assert listed("lock-awaited", "webhook-disabled") == {"webhook-disabled"}
    assert listed("lock-awaited") == set()
    cli.refused("problems", "--kind", "nothing", code=2)
