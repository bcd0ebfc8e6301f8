"""A damage of a real table is an incident of the service until a diagnosis finds that it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.db.engine import reading
from service.incidents import store
from service.policies import policy_registry
from tests.integration import tables
from tests.integration.control_plane.conftest import FakeClock
from tests.integration.control_plane.databases import open_sqlite
from tests.integration.control_plane.planning import Service
from tests.integration.run import run_job
from tests.integration.test_diagnosis import dangling_config

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from service.incidents.incident import Incident


def test_a_damage_is_an_incident_with_its_cure_until_it_is_cured(spark: SparkSession, tmp_path: Path) -> None:
    base, clock = tmp_path / "trips", FakeClock()
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    engine = open_sqlite(tmp_path / "gk.db")
    service = Service(engine, clock)
    service.register(base_path=str(base))
    policy_registry.put_table(
        engine, clock, "tbl_1", {"diagnosis": {"enabled": True}, "compaction": {"enabled": False}}
    )

    def diagnosed() -> list[Incident]:
        """Advances the clock by a day, runs the diagnosis that the policy starts, and returns the incidents."""
        clock.advance(86_400)
        service.poll()
        [job_id] = service.plan().jobs
        job = service.lease()
        assert job
        assert (job.id, job.kind) == (job_id, JobKind.DIAGNOSIS)
        service.end(job, **run_job(spark, base, "diagnosis", dict(job.params)).details)
        with reading(engine) as connection:
            return store.unresolved(connection, "tbl_1")

    assert diagnosed() == []
    dangling_config(spark, base, options)
    [incident] = diagnosed()
    assert (incident.details["type"], incident.details["check"]) == ("hashing-config-dangling", "hashing configs")
    assert incident.problem().hint == incident.details["hint"] != ""
    assert [each.id for each in diagnosed()] == [incident.id]

    cure = incident.details["cure"]
    run_job(spark, base, cure["kind"], cure["params"])

    assert diagnosed() == []
    with reading(engine) as connection:
        closed = store.get(connection, incident.id)
    assert closed.because
    assert closed.because.endswith("no longer finds it")
