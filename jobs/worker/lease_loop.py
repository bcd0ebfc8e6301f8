"""The worker: a long-lived Spark driver that leases jobs from the service over REST and runs them.

It needs no database and no open port, so it runs wherever Spark runs. `groundskeeper worker --service URL` starts one;
on a cluster, `spark-submit --packages <the Hudi bundle> jobs/worker/__main__.py --service URL` does the same.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import socket
import threading
import time
import uuid
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import httpx

from jobs.contract import DEFAULT_GROUP, VERSION, HeartbeatAnswer, WorkerInfo, WorkOrder
from jobs.errors import LeaseLostError
from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import Jvm
from jobs.hudi.s3a_recycling import Connections
from jobs.hudi.session import start_session
from jobs.redaction import RedactingFormatter, redacted, redacted_json, secrets_of
from jobs.storage.permissions import Permissions
from jobs.worker.attempt import Attempt

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import Heartbeat, Result

logger = logging.getLogger(__name__)

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
DEFAULT_MASTER = "local[2,4]"
LEASE_WAIT_SECONDS = 15
RETRY_SECONDS = 2.0


@dataclass(frozen=True)
class Lifetime:
    """The limits after which a worker ends by itself, to be restarted.

    One session for thousands of tables grows (Hudi #1481), so a worker ends after `jobs` jobs or `hours` hours and
    waits for its running jobs. A worker that is stopped gives them `drain_seconds`.
    """

    jobs: int = 200
    hours: float = 24.0
    drain_seconds: float = 10.0


class ServiceUnreachableError(ConnectionError):
    """The service is unreachable. Its own type, because py4j raises plain connection errors when the JVM dies.

    Only this one is a reason to try again.
    """


class WorkerDiedError(Exception):
    """Something that the worker depends on is gone. The worker ends, and its supervisor starts another one."""


class Service:
    """The service's worker protocol. Also raises `ServiceUnreachableError` for an invalid answer."""

    def __init__(self, url: str, token: str | None, info: WorkerInfo | None = None) -> None:
        self._info = info or WorkerInfo()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=httpx.Timeout(10, read=LEASE_WAIT_SECONDS + 10)
        )

    def lease(self, worker_id: str) -> tuple[WorkOrder, float] | None:
        """Waits a while for a job; returns its work order and the seconds by which each heartbeat extends the lease."""
        body = {
            "worker_id": worker_id,
            "wait_seconds": LEASE_WAIT_SECONDS,
            "version": VERSION,
            "worker": self._info.to_json(),
        }
        answer = self._post("/v1/worker/leases", body)
        if answer.status_code == httpx.codes.NO_CONTENT:
            return None
        data = self._checked(answer).json()
        return WorkOrder.from_json(data["plan"]), float(data["lease_seconds"])

    def heartbeat(self, worker_id: str, job_id: str, heartbeat: Heartbeat) -> HeartbeatAnswer:
        body = {**heartbeat.to_json(), "worker_id": worker_id}
        answer = self._checked(self._post(f"/v1/worker/leases/{job_id}/heartbeat", body))
        return HeartbeatAnswer(answer.json()["answer"])

    def finish(self, worker_id: str, order: WorkOrder, result: Result) -> None:
        """Raises `LeaseLostError` when another attempt holds the job."""
        body = {"worker_id": worker_id, "attempt": order.attempt, "result": result.to_json()}
        answer = self._post(f"/v1/worker/leases/{order.job_id}/result", body)
        if answer.status_code == httpx.codes.CONFLICT:
            raise LeaseLostError
        self._checked(answer)

    def _post(self, path: str, body: object) -> httpx.Response:
        try:
            return self._http.post(path, json=body)
        except httpx.HTTPError as error:
            raise ServiceUnreachableError(str(error) or type(error).__name__) from error

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        raise ServiceUnreachableError(f"{answer.request.url.path} answered {answer.status_code}: {answer.text[:200]}")


