"""The steps that stop a Flink job with a savepoint. Each step returns the new state of the hand-over and stores
nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.catalog.registration import FlinkWriter
from service.lake.commit import WRITING_ACTIONS
from service.lake.snapshot import Pending
from service.model.clock import Clock
from service.model.hand_over import FlinkStop, HandOver, HandOverState
from service.model.table_errors import FlinkError
from service.queue.hand_over.flink_rest import FlinkRest

BY_SERVICE = "groundskeeper"
"""Value of `HandOver.by` when the service has stopped the writers itself."""

_SETTLED_AFTER = timedelta(seconds=150)
"""After this time the heartbeat of an instant that a Flink job left behind has expired: Hudi expects one each 60 s and
tolerates two that are missing. Then the waiting job may roll the instant back."""

_CLOCKS_DIFFER = timedelta(seconds=5)


@dataclass(frozen=True)
class Stopping:
    """One hand-over to be advanced. `pending` reads the pending instants of the table's timeline. `wrote_at` returns
    when Flink last wrote the table. `retry` is the pause before the next call to a cluster that is not ready."""

    rest: FlinkRest
    writer: FlinkWriter
    clock: Clock
    retry: timedelta
    pending: Callable[[], Sequence[Pending]]
    wrote_at: Callable[[], datetime | None]

    def advance(self, current: HandOver) -> HandOver:
        """Runs one step. If the result is still claimed, the caller runs the next step at once; if not, the next step
        comes in the next round."""
        if current.flink is None:
            return self._find(current)
        if current.flink.ended_at is None:
            return self._stop(current, current.flink)
        return self._settle(current, current.flink, current.flink.ended_at)

    def _find(self, current: HandOver) -> HandOver:
        """Finds the job to stop. The trigger id is stored before it is used, so no stop is requested twice."""
        now = self.clock()
        named = [job for job in self.rest.jobs() if self.writer.job in (job.id, job.name)]
        alive = [job for job in named if not job.has_ended]
        if len(alive) > 1:
            ids = ", ".join(job.id for job in alive)
            return self._wait(current, f"Several Flink jobs are named {self.writer.job} ({ids}): register the id.")
        if not named:
            return self._wait(current, f"The Flink cluster knows no job {self.writer.job}.")
        if alive:
            if alive[0].state != "RUNNING":
                detail = f"The Flink job {self.writer.job} is {alive[0].state}; it will be stopped once it is RUNNING."
                return self._wait(current, detail)
            stop = FlinkStop(alive[0].id, secrets.token_hex(16), now)
            detail = f"The service is stopping the Flink job {self.writer.job} ({stop.job_id}) with a savepoint."
            return current.evolve(state=HandOverState.STOPPING, since=now, flink=stop, detail=detail)
        last = max(named, key=lambda job: job.ended_at or now)
        wrote_at = self.wrote_at()
        if wrote_at and last.ended_at and wrote_at > last.ended_at + _CLOCKS_DIFFER:
            detail = f"The Flink job {self.writer.job} was {last.state}, but Flink wrote the table after that:"
            return self._wait(current, f"{detail} another Flink job writes it.")
        detail = f"The Flink job {self.writer.job} ({last.id}) was {last.state} already."
        stop = FlinkStop(last.id, "", now, ended_at=now)
        return current.evolve(state=HandOverState.STOPPING, since=now, flink=stop, detail=detail)

    def _stop(self, current: HandOver, stop: FlinkStop) -> HandOver:
        """Requests the stop unless that was done already, and checks its progress."""
        now = self.clock()
        name = f"The Flink job {self.writer.job} ({stop.job_id})"
        savepoint = None if stop.savepoint else self.rest.savepoint(stop.job_id, stop.trigger_id)
        if savepoint is not None and savepoint.failure:
            failed = current.evolve(state=HandOverState.DRAINING, since=now, flink=None)
            return self._wait(failed, f"{name} could not be stopped: {savepoint.failure}")
        if savepoint is not None and savepoint.location:
            # The savepoint is stored at once, because the cluster forgets it after a while.
            saved = replace(stop, savepoint=savepoint.location)
            return current.evolve(savepoint=savepoint.location, flink=saved, detail=f"{name} has made its savepoint.")
        try:
            job = self.rest.job(stop.job_id)
        except FlinkError:
            # A cluster for a single job ends with the job, and reports a savepoint only when the job has ended.
            if not stop.savepoint:
                raise
            job = None
        if (job is not None and job.has_ended) or (job is None and stop.savepoint):
            ended = replace(stop, ended_at=now)
            how = f" as {job.state}" if job is not None and job.state != "FINISHED" else ""
            return current.evolve(flink=ended, detail=f"{name} has ended{how}.")
        if job is None:
            detail = f"{name} is not known to its cluster any more. If it has ended, POST writers-stopped."
            return self._wait(current, detail)
        if savepoint is None and not stop.savepoint:
            self.rest.stop(stop.job_id, trigger_id=stop.trigger_id, folder=self.writer.savepoint_folder)
        return current.evolve(detail=f"{name} is making its savepoint.", claimed_until=None)

    def _settle(self, current: HandOver, stop: FlinkStop, ended_at: datetime) -> HandOver:
        """Waits for the instants that the job had in flight. Later instants of other writers do not count."""
        now = self.clock()
        left = [
            each.requested_time
            for each in self.pending()
            if each.action in WRITING_ACTIONS
            and not each.is_plan
            and (each.requested_at is None or each.requested_at <= ended_at)
        ]
        if left and now - ended_at < _SETTLED_AFTER:
            detail = f"The Flink job has ended; {', '.join(left)} is still in flight on the table."
            return current.evolve(detail=detail, claimed_until=None)
        rest = f" The job left {', '.join(left)} behind, without a writer." if left else ""
        return current.evolve(
            state=HandOverState.STOPPED,
            since=now,
            by=BY_SERVICE,
            detail=f"The Flink job {stop.job_id} was stopped.{rest}",
            claimed_until=None,
        )

    def _wait(self, current: HandOver, detail: str) -> HandOver:
        return current.evolve(detail=detail, claimed_until=self.clock() + self.retry)
