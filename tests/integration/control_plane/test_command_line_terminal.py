"""Tests the command line at a terminal: the progress bar of a job, and the completions of shells."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind, Outcome, Progress, Result
from service.queue.job import JobState
from tests.integration.control_plane.command_line import CommandLine, serving_command_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.control_plane.protocol_worker import Worker

PROGRAM = Path(sys.executable).with_name("groundskeeper")


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("terminal")) as cli:
        cli.table("orders")
        yield cli


class Screen:
    """The lines that a program has written to its terminal, without colours, including overwritten ones."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.written = ""

    def line_with(self, text: str) -> str:
        """Waits for a line with this text."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.written)
            if found := [line for line in re.split(r"[\r\n]+", plain) if text in line]:
                return found[-1]
            if select.select([self._terminal], [], [], 0.2)[0]:
                with suppress(OSError):  # the end
                    self.written += os.read(self._terminal, 65536).decode()
        raise AssertionError(f"{text!r} is not in {self.written!r}")


def test_a_watched_job_has_a_bar_that_grows_and_disappears(cli: CommandLine, worker: Worker) -> None:
    job = cli.json("jobs", "run", "audit", "orders")
    # Without colours only the completed part of the bar is drawn; the whole bar has 20 cells.
    with cli.on_a_terminal("jobs", "watch", job["id"], NO_COLOR="1") as (process, terminal):
        screen = Screen(terminal)
        screen.line_with("queued")
        order = worker.must_lease()
        for done, cells in ((1024, 5), (3072, 15)):
            worker.beat(order, progress=Progress("reading keys", bytes_done=done, bytes_total=4096))
            line = screen.line_with(f"running: reading keys {done // 1024}.0 KiB of 4.0 KiB")
            assert line.count("━") == cells, line
            assert len(line) <= 80
        worker.beat(order, progress=Progress("counting", tasks_done=2, tasks_total=4))
        assert screen.line_with("running: counting 2 of 4 tasks").count("━") == 10
        assert worker.report(order, Result(Outcome.SUCCEEDED, details={"misplaced": 0})).is_success
        assert screen.line_with("audit succeeded").startswith("audit succeeded after")
        assert "misplaced" in screen.line_with("misplaced")
        assert process.wait(60) == 0
    # The line of the bar is cleared, and the cursor shown again.
    _, _, end = screen.written.rpartition("━")
    assert "\x1b[2K" in end
    assert screen.written.rindex("\x1b[?25h") > screen.written.rindex("\x1b[?25l")


@pytest.fixture(scope="module")
def completion() -> str:
    """The script for bash that the program prints."""
    return subprocess.run(
        # bash would replace itself by a command that stands alone, and the program finds its shell by its parent.
        ["bash", "-c", "groundskeeper --show-completion || exit"],
        env=_on_the_path(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _on_the_path() -> dict[str, str]:
    return {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}


def _completed_by_bash(completion: str, *words: str) -> list[str]:
    """Returns bash's completions of the last word."""
    script = f"""
        eval {shlex.quote(completion)}
        COMP_WORDS=({" ".join(words)} {'""' if len(words) == 1 else ""})
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        "$(complete -p groundskeeper | sed 's/.* -F \\([^ ]*\\) .*/\\1/')" groundskeeper
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(["bash", "-c", script], env=_on_the_path(), capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_bash_completes_commands_options_and_values(completion: str) -> None:
    completed = partial(_completed_by_bash, completion, "groundskeeper")
    assert {"tables", "jobs", "webhooks", "doctor", "serve"} <= set(completed())
    assert completed("webhooks", "replay", "--w") == ["--with-delivered"]
    kinds = [kind.value for kind in JobKind if kind.value.startswith("c")]
    assert completed("jobs", "run", "c") == kinds
    states = [state.value for state in JobState if state.value.startswith("c")]
    assert completed("jobs", "list", "--state", "c") == states


@pytest.mark.parametrize(
    ("shell", "more"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})], ids=["zsh", "fish"]
)
def test_the_scripts_of_other_shells_ask_for_completions_that_are_answered(shell: str, more: dict[str, str]) -> None:
    """The test makes the calls of the scripts, because these shells may not be installed."""
    asked = {"_GROUNDSKEEPER_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "groundskeeper webhooks r", **more}
    ran = subprocess.run([PROGRAM], env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    for name in ("rotate-secret", "replay", "remove"):
        assert name in ran.stdout
    assert "enable" not in ran.stdout
    named = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = [PROGRAM, "--show-completion", shell]
    script = subprocess.run(shown, env=named, capture_output=True, text=True, check=True).stdout
    for name in asked:
        assert name in script
