"""Tests the conversion of job events to OpenLineage events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.api.event_catalogue import CATALOGUE
from service.db.engine import open_engine
from service.delivery import lineage_facet
from service.delivery.open_lineage import Facts, Statistics, concerns, dataset_name, run_event
from service.events.event import Event, EventType
from service.model.clock import utc_now
from tests.integration.control_plane.open_lineage import OWN, check
from tests.support.contexts import context_of

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = tuple((f"c{number}", "string") for number in range(3000))


def event_of(type_: EventType, **changes: object) -> Event:
    data = dict(CATALOGUE[type_].example)
    if "job" in data:
        data["job"] = {**data["job"], **changes}
    table_id = data["table"]["id"] if "table" in data else None
    return Event("evt_1", type_.value, utc_now(), table_id, data)


CONCERNED = {
    EventType.JOB_STARTED: "START",
    EventType.EXPANSION_DRAINING: "RUNNING",
    EventType.JOB_SUCCEEDED: "COMPLETE",
    EventType.JOB_FAILED: "FAIL",
    EventType.JOB_CANCELLED: "ABORT",
    EventType.WEBHOOK_TEST: "OTHER",
}


@pytest.mark.parametrize("type_", EventType)
def test_each_event_of_a_job_is_a_valid_run_event_and_no_other_is_one(type_: EventType) -> None:
    event = event_of(type_)
    if type_ is EventType.JOB_QUEUED:
        assert not concerns(event_of(type_, attempt=0, error=None))
        assert not concerns(event_of(type_, attempt=1, error=None))
        event = event_of(type_, attempt=1, error=CATALOGUE[EventType.JOB_FAILED].example["job"]["error"])
    elif type_ not in CONCERNED:
        assert not concerns(event)
        return
    assert concerns(event)
    document = run_event(event, "lake", Facts(COLUMNS, Statistics(1, 2, 3), Statistics(4, 5, 6)))
    check(document)
    assert document["eventType"] == CONCERNED.get(type_, "FAIL")
    assert ("errorMessage" in document["run"]["facets"]) == (document["eventType"] == "FAIL")


def test_the_events_of_one_attempt_are_one_run_and_those_of_the_next_attempt_another() -> None:
    def run(type_: EventType, attempt: int) -> str:
        return str(run_event(event_of(type_, attempt=attempt), "lake", Facts())["run"]["runId"])

    assert run(EventType.JOB_STARTED, 1) == run(EventType.JOB_SUCCEEDED, 1)
    assert run(EventType.JOB_STARTED, 1) != run(EventType.JOB_STARTED, 2)


def test_a_dry_run_and_a_job_that_only_reads_have_no_output() -> None:
    for changes in ({"dry_run": True}, {"kind": "audit"}):
        document = run_event(event_of(EventType.JOB_SUCCEEDED, **changes), "lake", Facts())
        assert document["outputs"] == []
        assert len(document["inputs"]) == 1
    [output] = run_event(event_of(EventType.JOB_SUCCEEDED, kind="compaction"), "lake", Facts())["outputs"]
    assert "version" in output["facets"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"jobId": None},
        {"attempt": -1},
        {"dryRun": "no"},
        {"instant": 7},
        {"instants": [7]},
        {"_schemaURL": "urn:other"},
    ],
)
def test_the_schema_of_our_own_facet_refuses_what_it_is_not(wrong: dict[str, Any]) -> None:
    document = run_event(event_of(EventType.JOB_SUCCEEDED), "lake", Facts())
    facet = document["run"]["facets"][lineage_facet.NAME]
    OWN.validate(facet)
    with pytest.raises(jsonschema.ValidationError):
        OWN.validate({**facet, **wrong})
    for member in facet:
        with pytest.raises(jsonschema.ValidationError):
            OWN.validate({name: value for name, value in facet.items() if name != member})


def test_the_service_shows_the_schema_to_everybody(tmp_path: Path) -> None:
    context = context_of(open_engine(f"sqlite:///{tmp_path}/none.db"))
    with TestClient(create_app(context), base_url="http://127.0.0.1") as client:
        answer = client.get("/openlineage/groundskeeper_job.json")
    assert (answer.status_code, answer.json()) == (200, lineage_facet.schema())
    jsonschema.Draft202012Validator.check_schema(answer.json())
    assert answer.json()["$id"] == lineage_facet.URN


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("s3a://lake/a/orders", ("s3://lake", "a/orders")),
        ("/data/orders", ("file", "/data/orders")),
        ("file:///data/orders", ("file", "/data/orders")),
        ("hdfs://nn:8020/data/orders", ("hdfs://nn:8020", "/data/orders")),
        ("abfss://c@acc.dfs.core.windows.net/x/orders", ("abfss://c@acc.dfs.core.windows.net", "x/orders")),
        ("gs://lake", ("gs://lake", "/")),
    ],
)
def test_datasets_are_named_as_other_tools_name_them(path: str, name: tuple[str, str]) -> None:
    assert dataset_name(path) == name
