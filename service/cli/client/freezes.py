"""`groundskeeper freezes`"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from service.cli.client.arguments import confirm, moment
from service.cli.client.command import Yes, command
from service.cli.client.connection import Connection
from service.cli.client.output import Columns, Output

app = typer.Typer(help="Start no automatic jobs on some tables from one time to another.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the freeze, such as black-friday")]


@command(app, "list")
def list_freezes(service: Connection, out: Output) -> None:
    """List the freezes, the ended ones too."""
    columns: Columns = {
        "NAME": "name",
        "STATE": _state,
        "FROM": "starts_at",
        "TO": "ends_at",
        "TABLES": "tables",
        "REASON": "reason",
    }
    out.listing(service.send(calls.list_freezes()), columns, empty="There are no freezes.")


@command(app, "set")
def set_freeze(
    service: Connection,
    out: Output,
    name: Name,
    *,
    start: Annotated[datetime, typer.Option("--from", parser=moment, metavar="TIME", help="When it begins")],
    end: Annotated[datetime, typer.Option("--to", parser=moment, metavar="TIME", help="When it ends")],
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="Pattern of tables: orders_*, tag:team=shop; repeat it. Default: all"),
    ] = None,
    reason: Annotated[str, typer.Option(help="Shown to other users")] = "",
) -> None:
    """Set a freeze, or replace the one of this name. Jobs that have begun go on, and `jobs run` still works."""
    body: Any = {"starts_at": start.isoformat(), "ends_at": end.isoformat(), "reason": reason}
    if table:
        body["tables"] = table
    answer = service.send(calls.put_freeze(name, body))
    out.answer(answer, f"{name} lasts from {answer['starts_at']} to {answer['ends_at']}.")


@command(app, "remove")
def remove(service: Connection, out: Output, name: Name, *, yes: Yes = False) -> None:
    """Delete a freeze, which ends it. Prints what was deleted."""
    found = service.send(calls.get_freeze(name))
    confirm(f"Delete the freeze {name} ({_state(found)})?", yes=yes)
    service.send(calls.delete_freeze(name))
    out.answer(found, f"Deleted the freeze {name}.")


def _state(freeze: dict[str, Any]) -> str:
    now = datetime.now(UTC)
    if datetime.fromisoformat(freeze["ends_at"]) <= now:
        return "ended"
    return "lasts" if datetime.fromisoformat(freeze["starts_at"]) <= now else "planned"
