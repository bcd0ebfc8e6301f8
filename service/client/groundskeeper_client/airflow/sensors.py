"""The sensors: one waits until a table is healthy, the other until a table has a commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from groundskeeper_client.airflow.bases import AirflowException, BaseSensorOperator, PokeReturnValue
from groundskeeper_client.airflow.hook import GroundskeeperHook
from groundskeeper_client.airflow.triggers import QuestionTrigger
from groundskeeper_client.questions import CommitSeen, Question, TableHealthy


class _TableSensor(BaseSensorOperator):
    """Waits until the condition of a question about a table is met, by default in the triggerer. Returns the answer as
    XCom."""

    def __init__(
        self,
        *,
        table: str,
        conn_id: str = GroundskeeperHook.default_conn_name,
        deferrable: bool = True,
        poke_interval: float = 30.0,
        **more: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **more)
        self.table = table
        self.conn_id = conn_id
        self.deferrable = deferrable

    def question(self, table_id: str) -> TableHealthy | CommitSeen:
        raise NotImplementedError

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        hook = GroundskeeperHook(self.conn_id)
        question = self.question(hook.table_id(self.table))
        answer = hook.asked(question)
        if answer is not None:
            return answer
        seconds = self.poke_interval
        self.defer(
            trigger=QuestionTrigger.of(question, self.conn_id, seconds),
            method_name="resume",
            timeout=timedelta(seconds=float(self.timeout)),
        )
        raise AssertionError("defer has raised")

    def poke(self, _context: Any) -> PokeReturnValue:
        hook = GroundskeeperHook(self.conn_id)
        question: Question = self.question(hook.table_id(self.table))
        answer = hook.asked(question)
        return PokeReturnValue(is_done=answer is not None, xcom_value=answer)

    def resume(self, _context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        """Continues after the trigger has fired."""
        if "error" in event:
            raise AirflowException(event["error"])
        return dict(event["answer"])


class TableHealthySensor(_TableSensor):
    """Waits until a table has no open incident and no critical problem; with `strict`, also no warning."""

    template_fields: ClassVar[Sequence[str]] = ("table", "conn_id")

    def __init__(self, *, strict: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.strict = strict

    def question(self, table_id: str) -> TableHealthy:
        return TableHealthy(table_id, strict=self.strict)


class CommitSeenSensor(_TableSensor):
    """Waits until a table has a commit of a writer that completed at `since` or later (a time, or its ISO 8601 text),
    and that began at `instant` or later. If `of_services` is set, commits of table services count too. A usual template
    for `since` is `{{ data_interval_start }}`."""

    template_fields: ClassVar[Sequence[str]] = ("table", "since", "instant", "conn_id")

    def __init__(
        self,
        *,
        since: datetime | str | None = None,
        instant: str | None = None,
        of_services: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.since = since
        self.instant = instant
        self.of_services = of_services

    def question(self, table_id: str) -> CommitSeen:
        since = datetime.fromisoformat(self.since) if isinstance(self.since, str) else self.since
        if since is not None and since.tzinfo is None:
            raise AirflowException(f"The time {self.since} of `since` has no time zone.")
        return CommitSeen(table_id, since, self.instant, self.of_services)
