"""`groundskeeper tables`"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import WriterEngine
from jobs.format.clock_frame import spoken
from service.cli.client import arguments
from service.cli.client.arguments import TableName
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output, ago, compact
from service.model.formatting import count, duration, size

app = typer.Typer(help="Register tables, and see their state.", no_args_is_help=True)

_SHORT_TYPES = {"MERGE_ON_READ": "MOR", "COPY_ON_WRITE": "COW"}


@app.command("add")
@of_service
def add(
    service: Connection,
    out: Output,
    path: Annotated[str, typer.Argument(help="Path or URI (s3a://...) of the table; a local one may be relative")],
    *,
    name: Annotated[str | None, typer.Option(help="Default: the name in hoodie.properties")] = None,
    buckets: Annotated[int | None, typer.Option(min=1, help="Buckets of the bucket index. Default: detected")] = None,
    hash_field: Annotated[
        list[str] | None, typer.Option(help="Field that the bucket index hashes; repeat it for several")
    ] = None,
    lock: Annotated[
        str | None, typer.Option(help="filesystem (default), zookeeper, or the class of a Hudi LockProvider")
    ] = None,
    lock_option: Annotated[
        list[str] | None, typer.Option(help="Option of the lock, hoodie.write.lock.NAME=VALUE; repeat it for several")
    ] = None,
    lock_wait_seconds: Annotated[
        float | None,
        typer.Option(
            min=1, max=86_400, help="How long a job waits for the lock. Default: GROUNDSKEEPER_LOCK_WAIT_SECONDS"
        ),
    ] = None,
    engine: Annotated[
        list[WriterEngine] | None, typer.Option(help="Engine that writes the table; repeat it for several")
    ] = None,
    hudi_version: Annotated[str | None, typer.Option(help="Hudi version of the writers, such as 1.2.0")] = None,
    readers_hudi_version: Annotated[
        str | None, typer.Option(help="Hudi version of the oldest reader, such as 0.15.0")
    ] = None,
    writers_stopped: Annotated[bool, typer.Option("--writers-stopped", help="No writer is running")] = False,
    file: Annotated[
        Path | None, typer.Option(help="JSON object as for POST /v1/tables, for all else; - is standard input")
    ] = None,
) -> None:
    """Register a table. Policies act on it from then on: its writers must take the same lock."""
    if (buckets is None) != (not hash_field):
        raise CommandError.usage("A bucket index needs both --buckets and --hash-field.")
    body: Any = {**arguments.from_file(file, "--file"), "base_path": arguments.absolute(path)}
    if name is not None:
        body["name"] = name
    if buckets is not None:
        body["index"] = {"type": "bucket", "num_buckets": buckets, "hash_fields": hash_field}
    if lock is not None or lock_option or lock_wait_seconds is not None:
        options = arguments.pairs(lock_option, "--lock-option")
        stated: Json = body.get("lock") or {}
        body["lock"] = {
            **stated,
            "provider": lock or stated.get("provider", "filesystem"),
            "options": {**(stated.get("options") or {}), **options},
        }
        if lock_wait_seconds is not None:
            body["lock"]["wait_seconds"] = lock_wait_seconds
    writers: Json = {
        **({"engines": [each.value for each in engine]} if engine else {}),
        **({"hudi_version": hudi_version} if hudi_version else {}),
        **({"stopped": True} if writers_stopped else {}),
    }
    if writers:
        body["writers"] = {**(body.get("writers") or {}), **writers}
    if readers_hudi_version:
        body["readers"] = {"hudi_version": readers_hudi_version}
    table = service.send(calls.register_table(body))
    out.document(table)
    out.say(f"Registered {table['name']} as {table['id']}.")
    _show(out, table)
    out.note(f"Its state and the first decisions follow shortly: groundskeeper tables show {table['id']}")


@app.command("discover")
@of_service
def discover(
    service: Connection,
    out: Output,
    root: Annotated[str, typer.Argument(help="Folder, or URI (s3a://...), below which to look")],
    *,
    pattern: Annotated[str, typer.Option(help="Glob for the paths of tables relative to ROOT")] = "*",
    register: Annotated[bool, typer.Option("--register", help="Register all that can be registered")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most tables to look at or to register")] = 100,
    file: Annotated[
        Path | None,
        typer.Option(help="JSON object with lock, writers, readers, hudi_options of all of them; - is standard input"),
    ] = None,
) -> None:
    """Find the tables below a folder, and register them. Exit code 1 if one of them was refused."""
    body: Any = {
        **arguments.from_file(file, "--file"),
        "root": arguments.absolute(root),
        "pattern": pattern,
        "register": register,
        "limit": limit,
    }
    found = service.send(calls.discover_tables(body))
    out.document(found)
    _show_found(out, found)
    if any(each["state"] == "refused" for each in found["items"]):
        raise typer.Exit(ExitCode.FAILED)


def _show_found(out: Output, found: Json) -> None:
    rows = []
    for each in found["items"]:
        reason = each["reason"] or {}
        note = " ".join(part for part in (reason.get("title"), reason.get("detail")) if part)
        state = "registered now" if each["is_new"] else each["state"]
        rows.append((each["base_path"], each["name"] or "", state, each["table_id"] or note))
    out.table(("PATH", "NAME", "STATE", "ID OR REASON"), rows, empty="There are no tables.")
    for each in found["skipped"]:
        out.note(f"Not looked into: {each['path']}: {each['reason']['title']} {each['reason']['detail']}")
    if not found["is_complete"]:
        out.note("There may be more: repeat the command with --register, or name a folder further below.")


@app.command("list")
@of_service
def list_tables(
    service: Connection,
    out: Output,
    *,
    name: Annotated[
        str | None, typer.Option(help="Only those of this pattern of names, such as 'orders_*'; upper or lower case")
    ] = None,
    path: Annotated[str | None, typer.Option(help="Only the table of this path, or those below this folder")] = None,
    limit: Limit = 1000,
) -> None:
    """List the registered tables."""
    page = service.items(calls.list_tables(name=name, path=None if path is None else arguments.absolute(path)), limit)
    out.document(page)
    rows = [
        (table["id"], table["name"], _type(table), _short_index(table), _incidents(table), table["base_path"])
        for table in page["items"]
    ]
    out.table(
        ("ID", "NAME", "TYPE", "INDEX", "INCIDENTS", "PATH"),
        rows,
        empty="No tables are registered. `groundskeeper tables add PATH` registers one."
        if name is None and path is None
        else "There are no such tables.",
    )
    if page["next_cursor"]:
        out.note(f"There are more than {limit}; --limit lists more.")


@app.command("show")
@of_service
def show(service: Connection, out: Output, table: TableName) -> None:
    """Show a table, its state, and the current decision about each service."""
    found = arguments.table_of(service, table)
    out.document(found)
    if out.as_json:
        return
    _show(out, found)
    try:
        _show_state(out, service.send(calls.get_snapshot(found["id"], partitions=1)))
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND:
            raise
        out.say(f"Its state is not known yet. {error.document.get('detail') or ''}".strip())
    decisions = service.send(calls.list_decisions(found["id"], current=True))["items"]
    if decisions:
        out.say("")
        rows = [
            (each["kind"], each["verdict"], each["because"] + (f" ({each['warning']})" if each["warning"] else ""))
            for each in decisions
        ]
        out.table(("SERVICE", "DECISION", "BECAUSE"), rows, empty="")


@app.command("writer-options")
@of_service
def writer_options(
    service: Connection,
    out: Output,
    table: TableName,
    *,
    engine: Annotated[WriterEngine, typer.Option(help="Engine of the writer")] = WriterEngine.SPARK,
    hudi_version: Annotated[
        str | None, typer.Option(help="Hudi version of the writer. Default: the declared one, or 1.2.0")
    ] = None,
) -> None:
    """Show the options that a writer of a table needs."""
    table_id = arguments.table_of(service, table)["id"]
    found = service.send(calls.get_writer_options(table_id, engine=engine, hudi_version=hudi_version))
    out.document(found)
    options = [f"{name}={value}" for name, value in {**found["options"], **found["session_conf"]}.items()]
    for line in [line for text in found["sql"].values() for line in text.splitlines()] or options:
        out.say(line)
    for note in found["notes"]:
        out.note(note)


@app.command("poll")
@of_service
def poll(service: Connection, out: Output, table: TableName) -> None:
    """Have a table polled now: one that could not be read, and is well again, shows so at once."""
    found = arguments.table_of(service, table)
    answer = service.send(calls.poll_table(found["id"]))
    out.answer(answer, f"{found['name']} is polled within moments: groundskeeper problems --table {found['id']}")


@app.command("remove")
@of_service
def remove(
    service: Connection,
    out: Output,
    table: TableName,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
) -> None:
    """Unregister a table, and delete its ended jobs. The data stays as it is. Prints what was registered."""
    found = arguments.table_of(service, table)
    arguments.confirm(f"Unregister {found['name']} ({found['base_path']})?", yes=yes)
    service.send(calls.unregister_table(found["id"]))
    out.answer(found, f"Unregistered {found['name']} ({found['id']}). Its data was not touched.")


def _show(out: Output, table: Json) -> None:
    writers, profile = table["writers"], table["profile"]
    out.pairs(
        [
            ("id", table["id"]),
            ("name", table["name"]),
            ("path", table["base_path"]),
            ("type", profile.get("table_type")),
            ("version", profile.get("table_version")),
            ("index", _index(table["index"])),
            ("lock", table["lock"]["provider"]),
            ("lock wait", _lock_wait(table["lock"])),
            ("writers", _writers(writers)),
            ("readers", table["readers"]["hudi_version"] and f"Hudi {table['readers']['hudi_version']}"),
            ("options", compact(table["hudi_options"]) if table["hudi_options"] else None),
            ("clock", _clock(table["clock"])),
            ("incidents", _incidents(table)),
            ("warnings", " ".join(profile.get("warnings") or ()) or None),
        ]
    )


def _show_state(out: Output, state: Json) -> None:
    total, watch = state["total"], state["watch"]
    pending = [
        f"{each['action']} {each['requested_time']} {each['state']}"
        + (f" for {duration(each['age_seconds'])}" if each["age_seconds"] is not None else "")
        for each in state["pending"]
    ]
    out.say("")
    out.pairs(
        [
            ("polled", ago(watch["looked_at"])),
            ("poll error", watch["error"]),
            (
                "last commit",
                f"{state['last_commit']}, {ago(state['last_commit_at'])}" if state["last_commit"] else None,
            ),
            ("base files", f"{total['base_files']}, {size(total['base_bytes'])}"),
            ("log files", f"{total['log_files']}, {size(total['log_bytes'])}"),
            ("small files", f"{total['small_files']}, {size(total['small_bytes'])}"),
            ("partitions", state["num_partitions"]),
            ("buckets", state["num_buckets"] or None),
            ("rows", total["rows"]),
            ("commits since", _since(state)),
            ("timeline", count(state["timeline_commits"], "commit")),
            ("pending", "; ".join(pending)),
        ]
    )


def _since(state: Json) -> str:
    return ", ".join(f"{kind} {state[f'since_{kind}']['commits']}" for kind in ("compaction", "cleaning", "clustering"))


def _type(table: Json) -> str:
    type_ = str(table["profile"].get("table_type", ""))
    return _SHORT_TYPES.get(type_, type_)


def _short_index(table: Json) -> str:
    return "bucket" if table["index"] else "-"


def _index(index: Json | None) -> str | None:
    """Returns how the table was created: an expansion changes what `buckets` says, and not this."""
    return f"bucket by {', '.join(index['hash_fields'])}, {index['num_buckets']} at creation" if index else None


def _lock_wait(lock: Json) -> str:
    """Returns how long a job waits for the lock."""
    return "the service's setting" if lock["wait_seconds"] is None else f"{lock['wait_seconds']:g} s"


def _clock(clock: Json | None) -> str | None:
    """Returns how far the clock of the writers is from UTC; None if that is not known."""
    if clock is None or clock["utc_offset_seconds"] is None:
        return None
    words = spoken(timedelta(seconds=clock["utc_offset_seconds"]))
    found = f"{words} ({clock['ahead_seconds']:+.0f} s beside its zone), by {count(clock['samples'], 'commit')}"
    other, back = clock["disagreement"], clock.get("set_back")
    if other is None and back is not None:
        return f"{found}; one went back by {duration(back['seconds'])} before {back['instant']}"
    if other is None:
        return found
    one, two = (spoken(timedelta(seconds=other[name])) for name in ("one_seconds", "other_seconds"))
    return f"{found}; writers disagree, {one} and {two}"


def _incidents(table: Json) -> str:
    counts = table["incidents"]
    return ", ".join(f"{number} {state}" for state, number in counts.items() if number) or "none"


def _writers(writers: Json) -> str:
    detected = [f"{engine} (detected)" for engine in writers["detected"] if engine not in (writers["engines"] or ())]
    version = "stopped" if writers["stopped"] else f"Hudi {writers['hudi_version']}" if writers["hudi_version"] else ""
    return ", ".join(part for part in (version, *(writers["engines"] or ()), *detected) if part) or "not declared"
