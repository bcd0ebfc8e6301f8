"""The triggers, which wait in Airflow's triggerer while no task runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from airflow.triggers.base import TriggerEvent

from groundskeeper_client import ApiError, AsyncClient, ClientError, calls, problems, published
from groundskeeper_client.airflow.bases import TRIGGERS_ARE_KILLED, BaseTrigger, is_ended_by_a_person
from groundskeeper_client.airflow.hook import GroundskeeperHook
from groundskeeper_client.patience import PAUSE_SECONDS, Patience
from groundskeeper_client.questions import CommitSeen, Question, TableHealthy

log = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0
_CANCELLATIONS: set[asyncio.Task[None]] = set()
"""The running cancellations. They are kept here, because an event loop keeps no reference to its tasks."""
_QUESTIONS: dict[str, type[TableHealthy | CommitSeen]] = {each.__name__: each for each in (TableHealthy, CommitSeen)}


class JobTrigger(BaseTrigger):
    """Fires when a job has ended. If a person clears or ends the deferred task, the trigger cancels the job."""

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
        # Airflow ends this method after 30 s (`[triggerer] on_kill_timeout`), but the cancellation can go on in the
        # triggerer.
        cancellation = asyncio.create_task(self._cancel())
        _CANCELLATIONS.add(cancellation)
        cancellation.add_done_callback(_CANCELLATIONS.discard)
        await asyncio.shield(cancellation)

    async def _event(self) -> dict[str, Any]:
        async with await GroundskeeperHook(self.conn_id).get_async_conn(patient=True) as client:
            try:
                job = await client.wait_for(self.job_id, poll_seconds=self.poll_seconds, check=False)
            except ClientError as error:
                return {"error": str(error)}
        return {"job_id": job.id, "state": job.state.value}

    async def _cancel(self) -> None:
        patience = Patience()
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
                    await asyncio.sleep(PAUSE_SECONDS)
                else:
                    log.info("Asked to cancel the job %s", self.job_id)
                    return

    async def _ended(self) -> None:
        """Cancels the job if a person has ended the task. An error is only logged, so that it does not replace the
        cancellation of the trigger."""
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
        async with await GroundskeeperHook(self.conn_id).get_async_conn(patient=True) as client:
            try:
                while (answer := question.answer([await client.send(call) for call in question.calls()])) is None:
                    await asyncio.sleep(self.poll_seconds)
            except ClientError as error:
                yield TriggerEvent({"error": str(error)})
                return
        yield TriggerEvent({"answer": answer})


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
        patience = Patience()
        async with await GroundskeeperHook(self.conn_id).get_async_conn() as client:
            while True:
                try:
                    await self._commit(client, patience)
                except ClientError as error:
                    if patience.is_over(error):
                        yield TriggerEvent({"error": str(error)})
                        return
                    await asyncio.sleep(PAUSE_SECONDS)
                else:
                    yield TriggerEvent({"table_id": self.table_id, "after": self.after})
                    return

    async def _commit(self, client: AsyncClient, patience: Patience) -> None:
        """Returns when there is a commit. The triggers share a token, and the number of its streams is limited. So some
        triggers have a stream, and the others poll the events."""
        stream = client.events(published.TYPE, table_id=self.table_id, after=self.after, heard=patience.restart)
        try:
            async for event in stream:
                if published.counts(event.document, of_services=self.of_services):
                    return
        except ApiError as error:
            if error.type != "too-many-streams":
                raise
        after = self.after
        while True:
            page = await client.send(published.events_page(table_id=self.table_id, after=after))
            if any(published.counts(event, of_services=self.of_services) for event in page.items):
                return
            patience.restart()
            after = published.next_after(page, after)
            await asyncio.sleep(_LOOK_SECONDS)
