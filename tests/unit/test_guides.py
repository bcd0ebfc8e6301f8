"""README and guides name only settings, commands, options, REST paths, files and headings that exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from functools import cache
from typing import TYPE_CHECKING

import pytest
import typer
from sqlalchemy import create_engine

from service.api.app import create_app
from service.cli.main import app as command_line
from service.runtime import settings
from service.runtime.effective_settings import CLIENT
from tests.support.contexts import context_of
from tests.support.guides import PAGES, ROOT, shell_blocks

if TYPE_CHECKING:
    from pathlib import Path

_FLINK_TESTS_ONLY = "FLINK_BUNDLE"
_CLIENT = {name.removeprefix("GROUNDSKEEPER_") for name in CLIENT}
_REGISTRY_HOSTS = re.compile(r"pypi\.org|pythonhosted|maven\.org|maven\.apache|docker\.io|ghcr\.io|npmjs|proxy\.golang")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# A call ends with its line, its pipe or its `$(...)`; quoted text may have these characters.
_CURL = re.compile(r"curl (?:[^\\'\"|;>)\n]|\\\n|'[^']*'|\"(?:\\.|[^\"\\])*\")*")

pages = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


def test_settings_md_lists_every_setting_with_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.Settings.model_fields:
        monkeypatch.delenv(f"GROUNDSKEEPER_{name.upper()}", raising=False)
    rows = re.findall(r"^\| (`GROUNDSKEEPER_.*?) \| (.*?) \|", PAGES[".docs/settings.md"].read_text(), re.MULTILINE)
    listed: list[str] = []
    for names, defaults in rows:
        variables = [name.removeprefix("GROUNDSKEEPER").strip("_") for name in re.findall(r"`(\w+)`", names)]
        listed += variables
        values = re.findall(r"`([^`]*)`|none", defaults)
        if len(values) != len(variables):
            continue  # The default is described in words.
        for variable, value in zip(variables, values, strict=True):
            if value:
                monkeypatch.setenv(f"GROUNDSKEEPER_{variable}", value)
                changed = settings.load()
                monkeypatch.delenv(f"GROUNDSKEEPER_{variable}")
                assert changed == settings.load(), variable
    assert sorted(listed) == sorted(name.upper() for name in settings.Settings.model_fields)


@pages
def test_every_setting_of_a_page_exists(page: Path) -> None:
    known = {name.upper() for name in settings.Settings.model_fields} | {_FLINK_TESTS_ONLY} | _CLIENT
    assert set(re.findall(r"GROUNDSKEEPER_([A-Z_]+)", page.read_text())) <= known


@pages
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        path = (page.parent / target).resolve() if target else page
        assert path.is_file(), target
        if anchor:
            assert anchor in _anchors(path), f"{target}#{anchor}"


@pages
def test_no_page_names_the_host_of_a_package_registry(page: Path) -> None:
    assert not _REGISTRY_HOSTS.search(page.read_text())


@pages
def test_shell_blocks_can_be_pasted_into_bash_and_zsh(page: Path) -> None:
    """zsh expands unquoted globs, fails if nothing matches, and accepts no comments at its prompt."""
    for block in shell_blocks(page):
        parsed = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert parsed.returncode == 0, parsed.stderr
        bare = _QUOTED.sub("", block)
        assert not re.search(r"[?*\[\]#]", bare), block


@pages
def test_every_groundskeeper_command_of_a_page_exists(page: Path) -> None:
    root = typer.main.get_command(command_line)
    for line in re.findall(r"(?:bin/|`)groundskeeper ((?:[a-z]+ )*[a-z]+(?: [^`\n|]*)?)", page.read_text()):
        command, words = root, line.split()
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        assert command is not root, line
        known = {name for param in command.params for name in param.opts}
        assert set(_OPTION.findall(line)) <= known, line


@pages
def test_every_script_of_a_page_exists_and_has_its_options(page: Path) -> None:
    for path, rest in re.findall(r"(tests/[\w/]+\.py)([^`\n]*)`", page.read_text()):
        text = (ROOT / path).read_text()
        for option in _OPTION.findall(rest):
            assert f'"{option}"' in text, f"{path} {option}"


@pages
def test_every_file_of_this_repository_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:(?:jobs|service|tests|migrations)/[\w/*.-]*|[\w]+\.py))`", page.read_text())
    assert [name for name in named if not any(ROOT.glob(name if "/" in name else f"[jst]*/**/{name}"))] == []


@pages
def test_every_rest_call_of_a_page_is_a_route(page: Path) -> None:
    routes = _routes()
    for block in shell_blocks(page):
        for call in _CURL.findall(block):
            words = shlex.split(call)
            path = next(
                word.partition("?")[0].removeprefix("$SERVICE") for word in words if word.startswith("$SERVICE/")
            )
            data = [words[at + 1] for at, word in enumerate(words) if word == "-d"]
            is_get = "-G" in words or "-sG" in words
            method = words[words.index("-X") + 1] if "-X" in words else "POST" if data and not is_get else "GET"
            assert any(method == known and pattern.fullmatch(path) for known, pattern in routes), f"{method} {path}"
            if not is_get:
                for body in data:
                    json.loads(body)


def _anchors(path: Path) -> set[str]:
    """Returns the anchors that GitHub makes from headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def _routes() -> list[tuple[str, re.Pattern[str]]]:
    paths = create_app(context_of(create_engine("sqlite://"))).openapi()["paths"]
    return [
        (method.upper(), re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))))
        for path, operations in paths.items()
        for method in operations
    ]
