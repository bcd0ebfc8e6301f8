"""A damage of a real table is an incident of the service until a diagnosis finds that it is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind
from service.db.engine import reading
from service.incidents import store
from service.policies import policy_registry
from tests.integration import tables
from tests.integration.control_plane.conftest import FakeClock
from tests.integration.control_plane.databases import open_sqlite
from tests.integration.control_plane.planning import Service, submit_job
from tests.integration.run import hudi_table, run_job
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("closing", [JobKind.AUDIT, JobKind.DIAGNOSIS])
def test_damages_of_rows_are_closed_by_the_next_audit_and_by_a_diagnosis(
    spark: SparkSession, tmp_path: Path, closing: JobKind
) -> None:
    base, engine = tmp_path / "trips", open_sqlite(tmp_path / "gk.db")
    options = tables.write_table(spark, base, count=200, partitioned=False, updates=1)
    service = Service(engine, FakeClock())
    service.register(base_path=str(base))

    def incidents_after(kind: JobKind) -> dict[str, Incident]:
        submit_job(service, kind)
        job = service.lease()
        assert job
        service.end(job, **run_job(spark, base, kind).details)
        with reading(engine) as connection:
            found = store.unresolved(connection, "tbl_1")
        return {str(each.details["type"]): each for each in found}

    tables.upsert(tables.rows(spark, 0, 90, ts=5), base, {**options, "hoodie.bucket.index.num.buckets": "2"})
    opened = incidents_after(JobKind.AUDIT)
    assert {name: each.details["check"] for name, each in opened.items()} == {
        "rows-in-wrong-bucket": "rows in buckets",
        "duplicate-keys": "rows",
    }
    assert incidents_after(closing) == opened
    cure = opened["rows-in-wrong-bucket"].details["cure"]

    run_job(spark, base, cure["kind"], cure["params"])

    assert incidents_after(closing) == {}


@pytest.mark.exhaustive
def test_a_bulk_insert_into_filled_buckets_is_an_incident_of_the_daily_audit_until_its_rollback(
    spark: SparkSession, tmp_path: Path
) -> None:
    base, engine = tmp_path / "trips", open_sqlite(tmp_path / "gk.db")
    options = tables.write_table(spark, base, count=60, partitioned=False)
    service = Service(engine, FakeClock())
    service.register(base_path=str(base))

    def audited() -> list[Incident]:
        submit_job(service, JobKind.AUDIT)
        job = service.lease()
        assert job
        service.end(job, **run_job(spark, base, "audit", {"rows": False}).details)
        with reading(engine) as connection:
            return store.unresolved(connection, "tbl_1")

    tables.upsert(tables.rows(spark, 60, 90), base, {**options, "hoodie.datasource.write.operation": "bulk_insert"})
    [incident] = audited()
    assert incident.details["type"] == "several-file-groups-in-bucket"
    last = hudi_table(spark, base, tables.INDEX).commits()[-1].write.instant
    run_job(spark, base, "rollback", {"instant": last, "table_name": "test"})
    assert audited() == []
