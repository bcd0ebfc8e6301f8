"""Follows a job to its end, even if the service restarts meanwhile."""

from __future__ import annotations

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from groundskeeper_client import calls
from groundskeeper_client.exchange import ENDED
from service.cli.client import job_result
from service.cli.client.connection import Connection, Json, Patience
from service.cli.client.failure import ExitCode
from service.cli.client.output import Output, clean, took
from service.model.formatting import size

REFUSED = "refused"
NOTHING_TO_DO = "nothing to do"
POLL_SECONDS = 0.5


def follow(service: Connection, out: Output, job_id: str) -> None:
    """Shows the progress until the job has ended. Ends the command with an exit code if the job did not succeed. Raises
    CommandError if the service stays unavailable."""
    job = service.send(calls.get_job(job_id))
    shown = _Bar(out) if out.console.is_terminal and not out.as_json else _Lines(out)
    # The service may restart meanwhile. Jobs then go on, or are tried again.
    retries = Patience(away=shown.away)
    try:
        with shown:
            while job["state"] not in ENDED:
                shown.update(job)
                # The call returns as soon as the job ends.
                job = service.send(calls.get_job(job_id, wait_seconds=POLL_SECONDS), retries)
    except KeyboardInterrupt:
        out.note(f"The job goes on: groundskeeper jobs watch {job_id}")
        raise
    name = job["kind"] + (" (dry run)" if job["dry_run"] else "")
    out.answer(job, f"{name} {state_of(job)} after {took(job)}")
    show_outcome(out, job)
    if job["state"] != "succeeded" or job["verdict"] == "refused":
        raise typer.Exit(ExitCode.FAILED)


def described(job: Json) -> str:
    """Returns the present step with its figures: bytes if they are known, else tasks of Spark."""
    progress = job["progress"]
    return f"{progress['step']}{_figures(progress)}" if progress else ""


def state_of(job: Json) -> str:
    """Returns the state to show. A dry run whose plan is refused has the state `succeeded`, but is shown as refused."""
    if job["verdict"] == "refused":
        return REFUSED
    return NOTHING_TO_DO if job["verdict"] == "nothing_to_do" else str(job["state"])


def show_outcome(out: Output, job: Json) -> None:
    """Prints the result or the plan, and the error of a job or the reasons why it was refused."""
    result = job["result"] or {}
    job_result.show(out, result)
    if job["verdict"] == "nothing_to_do":
        out.say("There is nothing to do." if job["dry_run"] else "There was nothing to do.")
    if job.get("cost"):
        out.say(f"The job would take {job['cost']['text']}{' (a guess)' if job['cost']['is_guess'] else ''}.")
    refusals = result.get("refusals") or ([job["error"]] if job["error"] else [])
    for problem in (*refusals, *(result.get("findings") or ())):
        job_result.show_problem(out, problem)


def _line(job: Json) -> str:
    if job["state"] == "queued":
        return f"queued: waits for {job['waits_for']}" if job["waits_for"] else "queued"
    if job["cancel_requested"]:
        return "is being cancelled"
    return f"{job['state']}: {job['progress']['step']}" if job["progress"] else str(job["state"])


def _figures(progress: Json) -> str:
    if progress["bytes_total"]:
        return f" {size(progress['bytes_done'])} of {size(progress['bytes_total'])}"
    if progress["tasks_total"]:
        return f" {progress['tasks_done']} of {progress['tasks_total']} tasks"
    return ""


class _Lines:
    """Prints a line at each change, for logs. Prints nothing with --json."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._last = ""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, job: Json) -> None:
        self._print(_line(job), _figures(job["progress"]) if job["progress"] else "")

    def away(self) -> None:
        self._print("the service cannot be reached; waiting")

    def _print(self, line: str, figures: str = "") -> None:
        if line != self._last:
            self._out.note(line + figures)
            self._last = line


class _Bar:
    """A progress bar on the terminal: of bytes if their number is known, else of tasks."""

    def __init__(self, out: Output) -> None:
        text = TextColumn(
            "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        )
        columns = (BarColumn(bar_width=20), TimeElapsedColumn(), text)
        self._progress = Progress(*columns, console=out.console, transient=True, expand=True)
        self._task: TaskID | None = None

    def __enter__(self) -> None:
        self._progress.start()
        self._task = self._progress.add_task("", total=None)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, job: Json) -> None:
        progress = job["progress"] or {"bytes_total": 0, "tasks_total": 0}
        unit = "bytes" if progress["bytes_total"] else "tasks"
        self._show(
            _line(job) + (_figures(progress)),
            total=progress[f"{unit}_total"] or None,
            done=progress.get(f"{unit}_done", 0),
        )

    def away(self) -> None:
        self._show("the service cannot be reached; waiting")

    def _show(self, text: str, *, total: int | None = None, done: int = 0) -> None:
        assert self._task is not None
        self._progress.update(self._task, description=clean(text), total=total, completed=done)
