"""The worker: a long-lived Spark driver that leases jobs from the service over REST and runs them.

The worker needs no database and no open port, so it runs wherever Spark runs. `groundskeeper worker --service URL`
starts one; `spark-submit` with `jobs/worker/__main__.py` does the same.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import tracing
from jobs.attempt_log import AttemptLog, AttemptLogs
from jobs.contract import DEFAULT_GROUP, LogLine, Result, WorkerInfo, WorkOrder
from jobs.errors import LeaseLostError, NoExecutorsError
from jobs.hudi.executors import Executors, SessionLostError
from jobs.hudi.hadoop import close_file_system
from jobs.hudi.jvm import jvm_of
from jobs.hudi.jvm_log import JvmLog
from jobs.hudi.kerberos import NoTicketError
from jobs.hudi.s3a_recycling import Connections
from jobs.hudi.session import DEFAULT_MASTER, NoSessionError, effective_master, jars_of, start_session
from jobs.local_process import new_worker_id
from jobs.logs import LogFormat, TextFormatter, configure
from jobs.redaction import RedactingFormatter, redacted, redacted_json, secrets_of
from jobs.storage.permissions import Permissions
from jobs.storage_errors import StorageLoginError
from jobs.tracing import Span, span
from jobs.worker.attempt import Attempt
from jobs.worker.lifetime import Lifetime
from jobs.worker.parent_process import exit_with_parent
from jobs.worker.presence import LOOK_SECONDS, Presence, own_version, started
from jobs.worker.read_probe import read_rates
from jobs.worker.service import Leased, Service, ServiceUnreachableError
from jobs.worker.slots import Slots
from jobs.worker.write_probes import WriteProbes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


logger = logging.getLogger(__name__)

RETRY_SECONDS = 2.0
_LAST_WORDS_SECONDS = 1.0


class WorkerDiedError(Exception):
    """Something that the worker depends on is gone. The worker ends, and its supervisor starts another one."""


class Worker:
    """Runs up to `slots` jobs at once in one Spark session, each in its own thread."""

    def __init__(
        self,
        service: Service,
        spark: SparkSession,
        slots: int,
        lifetime: Lifetime,
        *,
        spare_slots: int = 0,
        presence: Presence,
        executors: Executors | None = None,
        log_format: RedactingFormatter | None = None,
        attempt_logs: AttemptLogs | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        self._service = service
        self._presence = presence
        self._executors = executors
        self._spark = spark
        self._permissions = permissions or Permissions()
        self._lifetime = lifetime
        self._log_format = log_format or TextFormatter()
        self._attempt_logs = attempt_logs or AttemptLogs(self._log_format.without_secrets)
        self._jobs = itertools.count(1)
        self._connections = Connections(lambda path: close_file_system(jvm_of(spark), path))
        self._probes = WriteProbes()
        self._is_old = threading.Event()
        self.id = presence.id
        self._stopping = threading.Event()
        self._slots = Slots(slots, spare_slots, take=self._take, takes_no_more=self._takes_no_more)

    def run(self) -> None:
        """Serves until `stop` or the end of its lifetime; then it takes no more jobs and lets the running ones end.

        Raises `WorkerDiedError` when it cannot continue.
        """
        self._start()
        ends_at = time.monotonic() + 3600 * self._lifetime.hours
        while not self._stopping.wait(1.0) and not self._is_old.is_set():
            # The check comes before the worker takes another job, because it would lose that job.
            self._require_spark()
            if time.monotonic() > ends_at:
                self._is_old.set()
            elif not self._slots.are_all_alive():
                raise WorkerDiedError("one of its slots has died, see the log above")
        if self._is_old.is_set():
            logger.info("%s has reached the end of its lifetime and ends when its jobs have ended", self.id)
        while self._slots.is_any_alive() and not self._stopping.wait(1.0):
            pass
        self._slots.join(self._lifetime.drain_seconds)

    def stop(self) -> None:
        self._stopping.set()

    def _start(self) -> None:
        """Starts the slots as soon as there are resources for their jobs. A standby starts them only after it was
        called."""
        while not self._presence.is_ready and not self._stopping.wait(0.05):
            self._require_spark()
        if not self._presence.called.is_set():
            logger.info("%s has started, and stands by", self.id)
        while not self._presence.called.wait(1.0) and not self._stopping.is_set():
            self._require_spark()
        if not self._stopping.is_set():
            logger.info("%s is ready: %d slots on %s", self.id, self._slots.number, self._presence.info.master)
        self._slots.start()

    def _require_spark(self) -> None:
        """Raises `WorkerDiedError` if no job can run any more."""
        if self._presence.unfit:
            raise WorkerDiedError(f"its executors cannot run the tasks of jobs: {self._presence.unfit}")
        # Under `spark-submit` the JVM is not our child but our parent.
        process = getattr(self._spark.sparkContext._gateway, "proc", None)
        if process is not None and process.poll() is not None:
            raise WorkerDiedError("its JVM has died, perhaps out of memory")
        try:
            has_ended = self._executors is not None and self._executors.has_ended(is_idle=not self._slots.have_worked())
        except SessionLostError as error:
            # A JVM that dies stops answering a moment before its process ends.
            if process is not None and not self._stopping.wait(1.0) and process.poll() is not None:
                raise WorkerDiedError("its JVM has died, perhaps out of memory") from error
            raise WorkerDiedError("its JVM does not answer any more") from error
        if has_ended:
            raise WorkerDiedError("its Spark application has ended: the master has removed it, or is gone")

    def _takes_no_more(self) -> bool:
        return self._stopping.is_set() or self._is_old.is_set()

    def _take(self, only_submitted: bool) -> None:
        try:
            self.run_once(only_submitted=only_submitted)
        except ServiceUnreachableError as error:
            if not self._stopping.is_set():
                logger.warning("the service is unreachable, trying again: %s", error)
            self._stopping.wait(RETRY_SECONDS)

    def run_once(self, *, only_submitted: bool = False) -> str:
        """Takes one job, if there is one, and runs it to its end; then runs the jobs that the service sends with its
        answers to reports. Returns a description of the last result."""
        if not self._has_executors():
            self._stopping.wait(LOOK_SECONDS)
            return "no executors"
        if not self._connections.has_room():
            self._stopping.wait(RETRY_SECONDS)
            return "no connections"
        leased = self._service.lease(self.id, self._presence.info, only_submitted=only_submitted)
        done = "no job"
        while leased:
            done, leased = self._run_leased(*leased)
        return done

    def _takes_next(self) -> WorkerInfo | None:
        """Returns this worker's description if the calling slot can begin another job at once."""
        can = not self._takes_no_more() and self._has_executors() and self._connections.has_room()
        return self._presence.info if can and self._slots.is_asking() else None

    def _has_executors(self) -> bool:
        """Whether the session has what a job needs at this moment: the executors may have gone since the last
        announcement, for example to another queue of YARN."""
        with contextlib.suppress(SessionLostError):
            return self._presence.look()
        return False

    def _run_leased(self, order: WorkOrder, lease_seconds: float) -> tuple[str, Leased | None]:
        if next(self._jobs) >= self._lifetime.jobs:
            self._is_old.set()
        secrets = secrets_of(order.table.lock.options) | secrets_of(order.table.hudi_options)
        self._log_format.learn(secrets)
        with (
            self._attempt_logs.of(order.job_id, order.table_id, order.attempt) as log,
            span(
                f"attempt of {order.kind}",
                parent=order.traceparent,
                kind="consumer",
                job__id=order.job_id,
                job__attempt=order.attempt,
                job__kind=order.kind.value,
                job__dry_run=order.dry_run,
                table__name=order.table.name,
                table__id=order.table_id,
            ) as attempt,
        ):
            return self._run(order, lease_seconds, secrets, log, attempt)

    def _run(
        self, order: WorkOrder, lease_seconds: float, secrets: Collection[str], log: AttemptLog, trace: Span
    ) -> tuple[str, Leased | None]:
        what = f"{order.kind} of {order.table.name} ({order.job_id}, attempt {order.attempt})"
        logger.info("running %s", what)
        attempt = Attempt(
            self._spark,
            order,
            lease_seconds,
            lambda beat: self._service.heartbeat(self.id, order.job_id, beat),
            permissions=self._permissions,
            executors=self._executors,
            executor_seconds=self._lifetime.executor_seconds,
            probes=self._probes,
            pool=threading.current_thread().name,
            log=log,
        )
        try:
            with (
                self._slots.taken(is_submitted=order.submitted),
                self._connections.used_by(order.table.base_path),
            ):
                result = _without(secrets, attempt.run())
            trace.set(job__outcome=result.outcome.value, hudi__instants=",".join(result.instants))
            if result.error:
                trace.fail(f"{result.error.title}: {result.error.detail}")
            error = f": {result.error.title} {result.error.detail}" if result.error else ""
            logger.log(logging.WARNING if error else logging.INFO, "%s: %s%s", what, result.outcome, error)
            if isinstance(attempt.context.must_end, NoExecutorsError):
                self._presence.starved()
            following = self._report(order, result, lease_seconds, attempt.last_lines())
        except LeaseLostError:
            trace.fail("the lease was lost")
            logger.warning("lost the lease of %s; no result is reported", what)
            return f"lost {what}", None
        return f"{result.outcome} {what}", following

    def _report(
        self, order: WorkOrder, result: Result, lease_seconds: float, lines: Sequence[LogLine]
    ) -> Leased | None:
        """Returns the next job, if the service sends one. Retries while the lease may still be ours; after that another
        attempt reads the result from the timeline."""
        deadline = time.monotonic() + lease_seconds
        while True:
            try:
                return self._service.finish(self.id, order, result, lines, takes_next=self._takes_next())
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
    services: Sequence[str],
    *,
    token: str | None = None,
    master: str = DEFAULT_MASTER,
    slots: int = 1,
    spare_slots: int = 0,
    group: str = DEFAULT_GROUP,
    driver_memory: str = "2g",
    packages: Sequence[str] = (),
    jars: Path | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark_conf: Mapping[str, str] | None = None,
    local_maven: bool = False,
    lifetime: Lifetime | None = None,
    permissions: Permissions | None = None,
    log_format: LogFormat = LogFormat.TEXT,
) -> int:
    """Runs a worker until it is stopped (SIGTERM, SIGINT). Returns the exit code. `services` are URLs of replicas.

    Raises BundleMissingError.
    """
    if jars:
        jars_of(jars)
    name = new_worker_id()
    formatter = configure(log_format, logging.INFO, everywhere={"worker": name})
    tracing.start("groundskeeper-worker", own_version(), name, os.environ)
    attempt_logs = AttemptLogs(formatter.without_secrets)
    logging.getLogger().addHandler(attempt_logs)
    for noisy in ("httpx", "py4j"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    exit_with_parent()
    master = effective_master(master)
    service = Service(services, token)
    info = WorkerInfo(own_version(), master, slots, spare_slots, driver_memory, group, read_rates=read_rates())
    presence = Presence(service, name, info)
    # The presence is announced first, because Spark may wait for its master and for executors without limit.
    presence.start()
    logger.info("%s starts Spark on %s for %s", presence.id, master, ", ".join(services))
    jvm_log = JvmLog(attempt_logs.sole)
    try:
        spark = start_session(
            master=master,
            app_name="groundskeeper worker",
            driver_memory=driver_memory,
            packages=packages,
            jars=jars,
            storage_options=storage_options,
            conf=spark_conf,
            local_maven=local_maven,
            log=jvm_log,
        )
        jvm_log.started()
    except (NoSessionError, NoTicketError) as error:
        jvm_log.drain(_LAST_WORDS_SECONDS)
        logger.error("%s ends: %s", presence.id, error)
        problem = error.problem if isinstance(error, NoSessionError) else StorageLoginError(str(error)).problem()
        presence.failed(replace(problem, detail=formatter.without_secrets(problem.detail)))
        return 1
    executors = Executors(spark.sparkContext)
    worker = Worker(
        service,
        spark,
        slots,
        lifetime or Lifetime(),
        spare_slots=spare_slots,
        presence=presence,
        executors=executors,
        log_format=formatter,
        attempt_logs=attempt_logs,
        permissions=permissions,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    presence.has(started(info, spark, spark_conf or {}), executors)
    try:
        worker.run()
    except WorkerDiedError as error:
        jvm_log.drain(_LAST_WORDS_SECONDS)
        logger.error("%s ends: %s", worker.id, error)
        return 1
    with contextlib.suppress(Exception):
        spark.stop()
    return 0
