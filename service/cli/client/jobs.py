"""`groundskeeper jobs`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import JobKind, JobState, LogLevel
from jobs import contract
from jobs.kinds.registry import KINDS
from service.cli.client import arguments, bulk, job_log, job_watch
from service.cli.client.arguments import OwnerOption, Since, TableName, TableOption, TagOption, Until, several
from service.cli.client.command import Limit, command
from service.cli.client.completion import complete_job
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.kinds import complete_param, parameters
from service.cli.client.output import Columns, Output, age, ago, compact, took
from service.model.formatting import count, duration

app = typer.Typer(help="Start jobs, follow them, read their logs, cancel them, run them again.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job", autocompletion=complete_job)]
_TABLES = 500


@command(app, "run")
def run(
    service: Connection,
    out: Output,
    kind: Annotated[JobKind, typer.Argument(help="Kind of the job")],
    table: TableName,
    *,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            help="Parameter, name=value; JSON or text. Repeat it for several. `jobs kinds KIND` lists them",
            autocompletion=complete_param,
        ),
    ] = None,
    params_file: Annotated[Path | None, typer.Option(help="JSON object with parameters; - is standard input")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Return the plan, and change nothing")] = False,
    priority: Annotated[int | None, typer.Option(min=-100, max=100, help="Higher starts first. Default: 0")] = None,
    timeout_seconds: Annotated[int | None, typer.Option(min=1, help="Time limit of one attempt")] = None,
    key: Annotated[
        str | None, typer.Option("--idempotency-key", help="The same key on the same table returns the same job")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it to its end, as `jobs watch`")] = False,
) -> None:
    """Submit a job. A worker starts it within moments."""
    found = arguments.table_of(service, table)
    body: Any = {
        "kind": kind.value,
        "params": {**arguments.from_file(params_file, "--params-file"), **arguments.values(param, "--param")},
        "dry_run": dry_run,
    }
    if priority is not None:
        body["priority"] = priority
    if timeout_seconds is not None:
        body["timeout_seconds"] = timeout_seconds
    job = service.send(calls.submit_job(found["id"], body, idempotency_key=key or None))
    _submitted(service, out, job, f"{kind.value} of {found['name']}{' (dry run)' if dry_run else ''}", watch=watch)


@command(app, "run-many")
def run_many(
    service: Connection,
    out: Output,
    kind: Annotated[JobKind, typer.Argument(help="Kind of the jobs")],
    tables: bulk.Names = None,
    *,
    pattern: bulk.Pattern = None,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", help="Parameter, name=value, of each job", autocompletion=complete_param),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Return the plans, and change nothing")] = False,
) -> None:
    """Submit the same job on many tables. If the job is refused on one table, the others still get it."""
    job = {"kind": kind.value, "params": arguments.values(param, "--param"), "dry_run": dry_run}
    bulk.change(service, out, tables, pattern, action="run", job=job)


@app.command("kinds")
def kinds(kind: Annotated[JobKind | None, typer.Argument(help="Kind of job. Default: all")] = None) -> None:
    """List the kinds of jobs, or the parameters of one kind with their defaults."""
    out = Output()
    if kind is None:
        rows = [(each.value, declared.summary) for each, declared in KINDS.items()]
        out.table(("KIND", "EFFECT"), rows, empty="")
        return
    declared_kind = contract.JobKind(kind.value)
    out.say(KINDS[declared_kind].summary)
    found = [(each.name, each.default, each.description, ", ".join(each.choices)) for each in parameters(declared_kind)]
    out.table(("PARAMETER", "DEFAULT", "MEANING", "VALUES"), found, empty="This kind has no parameters.")


@command(app, "watch")
def watch(service: Connection, out: Output, job: JobId) -> None:
    """Follow a job to its end, even if the service restarts meanwhile. Fails if the job fails. Ctrl-C does not end the
    job."""
    job_watch.follow(service, out, job)


@command(app, "list")
def list_jobs(
    service: Connection,
    out: Output,
    *,
    table: TableOption = None,
    kind: Annotated[list[JobKind] | None, several("jobs of this kind")] = None,
    state: Annotated[list[JobState] | None, several("jobs in this state")] = None,
    owner: OwnerOption = None,
    tag: TagOption = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
) -> None:
    """List the jobs, newest first. --since and --until are times of submission."""
    table_id = arguments.id_of(service, table)
    wanted = calls.list_jobs(table_id=table_id, kind=kind, state=state, owner=owner, tag=tag, since=since, until=until)
    page = service.items(wanted, limit)
    tables = [] if out.as_json else service.items(calls.list_tables(), _TABLES)["items"]
    names = {each["id"]: each["name"] for each in tables}
    columns: Columns = {
        "ID": "id",
        "TABLE": lambda job: names.get(job["table_id"], job["table_id"]),
        "KIND": _kind,
        "STATE": job_watch.state_of,
        "SUBMITTED": age("created_at"),
        "TOOK": took,
        "EXPECTED": "forecast.text",
    }
    out.listing(page, columns, empty="There are no such jobs.")


@command(app, "show")
def show(service: Connection, out: Output, job: JobId) -> None:
    """Show a job, its attempts, its result or error, and what it waits for."""
    found = service.send(calls.get_job(job))
    out.document(found)
    if not out.as_json:
        _show(out, found, service.send(calls.get_table(found["table_id"]))["name"])
    job_watch.show_outcome(out, found)


def _kind(job: Json) -> str:
    return f"{job['kind']} (dry run)" if job["dry_run"] else str(job["kind"])


def _show(out: Output, found: Json, table_name: str) -> None:
    out.pairs(
        [
            ("id", found["id"]),
            ("table", f"{table_name} ({found['table_id']})"),
            ("kind", _kind(found)),
            ("params", compact(found["params"]) if found["params"] else None),
            ("state", job_watch.state_of(found)),
            ("waits for", found["waits_for"]),
            ("fails", _failing(found)),
            ("expected", (found["forecast"] or {}).get("text")),
            ("progress", job_watch.described(found) if found["state"] != JobState.SUCCEEDED else None),
            ("requested by", found["requested_by"]),
            ("because", found["reason"]),
            ("submitted", ago(found["created_at"])),
            *((name, duration(found["spent"][f"{name}_seconds"])) for name in ("waited", "worked", "took")),
            ("attempt", f"{found['attempt']} of {found['max_attempts']}" if found["attempt"] else None),
            ("worker", found["worker_id"]),
            ("instants", ", ".join(found["instants"])),
        ]
    )
    for attempt in found["attempts"]:
        error = f": {attempt['error']['title']}" if attempt["error"] else ""
        out.say(f"attempt {attempt['attempt']} on {attempt['worker_id']}: {attempt['outcome'] or 'running'}{error}")
        if attempt["spark_url"]:
            out.say(f"  Spark: {attempt['spark_url']}")


@command(app, "costs")
def costs(service: Connection, out: Output) -> None:
    """Show the cost of each kind of job, as learned from ended jobs, and the error of this estimate."""
    found = service.send(calls.get_cost_model())
    out.document(found)
    rows = [
        (
            _kind(each),
            *(amount["of"].replace("_", " "), amount["jobs"], amount["tables"]),
            *(f"{amount[name]:.3g}" for name in ("per_job", "per_gib", "per_file")),
            *(_share(amount[name]) for name in ("error_on_known_tables", "error_on_other_tables")),
        )
        for each in found["items"]
        for amount in each["amounts"]
    ]
    amounts = ("PER JOB", "PER GIB", "PER FILE", "ERROR, KNOWN TABLE", "ERROR, NEW TABLE")
    out.table(("KIND", "OF", "JOBS", "TABLES", *amounts), rows, empty="No job has ended yet.")


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %"


@command(app, "cancel")
def cancel(service: Connection, out: Output, job: JobId) -> None:
    """Cancel a job. If it is running, its worker learns of this within seconds, and cleans up first."""
    found = service.send(calls.cancel_job(job))
    is_ended = found["state"] == JobState.CANCELLED
    out.answer(found, f"{job} is {found['state']}{'.' if is_ended else '; its worker was asked to end it.'}")


@command(app, "retry")
def retry(
    service: Connection,
    out: Output,
    job: JobId,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow it to its end, as `jobs watch`")] = False,
) -> None:
    """Repeat a job that failed or was cancelled, as a new job with the same parameters. Until the new job has ended, a
    repeated command returns the new job."""
    found = service.send(calls.retry_job(job))
    _submitted(service, out, found, f"{found['kind']}, again as in {job}", watch=watch)


@command(app, "log")
def log(
    service: Connection,
    out: Output,
    job: JobId,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the job has ended")] = False,
    level: Annotated[LogLevel | None, typer.Option(help="Only lines of this level and above")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the log to this new file")] = None,
) -> None:
    """Print the log of a job, the oldest line first. Each line is an object if --follow and --json are given."""
    if output is not None:
        if follow or out.as_json:
            raise CommandError.usage("--output writes the present lines as text: leave --follow and --json out.")
        job_log.save(service, out, job, level, output)
        return
    show = job_log.follow if follow else job_log.show
    show(service, out, job, level)


def _failing(job: Json) -> str | None:
    """Says how often such jobs have failed on the table, and when the next attempt may start."""
    if not (breaker := job.get("breaker")):
        return None
    error = f": {breaker['error']['title']}" if breaker["error"] else ""
    return (
        f"{count(breaker['failures'], 'attempt')} in a row, {breaker['slot_seconds']:.0f} s of a slot; next try at"
        f" {breaker['next_try_at']}{error}"
    )


def _submitted(service: Connection, out: Output, job: Json, what: str, *, watch: bool) -> None:
    if watch:
        out.note(f"Submitted {job['id']}.")
        job_watch.follow(service, out, job["id"])
    else:
        out.answer(job, f"Submitted {job['id']}: {what}.")
        out.note(f"Follow it: groundskeeper jobs watch {job['id']}")
