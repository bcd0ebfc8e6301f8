"""The tools of an assistant. `dry_run` submits a dry run, `run_job` runs the job of a dry run for real, and the others
only read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, cast, get_args

import msgspec
from mcp.server.mcpserver import Context  # noqa: TC002 - the server evaluates the annotations of tools
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from groundskeeper_client.call import Call
from groundskeeper_client.client import Client
from groundskeeper_client.errors import ApiError, ClientError
from groundskeeper_client.generated import calls
from groundskeeper_client.generated.models import (
    JobDetail,
    JobKind,
    JobState,
    JobVerdict,
    LogLevel,
    Severity,
    SimulateIn,
)
from groundskeeper_client.mcp.untrusted import TooLargeError, as_data, text
from groundskeeper_client.questions import id_of

DRY_RUN_HOURS = 1
"""Greatest age in hours of a dry run that `run_job` accepts. The table may have changed since an older one."""
_WAIT_SECONDS = 50.0
_LOG_LINES = 40

Table = Annotated[str, Field(description="Id, name or base path of a registered table", max_length=1000)]
OneTable = Annotated[str | None, Field(description="Only this table: its id, name or base path", max_length=1000)]
Limit = Annotated[int, Field(description="Number of items at most", ge=1, le=100)]
Cursor = Annotated[str | None, Field(description="`next_cursor` of the previous page", max_length=2000)]
Kind = Annotated[str, Field(description="Kind of job; `list_kinds` lists them", max_length=50)]
OneKind = Annotated[str | None, Field(description="Only this kind of job", max_length=50)]
JobId = Annotated[str, Field(description="Id of a job, such as job_01J...", max_length=100)]
Members = Annotated[dict[str, Any] | None, Field(description="Parameters; `list_kinds` with the kind lists them")]
Days = Annotated[float, Field(description="Days up to now", gt=0, le=90)]


@contextmanager
def failing_as(error: type[Exception]) -> Iterator[None]:
    """Turns an error of the client into an error for the assistant. The texts of the error are marked as data, like
    those of an answer."""
    try:
        yield
    except ApiError as failed:
        members = {"type": failed.type, "title": failed.title, "detail": failed.detail, "hint": failed.hint}
        shown = as_data(members | failed.members)
        raise error(msgspec.json.encode(shown).decode()) from failed
    except (ClientError, TooLargeError) as failed:
        raise error(text(str(failed))) from failed


class Tools:
    """The tools. `client_of` returns the client with the caller's token for one call."""

    def __init__(self, client_of: Callable[[Context], Client]) -> None:
        self._client_of = client_of

    @contextmanager
    def _client(self, context: Context) -> Iterator[Client]:
        with failing_as(ToolError), self._client_of(context) as client:
            yield client

    def list_problems(
        self,
        context: Context,
        *,
        table: OneTable = None,
        severity: Annotated[Severity | None, Field(description="Only of this severity")] = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """List what is wrong now, the most serious first, each with its cause, its consequence and its remedy."""
        with self._client(context) as client:
            wanted = calls.list_problems(
                table_id=_id(client, table),
                severity=[severity] if severity else None,
                limit=limit,
                cursor=cursor,
            )
            return as_data(client.send(wanted))

    def list_tables(
        self,
        context: Context,
        *,
        name: Annotated[str | None, Field(description="Pattern of names with * and ?", max_length=200)] = None,
        owner: Annotated[str | None, Field(description="Only tables of this owner", max_length=200)] = None,
        tag: Annotated[str | None, Field(description="Only with this tag: key, or key=value", max_length=200)] = None,
        limit: Limit = 30,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """List the registered tables with what is declared about their writers, locks, owners and tags."""
        with self._client(context) as client:
            wanted = calls.list_tables(
                name=name,
                owner=[owner] if owner else None,
                tag=[tag] if tag else None,
                limit=limit,
                cursor=cursor,
            )
            return as_data(client.send(wanted))

    def describe_table(self, context: Context, table: Table) -> dict[str, Any]:
        """Show a table's state: its snapshot, its problems, its last jobs, and the current decision about each kind of
        job. The reasons of the decisions say why a job does or does not start."""
        with self._client(context) as client:
            table_id = id_of(client, table)
            return as_data(
                {
                    "table": client.send(calls.get_table(table_id)),
                    "snapshot": client.send(calls.get_snapshot(table_id, partitions=5)),
                    "problems": client.send(calls.list_problems(table_id=table_id, limit=20)).items,
                    "decisions": client.send(calls.list_decisions(table_id, current=True, limit=40)).items,
                    "jobs": client.send(calls.list_jobs(table_id=table_id, limit=5)).items,
                }
            )

    def list_jobs(
        self,
        context: Context,
        *,
        table: OneTable = None,
        kind: OneKind = None,
        state: Annotated[JobState | None, Field(description="Only jobs in this state")] = None,
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> dict[str, Any]:
        """List jobs, the newest first."""
        with self._client(context) as client:
            wanted = calls.list_jobs(
                table_id=_id(client, table),
                kind=[JobKind(kind)] if kind else None,
                state=[state] if state else None,
                limit=limit,
                cursor=cursor,
            )
            return as_data(client.send(wanted))

    def describe_job(self, context: Context, job_id: JobId) -> dict[str, Any]:
        """Show a job with its plan or result, its error, and the last warnings and errors of its log."""
        with self._client(context) as client:
            job = client.send(calls.get_job(job_id))
            log = deque(client.items(calls.get_job_log(job_id, level=LogLevel.WARNING, limit=500)), maxlen=_LOG_LINES)
            return as_data({"job": job, "log": list(log)})

    def show_queue(self, context: Context) -> dict[str, Any]:
        """Show how many jobs wait, when they are expected to start, and how many slots of workers would be enough."""
        with self._client(context) as client:
            return as_data(client.send(calls.get_demand()))

    def explain_problem(
        self, context: Context, name: Annotated[str, Field(description="Type, such as table-locked", max_length=100)]
    ) -> dict[str, Any]:
        """Explain a type of error or problem: its meaning, its causes and its remedy."""
        with self._client(context) as client:
            return as_data(client.send(calls.explain_problem(name)))

    def report(self, context: Context, days: Days = 7.0) -> dict[str, Any]:
        """Sum up the work of the service in the last days: jobs, failures, freed bytes, and the cost of the jobs."""
        with self._client(context) as client:
            return as_data(client.send(calls.get_report(since=_ago(days), limit=30)))

    def simulate_policy(
        self,
        context: Context,
        *,
        policy: Annotated[
            dict[str, Any] | None, Field(description="Settings as in a policy, such as {'compaction': {'commits': 12}}")
        ],
        tables: Annotated[list[str] | None, Field(description="Ids, names or paths", max_length=100)] = None,
        pattern: Annotated[
            str | None, Field(description="A pattern of tables, as policies have", max_length=200)
        ] = None,
        days: Days = 14.0,
    ) -> dict[str, Any]:
        """Show what another policy would have done. The service replays the last days of the tables with this policy
        and with the present one. Changes nothing. Give tables or a pattern."""
        with self._client(context) as client:
            body: dict[str, Any] = {"policy": policy, "from": _ago(days).isoformat()}
            if tables is not None:
                body["tables"] = [id_of(client, each) for each in tables]
            if pattern is not None:
                body["pattern"] = pattern
            return as_data(client.send(calls.simulate_policy(cast("SimulateIn", body))))

    def list_kinds(self, context: Context, kind: OneKind = None) -> dict[str, Any]:
        """List the kinds of jobs with their effects. If `kind` is given, list the parameters of this kind as a JSON
        schema."""
        if kind is None:
            return {name: (model.__doc__ or "").split("\n\n")[0] for name, model in _KINDS.items()}
        model = _known(kind)
        with self._client(context) as client:
            document: dict[str, Any] = client.send(Call("GET", "/openapi.json", dict))
            return _params_schema(document["components"]["schemas"], model.__name__)

    def dry_run(self, context: Context, table: Table, kind: Kind, params: Members = None) -> dict[str, Any]:
        """Plan a job, and change nothing. Returns the job, whose `verdict` is `ready`, `refused` or `nothing_to_do`,
        and whose `result` is the plan. If the job has not ended after 50 s, call `describe_job` to see its end."""
        _known(kind)
        with self._client(context) as client:
            body = cast("calls.SubmitJobBody", {"kind": kind, "params": params or {}, "dry_run": True})
            job = client.send(calls.submit_job(id_of(client, table), body))
            return as_data(_waited_for(client, job.id))

    def run_job(
        self,
        context: Context,
        *,
        dry_run_id: Annotated[str, Field(description="Id of a dry run that is `ready`", max_length=100)],
    ) -> dict[str, Any]:
        """Run the job of a dry run for real, with the same kind, table and parameters. Changes the table. Show the plan
        to the person first, and ask. The dry run must have ended within the last hour. A second call with the same id
        returns the same job."""
        with self._client(context) as client:
            planned = client.send(calls.get_job(dry_run_id))
            _check(planned)
            body = cast("calls.SubmitJobBody", {"kind": planned.kind.value, "params": planned.params})
            key = f"dry-run-{planned.id}"
            job = client.send(calls.submit_job(planned.table_id, body, idempotency_key=key))
            return as_data(client.send(calls.get_job(job.id)))


def _check(planned: JobDetail) -> None:
    """Raises ToolError unless the job is a dry run that allows the real one."""
    job = f"Job {planned.id}"
    if not planned.dry_run:
        raise ToolError(f"{job} is not a dry run. Call `dry_run` first, and show its plan to the person.")
    if planned.finished_at is None:
        raise ToolError(f"{job} has not ended. Call `describe_job` until it has.")
    if planned.verdict is not JobVerdict.READY:
        verdict = planned.verdict.value if planned.verdict else planned.state.value
        raise ToolError(f"{job} is not `ready` but `{verdict}`, so nothing was submitted.")
    if planned.finished_at < _ago(DRY_RUN_HOURS / 24):
        raise ToolError(f"{job} ended at {planned.finished_at:%Y-%m-%d %H:%M} UTC, too long ago. Repeat the dry run.")


def _waited_for(client: Client, job_id: str) -> JobDetail:
    """Returns the job when it has ended, or when the longest wait is over."""
    end = datetime.now(UTC) + timedelta(seconds=_WAIT_SECONDS)
    while True:
        rest = (end - datetime.now(UTC)).total_seconds()
        job = client.send(calls.get_job(job_id, wait_seconds=max(0.0, min(rest, 20.0))))
        if job.finished_at is not None or rest <= 0:
            return job


def _kind_of(model: type[msgspec.Struct]) -> str:
    return next(str(each.default) for each in msgspec.structs.fields(model) if each.name == "kind")


_KINDS: dict[str, type[msgspec.Struct]] = {_kind_of(model): model for model in get_args(calls.SubmitJobBody)}


def _known(kind: str) -> type[msgspec.Struct]:
    if kind not in _KINDS:
        raise ToolError(f"There is no kind {text(kind)!r}. The kinds are: {', '.join(_KINDS)}.")
    return _KINDS[kind]


def _params_schema(schemas: dict[str, Any], body: str) -> dict[str, Any]:
    """Returns the schema of the member `params` of a body, with the schemas to which that schema refers."""
    found: dict[str, Any] = {}
    waiting = [schemas[body]["properties"]["params"]]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            name = str(each.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found[name] = schemas[name]
                waiting.append(schemas[name])
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return {"params": schemas[body]["properties"]["params"], "components": {"schemas": found}}


def _id(client: Client, table: str | None) -> str | None:
    return None if table is None else id_of(client, table)


def _ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)
