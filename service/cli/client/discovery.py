"""`groundskeeper tables discover`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from service.catalog.ownership import tag_words
from service.cli.client import arguments, declarations
from service.cli.client.command import of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import ExitCode
from service.cli.client.output import Output


@of_service
@declarations.with_declarations
def discover(
    service: Connection,
    out: Output,
    root: Annotated[str, typer.Argument(help="Folder, or URI (s3a://...), below which to look")],
    *,
    pattern: Annotated[str, typer.Option(help="Glob for the paths of tables relative to ROOT")] = "*",
    register: Annotated[bool, typer.Option("--register", help="Register every table that can be registered")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most tables to examine or to register")] = 100,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="Rule for paths below ROOT: {team}/* gives the tag team, {owner} the owner; * is one folder, ** any"
            " number. Repeat it for several"
        ),
    ] = None,
    declares: declarations.OfTables,
    file: Annotated[
        Path | None,
        typer.Option(
            help="JSON object with lock, writers, readers, hudi_options and rules for all tables; - is standard input"
        ),
    ] = None,
) -> None:
    """Find the tables below a folder, and register them. Exit code 1 if one of them was refused.

    The options about lock, writers and readers apply to all tables that are registered.
    """
    given = arguments.from_file(file, "--file")
    body: Any = {
        **given,
        **declares.declared(given),
        "root": arguments.absolute(root),
        "pattern": pattern,
        "register": register,
        "limit": limit,
        **({"rules": rule} if rule else {}),
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
        is_given = each["state"] != "registered" or each["is_new"]
        words = [each["owner"], *tag_words(each["tags"])] if is_given else []
        given = " ".join(word for word in words if word)
        rows.append((each["base_path"], each["name"] or "", state, given, each["table_id"] or note))
    columns = ("PATH", "NAME", "STATE", "OWNER AND TAGS", "ID OR REASON")
    out.table(columns, rows, empty="There are no tables.")
    for each in found["skipped"]:
        out.note(f"Not searched: {each['path']}: {each['reason']['title']} {each['reason']['detail']}")
    if not found["is_complete"]:
        out.note("There may be more: repeat the command with --register, or name a folder further below.")
