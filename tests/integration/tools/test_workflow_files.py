"""Tests the command lines of the guide's files for Argo Workflows and Kestra: their exit codes, and their retries."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from jobs.contract import Outcome, Problem, Result
from service.access.token import Role
from tests.integration.serving import eventually
from tests.integration.tools.tool_environment import ToolEnvironment
from tests.integration.tools.tool_service import COMPACTION, ToolService, Work
from tests.support.guides import GUIDE_OF_TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jobs.contract import WorkOrder

# The models of Argo's own API, of which `hera` is the Python client. A model ignores members that it does not know, so
# it is compared with its source.
STRICT = """
import json, sys
from hera.workflows.models import CronWorkflow
given = json.load(sys.stdin)
known = json.loads(CronWorkflow.model_validate(given).model_dump_json(by_alias=True, exclude_none=True))
def lost(path, part, kept):
    if isinstance(part, dict):
        for name, value in part.items():
            if not isinstance(kept, dict) or name not in kept:
                yield f"{path}.{name}"
            else:
                yield from lost(f"{path}.{name}", value, kept[name])
    elif isinstance(part, list):
        for number, pair in enumerate(zip(part, kept)):
            yield from lost(f"{path}[{number}]", *pair)
print(json.dumps(list(lost("", given, known))))
"""

# The models of Kestra's own Python client keep members that they do not know: those of plugins, which no package
# describes, and wrong ones.
KESTRA = """
import json, sys
from kestrapy.models.flow import Flow
flow = Flow.from_dict({**json.load(sys.stdin), "disabled": False, "draft": False, "deleted": False})
parts = {"flow": [flow], "tasks": flow.tasks, "triggers": flow.triggers or []}
print(json.dumps({name: sorted({each for one in part for each in one.additional_properties})
    for name, part in parts.items()}))
"""


def files() -> list[dict[str, Any]]:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", GUIDE_OF_TOOLS.read_text(), re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(block) for block in blocks]


def argo() -> dict[str, Any]:
    [found] = [each for each in files() if each.get("kind") == "CronWorkflow"]
    return found


def kestra() -> dict[str, Any]:
    [found] = [each for each in files() if "namespace" in each]
    return found


def command_lines() -> dict[str, tuple[list[str], set[str]]]:
    """Returns the arguments of the commands and the names of their variables, as the tools fill them in."""
    [template] = [each for each in argo()["spec"]["workflowSpec"]["templates"] if "container" in each]
    container = template["container"]
    filled = {"{{inputs.parameters.kind}}": "compaction", "{{workflow.uid}}": "c0ffee"}
    words = [*container["command"], *container["args"]]
    for name, value in filled.items():
        words = [word.replace(name, value) for word in words]
    [task] = kestra()["tasks"]
    [command] = task["commands"]
    return {
        "argo": (words, {each["name"] for each in container["env"]}),
        "kestra": (shlex.split(command.replace("{{ execution.id }}", "4rkw")), set(task["env"])),
    }


@pytest.mark.parametrize("tool", ["argo", "kestra"])
def test_a_lost_task_finds_its_job_again_and_ends_as_the_job_does(service: ToolService, work: Work, tool: str) -> None:
    (program, *arguments), variables = command_lines()[tool]
    assert program == "groundskeeper"
    assert "{{" not in "".join(arguments), arguments
    environment = {"GROUNDSKEEPER_URL": service.serving.url, "GROUNDSKEEPER_TOKEN": service.token(Role.OPERATOR)}
    assert variables == set(environment)
    is_over = threading.Event()

    def succeed(_order: WorkOrder) -> Result:
        assert is_over.wait(120)
        return Result(Outcome.SUCCEEDED, (COMPACTION,))

    work.result = succeed
    lost = started(arguments, environment)
    assert eventually(lambda: bool(work.orders), 60)
    lost.kill()
    lost.communicate()
    again = started(arguments, environment)
    is_over.set()
    out, _ = again.communicate(timeout=120)
    assert (again.returncode, len(work.orders)) == (0, 1), out


def test_the_exit_code_tells_a_failed_job_from_an_outage_and_a_wrong_token(service: ToolService, work: Work) -> None:
    """Argo's expression repeats the task after an outage only."""
    arguments = command_lines()["argo"][0][1:]
    arguments[arguments.index("--idempotency-key") + 1] = "another"
    environment = {"GROUNDSKEEPER_URL": service.serving.url, "GROUNDSKEEPER_TOKEN": service.token(Role.OPERATOR)}
    why = Problem("table-unreadable", "The table cannot be read", "no such file", "Look", retriable=False)
    work.result = lambda _order: Result(Outcome.FAILED, error=why)
    assert [_exit_code(arguments, environment) for _ in range(2)] == [1, 1]
    assert len(work.orders) == 1
    assert _exit_code(arguments, {**environment, "GROUNDSKEEPER_TOKEN": "gk_a_b"}) == 4
    assert _exit_code(arguments, {**environment, "GROUNDSKEEPER_URL": "http://127.0.0.1:9"}) == 5
    [template] = [each for each in argo()["spec"]["workflowSpec"]["templates"] if "container" in each]
    assert "exitCode) == 5" in template["retryStrategy"]["expression"]


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
def test_argo_knows_every_member_of_its_file(tmp_path: Path) -> None:
    environment = ToolEnvironment.of("hera==7.1.0", folder=tmp_path)
    assert _unknown_members(environment, STRICT, argo()) == []
    wrong = argo()
    wrong["spec"]["concurrency"] = wrong["spec"].pop("concurrencyPolicy")
    assert _unknown_members(environment, STRICT, wrong) == [".spec.concurrency"]


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
def test_kestra_knows_every_member_of_its_file_but_those_of_plugins(tmp_path: Path) -> None:
    # kestrapy imports regex and does not declare it.
    environment = ToolEnvironment.of("kestrapy==2.0.3", "regex==2026.11.15", folder=tmp_path)
    of_plugins = {"tasks": ["commands", "containerImage", "env", "taskRunner"], "triggers": ["cron"]}
    assert _unknown_members(environment, KESTRA, kestra()) == {"flow": [], **of_plugins}
    wrong = kestra()
    wrong["trigger"] = wrong.pop("triggers")
    wrong["tasks"][0]["retries"] = wrong["tasks"][0].pop("retry")
    found = _unknown_members(environment, KESTRA, wrong)
    assert found == {"flow": ["trigger"], "tasks": [*of_plugins["tasks"][:3], "retries", "taskRunner"], "triggers": []}


def _unknown_members(environment: ToolEnvironment, program: str, file: dict[str, Any]) -> Any:
    with environment.start("-c", program) as process:
        out, _ = process.communicate(json.dumps(file), timeout=300)
    assert process.returncode == 0, out
    return json.loads(out.splitlines()[-1])


def _exit_code(arguments: list[str], environment: Mapping[str, str]) -> int:
    process = started(arguments, environment)
    process.communicate(timeout=120)
    return process.returncode


def started(arguments: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDSKEEPER_")}
    return subprocess.Popen(
        [sys.executable, "-m", "service.cli", *arguments],
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
