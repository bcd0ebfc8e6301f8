"""`groundskeeper lock`"""

from __future__ import annotations

from typing import Annotated

import typer

from groundskeeper_client import calls
from service.cli.client import arguments
from service.cli.client.arguments import TableName
from service.cli.client.command import Yes, command
from service.cli.client.connection import Connection, Json
from service.cli.client.output import Output, ago
from service.model.formatting import duration

app = typer.Typer(help="See who holds a table's lock; break one that a dead writer left.", no_args_is_help=True)


@command(app, "show")
def show(service: Connection, out: Output, table: TableName) -> None:
    """Show the lock, and signs of whether its holder is alive: heartbeats, pending instants, jobs."""
    found = arguments.table_of(service, table)
    lock = service.send(calls.get_lock(found["id"]))
    out.document(lock)
    _show(out, lock)
    if lock["is_breakable"]:
        out.note(f"If its holder is dead: groundskeeper lock break {found['id']} --reason ...")


@command(app, "break")
def break_(
    service: Connection,
    out: Output,
    table: TableName,
    *,
    reason: Annotated[str, typer.Option(help="How you know that its holder is dead. Kept in the audit trail")],
    yes: Yes = False,
) -> None:
    """Break a lock that a dead writer left. If the holder is only slow, it would then write at the same time as
    others."""
    found = arguments.table_of(service, table)
    lock = service.send(calls.get_lock(found["id"]))
    if lock["is_breakable"] and not yes:
        _show(out, lock)
        arguments.confirm(f"Break the lock of {found['name']} ({found['base_path']})?", yes=yes)
    # The id ensures that only the shown lock is broken, and not a later one.
    broken = service.send(calls.break_lock(found["id"], reason=reason, lock_id=lock["id"]))
    out.document(broken)
    out.say(f"Broke the lock of {found['name']}, held for {duration(broken['held_seconds'])} by {broken['holder']}.")
    for job in broken["waiting_jobs"]:
        out.note(f"{job} waited for it: groundskeeper jobs watch {job}")


def _show(out: Output, lock: Json) -> None:
    refusal = lock["refusal"]
    out.pairs(
        [
            ("lock", lock["state"] if lock["detail"] is None else f"{lock['state']}. {lock['detail']}"),
            ("since", ago(lock["since"])),
            ("held by", lock["holder"]),
            ("provider", lock["provider"]),
            ("file", lock["path"]),
            ("ends", ago(lock["ends_at"])),
            ("ending", lock["ending"]),
            ("heartbeats", "; ".join(map(_heartbeat, lock["writers"]))),
            ("pending", "; ".join(f"{each['action']} {each['requested_time']}" for each in lock["pending"])),
            ("jobs", "; ".join(map(_job, lock["jobs"]))),
            ("breakable", "yes" if refusal is None else f"no: {refusal['title']}. {refusal['detail']}".strip()),
        ]
    )


def _heartbeat(writer: Json) -> str:
    state = "alive" if writer["is_alive"] else "silent"
    own = f", of {writer['job_id']}" if writer["job_id"] else ""
    return f"{writer['instant']} {state}, last {ago(writer['heartbeat_at'])}{own}"


def _job(job: Json) -> str:
    part = "holds it" if job["holds"] else "waits for it" if job["waits"] else job["state"]
    return f"{job['kind']} {job['id']} {part}"
