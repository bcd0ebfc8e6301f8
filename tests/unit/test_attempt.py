"""Tests an attempt that must end: which steps are interrupted, and which may still clean up the table."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JNetworkError

from jobs.attempt_log import AttemptLogs
from jobs.contract import (
    Heartbeat,
    HeartbeatAnswer,
    JobKind,
    LogLine,
    Outcome,
    Result,
    Table,
    TableLock,
    WorkerInfo,
    WorkerState,
    WorkOrder,
)
from jobs.errors import JobError, LeaseLostError
from jobs.format.clock_frame import ClockFrame
from jobs.format.lock_providers import DYNAMODB
from jobs.kinds.results import KindResult
from jobs.local_process import STANDBY
from jobs.protocol import missing_parts, overtaken_instants, upgrade_refusals
from jobs.redaction import RedactingFormatter
from jobs.storage.permissions import Permissions
from jobs.worker import attempt as attempts
from jobs.worker import write_probes
from jobs.worker.attempt import Attempt
from jobs.worker.lease_loop import Worker
from jobs.worker.lifetime import Lifetime
from jobs.worker.presence import Presence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jobs.job_context import JobContext

STARVED_SECONDS = 0.2
PLAN = WorkOrder("job_1", 1, JobKind.BUCKET_EXPANSION, Table("/lake/orders", "orders"), {"factor": 2})


class FakeSpark:
    """Counts how often the job group is cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0
        tracker = SimpleNamespace(getJobIdsForGroup=lambda _: [])
        self.sparkContext = SimpleNamespace(
            setLocalProperty=lambda *_: None,
            setJobGroup=lambda *_: None,
            cancelJobGroup=self._cancel,
            statusTracker=lambda: tracker,
            _jvm=None,
        )

    def _cancel(self, _group: str) -> None:
        self.cancelled += 1

    def wait_for_cancel(self) -> None:
        end = time.monotonic() + 5
        while not self.cancelled and time.monotonic() < end:
            time.sleep(0.005)


