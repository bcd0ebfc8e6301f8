"""Tests the configuration as code: exported, compared and applied as a user would do it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from service.access.token import Role
from tests.integration.control_plane.command_line import serving_command_line
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.control_plane.command_line import CommandLine

SECRET = "Bearer hunter2hunter2"
LOCK = "hoodie.write.lock.zookeeper."
CHAT = "https://hooks.slack.com/services/T0/B0/YYYYYYYY"
HOOK = "https://hooks.example.com/services/T0/B0/XXXXXXXX"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("as_code"), WEBHOOK_HOSTS="hooks.example.com") as cli:
        options = ("--lock-option", f"{LOCK}lock_key={SECRET}", "--lock-option", f"{LOCK}base_path=${{b}}")
        cli.table("orders", "--lock", "zookeeper", "--engine", "spark", "--hudi-version", "1.2.0", *options)
        cli.run("freezes", "set", "sale", "--from", "2026-01-01", "--to", "2026-01-02T12:00+01:00", "--table", "ord*")
        cli.run("policy", "set", "orders", "compaction.commits=7", "bucket_expansion.mode=off")
        (cli.folder / "night.json").write_text('{"precedence": 2, "windows": [{"start": "22:00", "end": "04:30"}]}')
        cli.run("policy", "set", "--pattern", "ord*", "--file", str(cli.folder / "night.json"))
        (cli.folder / "headers.json").write_text(json.dumps({"Authorization": SECRET}))
        cli.run("webhooks", "add", HOOK, "--type", "job.*", "--headers-file", str(cli.folder / "headers.json"))
        (cli.folder / "target.json").write_text(json.dumps({"url": CHAT}))
        target = ("slack", "--target-file", str(cli.folder / "target.json"))
        cli.run("notifications", "add", "on-call", *target, "--severity", "critical", "--quiet", "22:00-06:00")
        yield cli


def written(folder: Path, content: Any) -> str:
    file = folder / "groundskeeper.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return str(file)


def variables(exported: str) -> dict[str, str]:
    """Returns the variables that a user sets after an export."""
    known = {
        "url": HOOK,
        "target.url": CHAT,
        "headers.Authorization": "Bearer other-secret",
        f"lock.options.{LOCK}lock_key": SECRET,
    }
    found = re.findall(r"^# \$\{(\w+)\}: (.*) of .*$", exported, re.MULTILINE)
    return {name: known[meaning] for name, meaning in found}


def test_an_export_has_no_secret_and_applied_again_changes_nothing(cli: CommandLine, tmp_path: Path) -> None:
    exported = cli.run("export").stdout
    assert SECRET not in exported
    assert "XXXXXXXX" not in exported
    assert "******" not in exported
    document = yaml.safe_load(exported)
    assert list(document) == ["freezes", "policies", "tables", "table_policies", "webhooks", "notifications"]
    assert document["freezes"][0]["tables"] == ["ord*"]
    assert document["policies"] == [
        {"pattern": "ord*", "precedence": 2, "windows": [{"start": "22:00", "end": "04:30"}]}
    ]
    (table,) = document["tables"]
    assert table["lock"]["provider"] == "zookeeper"
    assert table["lock"]["options"][f"{LOCK}base_path"] == "$${b}"
    assert table["writers"] == {"hudi_version": "1.2.0", "engines": ["spark"]}
    assert document["table_policies"][0]["bucket_expansion"] == {"mode": "off"}
    file, environment = written(tmp_path, exported), variables(exported)
    assert set(environment.values()) == {HOOK, CHAT, "Bearer other-secret", SECRET}
    for _ in range(2):
        assert cli.run("diff", "-f", file, "--prune", **environment).stdout == ""
        assert cli.json("apply", "-f", file, "--prune", "--yes", **environment)["changes"] == []
    # A stored secret needs no variable; the key of an object does.
    url = {name: value for name, value in environment.items() if value == HOOK}
    cli.run("diff", "-f", file, **url)
    assert "WEBHOOK_HOOKS_EXAMPLE_COM_URL is not set" in " ".join(cli.refused("diff", "-f", file, code=2).split())


def test_changes_are_shown_then_made_once(cli: CommandLine, tmp_path: Path) -> None:
    SmallTable(cli.folder / "clicks").commit("20260101120000000", completed="20260101120001000")
    path = str(cli.folder / "clicks")
    plan = {
        "policies": [{"pattern": "cli*", "cleaning": {"retain": 20}, "time_zone": "Europe/Berlin"}],
        "tables": [
            {"base_path": path, "lock": {"provider": "zookeeper", "options": {f"{LOCK}lock_key": "${CLICKS_PASSWORD}"}}}
        ],
        "table_policies": [{"table": path, "priority": 3}],
        "webhooks": [{"url": "${CLICKS_URL}", "headers": {"X-Key": "${CLICKS_PASSWORD}"}, "description": "clicks"}],
    }
    file = written(tmp_path, plan)
    environment = {"CLICKS_PASSWORD": SECRET, "CLICKS_URL": HOOK + "2"}
    shown = cli.run("apply", "-f", file, "--dry-run", **environment).stdout
    assert [line.split()[:2] for line in shown.splitlines() if not line.startswith(" ")] == [
        ["+", "policies"],
        ["+", "tables"],
        ["+", "table_policies"],
        ["+", "webhooks"],
    ]
    assert SECRET not in shown
    assert HOOK not in shown
    assert cli.json("tables", "list", "--name", "clicks")["items"] == []
    cli.run("diff", "-f", file, code=6, **environment)
    assert len(cli.json("apply", "-f", file, **environment)["changes"]) == 4
    assert cli.json("apply", "-f", file, **environment)["changes"] == []
    cli.run("diff", "-f", file, **environment)
    plan["policies"][0] = {"pattern": "cli*", "cleaning": {"retain": 21}}
    plan["webhooks"][0]["types"] = ["table.*"]
    del plan["webhooks"][0]["description"]
    file = written(tmp_path, plan)
    (policy, webhook) = cli.json("diff", "-f", file, code=6, **environment)["changes"]
    assert sorted(policy["fields"], key=str) == [
        {"field": "cleaning.retain", "before": 20, "after": 21},
        {"field": "time_zone", "before": "Europe/Berlin", "after": None},
    ]
    assert {each["field"] for each in webhook["fields"]} == {"types", "description"}
    cli.run("apply", "-f", file, **environment)
    assert cli.json("apply", "-f", file, **environment)["changes"] == []
    (mine,) = [each for each in cli.json("webhooks", "list")["items"] if each["url"] == HOOK + "2"]
    assert (mine["types"], mine["description"], list(mine["headers"])) == (["table.*"], "", ["X-Key"])
    # The option --secrets sends stored secrets again.
    assert [each["kind"] for each in cli.json("apply", "-f", file, "--secrets", **environment)["changes"]] == [
        "tables",
        "webhooks",
    ]


def test_only_kinds_that_the_file_names_are_pruned(cli: CommandLine, tmp_path: Path) -> None:
    cli.run("policy", "set", "--pattern", "old*", "priority=1")
    kept = yaml.safe_load(cli.run("export", "--kind", "policies").stdout)["policies"]
    file = written(tmp_path, {"policies": [each for each in kept if each["pattern"] != "old*"]})
    assert "no terminal" in " ".join(cli.refused("apply", "-f", file, "--prune", code=2).split())
    found = cli.json("apply", "-f", file, "--prune", "--yes")["changes"]
    assert [(each["kind"], each["name"], each["action"]) for each in found] == [("policies", "old*", "delete")]
    assert cli.json("webhooks", "list")["items"]
    assert cli.json("apply", "-f", file, "--prune", "--yes")["changes"] == []


BAD = [
    ("policies: [", "line 2: this is not YAML"),
    ("- a", "must be an object, with the kinds"),
    ("polices: []", "line 1: polices: is no kind; the kinds are"),
    ("policies: {}", "policies: must be a list"),
    ("policies:\n- pattern: a*\n  pattern: b*", "line 3: policies[0].pattern: this name occurs twice"),
    ("policies:\n- priority: 1", "line 2: policies[0].pattern: is missing"),
    ("policies:\n- pattern: a*\n- pattern: a*", "line 3: policies[1].pattern: the file has this object twice"),
    (
        "policies:\n- pattern: a*\n  compaction:\n    comits: 3",
        "line 4: policies[0].compaction.comits: is not known here. Is commits meant?",
    ),
    (
        "policies:\n- pattern: a*\n  compaction:\n    commits: many",
        "line 4: policies[0].compaction.commits: expected int, got str",
    ),
    ("policies:\n- pattern: &x a*", "line 2: policies[0].pattern: anchors and aliases are not supported"),
    ("policies: !!python/object:os.system {}", "tags are not supported"),
    ("policies: []\n---\npolicies: []", "line 2: a second document begins"),
    ("policies: " + "[" * 200, "nested too deeply"),
    ("tables:\n- base_path: /x\n  hudi_options: {password: '******'}", "the value is a mask, not a secret"),
    ("tables:\n- base_path: /x\n  hudi_options: {password: '${NOBODY}'}", "the variable NOBODY is not set"),
    ("webhooks:\n- url: ${NOBODY}", "line 2: webhooks[0].url: the variable NOBODY is not set"),
    ("webhooks:\n- url: https://a\n  headers: 3", "webhooks[0].headers"),
    ("? [a]\n: b", "a name must be a text"),
    ("policies: \x00", "this is not YAML"),
]


@pytest.mark.parametrize(("content", "said"), BAD, ids=[said for _, said in BAD])
def test_a_bad_file_is_refused_with_its_line_and_field(
    cli: CommandLine, tmp_path: Path, content: str, said: str
) -> None:
    file = written(tmp_path, content)
    for command in ("diff", "apply"):
        refused = " ".join(cli.refused(command, "-f", file, code=2).split())
        assert said in refused, refused
        assert file in refused


def test_each_change_that_the_service_refuses_has_its_line_in_the_file(cli: CommandLine, tmp_path: Path) -> None:
    content = "policies:\n- pattern: z*\n  compaction:\n    commits: 0\n- pattern: y*\n  priority: 1\n"
    refused = " ".join(cli.run("apply", "-f", written(tmp_path, content), code=1).stderr.split())
    assert "line 4: policies[0].compaction.commits:" in refused
    # Every other change is made.
    assert {each["pattern"] for each in cli.json("policy", "show")["items"]} >= {"y*"}


def test_a_reader_may_compare_and_not_apply(cli: CommandLine, tmp_path: Path) -> None:
    file = written(tmp_path, {"policies": [{"pattern": "new*", "priority": 1}]})
    reader = cli.token("Rita", Role.READER)
    cli.run("diff", "-f", file, code=6, GROUNDSKEEPER_TOKEN=reader)
    cli.run("apply", "-f", file, code=4, GROUNDSKEEPER_TOKEN=reader)
