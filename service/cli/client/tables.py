"""`groundskeeper tables`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls, models
from service.catalog.ownership import tag_words
from service.cli.client import arguments, bulk, declarations, table_details
from service.cli.client.arguments import TableName
from service.cli.client.command import Limit, Yes, command
from service.cli.client.connection import Connection
from service.cli.client.counted_reads import count_reads
from service.cli.client.discovery import discover
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Columns, Output
from service.cli.client.poll import poll
from service.cli.client.writer_options import writer_options

app = typer.Typer(help="Register tables, and see their state.", no_args_is_help=True)


@command(app, "add")
@declarations.with_declarations
def add(
    service: Connection,
    out: Output,
    path: Annotated[str, typer.Argument(help="Path or URI (s3a://...) of the table; a local one may be relative")],
    *,
    declares: declarations.OfTable,
    file: Annotated[
        Path | None, typer.Option(help="JSON object as for POST /v1/tables, for other members; - is standard input")
    ] = None,
) -> None:
    """Register a table. Policies act on it from then on, so its writers must take the same lock."""
    given = arguments.from_file(file, "--file")
    body: Any = {**given, "base_path": arguments.absolute(path), **declares.declared(given)}
    table = service.send(calls.register_table(body))
    out.document(table)
    out.say(f"Registered {table['name']} as {table['id']}.")
    table_details.show(out, table)
    out.note(f"Its state and the first decisions follow shortly: groundskeeper tables show {table['id']}")


app.command("discover")(discover)


@command(app, "list")
def list_tables(
    service: Connection,
    out: Output,
    *,
    name: Annotated[
        str | None, typer.Option(help="Only tables with names of this pattern, such as 'orders_*'; upper or lower case")
    ] = None,
    path: Annotated[str | None, typer.Option(help="Only the table with this path, or tables below this folder")] = None,
    owner: arguments.OwnerOption = None,
    tag: arguments.TagOption = None,
    limit: Limit = 1000,
) -> None:
    """List the registered tables."""
    below = None if path is None else arguments.absolute(path)
    page = service.items(calls.list_tables(name=name, path=below, owner=owner, tag=tag), limit)
    columns: Columns = {
        "ID": "id",
        "NAME": "name",
        "TYPE": table_details.type_of,
        "INDEX": table_details.short_index,
        "INCIDENTS": table_details.incidents,
        "OWNER": "owner",
        "TAGS": lambda table: " ".join(tag_words(table["tags"])),
        "PATH": "base_path",
    }
    is_narrowed = name is not None or path is not None or owner or tag
    none = "No tables are registered. `groundskeeper tables add PATH` registers one."
    out.listing(page, columns, empty="There are no such tables." if is_narrowed else none)
    if page["next_cursor"]:
        out.note(f"There are more than {limit}; --limit lists more.")


@command(app, "show")
def show(service: Connection, out: Output, table: TableName) -> None:
    """Show a table, its state, and the current decision about each service."""
    found = arguments.table_of(service, table)
    out.document(found)
    if out.as_json:
        return
    table_details.show(out, found)
    try:
        table_details.show_state(out, service.send(calls.get_snapshot(found["id"], partitions=1)))
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND:
            raise
        out.say(f"Its state is not known yet. {error.document.get('detail') or ''}".strip())
    table_details.show_outcome(out, service.send(calls.get_outcome(found["id"])))
    table_details.show_advice(out, service.send(calls.get_advice(found["id"])))
    decisions = service.send(calls.list_decisions(found["id"], current=True))["items"]
    if decisions:
        out.say("")
        rows = [
            (
                *(each["kind"], each["verdict"]),
                each["because"] + (f" ({each['warning']})" if each["warning"] else ""),
                each["cost"]["text"] if each["cost"] else "",
            )
            for each in decisions
        ]
        out.table(("SERVICE", "DECISION", "BECAUSE", "COST"), rows, empty="")


@command(app, "set")
@declarations.with_declarations
def set_table(
    service: Connection,
    out: Output,
    table: TableName,
    *,
    declares: declarations.OfTable,
    untag: Annotated[list[str] | None, typer.Option(help="Key of a tag to remove; repeat it for several")] = None,
    retry_conflicts: Annotated[
        bool | None, typer.Option(help="Every writer retries a batch after a conflict. Needs --hudi-version")
    ] = None,
    query_pruning_off: Annotated[
        bool | None, typer.Option(help="hoodie.bucket.index.query.pruning is false wherever SQL reads the table")
    ] = None,
    kafka_connect_ended: Annotated[
        str | None, typer.Option(help="Last commit of Hudi's sink for Kafka Connect, which is gone for good")
    ] = None,
    consumer: Annotated[
        list[str] | None,
        typer.Option(
            help="Incremental reader, NAME=INSTANT with the last instant that it has read; repeat it for several"
        ),
    ] = None,
    remove_consumer: Annotated[
        list[str] | None, typer.Option(help="Name of an incremental reader to remove; repeat it for several")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="JSON object as for PATCH /v1/tables/{id}, for other members; - is standard input"),
    ] = None,
) -> None:
    """Change declarations about a table. Only declarations whose options are given change. A new index is verified on
    sampled record keys. --engine discards engines that were detected before."""
    if retry_conflicts is not None and declares.hudi_version is None:
        raise CommandError.usage("--retry-conflicts needs --hudi-version, the version of the writers.")
    stored, tag = service.tagged(calls.get_table(arguments.table_of(service, table)["id"]))
    before = {
        "lock": {each: stored["lock"][each] for each in ("provider", "options", "wait_seconds")},
        "readers": stored["readers"],
        "tags": {key: value for key, value in stored["tags"].items() if key not in (untag or ())},
    }
    if declares.hudi_version is not None:
        before["writers"] = {"retry_conflicts": stored["writers"]["retry_conflicts"]}
    change: Any = {
        **arguments.from_file(file, "--file"),
        **declares.declared(
            before,
            retry_conflicts=retry_conflicts,
            query_pruning_off=query_pruning_off,
            kafka_connect_ended=kafka_connect_ended,
        ),
    }
    if untag and "tags" not in change:
        change["tags"] = before["tags"]
    instants = arguments.pairs(consumer, "--consumer")
    if not (change or instants or remove_consumer):
        raise CommandError.usage("There is nothing to change.", "`groundskeeper tables set --help` lists the options.")
    changed = service.send(calls.change_table(stored["id"], change, if_match=tag)) if change else stored
    for name, instant in instants.items():
        service.send(calls.put_consumer(stored["id"], name, models.ConsumerIn(instant=instant)))
    for name in remove_consumer or ():
        service.send(calls.delete_consumer(stored["id"], name))
    out.document(changed)
    table_details.show(out, changed)
    if "lock" in change:
        out.note(f"Every writer must take this lock: groundskeeper tables writer-options {changed['id']}")


app.command("writer-options")(writer_options)


app.command("poll")(poll)
app.command("count-reads")(count_reads)


@command(app, "remove")
def remove(service: Connection, out: Output, table: TableName, *, yes: Yes = False) -> None:
    """Unregister a table, and delete its ended jobs. The data stays unchanged. Prints the registration."""
    found = arguments.table_of(service, table)
    arguments.confirm(f"Unregister {found['name']} ({found['base_path']})?", yes=yes)
    service.send(calls.unregister_table(found["id"]))
    out.answer(found, f"Unregistered {found['name']} ({found['id']}). Its data was not touched.")


for action in bulk.ACTIONS:
    command(app, action)(bulk.of_action(action))
for each in (bulk.acknowledge, bulk.set_policy, bulk.label):
    command(app, each.__name__.replace("_", "-"))(each)