CLOCK = SimpleNamespace(kept=lambda **_: nullcontext(), verify=lambda: None, frame=ClockFrame())
TABLE = SimpleNamespace(clock=CLOCK, lock_wait_seconds=0.0, base_path="/lake/orders", jvm=None)
LOCK = SimpleNamespace(break_stale=lambda: False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs `job(context)` as an attempt whose heartbeats are answered by `answer()`."""
    monkeypatch.setattr(attempts, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(attempts, "jvm_of", lambda _: None)
    monkeypatch.setattr(attempts, "HudiTable", lambda *_: TABLE)
    monkeypatch.setattr(attempts, "TableLock", lambda *_: LOCK)
    monkeypatch.setattr(missing_parts, "missing", lambda *_: [])
    monkeypatch.setattr(upgrade_refusals, "while_unfinished", lambda *_: [])
    monkeypatch.setattr(overtaken_instants, "settle", lambda *_, **__: overtaken_instants.Settled())

    def start(
        spark: FakeSpark,
        answer: Callable[[], HeartbeatAnswer],
        job: Callable[[JobContext], None],
        lease_seconds: float = 30.0,
        *,
        executors: Any = None,
        plan: WorkOrder = PLAN,
    ) -> Result:
        monkeypatch.setitem(attempts.RUN, PLAN.kind, lambda _table, _plan, context: job(context))

        def beat(_heartbeat: Heartbeat) -> HeartbeatAnswer:
            return answer()

        anything: Any = spark
        attempt = Attempt(
            anything,
            plan,
            lease_seconds,
            beat,
            permissions=Permissions(),
            executors=executors,
            executor_seconds=STARVED_SECONDS,
        )
        return attempt.run()

    return start


def test_the_clean_up_after_a_cancelled_job_is_not_cancelled(run: Callable[..., Result]) -> None:
    spark = FakeSpark()
    seen: list[int] = []

    def job(context: JobContext) -> None:
        spark.wait_for_cancel()
        with context.undoing():
            time.sleep(0.02)
            before = spark.cancelled
            time.sleep(0.1)
            seen.append(spark.cancelled - before)
        raise JobError("Spark says that the job group was cancelled")

    assert run(spark, lambda: HeartbeatAnswer.CANCEL, job).outcome is Outcome.CANCELLED
    assert spark.cancelled > 0
    assert seen == [0]


def test_a_short_job_sends_no_heartbeat(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "HEARTBEAT_SECONDS", 30.0)
    beats: list[HeartbeatAnswer] = []

    def answer() -> HeartbeatAnswer:
        beats.append(HeartbeatAnswer.CONTINUE)
        return beats[-1]

    def job(_context: JobContext) -> None:
        raise JobError("done")

    assert run(FakeSpark(), answer, job).outcome is Outcome.FAILED
    assert beats == []


def test_a_commit_is_reported_although_the_jvm_has_died_right_after_it(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts.audit, "after", lambda *_: None)
    spark = FakeSpark()

    def commits(_: JobContext) -> Result:
        spark.sparkContext.setLocalProperty = _raise_network_error
        spark.sparkContext.statusTracker = _raise_network_error
        return Result(Outcome.SUCCEEDED, instants=("20260101000000000",), details=KindResult())

    result = run(spark, lambda: HeartbeatAnswer.CONTINUE, commits)
    assert (result.outcome, result.instants) == (Outcome.SUCCEEDED, ("20260101000000000",))


def _raise_network_error(*_: object) -> None:
    raise Py4JNetworkError("An error occurred while trying to connect to the Java server")


def test_an_attempt_ends_when_its_time_is_over_and_another_may_follow(run: Callable[..., Result]) -> None:
    spark = FakeSpark()

    def job(context: JobContext) -> None:
        spark.wait_for_cancel()
        context.checkpoint()

    result = run(spark, lambda: HeartbeatAnswer.CONTINUE, job, plan=replace(PLAN, timeout_seconds=0.02))
    assert result.outcome is Outcome.FAILED
    assert result.error
    assert (result.error.type, result.error.retriable) == ("timed-out", True)
    assert spark.cancelled > 0


def test_an_attempt_without_its_lease_undoes_nothing_since_another_one_is_at_work(run: Callable[..., Result]) -> None:
    spark = FakeSpark()
    undone: list[str] = []

    def job(context: JobContext) -> None:
        spark.wait_for_cancel()
        with context.undoing():
            undone.append("by the attempt that had lost it")

    with pytest.raises(LeaseLostError):
        run(spark, lambda: HeartbeatAnswer.LOST, job)
    assert undone == []


def test_a_lost_lease_also_ends_the_clean_up_of_a_cancelled_job(run: Callable[..., Result]) -> None:
    spark = FakeSpark()
    answers = [HeartbeatAnswer.CANCEL]

    def job(context: JobContext) -> None:
        spark.wait_for_cancel()
        with context.undoing():
            time.sleep(0.02)
            spark.cancelled = 0
            answers[0] = HeartbeatAnswer.LOST
            spark.wait_for_cancel()
        raise JobError("Spark says that the job group was cancelled")

    with pytest.raises(LeaseLostError):
        run(spark, lambda: answers[0], job)
    assert spark.cancelled > 0


@pytest.mark.slow
def test_a_heartbeat_that_cannot_be_made_ends_the_attempt_when_its_lease_runs_out(run: Callable[..., Result]) -> None:
    spark = FakeSpark()
    beats: list[int] = []

    def broken() -> HeartbeatAnswer:
        beats.append(1)
        if len(beats) > 1:
            raise RuntimeError("the JVM does not answer")
        return HeartbeatAnswer.CONTINUE

    def job(context: JobContext) -> None:
        spark.wait_for_cancel()
        context.checkpoint()

    with pytest.raises(LeaseLostError):
        run(spark, broken, job, lease_seconds=3.0)
    assert len(beats) > 2


class FakeExecutors:
    """There are no executors until `come_back`. If `is_running`, a Spark job runs, or waits for executors."""

    are_local = come_on_demand = False

    def __init__(self, *, is_running: bool = True) -> None:
        self._count, self._is_running = 0, is_running

    def prove(self) -> None:
        """Does not wait, as if executors had been there before."""

    def come_back(self) -> None:
        self._count = 1

    def go(self) -> None:
        self._count = 0

    def count(self) -> int:
        return self._count

    def has_running_job(self, _group: str) -> bool:
        return self._is_running


def test_an_attempt_whose_tasks_find_no_executor_is_given_up_to_be_tried_again(run: Callable[..., Result]) -> None:
    spark = FakeSpark()

    def job(context: JobContext) -> None:
        spark.wait_for_cancel()
        # The job cleans up by Spark jobs, which cannot run, either.
        with context.undoing():
            before = spark.cancelled
            time.sleep(0.05)
            assert spark.cancelled > before
        raise JobError("Spark says that the job group was cancelled")

    result = run(spark, lambda: HeartbeatAnswer.CONTINUE, job, executors=FakeExecutors())
    assert result.outcome is Outcome.FAILED
    assert result.error is not None
    assert (result.error.type, result.error.retriable) == ("no-executors", True)


@pytest.mark.parametrize("comes_back", [True, False])
def test_an_attempt_that_needs_no_executors_or_gets_them_in_time_goes_on(
    run: Callable[..., Result], comes_back: bool
) -> None:
    spark, executors = FakeSpark(), FakeExecutors(is_running=comes_back)

    def job(context: JobContext) -> Result:
        time.sleep(STARVED_SECONDS / 4)
        if comes_back:
            executors.come_back()
        time.sleep(2 * STARVED_SECONDS)
        context.checkpoint()
        return Result(Outcome.SUCCEEDED, details=KindResult())

    assert run(spark, lambda: HeartbeatAnswer.CONTINUE, job, executors=executors).outcome is Outcome.SUCCEEDED
    assert spark.cancelled == 0


class FakeService:
    """Leases one job to a worker, and keeps its report."""

    def __init__(self, plan: WorkOrder) -> None:
        self._plan = plan
        self.result: Result | None = None
        self.log: list[LogLine] = []

    def lease(self, _worker_id: str, _info: WorkerInfo, **_spare: bool) -> tuple[WorkOrder, float]:
        return self._plan, 30.0

    def heartbeat(self, _worker_id: str, _job_id: str, beat: Heartbeat) -> HeartbeatAnswer:
        self.log += beat.log
        return HeartbeatAnswer.CONTINUE

    def finish(
        self, _worker_id: str, _order: WorkOrder, result: Result, log: Sequence[LogLine], **_takes_next: object
    ) -> None:
        self.result = result
        self.log += log


def test_a_worker_whose_executors_have_just_gone_takes_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that announces the state of the worker looks once in a second."""
    monkeypatch.setattr("jobs.worker.lease_loop.LOOK_SECONDS", 0.0)
    leased: list[str] = []
    service: Any = SimpleNamespace(lease=lambda worker_id, *_, **__: leased.append(worker_id))
    executors: Any = FakeExecutors()
    presence = Presence(service, "w1", WorkerInfo())
    worker = Worker(service, FakeSpark(), 1, Lifetime(), presence=presence, executors=executors)  # type: ignore[arg-type]
    executors.come_back()
    presence.has(WorkerInfo(), executors)
    while not presence.look():
        time.sleep(0.01)
    executors.go()
    assert presence.is_ready
    worker.run_once()
    assert leased == []
    executors.come_back()
    worker.run_once()
    assert leased == ["w1"]


def test_a_standby_neither_announces_itself_nor_takes_a_job_until_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    announced: list[str] = []
    asked = threading.Event()

    def lease(*_: object, **_spare: object) -> None:
        asked.set()
        time.sleep(0.01)

    read, write = os.pipe()
    monkeypatch.setenv(STANDBY, "1")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=os.fdopen(read, "rb")))
    service: Any = SimpleNamespace(announce=lambda worker_id, _info: announced.append(worker_id), lease=lease)
    spark: Any = FakeSpark()
    spark.sparkContext._gateway = None
    presence = Presence(service, "w1", WorkerInfo())
    presence.info = replace(presence.info, state=WorkerState.READY)
    worker = Worker(service, spark, 1, Lifetime(), presence=presence)
    running = threading.Thread(target=worker.run)
    running.start()
    presence.update()
    assert not asked.wait(0.3)
    assert announced == []
    os.write(write, b"\n")
    assert asked.wait(60)
    presence.update()
    assert announced == ["w1"]
    worker.stop()
    running.join(10)
    assert not running.is_alive()


