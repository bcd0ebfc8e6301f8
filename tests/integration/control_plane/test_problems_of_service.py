"""Tests each problem of jobs, workers and webhooks: it is caused, listed, and disappears."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from jobs.contract import TABLE_LOCKED, JobKind, Outcome, Problem, Progress, Result
from service.db import schema
from service.db.engine import writing
from service.delivery import webhooks as flows
from service.delivery.guarded_loop import GuardedEventLoop
from service.health.problem import ProblemKind
from tests.integration.control_plane.operated import DAY, HOUR, Operated
from tests.integration.control_plane.planning import submit_job
from tests.integration.control_plane.posting import Post
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.control_plane.watching import A
from tests.integration.receiver import Receiver, Reply
from tests.support.guides import ROOT
from tests.support.small_table import base_file, instant_at

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def post(operated: Operated) -> Iterator[Post]:
    with asyncio.Runner(loop_factory=GuardedEventLoop) as runner:
        post = Post(operated.engine, operated.clock, runner)
        yield post
        post.close()


def submit(operated: Operated, table_id: str, kind: str = "compaction") -> str:
    return str(operated.call("POST", f"/v1/tables/{table_id}/jobs", 202, {"kind": kind})["id"])


def test_a_job_that_fails_for_good_is_listed_at_once_until_one_of_its_kind_succeeds(operated: Operated) -> None:
    table = operated.table()
    error = Problem("column-unknown", "There is no such column", "nope", "Its columns are id and city.")

    def run(outcome: Outcome) -> None:
        submit(operated, table.id)
        plan = operated.worker.must_lease()
        operated.clock.advance(1)
        operated.worker.report(plan, Result(outcome, error=None if outcome is Outcome.SUCCEEDED else error))

    operated.poll()
    run(Outcome.FAILED)
    since = operated.clock()
    found = operated.one("job-failing")
    assert found["detail"].startswith("The last compaction job failed ")
    for _ in range(2):
        run(Outcome.FAILED)
    found = operated.one("job-failing")
    assert found["since"] == since.isoformat().replace("+00:00", "Z")
    assert found["evidence"] | {"failures": 3, "job_kind": "compaction", "error": "column-unknown"} == found["evidence"]
    assert (found["remedy"], "nope" in found["detail"]) == (error.hint, True)
    run(Outcome.SUCCEEDED)
    assert operated.problems() == []
    run(Outcome.FAILED)
    assert operated.kinds() == ["job-failing"]
    for _ in range(4):
        operated.poll(DAY)
    assert operated.problems() == []


def test_a_table_that_the_workers_may_not_write_is_listed_until_a_job_tells_that_they_may(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.poll()
    denied = Problem("storage-access-denied", "The storage does not let the worker do it", "lock: denied", "Let it.")

    def run(kind: str, result: Result) -> None:
        submit(operated, table.id, kind)
        operated.worker.report(operated.worker.must_lease(), result)
        operated.clock.advance(60)

    since = operated.clock()
    run("audit", Result(Outcome.SUCCEEDED, details={"not_writable": denied.to_json()}))
    found = operated.one("table-not-writable")
    assert found["severity"] == "critical"
    assert "lock: denied" in found["detail"]
    # A second failure for the same reason adds no problem, and a poll does not remove it.
    run("compaction", Result(Outcome.FAILED, error=denied))
    table.commit({base_file(A, "2"): 10})
    operated.poll()
    assert operated.kinds(table_id=table.id) == ["table-not-writable"]
    assert operated.one("table-not-writable")["since"] == since.isoformat().replace("+00:00", "Z")
    run("audit", Result(Outcome.SUCCEEDED))
    assert operated.kinds(table_id=table.id) == ["table-not-writable"]
    run("audit", Result(Outcome.SUCCEEDED, details={"not_writable": None}))
    assert operated.kinds(table_id=table.id) == ["job-failing"]
    run("compaction", Result(Outcome.FAILED, error=denied))
    assert operated.kinds(table_id=table.id) == ["table-not-writable"]
    run("compaction", Result(Outcome.SUCCEEDED, ("20990101000000000",)))
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"paused": True})
    assert "table-not-writable" not in operated.kinds(table_id=table.id)


def test_a_refused_job_of_a_policy_is_listed_but_not_one_of_a_person(operated: Operated) -> None:
    """A person who submitted the job sees the refusal in the answer; a policy reads no answer."""
    table = operated.table()
    operated.poll()
    refusal = Problem("lock-not-provable", "The lock cannot be proved")
    refused = Result(Outcome.FAILED, details={"refusals": [refusal.to_json()]}, error=refusal)
    job = submit(operated, table.id, "cleaning")
    operated.worker.report(operated.worker.must_lease(), refused)
    assert operated.problems() == []
    with writing(operated.engine) as connection:
        connection.execute(schema.jobs.update().where(schema.jobs.c.id == job).values(reason="a writer is dead"))
    assert operated.one("job-failing")["evidence"]["job_kind"] == "cleaning"
    assert operated.kinds(table_id=table.id) == ["job-failing"]


def test_a_job_of_unknown_outcome_is_listed_until_a_poll_settles_it(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.poll()
    operated.service.clock = operated.clock
    job = submit_job(operated.service, JobKind.COMPACTION, table.id)
    plan = operated.worker.must_lease()
    operated.worker.beat(plan, instant_at(operated.clock()))
    operated.clock.advance(31)
    operated.recover()
    properties = table.files.base / ".hoodie" / "hoodie.properties"
    hidden = properties.rename(properties.with_suffix(".away"))
    operated.poll(HOUR)
    found = operated.one("job-unsettled")
    assert found["evidence"]["job_id"] == job.id
    assert set(operated.kinds()) >= {"table-unreadable", "job-unsettled"}
    hidden.rename(properties)
    operated.poll(2 * HOUR)
    assert operated.kinds(table_id=table.id) == ["job-failing"]


def test_a_job_that_waits_for_the_lock_is_listed_until_it_has_it(operated: Operated) -> None:
    table = operated.table()
    operated.poll()
    job = submit(operated, table.id)
    plan = operated.worker.must_lease()

    def beat(step: str) -> None:
        operated.worker.beat(plan, progress=Progress(step))

    for _ in range(16):
        beat("planning: waits for the table's lock, held for 3 h by writer-7")
        operated.poll(20)
    found = operated.one("lock-awaited")
    assert "held for 3 h by writer-7" in found["detail"]
    assert found["evidence"]["job_id"] == job
    beat("executing")
    assert operated.problems() == []


def test_a_job_that_gave_its_worker_back_for_a_held_lock_stays_listed_until_it_has_it(operated: Operated) -> None:
    table = operated.table()
    operated.poll()
    submit(operated, table.id)
    lock, shown = "the table's lock, held for 3 h by writer-7", []
    for _ in range(4):
        plan = operated.worker.must_lease()
        error = Problem(
            TABLE_LOCKED, "The table's lock is held", "held for 3 h by writer-7; waited 120 s", retriable=True
        )
        operated.worker.report(plan, Result(Outcome.FAILED, error=error))
        [job] = operated.call("GET", "/v1/jobs", 200)["items"]
        shown.append(job["waits_for"].rpartition(" in ")[0] + " in")
        operated.poll(120)
    found = operated.one("lock-awaited")
    assert f"waits for {lock}." in found["detail"]
    assert shown == [f"{lock}; its next attempt is in"] * 4
    plan = operated.worker.must_lease()
    operated.worker.beat(plan, progress=Progress("executing"))
    assert operated.problems() == []


def test_a_group_without_a_worker_is_critical_while_jobs_wait_for_one(operated: Operated) -> None:
    table = operated.table()
    operated.poll()
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"worker_group": "large"})
    submit(operated, table.id)
    operated.poll()
    assert operated.problems() == []
    operated.poll(120)
    found = operated.one("group-without-worker")
    assert (found["severity"], found["about"]["id"], found["table_id"]) == ("critical", "large", None)
    assert found["evidence"]["jobs"] == 1
    assert "groundskeeper worker --group large" in found["command"]
    operated.call("POST", "/v1/worker/announcements", 204, {"worker_id": "w", "worker": {"group": "large"}})
    assert operated.problems() == []


def test_a_worker_that_disappears_with_a_job_is_lost_until_another_takes_its_place(operated: Operated) -> None:
    table = operated.table()
    operated.poll()
    submit(operated, table.id)
    operated.worker.must_lease()
    last = operated.clock()
    operated.poll(90)
    operated.recover()
    found = operated.one("worker-lost")
    assert (found["about"]["type"], found["about"]["id"]) == ("worker", "w1")
    assert found["since"] == last.isoformat().replace("+00:00", "Z")
    assert found["evidence"]["lost_attempts"] == 1
    Worker(operated.client, "w2").must_lease()
    assert operated.problems() == []


def test_a_worker_that_was_stopped_without_a_job_does_not_count_as_lost(operated: Operated) -> None:
    assert operated.worker.lease() is None
    operated.clock.advance(HOUR)
    assert operated.problems() == []


def test_a_webhook_whose_receiver_refuses_is_listed_until_it_accepts(
    operated: Operated, post: Post, receiver: Receiver
) -> None:
    hook = post.webhook(receiver.url, description="cache").webhook.id
    receiver.answer = Reply(500)
    [published] = post.publish()
    post.deliver()
    operated.clock.advance(6)
    post.deliver()
    assert operated.problems() == []
    operated.clock.advance(HOUR)
    found = operated.one("webhook-failing")
    assert found["about"] == {"type": "webhook", "id": hook, "name": "cache"}
    assert (found["evidence"]["pending"], found["evidence"]["answer"]) == (1, "HTTP 500")
    assert published.event.type in found["detail"]
    receiver.answer = Reply()
    operated.press(found, 200)
    post.deliver()
    assert operated.problems() == []


def test_a_disabled_webhook_is_listed_until_it_is_enabled(operated: Operated, post: Post, receiver: Receiver) -> None:
    hook = post.webhook(receiver.url).webhook.id
    flows.disable(post.database, hook, because="The receiver answered 410 Gone.")
    found = operated.one("webhook-disabled")
    assert "410 Gone" in found["detail"]
    operated.press(found, 200)
    assert operated.problems() == []


def test_deliveries_that_were_given_up_are_listed_until_they_are_replayed(
    operated: Operated, post: Post, receiver: Receiver
) -> None:
    hook = post.webhook(receiver.url).webhook.id
    receiver.answer = Reply(500)
    post.publish()
    for _ in range(8):
        post.deliver()
        operated.clock.advance(40_000)
    assert post.states(hook) == ["dead"]
    assert set(operated.kinds()) == {"webhook-failing", "deliveries-given-up"}
    receiver.answer = Reply()
    assert operated.press(operated.one("deliveries-given-up"), 202)["replayed"] == 1
    post.deliver()
    assert operated.problems() == []


def test_a_failed_test_of_a_webhook_does_not_count_as_given_up(
    operated: Operated, post: Post, receiver: Receiver
) -> None:
    hook = post.webhook(receiver.url).webhook.id
    receiver.answer = Reply(500)
    flows.test(post.database, hook)
    post.deliver()
    assert post.states(hook) == ["dead"]
    assert operated.problems() == []


def test_a_pause_of_more_than_a_day_is_listed_until_it_ends(operated: Operated) -> None:
    operated.call("PUT", "/v1/pause", 200, {"reason": "migration"})
    operated.clock.advance(DAY - 1)
    assert operated.problems() == []
    operated.clock.advance(1)
    found = operated.one("jobs-paused")
    assert (found["severity"], found["about"]["type"]) == ("notice", "service")
    assert "migration" in found["detail"]
    operated.press(found, 204)
    assert operated.problems() == []


def test_the_guide_lists_every_kind() -> None:
    text = (ROOT / ".docs" / "operation.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \| (?:critical|warning|notice)", text, re.MULTILINE)
    assert sorted(listed) == sorted(kind.value for kind in ProblemKind)
