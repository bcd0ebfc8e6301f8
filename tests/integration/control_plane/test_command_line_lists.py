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


def test_jobs_are_listed_by_several_states_and_kinds_and_by_time(cli: CommandLine) -> None:
    def submitted(kind: str) -> str:
        return str(cli.json("jobs", "run", kind, "orders", "--dry-run")["id"])

    def listed(*options: str) -> list[str]:
        return [each["id"] for each in cli.json("jobs", "list", *options)["items"]]

    audit, cleaning = submitted("audit"), submitted("cleaning")
    between = datetime.now(UTC).isoformat()
    compaction = submitted("compaction")
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

    assert eventually(lambda: listed("webhook-disabled") == {"webhook-disabled"}, 30)
    assert listed("webhook-disabled", "incident-standing") == {"webhook-disabled", "incident-standing"}
    assert listed("lock-awaited", "webhook-disabled") == {"webhook-disabled"}
    assert listed("lock-awaited") == set()
    cli.refused("problems", "--kind", "nothing", code=2)
