"""Damages that a diagnosis finds are incidents until a later diagnosis no longer finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind
from service.db.engine import reading
from service.incidents import store, tracker
from service.incidents.incident import IncidentKind
from service.policies import policy_registry
from tests.integration.control_plane.planning import Service, submit_job

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.incidents.incident import Incident
    from tests.integration.control_plane.conftest import FakeClock

CHECKS = ["lock", "markers", "rows"]
MARKERS = {
    "type": "markers-left",
    "title": "Markers were left behind",
    "detail": "20260101120000000",
    "effect": "Nothing reads them.",
    "hint": "Run a `repair` of leftovers.",
    "cure": {"kind": "repair", "params": {"leftovers": True}},
    "check": "markers",
}
ROWS = {**MARKERS, "type": "duplicate-keys", "title": "Keys are there twice", "cure": None, "check": "rows"}


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    service = Service(engine, clock)
    service.register()
    policy_registry.put_table(engine, clock, "tbl_1", {"diagnosis": {"enabled": True}})
    return service


def diagnose(service: Service, clock: FakeClock, *findings: Any, checked: list[str] = CHECKS) -> None:
    """Advances the clock by a day, and runs the job of the policy."""
    clock.advance(86_400)
    service.poll()
    [job_id] = service.plan().jobs
    job = service.lease()
    assert job
    assert (job.id, job.kind, dict(job.params)) == (job_id, JobKind.DIAGNOSIS, {"rows": False})
    service.end(job, findings=list(findings), checked=checked, unchecked=[], healthy=not findings)


def incidents(service: Service) -> list[Incident]:
    with reading(service.engine) as connection:
        return store.unresolved(connection, "tbl_1")


def events(service: Service) -> list[str]:
    with service.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT type FROM events ORDER BY seq").scalars().all()
    return [each for each in found if "incident" in each or "healthy" in each or "recovered" in each]


def test_a_damage_is_one_incident_with_its_hint_until_it_is_gone(service: Service, clock: FakeClock) -> None:
    diagnose(service, clock, MARKERS, ROWS)

    # The two incidents have the same time, so random ids determine their order.
    by_type = {each.details["type"]: each for each in incidents(service)}
    markers, rows = by_type[MARKERS["type"]], by_type[ROWS["type"]]
    assert {markers.kind, rows.kind} == {IncidentKind.DAMAGE}
    problem = markers.problem()
    assert (problem.title, problem.hint) == (MARKERS["title"], MARKERS["hint"])
    assert problem.detail == "20260101120000000. Nothing reads them."
    assert markers.details["cure"] == MARKERS["cure"]
    assert markers.instant != rows.instant

    diagnose(service, clock, MARKERS, checked=["lock", "markers"])
    # The second diagnosis did not check the rows.
    assert {each.id for each in incidents(service)} == {markers.id, rows.id}
    diagnose(service, clock)
    assert incidents(service) == []
    diagnose(service, clock, MARKERS)
    assert [each.id for each in incidents(service)] != [markers.id]


def test_events_report_each_damage_and_the_recovery_of_the_table(service: Service, clock: FakeClock) -> None:
    diagnose(service, clock, MARKERS, ROWS)
    diagnose(service, clock, ROWS)
    diagnose(service, clock)
    told = events(service)
    assert [each.rpartition(".")[2] for each in told] == [
        "incident_opened",
        "incident_opened",
        "unhealthy",
        "incident_closed",
        "incident_closed",
        "recovered",
    ]


def test_an_incident_that_a_user_has_closed_stays_closed_until_the_damage_changes(
    service: Service, clock: FakeClock
) -> None:
    diagnose(service, clock, MARKERS)
    [incident] = incidents(service)
    tracker.close(service.engine, service.notifier, clock, incident.id, by="ops", reason="we know")
    diagnose(service, clock, MARKERS)
    assert incidents(service) == []
    diagnose(service, clock, {**MARKERS, "detail": "20260101120000000, 20260102120000000"})
    assert len(incidents(service)) == 1


@pytest.mark.parametrize("findings", ["broken", [1, {"title": "of another version"}], None])
def test_a_result_of_another_form_opens_nothing(service: Service, clock: FakeClock, findings: Any) -> None:
    service.poll()
    submit_job(service, JobKind.DIAGNOSIS)
    job = service.lease()
    assert job
    service.end(job, findings=findings, checked=None)
    assert incidents(service) == []


@pytest.mark.parametrize("kind", [JobKind.AUDIT, JobKind.CLUSTERING])
def test_findings_of_an_audit_or_of_the_checks_after_a_job_become_incidents(service: Service, kind: JobKind) -> None:
    def end_job_with(*findings: Any) -> list[str]:
        submit_job(service, kind)
        job = service.lease()
        assert job
        found = {"findings": list(findings), "checked": ["markers"], "unchecked": []}
        service.end(job, **(found if kind is JobKind.AUDIT else {"audit": found}))
        return [each.details["type"] for each in incidents(service)]

    assert end_job_with(MARKERS) == ["markers-left"]
    assert end_job_with(MARKERS) == ["markers-left"]
    assert end_job_with() == []
