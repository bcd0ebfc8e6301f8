"""The steps in which a Flink job is stopped with a savepoint. Each answers how it stands then; nothing is written."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from service.lake.commit import WRITING_ACTIONS
from service.model.errors import FlinkError
from service.queue.hand_over import FlinkStop, HandOver, HandOverState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from service.catalog.registration import FlinkWriter
    from service.hand_over.flink_rest import FlinkRest
    from service.lake.snapshot import Pending
    from service.model.clock import Clock

BY_SERVICE = "groundskeeper"
"""Who has stopped the writers when the service did it by itself."""

_SETTLED_AFTER = timedelta(seconds=150)
"""An instant that a Flink job left behind has lost its heartbeat by then (Hudi: 60 s, twice missed), and the job that
comes now may roll it back."""

_CLOCKS_DIFFER = timedelta(seconds=5)


@dataclass(frozen=True)
class Stopping:
    """`pending` reads what is pending on the table's timeline now; `wrote_at` is when Flink was last seen writing it.
    `retry` is how long a cluster is left alone that did not do as it was asked."""

    rest: FlinkRest
    writer: FlinkWriter
    clock: Clock
    retry: timedelta
    pending: Callable[[], Sequence[Pending]]
    wrote_at: Callable[[], datetime | None]

    def advance(self, standing: HandOver) -> HandOver:
        """One step. What keeps its claim is gone on with at once; what gives it back is for the next round."""
        if standing.flink is None:
            return self._find(standing)
        if standing.flink.ended_at is None:
            return self._stop(standing, standing.flink)
        return self._settle(standing, standing.flink, standing.flink.ended_at)

    def _find(self, standing: HandOver) -> HandOver:
        """Which job to stop. Its trigger is written down before it is used: so it is never used twice."""
        now = self.clock()
        named = [job for job in self.rest.jobs() if self.writer.job in (job.id, job.name)]
        alive = [job for job in named if not job.has_ended]
        if len(alive) > 1:
            ids = ", ".join(job.id for job in alive)
            return self._wait(standing, f"Several Flink jobs have the name {self.writer.job} ({ids}): register the id.")
        if not named:
            return self._wait(standing, f"The Flink cluster knows no job {self.writer.job}.")
        if alive:
            if alive[0].state != "RUNNING":
                told = f"The Flink job {self.writer.job} is {alive[0].state}; it is asked to stop when it runs."
                return self._wait(standing, told)
            stop = FlinkStop(alive[0].id, secrets.token_hex(16), now)
            told = f"The Flink job {self.writer.job} ({stop.job_id}) is asked to stop with a savepoint."
            return standing.evolve(state=HandOverState.STOPPING, since=now, flink=stop, detail=told)
        last = max(named, key=lambda job: job.ended_at or now)
        wrote_at = self.wrote_at()
        if wrote_at and last.ended_at and wrote_at > last.ended_at + _CLOCKS_DIFFER:
            told = f"The Flink job {self.writer.job} was {last.state}, but Flink wrote the table after that:"
            return self._wait(standing, f"{told} another job does.")
        told = f"The Flink job {self.writer.job} ({last.id}) was {last.state} already."
        stop = FlinkStop(last.id, "", now, ended_at=now)
        return standing.evolve(state=HandOverState.STOPPING, since=now, flink=stop, detail=told)

    def _stop(self, standing: HandOver, stop: FlinkStop) -> HandOver:
        """Asks for the stop if that is not known to have been asked, and looks how far it is."""
        now = self.clock()
        name = f"The Flink job {self.writer.job} ({stop.job_id})"
        savepoint = None if stop.savepoint else self.rest.savepoint(stop.job_id, stop.trigger_id)
        if savepoint is not None and savepoint.failure:
            told = f"{name} could not be stopped: {savepoint.failure}"
            failed = standing.evolve(state=HandOverState.DRAINING, since=now, flink=None)
            return self._wait(failed, told)
        if savepoint is not None and savepoint.location:
            # Written down at once: nobody can ask for it again in a while.
            saved = replace(stop, savepoint=savepoint.location)
            return standing.evolve(savepoint=savepoint.location, flink=saved, detail=f"{name} has made its savepoint.")
        try:
            job = self.rest.job(stop.job_id)
        except FlinkError:
            # A cluster of one job ends with it; and it only tells of a savepoint when the job has ended.
            if not stop.savepoint:
                raise
            job = None
        if (job is not None and job.has_ended) or (job is None and stop.savepoint):
            ended = replace(stop, ended_at=now)
            how = f" as {job.state}" if job is not None and job.state != "FINISHED" else ""
            return standing.evolve(flink=ended, detail=f"{name} has ended{how}.")
        if job is None:
            told = f"{name} is not known to its cluster any more. Say so with writers-stopped, if it has ended."
            return self._wait(standing, told)
        if savepoint is None and not stop.savepoint:
            self.rest.stop(stop.job_id, trigger_id=stop.trigger_id, folder=self.writer.savepoint_folder)
        return standing.evolve(detail=f"{name} is making its savepoint.", claimed_until=None)

    def _settle(self, standing: HandOver, stop: FlinkStop, ended_at: datetime) -> HandOver:
        """Waits for what the job still had in flight. Instants of other writers that began later are none of it."""
        now = self.clock()
        left = [
            each.requested_time
            for each in self.pending()
            if each.action in WRITING_ACTIONS
            and not each.is_plan
            and (each.requested_at is None or each.requested_at <= ended_at)
        ]
        if left and now - ended_at < _SETTLED_AFTER:
            told = f"The Flink job has ended; {', '.join(left)} is still in flight on the table."
            return standing.evolve(detail=told, claimed_until=None)
        rest = f" It left {', '.join(left)} behind, without a writer." if left else ""
        return standing.evolve(
            state=HandOverState.STOPPED,
            since=now,
            by=BY_SERVICE,
            detail=f"The Flink job {stop.job_id} was stopped.{rest}",
            claimed_until=None,
        )

    def _wait(self, standing: HandOver, told: str) -> HandOver:
        return standing.evolve(detail=told, claimed_until=self.clock() + self.retry)
