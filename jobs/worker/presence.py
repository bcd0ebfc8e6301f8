"""A worker's announcements to the service: its properties, and the reason while it takes no jobs."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from jobs.contract import Problem, WorkerInfo, WorkerState
from jobs.format.spark_options import shown
from jobs.hudi.executors import Executors, ExecutorsUnfitError, SessionLostError
from jobs.local_process import STANDBY
from jobs.web_url import is_web_url
from jobs.worker.service import Service, ServiceUnreachableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# Only a worker that is not ready announces itself so often. A ready one shows its presence by requesting jobs.
_ANNOUNCE_SECONDS = 5.0
_STEADY_SECONDS = 15.0
_COMPLAIN_SECONDS = 30.0


class Presence:
    """Keeps `info` up to date. Announces it before Spark has started and at each change. A standby announces nothing
    before it is `called`.

    A worker is ready once a task has run on an executor and as long as it has executors. If executors are allocated
    dynamically, it is ready until a job has waited for executors without success (`starved`).
    """

    def __init__(self, service: Service, worker_id: str, info: WorkerInfo) -> None:
        self._service = service
        self.id = worker_id
        self.called = _call()
        self.info = replace(info, state=WorkerState.STARTING)
        self._executors: Executors | None = None
        self._proof: threading.Thread | None = None
        self._is_proved = threading.Event()
        self._announced: WorkerInfo | None = None
        self._announced_at = self._waits_since = self._complained_at = time.monotonic()
        self._changed = threading.Event()
        self.unfit: ExecutorsUnfitError | None = None

    def start(self) -> None:
        threading.Thread(target=self._keep, name="presence", daemon=True).start()

    def has(self, info: WorkerInfo, executors: Executors) -> None:
        """Records the properties of the session that has started."""
        self.info = replace(info, state=WorkerState.WAITS_FOR_EXECUTORS)
        self._executors = executors
        self._changed.set()
        self._prove(executors)

    def failed(self, problem: Problem) -> None:
        """Tells why Spark has not started, if the service can be reached."""
        self.info = replace(self.info, state=WorkerState.FAILED, error=problem)
        try:
            self._service.announce(self.id, self.info)
        except Exception as error:  # The worker ends whatever the service answers.
            logger.warning("the service was not told: %s", error)

    @property
    def is_ready(self) -> bool:
        return self.info.state is WorkerState.READY

    def look(self) -> bool:
        """Whether the worker is ready by its executors of this moment. Raises SessionLostError."""
        if self._executors is not None:
            count = self._executors.count()
            is_ready = self._is_proved.is_set() and (count != 0 or self._executors.come_on_demand)
            state = WorkerState.READY if is_ready else WorkerState.WAITS_FOR_EXECUTORS
            self.info = replace(self.info, state=state, executors=count)
        return self.is_ready

    def starved(self) -> None:
        """Records that a job has waited for executors without success. The worker is ready again when a task has
        run."""
        if self._executors and (self._proof is None or not self._proof.is_alive()):
            self._is_proved.clear()
            self._changed.set()
            self._prove(self._executors)

    def update(self) -> None:
        """Updates the state by the current executors, and announces changes."""
        is_ready, now = self.look(), time.monotonic()
        if is_ready:
            self._waits_since = self._complained_at = now
        elif now - self._complained_at > _COMPLAIN_SECONDS:
            self._complained_at = now
            logger.warning(
                "%s takes no jobs: %s on %s for %.0f s",
                self.id,
                "no executors" if self._executors else "Spark is starting",
                self.info.master,
                now - self._waits_since,
            )
        is_silent = not is_ready and now - self._announced_at > _ANNOUNCE_SECONDS
        if self.called.is_set() and (self.info != self._announced or is_silent):
            self._service.announce(self.id, self.info)
            self._announced, self._announced_at = self.info, now

    def _keep(self) -> None:
        while True:
            try:
                self.update()
            except ServiceUnreachableError as error:
                logger.warning("the service does not know of this worker: %s", error)
                time.sleep(_ANNOUNCE_SECONDS)
            except SessionLostError:
                # The JVM is gone; the worker notices that by itself.
                logger.debug("the executors cannot be counted", exc_info=True)
            # The driver itself runs the tasks in local mode, so the state of a ready worker stays.
            is_local = self._executors is not None and self._executors.are_local
            is_steady = is_local and self.is_ready and self.info == self._announced
            self._changed.wait(_STEADY_SECONDS if is_steady else LOOK_SECONDS)
            self._changed.clear()

    def _prove(self, executors: Executors) -> None:
        def prove() -> None:
            try:
                executors.prove()
                self._is_proved.set()
            except ExecutorsUnfitError as error:
                self.unfit = error
            self._changed.set()

        self._proof = threading.Thread(target=prove, name="first task", daemon=True)
        self._proof.start()


def _call() -> threading.Event:
    """Returns an event that is set when the worker is called to take jobs. A standby, which its supervisor has started
    ahead of time, is called by a line on standard input when another worker ends; for any other worker the event is set
    from the beginning."""
    called = threading.Event()
    if STANDBY not in os.environ:
        called.set()
        return called

    def listen() -> None:
        # If the pipe is closed without a line, the supervisor is gone, and `jobs.worker.parent_process` ends the
        # worker.
        if sys.stdin.buffer.readline():
            called.set()

    threading.Thread(target=listen, name="standby", daemon=True).start()
    return called


def own_version() -> str | None:
    """Returns the version; None if the files were copied to a cluster instead of being installed."""
    try:
        return version("groundskeeper")
    except PackageNotFoundError:
        return None


def started(info: WorkerInfo, spark: SparkSession, conf: Mapping[str, str]) -> WorkerInfo:
    """Returns the settings that Spark really uses; under `spark-submit` they differ from this program's arguments."""
    context = spark.sparkContext
    effective = dict(context.getConf().getAll())
    memory = effective.get("spark.driver.memory")
    return replace(
        info,
        master=context.master,
        driver_memory=memory,
        spark_conf=shown(effective, conf),
        application_id=context.applicationId,
        ui_url=context.uiWebUrl if is_web_url(context.uiWebUrl) else None,
    )
