"""Every type of problem has a page that explains it, and the OpenAPI document links it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import service
from jobs.contract import TABLE_LOCKED
from jobs.errors import JobError
from jobs.hudi.storage_errors import StorageRefusedError
from service.api.app import create_app
from service.api.dependencies import AppContext
from service.api.problem_pages import EXPLANATIONS, every_type
from service.api.problem_texts.of_jobs import OF_JOBS
from service.api.problem_texts.of_refusals import OF_REFUSALS
from service.db.engine import open_engine
from service.model.errors import GroundskeeperError
from service.queue.hand_over_policy import WRITERS_NOT_STOPPED
from service.queue.withdrawal import WITHDRAWN

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def every_error() -> list[type[GroundskeeperError]]:
    for module in pkgutil.walk_packages(service.__path__, "service.", onerror=lambda name: None):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[GroundskeeperError]] = [GroundskeeperError]
    for kind in found:
        found += kind.__subclasses__()
    return found


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    engine = open_engine(f"sqlite:///{tmp_path_factory.mktemp('pages')}/none.db")
    return TestClient(create_app(AppContext(engine, examine=None)), base_url="http://127.0.0.1")  # type: ignore[arg-type]


def test_every_error_has_an_explanation_that_says_more_than_its_title() -> None:
    for kind in every_error():
        assert kind.type in EXPLANATIONS, f"{kind.__module__}.{kind.__name__} has no text in service/api/problem_texts"
        text = EXPLANATIONS[kind.type]
        assert len(text.why.split()) >= 12, kind.type
        assert text.why.rstrip(".") not in (kind.title, kind.hint), kind.type
        assert text.example, kind.type


def test_every_error_of_a_worker_has_an_explanation() -> None:
    kinds: list[type[JobError]] = [JobError]
    assert issubclass(StorageRefusedError, JobError)
    for kind in kinds:
        kinds += kind.__subclasses__()
    types = {kind.type for kind in kinds} | {TABLE_LOCKED, WITHDRAWN, WRITERS_NOT_STOPPED}
    assert types <= every_type().keys()
    titles = {kind.type: kind.title for kind in kinds}
    for name, text in OF_JOBS.items():
        assert titles.get(name, text.title) == text.title
        assert len(text.why.split()) >= 12, name


def test_there_is_no_text_about_a_type_that_does_not_exist() -> None:
    assert EXPLANATIONS.keys() - OF_JOBS.keys() - OF_REFUSALS.keys() <= {kind.type for kind in every_error()}


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


def test_the_texts_are_in_the_package() -> None:
    assert (Path(service.__file__).parent / "api" / "problem_texts" / "of_jobs.py").is_file()
