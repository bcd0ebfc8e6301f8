"""Every refusal in the source of jobs and of the service has a page with the title and the hint of the source."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jobs
import service
from service.api.problem_pages import EXPLANATIONS, every_type
from service.api.problem_texts.of_jobs import OF_JOBS
from service.api.problem_texts.of_refusals import GROUPS, OF_REFUSALS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_MEMBERS = ("type", "title", "detail", "hint", "retriable")
# They pass on the type of an error or of another problem; incidents show no type.
_PASSED_ON = {
    "jobs/dataplane/hudi_merge_job.py: Problem(**row.refusal.asDict())",
    "jobs/errors.py: first.type",
    "jobs/errors.py: self.type",
    "service/incidents/incident.py: self.kind.value",
    "service/model/errors.py: self.type",
    "service/queue/retry.py: error.type",
}


@dataclass(frozen=True)
class Site:
    """A call of `Problem`. `title` and `hint` are None where the source computes them."""

    where: str
    type: str | None
    title: str | None
    hint: str | None

    def agrees(self, title: str, hint: str) -> bool:
        return self.title in (None, title) and self.hint in (None, hint)


def sites_in(text: str, name: str) -> Iterator[Site]:
    tree = ast.parse(text)
    names = {alias.asname or alias.name for alias in _imported(tree) if alias.name == "Problem"}
    constants = _constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_problem(node.func, names):
            yield _site(node, name, constants)


def _is_problem(called: ast.expr, names: Collection[str]) -> bool:
    if isinstance(called, ast.Attribute):
        return called.attr == "Problem"
    return isinstance(called, ast.Name) and called.id in names


def _imported(tree: ast.Module) -> Iterator[ast.alias]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from node.names


def _constants(tree: ast.Module) -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _site(call: ast.Call, name: str, constants: Mapping[str, str]) -> Site:
    given = dict(zip(_MEMBERS, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg}

    def text_of(member: str) -> str | None:
        node = given.get(member)
        if isinstance(node, ast.Name):
            return constants.get(node.id)
        if isinstance(node, ast.Constant):
            return str(node.value)
        return "" if node is None else None

    type_ = text_of("type") or None
    where = f"{name}: {ast.unparse(given.get('type', call))}"
    return Site(where, type_, text_of("title"), text_of("hint"))


def every_site() -> list[Site]:
    root = Path(jobs.__file__).parent.parent
    assert root == Path(service.__file__).parent.parent
    files = sorted(path for folder in ("jobs", "service") for path in (root / folder).rglob("*.py"))
    return [
        site for path in files for site in sites_in(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    ]


@pytest.fixture(scope="module")
def by_type() -> dict[str, list[Site]]:
    found = defaultdict(list)
    for site in every_site():
        if site.type is not None:
            found[site.type].append(site)
    return found


def test_every_refusal_in_the_source_has_a_page(by_type: Mapping[str, list[Site]]) -> None:
    pages = every_type()
    without = {name: sites[0].where for name, sites in by_type.items() if name not in pages}
    assert not without, "put a text into service/api/problem_texts/of_refused_*.py"
    assert len(by_type) > 90


def test_no_refusal_has_a_type_that_cannot_be_found_in_the_source() -> None:
    assert {site.where for site in every_site() if site.type is None} == _PASSED_ON


def test_no_text_is_about_a_refusal_that_does_not_exist(by_type: Mapping[str, list[Site]]) -> None:
    assert OF_REFUSALS.keys() <= by_type.keys()


@pytest.mark.parametrize("name", OF_REFUSALS)
def test_the_title_and_the_hint_are_those_of_the_source(by_type: Mapping[str, list[Site]], name: str) -> None:
    text = OF_REFUSALS[name]
    assert any(site.agrees(text.title, text.hint) for site in by_type[name]), by_type[name]
    assert text.title


@pytest.mark.parametrize("name", OF_REFUSALS)
def test_the_text_says_why_the_job_is_refused(name: str) -> None:
    text = OF_REFUSALS[name]
    assert len(text.why.split()) >= 12
    assert text.why.rstrip(".") not in (text.title, text.hint)


def test_each_type_has_one_text() -> None:
    assert sum(map(len, GROUPS)) == len(OF_REFUSALS)
    assert not OF_REFUSALS.keys() & OF_JOBS.keys()
    assert all(EXPLANATIONS[name] is text for name, text in OF_REFUSALS.items())


def test_a_new_refusal_is_found_however_it_is_written() -> None:
    text = """
from jobs import contract
from jobs.contract import Problem as Reason
_NAME = "by-name"
a = Reason("by-place", "Title", f"{1} row", hint="A hint")
b = contract.Problem(type=_NAME, title=f"{2} rows")
c = Reason(f"of-{a}", "Title")
"""
    assert list(sites_in(text, "m.py")) == [
        Site("m.py: 'by-place'", "by-place", "Title", "A hint"),
        Site("m.py: _NAME", "by-name", None, ""),
        Site("m.py: f'of-{a}'", None, "Title", ""),
    ]
