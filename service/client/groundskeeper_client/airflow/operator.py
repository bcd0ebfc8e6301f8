"""The operator, which runs a table service as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from groundskeeper_client import ClientError, JobEndedError, Retries, calls, problems
from groundskeeper_client.airflow.bases import AirflowException, BaseOperator
from groundskeeper_client.airflow.hook import GroundskeeperHook
from groundskeeper_client.airflow.triggers import JobTrigger
from groundskeeper_client.generated.models import JobDetail, JobState
from groundskeeper_client.submission import submitted_once


class GroundskeeperJobOperator(BaseOperator):
    """Submits a job and waits for its end, by default in the triggerer. There the wait occupies no worker of Airflow.

    `table` is the table's id, name or base path. The API defines `kind` and `job_params`. Returns (as XCom) the job's
    id, instants and result. For a `dry_run` the result is the plan, and the task fails if the plan is refused. A retry
    waits for the job of an earlier try, unless that job has failed or was cancelled. A task that was cleared submits
    another job when it runs again. If a task is killed, cleared, or marked as ended, its job is cancelled.
    """

    template_fields: ClassVar[Sequence[str]] = ("table", "kind", "job_params", "conn_id")
    template_fields_renderers: ClassVar[dict[str, str]] = {"job_params": "json"}
    ui_color = "#e3efe0"

    def __init__(
        self,
        *,
        table: str,
        kind: str,
        job_params: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        priority: int = 0,
        job_timeout_seconds: int | None = None,
        conn_id: str = GroundskeeperHook.default_conn_name,
        poll_seconds: float = 5.0,
        deferrable: bool = True,
        cancel_on_kill: bool = True,
        wait_timeout: timedelta | None = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.table = table
        self.kind = kind
        self.job_params = job_params
        self.is_dry_run = dry_run
        self.priority = priority
        self.job_timeout_seconds = job_timeout_seconds
        self.conn_id = conn_id
        self.poll_seconds = poll_seconds
        self.deferrable = deferrable
        self.cancel_on_kill = cancel_on_kill
        self.wait_timeout = wait_timeout
        self._job_id: str | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        hook = GroundskeeperHook(self.conn_id)
        table_id = hook.table_id(self.table)
        with hook.get_conn(patient=True) as client:
            run, tries = _run(context["ti"], self)
            job = submitted_once(client, table_id, self._body(), run=run, tries=tries)
            self._job_id = job.id
            self.log.info("Submitted %s as %s", self.kind, job.id)
            if not self.deferrable:
                seconds = self.wait_timeout.total_seconds() if self.wait_timeout else None
                return self._outcome(client.wait_for(job, seconds=seconds, poll_seconds=self.poll_seconds, check=False))
        self.defer(
            trigger=JobTrigger(job.id, self.conn_id, self.poll_seconds, cancel_on_kill=self.cancel_on_kill),
            method_name="resume",
            timeout=self.wait_timeout,
        )
        raise AssertionError("defer has raised")

    def resume(self, _context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        """Continues after the trigger has fired."""
        if "error" in event:
            raise AirflowException(event["error"])
        with GroundskeeperHook(self.conn_id).get_conn(patient=True) as client:
            return self._outcome(client.send(calls.get_job(event["job_id"])))

    def on_kill(self) -> None:
        if self._job_id is None or not self.cancel_on_kill:
            return
        with GroundskeeperHook(self.conn_id).get_conn() as client:
            try:
                # The eight retries take about 40 s. Airflow 2 kills the process after 60 s, but Airflow 3 after 5 s.
                client.send(calls.cancel_job(self._job_id), retries=Retries(times=8))
            except problems.JobAlreadyEndedError:
                return
            except ClientError as error:
                self.log.warning("The job %s goes on, because it could not be cancelled: %s", self._job_id, error)
                return
        self.log.info("Asked to cancel the job %s", self._job_id)

    def _body(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "params": dict(self.job_params or {}),
            "dry_run": self.is_dry_run,
            "priority": self.priority,
            **({} if self.job_timeout_seconds is None else {"timeout_seconds": self.job_timeout_seconds}),
        }

    def _outcome(self, job: JobDetail) -> dict[str, Any]:
        if job.state is not JobState.SUCCEEDED:
            raise AirflowException(str(JobEndedError(job)))
        result = job.result or {}
        if self.is_dry_run and (refusals := result.get("refusals")):
            why = "; ".join(str(each.get("title", each)) for each in refusals if isinstance(each, dict))
            raise AirflowException(f"{job.kind.value} would be refused: {why or refusals}")
        return {"job_id": job.id, "instants": job.instants, "result": result}


def _run(ti: Any, operator: BaseOperator) -> tuple[tuple[object, ...], int]:
    """Returns a name that all tries of a task between two clearings share, and the number of this try among them.

    When a person clears a task, Airflow sets `max_tries` to the tries so far plus the task's retries. A retry does not
    change `max_tries` (`clear_task_instances`, 2.10 to 3.3).
    """
    before = ti.max_tries - (operator.retries or 0)
    run = ("airflow", ti.dag_id, operator.task_id, ti.run_id, ti.map_index, ti.max_tries)
    return run, max(1, ti.try_number - before)