class Worker:
    """Runs up to `slots` jobs at once in one Spark session, each in its own thread."""

    def __init__(
        self,
        service: Service,
        spark: SparkSession,
        slots: int,
        lifetime: Lifetime,
        *,
        log_format: RedactingFormatter | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        self._service = service
        self._spark = spark
        self._permissions = permissions or Permissions()
        self._lifetime = lifetime
        self._log_format = log_format or RedactingFormatter(LOG_FORMAT)
        self._ends_at = time.monotonic() + 3600 * lifetime.hours
        self._jobs = itertools.count(1)
        self._connections = Connections(lambda path: close_file_system(Jvm(spark), path))
        self._is_old = threading.Event()
        self.id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self._stopping = threading.Event()
        self._slots = [threading.Thread(target=self._serve, name=f"slot {n}", daemon=True) for n in range(slots)]

    def run(self) -> None:
        """Serves until `stop` or the end of its lifetime; then it takes no more jobs and lets the running ones end.

        Raises `WorkerDiedError` when it cannot continue.
        """
        for slot in self._slots:
            slot.start()
        while not self._stopping.wait(1.0) and not self._is_old.is_set():
            if self._jvm_has_died():
                # Before the worker takes another job, which would be lost.
                raise WorkerDiedError("its JVM has died, perhaps out of memory")
            if time.monotonic() > self._ends_at:
                self._is_old.set()
            elif not all(slot.is_alive() for slot in self._slots):
                raise WorkerDiedError("one of its slots has died, see the log above")
        if self._is_old.is_set():
            logger.info("%s has reached the end of its lifetime and ends when its jobs have ended", self.id)
        while any(slot.is_alive() for slot in self._slots) and not self._stopping.wait(1.0):
            pass
        deadline = time.monotonic() + self._lifetime.drain_seconds
        for slot in self._slots:
            slot.join(max(0.0, deadline - time.monotonic()))

    def stop(self) -> None:
        self._stopping.set()

    def _jvm_has_died(self) -> bool:
        """Returns whether the JVM has died; false under `spark-submit`, where it is not our child but our parent."""
        process = getattr(self._spark.sparkContext._gateway, "proc", None)
        return process is not None and process.poll() is not None

    def _serve(self) -> None:
        while not self._stopping.is_set() and not self._is_old.is_set():
            try:
                self.run_once()
            except ServiceUnreachableError as error:
                if not self._stopping.is_set():
                    logger.warning("the service is unreachable, trying again: %s", error)
                self._stopping.wait(RETRY_SECONDS)

    def run_once(self) -> str:
        """Takes one job, if there is one, and runs it to its end. Returns a description of the result."""
        if not self._connections.has_room():
            self._stopping.wait(RETRY_SECONDS)
            return "no connections"
        leased = self._service.lease(self.id)
        if leased is None:
            return "no job"
        order, lease_seconds = leased
        if next(self._jobs) >= self._lifetime.jobs:
            self._is_old.set()
        what = f"{order.kind} of {order.table.name} ({order.job_id}, attempt {order.attempt})"
        logger.info("running %s", what)
        secrets = secrets_of(order.table.lock.options) | secrets_of(order.table.hudi_options)
        self._log_format.learn(secrets)
        attempt = Attempt(
            self._spark,
            order,
            lease_seconds,
            lambda beat: self._service.heartbeat(self.id, order.job_id, beat),
            permissions=self._permissions,
        )
        try:
            with self._connections.used_by(order.table.base_path):
                result = _without(secrets, attempt.run())
            self._report(order, result, lease_seconds)
        except LeaseLostError:
            logger.warning("lost the lease of %s; no result is reported", what)
            return f"lost {what}"
        logger.info("%s: %s", what, result.outcome)
        return f"{result.outcome} {what}"

    def _report(self, order: WorkOrder, result: Result, lease_seconds: float) -> None:
        """Retries while the lease may still be ours; after that the next attempt reads the result from the timeline."""
        deadline = time.monotonic() + lease_seconds
        while True:
            try:
                return self._service.finish(self.id, order, result)
            except ServiceUnreachableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_SECONDS)


def _without(secrets: Collection[str], result: Result) -> Result:
    """Returns the result without these secrets, which Java's errors may contain."""
    error = result.error
    if error is not None:
        error = replace(error, detail=redacted(error.detail, secrets))
    return replace(result, details=redacted_json(result.details, secrets), error=error)


def main(
    service_url: str,
    *,
    token: str | None = None,
    master: str = DEFAULT_MASTER,
    slots: int = 1,
    group: str = DEFAULT_GROUP,
    driver_memory: str = "2g",
    packages: Sequence[str] = (),
    jars: Path | None = None,
    storage_options: Mapping[str, str] | None = None,
    lifetime: Lifetime | None = None,
    permissions: Permissions | None = None,
) -> int:
    """Runs a worker until it is stopped (SIGTERM, SIGINT). Returns the exit code."""
    handler, log_format = logging.StreamHandler(), RedactingFormatter(LOG_FORMAT)
    handler.setFormatter(log_format)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for noisy in ("httpx", "py4j"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    _exit_with_parent()
    spark = start_session(
        master=master,
        app_name="groundskeeper worker",
        driver_memory=driver_memory,
        packages=packages,
        jars=jars,
        storage_options=storage_options,
    )
    _warm_up(spark)
    service = Service(service_url, token, _info(spark, slots, group))
    worker = Worker(service, spark, slots, lifetime or Lifetime(), log_format=log_format, permissions=permissions)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    logger.info("%s is ready: %d slots on %s, service %s", worker.id, slots, master, service_url)
    try:
        worker.run()
    except WorkerDiedError as error:
        logger.error("%s ends: %s", worker.id, error)
        return 1
    with contextlib.suppress(Exception):
        spark.stop()
    return 0


def _info(spark: SparkSession, slots: int, group: str) -> WorkerInfo:
    """Returns what Spark really runs with: under `spark-submit` this differs from this program's arguments."""
    context = spark.sparkContext
    return WorkerInfo(_version(), context.master, slots, context.getConf().get("spark.driver.memory"), group)


def _version() -> str | None:
    """Returns the version; None where the files are on a cluster without having been installed."""
    try:
        return version("groundskeeper")
    except PackageNotFoundError:
        return None


def _warm_up(spark: SparkSession) -> None:
    """Loads classes and starts the Python workers; otherwise the first job would pay for both."""
    spark.sparkContext.parallelize(range(2), 2).map(lambda number: number).collect()


def _exit_with_parent() -> None:
    """Ends a local worker with the service that started it, even if that was killed and could not stop the worker."""
    parent = os.environ.get("GROUNDSKEEPER_PARENT_PID")
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        logger.warning("the service that started this worker is gone")
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
