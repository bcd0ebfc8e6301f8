"""Checks format, lint, types, the direction of imports, and the README's statements about its commands."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.guides import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

# CI checks a fresh checkout once, and to write a cache would take a tenth of the time.
CACHE = [] if (ROOT / ".mypy_cache").exists() else [f"--cache-dir={os.devnull}"]
CHECKS = {
    "format": [BIN / "ruff", "format", "--check", "."],
    "lint": [BIN / "ruff", "check", "."],
    "types": [BIN / "mypy", *CACHE],
    "imports": [BIN / "lint-imports"],
}


@pytest.mark.slow
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


MODULES = [path for folder in ("service", "jobs") for path in sorted((ROOT / folder).rglob("*.py"))]
QUESTIONS = ("What", "Who", "How", "Whether", "Which", "When", "Where")


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a block and of the blocks inside. Most nodes are expressions, which are left out."""
    for statement in block:
        yield statement
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            for inner in getattr(statement, name, ()):
                yield from _statements([inner] if isinstance(inner, ast.stmt) else inner.body)


def test_comments_of_java_sources_hold_no_code() -> None:
    """Java is compiled when a job first needs it, so a tool that reflows comments could make code one unnoticed."""
    java = re.compile(r"^(public )?class \w+", re.MULTILINE)
    sources = [
        (path, node.value)
        for path in MODULES
        if re.search(r"class \w+(?![\w(:\[])", path.read_text())
        for node in ast.walk(_parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and java.search(node.value)
    ]
    assert len(sources) > 5
    comments = [(path, each) for path, text in sources for each in re.findall(r"^ *//(.*)$", text, re.MULTILINE)]
    assert [each for each in comments if re.search(r"[{}]|;$", each[1])] == []
    behind = [
        (path, each) for path, text in sources for each in re.findall(r"^ *[^/ \n].*[^:/\n]//.*$", text, re.MULTILINE)
    ]
    assert behind == [], "a comment has a line of its own"


def test_files_are_short_and_their_docstrings_name_something() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 350 or path.parent.name == "generated", path
        assert not path.read_text().startswith(tuple(f'"""{each}' for each in QUESTIONS)), path


PHRASES = {"Of", "As", "From", "By", "With"}
PRONOUNS = {"It", "They", "Its", "Their"}
POINTERS = {"This", "These", "That", "Those"}
"""First words of sentences that lack a subject or a verb, or have a pronoun without its noun. A pointer with a noun is
allowed."""


SOURCES = [
    path
    for folder in ("service", "jobs", "tests", "migrations")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.parent.name != "generated"
]


def test_docstrings_have_a_subject_and_a_verb() -> None:
    # Most files do not have such a word after a quote or a full stop, and need not be parsed.
    suspicious = re.compile(rf"[\"'.:?!][\s*(]*(?:{'|'.join(PHRASES | PRONOUNS | POINTERS)})\b")
    wrong = [
        f"{path}:{node.lineno}: {sentence}"
        for path in SOURCES
        if suspicious.search(path.read_text())
        for node in _statements(_parsed(path).body)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for number, sentence in enumerate(_sentences(node.value.value))
        if _first_word(sentence) in (PHRASES if number else PHRASES | PRONOUNS | POINTERS)
    ]
    assert wrong == []


def test_sentences_of_comments_have_a_subject_and_a_verb() -> None:
    block = re.compile(r"(?:^ *# .*\n)+", re.MULTILINE)
    wrong = [
        f"{path}: {sentence}"
        for path in SOURCES
        for comment in block.findall(path.read_text())
        for sentence in _sentences(re.sub(r"^ *# ", "", comment, flags=re.MULTILINE))
        if _first_word(sentence) in PHRASES | PRONOUNS | POINTERS
    ]
    assert wrong == []


def test_texts_for_users_have_a_subject_and_a_verb() -> None:
    words = PHRASES | {"It", "They"}
    # Most files have no such word after a quote or a full stop.
    suspicious = re.compile(rf"[\"'.:?!](?:\\[nt]|[\s*(])*(?:{'|'.join(words)})\b")
    wrong = [
        f"{path}: {sentence}"
        for path in MODULES
        if path.parent.name != "generated" and suspicious.search(path.read_text())
        for text in _texts(_parsed(path))
        for sentence in _sentences(text.strip())
        if len(sentence.split()) > 2 and _first_word(sentence) in words
    ]
    assert wrong == []


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yields the strings of the code without docstrings, with an X in place of each value."""
    nodes = list(ast.walk(tree))
    left_out = {each.value for each in nodes if isinstance(each, ast.Expr)}
    left_out |= {part for each in nodes if isinstance(each, ast.JoinedStr) for part in each.values}
    for each in nodes:
        if isinstance(each, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in each.values)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each not in left_out:
            yield each.value


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_sentences_of_guides_have_a_subject_and_a_verb(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|^[|#][^\n]*$", "\n", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    paragraphs = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", prose)
    sentences = (each for text in paragraphs for each in _sentences(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", text)))
    assert [each for each in sentences if _first_word(each) in PHRASES | PRONOUNS] == []


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.:?!])\s+(?=[A-Z*`(])", text)


def _first_word(sentence: str) -> str:
    found = re.match(r"[\s*(]*(\w+)", sentence)
    return found[1] if found else ""


def test_nothing_takes_more_than_five_positional_arguments() -> None:
    wrong = []
    # Few files have a signature with six names before a star, and the others need not be parsed.
    for path in filter(_may_take_six, MODULES):
        for node in _statements(_parsed(path).body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
                if len([name for name in names if name not in ("self", "cls")]) > 5:
                    wrong.append(f"{path}: {node.name}")
    assert wrong == []


def _may_take_six(path: Path) -> bool:
    """Returns whether a signature may have six names before a star: all but the first one have a type, and the function
    has one, too."""
    return any(
        len(re.findall(r"\w+ *:", re.split(r"(?:^|,)\s*\*", signature)[0])) > 4
        for signature in re.findall(r"^ *(?:async )?def \w+\((.*?)\) ->", path.read_text(), re.MULTILINE | re.DOTALL)
    )
