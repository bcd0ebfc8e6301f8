"""A policy with a limit starts one job after the other until no work is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.policies import policy_registry
from tests.integration.control_plane.planning import COMPACTION, Service, submit_job

if TYPE_CHECKING:
    import sqlalchemy as sa

    from tests.integration.control_plane.conftest import FakeClock

LIMIT = {"compaction": {"limit_bytes": 100}, "timeout_seconds": 50}


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    service = Service(engine, clock)
    service.register()
    policy_registry.put_table(engine, clock, "tbl_1", LIMIT)
    return service


def details_with_rest(file_groups: int) -> dict[str, Any]:
    return {"file_groups": 1, "left": {"file_groups": file_groups, "bytes": 100 * file_groups, "plans": []}}


def test_jobs_of_a_policy_with_a_limit_follow_each_other_until_nothing_is_left(
    service: Service, clock: FakeClock
) -> None:
    service.poll(commits=5)
    for more in (2, 1, 0):
        [job_id] = service.plan().jobs
        job = service.job(job_id)
        assert (job.kind, dict(job.params), job.timeout_seconds) == (COMPACTION, {"limit_bytes": 100}, 50)
        leased = service.lease()
        assert leased
        service.end(leased, **details_with_rest(more))
        clock.advance(10)
        service.poll(commits=1)
        assert service.plan().jobs == ()
        assert service.decision().code == ("too-soon" if more else "not-yet")
        clock.advance(60)
        service.poll(commits=1)


def test_work_that_a_submitted_job_has_left_is_not_continued_by_the_policy(service: Service, clock: FakeClock) -> None:
    service.poll(commits=1)
    submit_job(service, COMPACTION)
    leased = service.lease()
    assert leased
    service.end(leased, **details_with_rest(3))
    clock.advance(100)
    service.poll(commits=1)
    assert service.plan().jobs == ()
    assert service.decision().code == "not-yet"