def test_neither_the_report_nor_the_log_of_a_worker_contains_the_secrets_of_a_table(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_with_secrets(*_: object) -> Result:
        raise ZeroDivisionError("'correct horse' and 'battery staple' are no passwords for /lake/orders")

    monkeypatch.setattr(attempts, "jvm_of", lambda _: None)
    monkeypatch.setattr(attempts, "HudiTable", lambda *_: TABLE)
    monkeypatch.setattr(attempts, "TableLock", lambda *_: LOCK)
    monkeypatch.setattr(missing_parts, "missing", lambda *_: [])
    monkeypatch.setattr(upgrade_refusals, "while_unfinished", lambda *_: [])
    monkeypatch.setattr(overtaken_instants, "settle", lambda *_, **__: overtaken_instants.Settled())
    monkeypatch.setattr(write_probes, "require_writable", lambda *_: None)
    monkeypatch.setitem(attempts.RUN, PLAN.kind, fail_with_secrets)
    secrets = {"hoodie.aws.secret.key": "correct horse", "hoodie.aws.session.token": "battery staple"}
    table = Table("/lake/orders", "orders", lock=TableLock(DYNAMODB[0], secrets))
    service: Any = FakeService(replace(PLAN, table=table))
    spark: Any = FakeSpark()
    log_format = RedactingFormatter("%(message)s")
    caplog.handler.setFormatter(log_format)
    presence = Presence(service, "w1", WorkerInfo())
    presence.info = replace(presence.info, state=WorkerState.READY)
    logs = AttemptLogs(log_format.without_secrets)
    caplog.set_level("INFO")
    logging.getLogger().addHandler(logs)
    try:
        Worker(service, spark, 1, Lifetime(), presence=presence, log_format=log_format, attempt_logs=logs).run_once()
    finally:
        logging.getLogger().removeHandler(logs)
    messages = [line.message for line in service.log]
    assert [line.number for line in service.log] == list(range(len(messages)))
    assert messages[0].startswith("running ")
    assert any("Traceback" in message for message in messages)
    assert "failed: " in messages[-1]
    assert "correct horse" not in str(messages)
    assert "battery staple" not in str(messages)
    assert service.result.error.detail == ("ZeroDivisionError: '******' and '******' are no passwords for /lake/orders")
    assert "ZeroDivisionError: '******' and '******' are no passwords" in caplog.text
    assert "correct horse" not in caplog.text


@pytest.mark.parametrize(("lifetime", "done"), [(Lifetime(), 3), (Lifetime(jobs=2), 2)])
def test_a_slot_runs_the_jobs_that_come_with_the_answers_until_its_worker_is_old(
    monkeypatch: pytest.MonkeyPatch, lifetime: Lifetime, done: int
) -> None:
    monkeypatch.setattr(attempts, "jvm_of", lambda _: None)
    monkeypatch.setattr(attempts, "HudiTable", lambda *_: TABLE)
    monkeypatch.setattr(attempts, "TableLock", lambda *_: LOCK)
    monkeypatch.setattr(missing_parts, "missing", lambda *_: [])
    monkeypatch.setattr(write_probes, "require_writable", lambda *_: None)
    ended = Result(Outcome.SUCCEEDED, details=KindResult())
    monkeypatch.setitem(attempts.RUN, PLAN.kind, lambda *_: ended)
    waiting = [(replace(PLAN, job_id=f"job_{number}"), 30.0) for number in (1, 2, 3)]
    leases = []
    reported: list[str] = []
    may_end = threading.Event()

    def lease(*_: object, **_spare: object) -> tuple[WorkOrder, float] | None:
        leases.append(len(reported))
        if not waiting:
            may_end.wait(10)
            return None
        return waiting.pop(0)

    def finish(_worker: str, order: WorkOrder, *_: object, takes_next: WorkerInfo | None) -> Any:
        reported.append(order.job_id)
        if len(reported) == done:
            may_end.set()
        return waiting.pop(0) if takes_next and waiting else None

    service: Any = SimpleNamespace(lease=lease, finish=finish, announce=lambda *_: None)
    spark: Any = FakeSpark()
    spark.sparkContext._gateway = None
    presence = Presence(service, "w1", WorkerInfo())
    presence.info = replace(presence.info, state=WorkerState.READY)
    worker = Worker(service, spark, 1, lifetime, presence=presence)
    running = threading.Thread(target=worker.run)
    running.start()
    assert may_end.wait(10)
    worker.stop()
    running.join(10)
    assert reported == [f"job_{number}" for number in range(1, done + 1)]
    assert leases[0] == 0
    assert 0 < len([each for each in leases if each < done]) < 2
