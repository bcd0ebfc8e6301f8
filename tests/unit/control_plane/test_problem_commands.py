"""The command of each kind of problem exists, and does the same as the button beside it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import typer
from pydantic import TypeAdapter
from typer.testing import CliRunner

from jobs.contract import JobKind
from service.api.params import JobIn
from service.api.policy_models import PolicyIn
from service.cli.client import policies
from service.cli.client.arguments import values
from service.cli.main import app
from service.health.next_step import LONGEST, start
from service.health.problem import ProblemKind
from service.health.problems import found_in
from service.model.command_line import Choice, line
from tests.unit.control_plane.snapshots import NOW
from tests.unit.control_plane.table_facts import TABLE_ID, everything_wrong

if TYPE_CHECKING:
    from pathlib import Path

    from service.health.problem import HealthProblem

PROBLEMS = found_in(everything_wrong(), NOW).problems
BUTTONS = [each for each in PROBLEMS if each.action]
ROOT = typer.main.get_command(app)


def words_of(command: str) -> list[str]:
    """Replaces the placeholders of a command by a user's words."""
    program, *words = shlex.split(re.sub(r"<[A-Z]+>", "city", command))
    assert program == "groundskeeper"
    return words


def parsed(words: list[str]) -> Any:
    """Finds the command and parses its arguments without running it, and fails in the same way as a real call."""
    command: Any = ROOT
    context: Any = None
    name: str | None = "groundskeeper"
    while True:
        context = command.make_context(name, words, parent=context)
        if not hasattr(command, "resolve_command"):
            return context
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])


def test_there_is_a_problem_of_every_kind_here() -> None:
    assert {problem.kind for problem in PROBLEMS} == set(ProblemKind)
    assert all(problem.kind.is_of_table == (problem.table_id is not None) for problem in PROBLEMS)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda each: each.kind)
def test_the_command_of_each_problem_exists_with_all_its_options(problem: HealthProblem) -> None:
    assert parsed(words_of(problem.command)).command.name
    assert len(problem.command) <= LONGEST
    for mentioned in re.findall(r"`(groundskeeper [^`]*)`", problem.remedy):
        parsed(words_of(mentioned))


@pytest.mark.parametrize(
    "wrong",
    ["groundskeeper jobs again job_1", "groundskeeper jobs retry job_1 --soon", "groundskeeper jobs run tidying t"],
)
def test_a_command_that_does_not_exist_would_be_found(wrong: str) -> None:
    with pytest.raises(Exception, match=r"No such command|No such option|is not one of"):
        parsed(words_of(wrong))


@pytest.mark.parametrize("problem", BUTTONS, ids=lambda each: each.kind)
def test_the_command_calls_what_the_button_calls(problem: HealthProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str, Any]] = []
    here, send_really = threading.current_thread(), httpx.Client.send

    def send(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        if threading.current_thread() is not here:
            # Another test of this process plays a worker.
            return send_really(client, request, **options)
        path = request.url.path
        if request.method != "GET" or path.endswith("/lock"):
            # Command and button write times differently.
            body = (request.content or b"null").replace(b'Z"', b'+00:00"')
            calls.append((request.method, path, json.loads(body)))
        return httpx.Response(200, json={"id": TABLE_ID, "paused": True}, request=request)

    monkeypatch.setattr(httpx.Client, "send", send)
    CliRunner().invoke(app, words_of(problem.command))
    action = problem.action
    assert action is not None
    [(method, path, body)] = calls
    assert (method, path) == (action.method, action.path)
    assert (body or {}).items() >= (action.body or {}).items()
    if path.endswith("/jobs"):
        assert TypeAdapter(JobIn).validate_python(action.body)


@pytest.mark.parametrize("problem", [each for each in PROBLEMS if " policy set " in each.command])
def test_the_command_sets_only_settings_that_policies_have(problem: HealthProblem) -> None:
    level: dict[str, Any] = {}
    policies.edit(level, parsed(words_of(problem.command)).params["settings"])
    assert TypeAdapter(PolicyIn).validate_python(level) == level


@pytest.mark.parametrize(
    "value",
    ["20260101120000000", "wait", "null", "true", 8, 0.5, False, None, ["größe", "it's", "$(id)"], '"'],
    ids=str,
)
def test_a_parameter_arrives_as_it_is(value: object) -> None:
    command = start(TABLE_ID, "Start", JobKind.AUDIT, {"a": value}).command
    assert values(parsed(words_of(command)).params["param"], "--param") == {"a": value}


def test_a_shell_takes_hostile_names_as_they_are(tmp_path: Path) -> None:
    names = [
        "$(touch a)",
        "it's; touch b",
        "`touch c`",
        "a\nb",
        "\x1b[201~\ntouch d\n",
        "\u202egnihton",
        "x' \\\n\x07 y",
        "*",
        "<F>",
    ]
    assert said(line("jobs", "show", *names), tmp_path) == ["jobs", "show", *names]
    assert line(*names).isprintable()
    assert not [*tmp_path.iterdir()]


def test_a_shell_refuses_a_line_in_which_a_choice_is_left(tmp_path: Path) -> None:
    reason, assignment = Choice("REASON"), ('a=["', Choice("COLUMN"), '"]')
    for words in (("--reason", reason), ("--reason", reason, "--yes"), (assignment,)):
        assert said(line(*words), tmp_path) is None
        assert not [*tmp_path.iterdir()]
    filled = line(assignment).replace("<COLUMN>", "city")
    assert said(filled, tmp_path) == ['a=["city"]']


def test_a_job_with_too_many_parameters_for_a_line_has_a_button_only() -> None:
    many = [f"day={number}" for number in range(1000)]
    step = start(TABLE_ID, "Start", JobKind.AUDIT, {"partitions": many})
    assert step.command == line("tables", "show", TABLE_ID)
    assert step.action is not None
    assert step.action.body == {"kind": "audit", "params": {"partitions": many}}


def said(command: str, folder: Path) -> list[str] | None:
    """Returns the arguments with which a shell starts the program, None if the shell does not start it."""
    program = 'groundskeeper() { printf "%s\\0" "$@"; }\n'
    ran = subprocess.run(["bash", "-c", program + command], cwd=folder, capture_output=True, text=True)
    return ran.stdout.split("\0")[:-1] if ran.stdout else None
