"""Format, lint, types and the direction of imports; and what the README promises about its commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

CHECKS = {
    "format": [BIN / "ruff", "format", "--check", "."],
    "lint": [BIN / "ruff", "check", "."],
    "types": [BIN / "mypy"],
    "imports": [BIN / "lint-imports"],
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_code_passes(name: str) -> None:
    ran = subprocess.run(CHECKS[name], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_ci_runs_the_very_test_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    demo, test = commands
    assert demo.endswith("groundskeeper demo")
    assert test in (ROOT / ".ci" / "run").read_text().splitlines()


def test_nothing_but_the_agreed_layout_stands_on_the_top_level() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    agreed = {"pyproject.toml", "service", "jobs", "migrations", "tests", "Dockerfile", "README.md"}
    found = {line.split("/")[0] for line in tracked.splitlines()}
    assert {name for name in found if not name.startswith(".")} <= agreed
