"""Sends generated requests to every operation of the documentation, as every kind of caller.

The requests follow the schemas of the documentation, or violate them at one place. The answers must be documented ones.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import hypothesis.strategies as st
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from jobs.storage.permissions import Permissions
from service.access.token import Role
from service.api.app import create_app
from service.api.authentication import Failures
from service.delivery.guard import Guard
from service.registration.detection import examine
from tests.integration.control_plane.watching import Watched
from tests.support.contexts import changed
from tests.support.small_table import SmallTable, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from schemathesis import APIOperation, Case

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES, MANY_EXAMPLES = 3, 100
"""Number of generated requests to each operation, each by several kinds of callers."""

_SENT = {"method", "url", "headers", "params", "cookies", "json", "data", "files", "content"}


class Service:
    """A service with a table with a snapshot, a job, a policy and a webhook, whose ids are `ids`."""

    def __init__(self, context: AppContext, clock: FakeClock, folder: Path) -> None:
        self.context = changed(
            context, examine=examine, permissions=Permissions(("/",)), guard=Guard(frozenset({"localhost"}))
        )
        self.app = create_app(self.context)
        self.folder = folder
        self.ids: dict[str, str] = {"name": "job-conflict", "pattern": "trips*", "incident_id": "inc_1"}
        self._clock = clock
        self._count = 0

    def fill(self, client: TestClient, admin: dict[str, str]) -> None:
        """Adds the objects that an earlier request may have deleted."""
        client.headers.update(admin)
        if "table_id" not in self.ids or client.get(f"/v1/tables/{self.ids['table_id']}").status_code != 200:
            self._fill(client)
        del client.headers["Authorization"]

    def _fill(self, client: TestClient) -> None:
        self._count += 1
        table = SmallTable(self.folder / f"trips{self._count}")
        table.commit("001", {"p": {log_file(bucket_id(0), "001"): 4096}})
        made = client.post("/v1/tables", json={"base_path": str(table.base)})
        self.ids["table_id"] = made.json()["id"]
        watched = Watched(self.context.database.engine, self._clock)
        watched.observer.run_once()
        assert watched.observer.pool.wait(30)
        job = client.post(f"/v1/tables/{self.ids['table_id']}/jobs", json={"kind": "audit"})
        self.ids["job_id"] = job.json()["id"]
        hook = client.post("/v1/webhooks", json={"url": "http://localhost:9/"})
        self.ids["webhook_id"] = hook.json()["id"]
        test = client.post(f"/v1/webhooks/{self.ids['webhook_id']}/test")
        self.ids["delivery_id"] = test.json()["id"]


@pytest.fixture
def service(app_context: AppContext, clock: FakeClock, tmp_path: Path) -> Service:
    return Service(app_context, clock, tmp_path)


@pytest.fixture
def http(service: Service) -> Iterator[TestClient]:
    with TestClient(service.app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(MANY_EXAMPLES, marks=pytest.mark.exhaustive)])
def test_no_request_is_answered_in_a_way_that_is_not_documented(
    service: Service,
    http: TestClient,
    make_token: Callable[[Role], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    examples: int,
) -> None:
    # Many requests have no valid token.
    monkeypatch.setattr(Failures, "MOST_SECONDS", 0.0)
    callers = [{}, *(make_token(role) for role in (Role.READER, Role.WORKER, Role.OPERATOR, Role.ADMIN))]
    schema = schemathesis.openapi.from_dict(service.app.openapi())
    others = cycle(callers[:-1])
    failures = []
    for found in schema.get_all_operations():
        operation = found.ok()
        service.fill(http, callers[-1])
        try:
            _try(operation, service.ids, http, (callers[-1], others), examples)
        except BaseExceptionGroup as error:
            failures.append(f"{operation.label}: {error}")
    assert not failures, "\n\n".join(failures)


def _try(
    operation: APIOperation[Any, Any, Any, Any],
    ids: dict[str, str],
    http: TestClient,
    callers: tuple[dict[str, str], Iterator[dict[str, str]]],
    examples: int,
) -> None:
    admin, others = callers
    known = {name: value for name, value in ids.items() if f"{{{name}}}" in operation.path}
    paths = [known, {}] if known else [{}]

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of([operation.as_strategy(mode, path_parameters=each) for mode in GenerationMode for each in paths]))
    def call(case: Case) -> None:
        _never_wait(case)
        # The client of the test refuses longer addresses.
        assume(len(urlencode(case.query or {}, doseq=True, errors="replace")) < 60_000)
        # An administrator sends each request, and the others take turns, also from operation to operation.
        for headers in (admin, next(others)):
            sent = case.as_transport_kwargs(base_url="http://127.0.0.1", headers=headers)
            # The client of the test would refuse other letters than those of ASCII.
            sent["headers"] = {name: value.encode() for name, value in sent["headers"].items()}
            answer = http.request(**{name: sent[name] for name in sent.keys() & _SENT})
            case.validate_response(answer, checks=CHECKS)

    call()


def _never_wait(case: Case) -> None:
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_seconds"), int | float):
        case.body["wait_seconds"] = 0
    if case.query and "wait_seconds" in case.query:
        case.query.pop("wait_seconds")
    if case.operation.definition.raw["operationId"] == "streamEvents":
        case.headers["Accept"] = "application/json"
