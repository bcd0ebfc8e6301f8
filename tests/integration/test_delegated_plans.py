"""Real Spark writers delegate their table services with the options that the service shows."""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import cycle
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from jobs.contract import Outcome, WorkOrder
from jobs.errors import PlanTakenError, RefusedError
from jobs.hudi.jvm import Jvm
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.protocol.plan_owner import QUIET_SECONDS
from jobs.worker.attempt import perform
from tests.integration import tables
from tests.integration.run import proved, run_job
from tests.integration.serving import Serving, eventually
from tests.support.stand_in import Answer, Asked, StandIn

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JSON = {"Content-Type": "application/json"}
# Policies start only the plans that writers delegate.
NOTHING_ELSE = {name: {"enabled": False} for name in ("compaction", "cleaning", "clustering")}


class Front(StandIn):
    """A proxy between writers and service that forwards requests, loses them, or sends them several times.

    The writer of a lost request gets a success, as if the service had lost the request afterwards.
    """

    def __init__(self, serving: Serving | None, times: list[int]) -> None:
        self.serving = serving
        self.sent: list[int] = []
        self._plan = cycle(times)
        super().__init__(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        number = next(self._plan)
        self.sent.append(number)
        answer = Answer(body=b"{}")
        for _ in range(number if self.serving else 0):
            assert self.serving
            got = httpx.get(self.serving.url + asked.path, headers=dict(asked.headers), timeout=30)
            answer = Answer(got.status_code, got.content)
        return answer


def call(serving: Serving, method: str, path: str, body: object = None, **params: Any) -> Any:
    answer = httpx.request(method, serving.url + path, json=body, params=params, headers=JSON, timeout=30)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def delegating(serving: Serving, table_id: str, url: str) -> dict[str, str]:
    """Returns the service's options for delegating, with the address of the proxy and a plan at every commit."""
    shown = call(serving, "GET", f"/v1/tables/{table_id}/writer-options", services="delegated")["options"]
    assert shown["hoodie.table.service.manager.uris"] == serving.url
    names = ("hoodie.table.service.manager", "hoodie.metadata.table.service", "hoodie.compact.inline")
    chosen = {name: value for name, value in shown.items() if name.startswith(names)}
    changes = {"hoodie.table.service.manager.uris": url, "hoodie.compact.inline.max.delta.commits": "1"}
    return {**chosen, **changes}


def work(spark: SparkSession, serving: Serving) -> list[WorkOrder]:
    """Runs all due jobs as a worker does."""
    done = []
    while leased := call(serving, "POST", "/v1/worker/leases", {"worker_id": "w1", "wait_seconds": 3}):
        order = WorkOrder.from_json(leased["plan"])
        result = perform(HudiTable(Jvm(spark), order.table), order, JobContext())
        report = {"attempt": order.attempt, "worker_id": "w1", "result": result.to_json()}
        call(serving, "POST", f"/v1/worker/leases/{order.job_id}/result", report)
        done.append(order)
    return done


def plans_of(serving: Serving, **wanted: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = call(serving, "GET", "/v1/delegated-plans", limit=500, **wanted)["items"]
    return items


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "commits",
    [pytest.param(3, id="short"), pytest.param(40, id="long")],
)
def test_nothing_is_lost_and_nothing_runs_twice_however_badly_requests_arrive(
    spark: SparkSession, tmp_path: Path, commits: int
) -> None:
    tables.let_delegate(spark)
    base = tmp_path / "orders"
    options = tables.write_table(spark, base, count=300)
    (tmp_path / "service").mkdir()
    with Serving(tmp_path / "service", POLL_SECONDS="2") as serving, Front(serving, [2, 0, 1, 3]) as front:
        index = {"type": "bucket", "num_buckets": 4, "hash_fields": ["id"]}
        table_id = call(serving, "POST", "/v1/tables", {"base_path": str(base), "index": index})["id"]
        call(serving, "PUT", f"/v1/tables/{table_id}/policy", NOTHING_ELSE)
        # Archival would remove the first compactions from the timeline, which is read below.
        writer = {**options, **delegating(serving, table_id, front.url), "hoodie.archive.automatic": "false"}
        ran: list[WorkOrder] = []
        for number in range(1, commits + 1):
            tables.upsert(tables.rows(spark, 0, 150, ts=number), base, writer)
            if number % 3 == 2:
                serving.kill()
                serving.start()
            if number % 4 == 0:
                ran += work(spark, serving)
        before = tables.snapshot(spark, base)
        ran += work(spark, serving)
        assert tables.snapshot(spark, base) == before
        # The last request may be lost, but the next one names all plans.
        assert len(front.sent) >= commits
        while front.sent[-1] == 0:
            tables.upsert(tables.rows(spark, 150, 160, ts=99), base, writer)
        assert eventually(lambda: bool(ran.extend(work(spark, serving)) or _all_done(serving)), 60), plans_of(serving)
        kept = plans_of(serving)
    executed = Counter(instant for order in ran for instant in order.params["plans"])
    assert set(executed.values()) == {1}
    timeline = base / ".hoodie" / "timeline"
    planned = sorted(path.name.split(".")[0] for path in timeline.glob("*.compaction.requested"))
    assert sorted(path.name.split("_")[0] for path in timeline.glob("*_*.commit")) == planned
    assert sorted(executed) == sorted(plan["instant"] for plan in kept) == planned
    proved(spark, base, 4)


def _all_done(serving: Serving) -> bool:
    found = plans_of(serving)
    return bool(found) and {plan["state"] for plan in found} == {"done"}


def test_a_job_executes_the_given_plans_and_schedules_none(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=200, updates=1, partitioned=False)
    planning = {**options, "hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    tables.upsert(tables.rows(spark, 0, 150, ts=5), base, planning)
    tables.upsert(tables.rows(spark, 0, 20, ts=6), base, options)
    before = tables.snapshot(spark, base)
    timeline = base / ".hoodie" / "timeline"
    [plan] = [path.name.split(".")[0] for path in timeline.glob("*.compaction.requested")]
    params = {"plans": [plan, "20200101000000000"]}
    dry = run_job(spark, base, "compaction", params, dry_run=True)
    assert (dry.details["plans"], dry.details["gone"]) == ([plan], ["20200101000000000"])
    done = run_job(spark, base, "compaction", params)
    assert (done.outcome, done.instants) == (Outcome.SUCCEEDED, (plan,))
    # There are logs for another compaction.
    assert len(list(timeline.glob("*.compaction.requested"))) == 1
    again = run_job(spark, base, "compaction", params)
    assert (again.instants, again.details["completed_before"]) == ((), [plan])
    assert tables.snapshot(spark, base) == before
    proved(spark, base, 4)


@pytest.mark.exhaustive
def test_a_clustering_plan_is_executed_and_on_a_bucket_table_refused(spark: SparkSession, tmp_path: Path) -> None:
    plain, bucketed = tmp_path / "plain", tmp_path / "bucketed"
    clustering = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    for base, buckets in ((plain, None), (bucketed, 4)):
        options = tables.write_table(spark, base, count=300, table_type="COPY_ON_WRITE", num_buckets=buckets)
        # The plan is made without index options, as by a careless writer of a bucket table.
        without = {key: value for key, value in options.items() if "index" not in key}
        tables.upsert(
            tables.rows(spark, 300, 310, ts=5), base, {**(options if buckets is None else without), **clustering}
        )
        timeline = base / ".hoodie" / "timeline"
        [plan] = [path.name.split(".")[0] for path in timeline.glob("*.clustering.requested")]
        before = tables.snapshot(spark, base)
        if buckets is None:
            done = run_job(spark, base, "clustering", {"plans": [plan]}, index=None)
            assert done.instants == (plan,)
            assert len(list(timeline.glob(f"{plan}_*.replacecommit"))) == 1
            assert len(list(timeline.glob("*.clustering.requested"))) == 1
        else:
            with pytest.raises(RefusedError, match="bucket index"):
                run_job(spark, base, "clustering", {"plans": [plan]})
            assert list(timeline.glob("*.clustering.inflight")) == []
        assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
def test_a_pending_clean_of_a_writer_is_executed_alone(spark: SparkSession, base: Path) -> None:
    tables.let_delegate(spark)
    options = tables.write_table(spark, base, count=300, updates=4, table_type="COPY_ON_WRITE", partitioned=False)
    manager = {
        "hoodie.table.service.manager.enabled": "true",
        "hoodie.table.service.manager.actions": "compaction,clean",
    }
    cleaning = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}

    with Front(None, [0]) as front:
        uris = {"hoodie.table.service.manager.uris": front.url}
        tables.upsert(tables.rows(spark, 0, 150, ts=9), base, {**options, **manager, **cleaning, **uris})
    timeline = base / ".hoodie" / "timeline"
    [plan] = [path.name.split(".")[0] for path in timeline.glob("*.clean.requested")]
    before = tables.snapshot(spark, base)
    # Another runner has begun the clean, which sends no heartbeats, so the runner counts as dead after a while.
    inflight = timeline / f"{plan}.clean.inflight"
    inflight.write_bytes((timeline / f"{plan}.clean.requested").read_bytes())
    with pytest.raises(PlanTakenError):
        run_job(spark, base, "cleaning", {"plans": [plan]})
    old = time.time() - QUIET_SECONDS - 60
    os.utime(inflight, (old, old))
    done = run_job(spark, base, "cleaning", {"plans": [plan]})
    assert (done.instants, done.details["files_deleted"] > 0) == ((plan,), True)
    assert len(list(timeline.glob(f"{plan}_*.clean"))) == 1
    assert len(list(timeline.glob("*.clean.requested"))) == 1
    assert tables.snapshot(spark, base) == before
    proved(spark, base, 4)
