"""The ten tasks of an operator on call, done by keyboard alone or by commands, with the number of keys and commands.

`.docs/operator-tasks.md` has the numbers; a test fails if its task takes more. A typed text counts as one key.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.sync_api import expect

from jobs.contract import Outcome, Result
from tests.dashboard.fleet import Fleet, Table
from tests.dashboard.scenes import compact, piled_up
from tests.integration.serving import Serving, eventually
from tests.support.commands import called
from tests.support.guides import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

MOST_TABS = 60


class Operator:
    """An operator who has only a keyboard and the command line. `count` is the number of keys and commands."""

    def __init__(self, page: Page, fleet: Fleet) -> None:
        self.page, self.fleet, self.count = page, fleet, 0

    def key(self, name: str, times: int = 1) -> None:
        for _ in range(times):
            self.page.keyboard.press(name)
        self.count += times

    def text(self, words: str) -> None:
        self.page.keyboard.type(words)
        self.count += 1

    def tab_to(self, target: Locator) -> None:
        """Presses the tab key until the target has the focus."""
        expect(target).to_be_visible()
        for _ in range(MOST_TABS):
            if target.evaluate("(each) => each === document.activeElement"):
                return
            self.key("Tab")
        raise AssertionError(f"{target} is not reached by {MOST_TABS} tabs")

    def command(self, *words: str, code: int = 0) -> str:
        self.count += 1
        ended = called(words, {"GROUNDSKEEPER_URL": self.fleet.service.url})
        assert ended.exit_code == code, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    made = Fleet(tmp_path_factory.mktemp("fleet"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def sick(fleet: Fleet) -> Table:
    """A table with a problem among healthy ones."""
    for name in ("calm", "quiet", "still"):
        fleet.table(name).commit()
    table = piled_up(fleet)
    assert eventually(lambda: bool(problems(fleet)), 60)
    return table


def problems(fleet: Fleet) -> list[Any]:
    found = fleet.call("GET", "/problems")["items"]
    return [each for each in found if each["about"]["type"] == "table"]


@pytest.fixture
def operator(page: Page, fleet: Fleet, request: pytest.FixtureRequest) -> Iterator[Operator]:
    made = Operator(page, fleet)
    yield made
    page.goto("about:blank")
    print(f"{request.node.name}: {made.count}")
    rows = dict(re.findall(r"^\| ([^|]+?) \|[^|]*\| (\d+) ", PAGES[".docs/operator-tasks.md"].read_text(), re.M))
    task = request.node.name.removeprefix("test_").replace("_", " ").partition("[")[0]
    assert made.count <= int(rows[task]), f"{task}: {made.count}"


def test_find_the_worst_table(operator: Operator, sick: Table, fleet: Fleet) -> None:
    page = operator.page
    page.goto(fleet.service.url)
    first = page.locator(".matrix tbody tr").first
    expect(first).to_contain_text(sick.name)
    open_first(operator)
    expect(page.locator("h1")).to_contain_text(sick.name)


def open_first(operator: Operator) -> None:
    """Opens the first table of the overview by its keys."""
    operator.key("/")
    expect(operator.page.locator("#search")).to_be_focused()
    operator.key("ArrowDown")
    operator.key("Enter")


def test_see_why_nothing_happens(operator: Operator, sick: Table, fleet: Fleet) -> None:
    fleet.call("PUT", f"/tables/tbl_{sick.name}/policy", {"paused": True})
    page = operator.page
    page.goto(fleet.service.url)
    expect(page.locator(".matrix tbody tr").first).to_contain_text(sick.name)
    open_first(operator)
    operator.tab_to(page.get_by_role("tab", name="Health"))
    for name in ("Jobs", "Policy"):
        operator.key("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
    panel = page.get_by_role("tabpanel", name="Policy")
    expect(panel).to_contain_text(re.compile("paused", re.IGNORECASE))


def test_repair_a_table_and_see_it_green(operator: Operator, sick: Table, fleet: Fleet) -> None:
    page = operator.page
    [found] = problems(fleet)
    page.goto(fleet.service.url)
    assert found["command"], "the problem says the command"
    job = json.loads(operator.command("jobs", "run", "compaction", sick.name, "--json"))
    leased = fleet.lease("mender", "default")
    assert leased["job_id"] == job["id"]
    # A compaction by another process than the job would be a problem, too.
    instant = sick.instant()
    fleet.call("POST", f"/worker/leases/{job['id']}/heartbeat", {"attempt": 1, "instants": [instant]})
    compact(sick, instant)
    result = {"attempt": 1, "result": Result(Outcome.SUCCEEDED).to_json()}
    fleet.api.post(f"/worker/leases/{job['id']}/result", json=result)
    assert eventually(lambda: not problems(fleet), 60)
    expect(page.locator(".matrix tbody tr").filter(has_text=sick.name)).to_contain_text("healthy")


def test_change_a_policy_for_a_team(operator: Operator, fleet: Fleet) -> None:
    table = fleet.table("of_shop")
    fleet.call("PATCH", f"/tables/{table.id}", {"tags": {"team": "shop"}})
    operator.command("policy", "set", "--pattern", "tag:team=shop", "compaction.commits=20")
    assert fleet.call("GET", f"/tables/{table.id}/policy")["policy"]["compaction"]["commits"] == 20


def test_pause_a_team_for_a_night(operator: Operator, fleet: Fleet) -> None:
    night = ("--from", "2030-01-01T22:00Z", "--to", "2030-01-02T06:00Z")
    operator.command("freezes", "set", "night", *night, "--table", "tag:team=shop", "--reason", "the shop moves")
    [freeze] = fleet.call("GET", "/freezes")["items"]
    assert freeze["tables"] == ["tag:team=shop"]


def test_move_the_lock_of_a_table(operator: Operator, fleet: Fleet) -> None:
    table = fleet.table("locked_elsewhere")
    url = "hoodie.write.lock.zookeeper.url=zk:2181"
    operator.command("tables", "set", table.name, "--lock", "zookeeper", "--lock-option", url)
    assert fleet.call("GET", f"/tables/{table.id}")["lock"]["provider"] == "zookeeper"


def test_give_a_flink_writer_its_options(operator: Operator, fleet: Fleet) -> None:
    table = fleet.table("streamed")
    words = operator.command("tables", "writer-options", table.name, "--engine", "flink", "--format", "sql")
    assert "LAZY" in words


def test_send_problems_to_slack(operator: Operator, fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / "slack.json"
    file.write_text(json.dumps({"url": "https://hooks.slack.com/services/T0/B0/XXXX"}))
    operator.count += 1  # The file that has the address.
    operator.command("notifications", "add", "on-call", "slack", "--target-file", str(file), "--severity", "critical")
    [found] = fleet.call("GET", "/notifications")["items"]
    assert found["name"] == "on-call"


def test_see_the_report_of_the_week(operator: Operator) -> None:
    assert json.loads(operator.command("report", "--week", "--by", "owner", "--json"))["total"] is not None


def test_restore_the_service_on_another_machine(operator: Operator, fleet: Fleet, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    file = str(tmp_path / "backup.tgz")
    operator.command("backup", file, "--database", str(fleet.service.engine.url))
    operator.command("restore", file, "--database", f"sqlite:///{there / 'groundskeeper.db'}")
    operator.count += 1  # `groundskeeper serve`
    with Serving(there, AUTOMATIC="false") as moved:
        known = {each["name"] for each in httpx.get(f"{moved.url}/v1/tables").json()["items"]}
    assert known == {each["name"] for each in fleet.call("GET", "/tables")["items"]}
