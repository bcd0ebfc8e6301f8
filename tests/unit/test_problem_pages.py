"""Every type of problem has one declaration with its texts and a page, which the OpenAPI document links."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

import jobs
from jobs.errors import JobError
from jobs.problems.problem_type import ProblemType, declared
from service.api.app import create_app
from service.api.problem_pages import every_type
from service.db.engine import open_engine
from service.model.errors import GroundskeeperError
from tests.support.contexts import context_of

if TYPE_CHECKING:
    from collections.abc import Iterator

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
_CONSTRUCTING = {
    "jobs/errors.py",
    "jobs/problems/problem_type.py",
    "service/model/errors.py",
    # A task on an executor sends its problem as a row.
    "jobs/dataplane/hudi_merge_job.py",
    # Incidents have their own texts, and show no type.
    "service/incidents/incident.py",
}
_VERB = "is|are|was|were|has|have|had|can|could|may|must|will|would|says?|failed"
_DANGLING = re.compile(
    rf"(?:^|[.?!] )(?:(?:Of|As|From|By|With|It|They|Them|Its|Their)\b|(?:This|These|Those) (?:{_VERB})\b)[^.]*"
)


def every_error(base: type[Exception], *packages: str) -> list[type]:
    """Returns the class and all its subclasses."""
    for package in packages:
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}.", onerror=lambda name: None):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found: list[type] = [base]
    for kind in found:
        found += kind.__subclasses__()
    return found


@cache
def every_declaration() -> list[type | ProblemType]:
    """Returns the classes that declare a type; classes that inherit it have the texts of their base."""
    classes = every_error(GroundskeeperError, "service") + every_error(JobError, "jobs")
    return [kind for kind in classes if "type" in vars(kind)] + declared()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    engine = open_engine(f"sqlite:///{tmp_path_factory.mktemp('pages')}/none.db")
    return TestClient(create_app(context_of(engine)), base_url="http://127.0.0.1")


def test_every_type_says_why_in_more_words_than_its_title() -> None:
    for each in every_declaration():
        if isinstance(each, type):
            own = {"why", "example"} & vars(each).keys()
            assert len(own) == 2, f"{each.__module__}.{each.__name__} has texts of another type"
        assert len(each.why.split()) >= 12, each.type
        assert each.why.rstrip(".") not in (each.title, each.hint), each.type


def test_every_type_has_a_page() -> None:
    """The service imports less than these tests."""
    alone = "import service.api.app; from service.api.problem_pages import every_type; print(*every_type())"
    pages = subprocess.run([sys.executable, "-c", alone], check=True, capture_output=True, text=True).stdout.split()
    assert {each.type for each in every_declaration()} == set(pages)


def test_the_types_of_jobs_are_declared_once() -> None:
    """The service declares a type of jobs again only for its own title and hint."""
    kinds = [kind for kind in every_error(JobError, "jobs") if "type" in vars(kind)]
    assert [name for name, times in Counter(each.type for each in [*kinds, *declared()]).items() if times > 1] == []
    with pytest.raises(ValueError, match="two problem types"):
        ProblemType(declared()[0].type, "Title", why="Another one has this name.")


def test_no_problem_is_made_without_a_declared_type() -> None:
    root = Path(jobs.__file__).parent.parent
    assert {name for folder in ("jobs", "service") for name in _constructing(root, folder)} == _CONSTRUCTING


def _constructing(root: Path, folder: str) -> Iterator[str]:
    """Yields the files that call the class `Problem` by any name."""
    for path in sorted((root / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "Problem" not in text:
            continue
        tree = ast.parse(text)
        imported = [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
        names = {alias.asname or alias.name for alias in imported if alias.name == "Problem"}
        called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if any(
            func.attr == "Problem"
            if isinstance(func, ast.Attribute)
            else isinstance(func, ast.Name) and func.id in names
            for func in called
        ):
            yield path.relative_to(root).as_posix()


def test_a_sentence_says_what_it_is_about() -> None:
    dangling = {each.type: found.group() for each in every_declaration() if (found := _DANGLING.search(each.why))}
    assert dangling == {}


@pytest.mark.slow
def test_browsers_get_a_page_and_programs_get_json(client: TestClient) -> None:
    for name, found in every_type().items():
        page = client.get(f"/problems/{name}", headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["vary"] == "Accept"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "<h2>Why</h2>" in page.text
        assert client.get(f"/problems/{name}").json() == found.model_dump()
    index = client.get("/problems", headers=BROWSER).text
    assert all(f'href="problems/{name}"' in index for name in every_type())
    assert [each["type"] for each in client.get("/problems").json()["items"]] == list(every_type())
    missing = client.get("/problems/<script>", headers=BROWSER)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")


def test_the_document_links_the_page_of_each_problem_of_an_operation(client: TestClient) -> None:
    pages = every_type()
    linked = set()
    for path, item in client.get("/openapi.json").json()["paths"].items():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if status < "400":
                    continue
                names = [part.split(")")[0] for part in response["description"].split("](/problems/")[1:]]
                assert names, (path, status)
                assert all(pages[name].status == int(status) for name in names), (path, status, names)
                linked.update(names)
    assert len(linked) > 45
