"""The triggers, which wait in Airflow's triggerer while no task runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import TriggerEvent

from groundskeeper_client import ApiError, ClientError, WaitedTooLongError, calls, problems, published
from groundskeeper_client.airflow.bases import TRIGGERS_ARE_KILLED, BaseTrigger, is_ended_by_a_person
from groundskeeper_client.airflow.hook import GroundskeeperHook
from groundskeeper_client.questions import CommitSeen, Question, TableHealthy

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 600.0
"""Time for which the service may be unavailable before a task fails."""
_PAUSE_SECONDS = 5.0
_ROUND_SECONDS = 60.0
_CANCELLATIONS: set[asyncio.Task[None]] = set()
"""Cancellations that go on, because an event loop keeps no reference to its tasks."""
_QUESTIONS: dict[str, type[TableHealthy | CommitSeen]] = {each.__name__: each for each in (TableHealthy, CommitSeen)}


class JobTrigger(BaseTrigger):
    """Fires when a job has ended. If a person clears or ends the deferred task, it cancels the job."""

    def __init__(self, job_id: str, conn_id: str, poll_seconds: float, *, cancel_on_kill: bool = True) -> None:
        super().__init__()
        self.job_id = job_id
        self.conn_id = conn_id
        self.poll_seconds = poll_seconds
        self.cancel_on_kill = cancel_on_kill

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.JobTrigger", {
            "job_id": self.job_id,
            "conn_id": self.conn_id,
            "poll_seconds": self.poll_seconds,
            "cancel_on_kill": self.cancel_on_kill,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            event = await self._event()
        except asyncio.CancelledError:
            if not TRIGGERS_ARE_KILLED:
                await self._ended()
            raise
        yield TriggerEvent(event)

    async def on_kill(self) -> None:
        if not self.cancel_on_kill:
            return
        # Airflow ends this method after 30 s (`[triggerer] on_kill_timeout`), but the triggerer lives on.
        cancellation = asyncio.create_task(self._cancel())
        _CANCELLATIONS.add(cancellation)
        cancellation.add_done_callback(_CANCELLATIONS.discard)
        await asyncio.shield(cancellation)

    async def _event(self) -> dict[str, Any]:
        patience = _Patience()
        async with await GroundskeeperHook(self.conn_id).get_async_conn() as client:
            while True:
                try:
                    job = await client.wait_for(
                        self.job_id, seconds=_ROUND_SECONDS, poll_seconds=self.poll_seconds, check=False
                    )
                except WaitedTooLongError:  # the service has answered
                    patience = _Patience()
                except ClientError as error:
                    if patience.is_over(error):
                        return {"error": str(error)}
                    await asyncio.sleep(self.poll_seconds)
                else:
                    return {"job_id": job.id, "state": job.state.value}

    async def _cancel(self) -> None:
        patience = _Patience()
        async with await GroundskeeperHook(self.conn_id).get_async_conn() as client:
            while True:
                try:
                    await client.send(calls.cancel_job(self.job_id))
                except problems.JobAlreadyEndedError:
                    return
                except ClientError as error:
                    if patience.is_over(error):
                        log.warning("The job %s goes on, because it could not be cancelled: %s", self.job_id, error)
                        return
                    await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    log.info("Asked to cancel the job %s", self.job_id)
                    return

    async def _ended(self) -> None:
        """Cancels the job if a person has ended the task. An error must not hide that the trigger was cancelled."""
        try:
            if await is_ended_by_a_person(self.task_instance):
                await self.on_kill()
        except Exception:
            log.exception("The job %s may go on, because the state of its task is unknown", self.job_id)


class QuestionTrigger(BaseTrigger):
    """Fires when a question about a table has an answer."""

    def __init__(self, name: str, fields: dict[str, Any], conn_id: str, poll_seconds: float) -> None:
        super().__init__()
        self.name = name
        self.fields = fields
        self.conn_id = conn_id
        self.poll_seconds = poll_seconds

    @classmethod
    def of(cls, question: TableHealthy | CommitSeen, conn_id: str, poll_seconds: float) -> QuestionTrigger:
        return cls(type(question).__name__, asdict(question), conn_id, poll_seconds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.QuestionTrigger", {
            "name": self.name,
            "fields": self.fields,
            "conn_id": self.conn_id,
            "poll_seconds": self.poll_seconds,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        question: Question = _QUESTIONS[self.name](**self.fields)
        patience = _Patience()
        async with await GroundskeeperHook(self.conn_id).get_async_conn() as client:
            while True:
                try:
                    answer = question.answer([await client.send(call) for call in question.calls()])
                    patience = _Patience()
                except ClientError as error:
                    if patience.is_over(error):
                        yield TriggerEvent({"error": str(error)})
                        return
                    answer = None
                if answer is not None:
                    yield TriggerEvent({"answer": answer})
                    return
                await asyncio.sleep(self.poll_seconds)


class CommitTrigger(BaseTrigger):
    """Fires when a commit has been published after a position. The event has the table's id and this position."""

    def __init__(self, table_id: str, after: int, conn_id: str, *, of_services: bool = False) -> None:
        super().__init__()
        self.table_id = table_id
        self.after = after
        self.conn_id = conn_id
        self.of_services = of_services

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.CommitTrigger", {
            "table_id": self.table_id,
            "after": self.after,
            "conn_id": self.conn_id,
            "of_services": self.of_services,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        patience = _Patience()
        async with await GroundskeeperHook(self.conn_id).get_async_conn() as client:
            while True:
                try:
                    async for event in client.events(published.TYPE, table_id=self.table_id, after=self.after):
                        patience = _Patience()
                        if published.counts(event.document, of_services=self.of_services):
                            yield TriggerEvent({"table_id": self.table_id, "after": self.after})
                            return
                except ClientError as error:
                    if patience.is_over(error):
                        yield TriggerEvent({"error": str(error)})
                        return
                    await asyncio.sleep(_PAUSE_SECONDS)


class _Patience:
    """Distinguishes an outage, which passes, from a refusal."""

    def __init__(self) -> None:
        self._since: float | None = None

    def is_over(self, error: ClientError) -> bool:
        if isinstance(error, ApiError) and error.status < 500:
            return True
        if self._since is None:
            log.warning("Trying again: %s", error)
            self._since = time.monotonic()
        return time.monotonic() - self._since > PATIENCE_SECONDS
