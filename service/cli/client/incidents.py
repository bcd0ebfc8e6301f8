"""`groundskeeper incidents`"""

from __future__ import annotations

from typing import Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import IncidentCloseIn, IncidentKind, IncidentState
from service.cli.client import arguments
from service.cli.client.arguments import TableOption, several
from service.cli.client.command import Limit, command
from service.cli.client.connection import Connection
from service.cli.client.output import Output, ago

app = typer.Typer(help="See faults that were found on tables; close one by hand.", no_args_is_help=True)


@command(app, "list")
def list_incidents(
    service: Connection,
    out: Output,
    *,
    table: TableOption = None,
    state: Annotated[list[IncidentState] | None, several("in this state")] = None,
    kind: Annotated[IncidentKind | None, typer.Option(help="Only of this kind")] = None,
    limit: Limit = 100,
) -> None:
    """List the incidents, newest first, each with its effect and the remedy."""
    kinds = [kind] if kind else None
    page = service.items(calls.list_incidents(table_id=arguments.id_of(service, table), state=state, kind=kinds), limit)
    out.document(page)
    if not page["items"]:
        out.note("There are no such incidents.")
    for number, each in enumerate(page["items"]):
        if number:
            out.say("")
        out.pairs(
            [
                (each["id"], each["title"]),
                ("state", each["state"]),
                ("table", each["table_id"]),
                ("kind", each["kind"]),
                ("instant", each["instant"]),
                ("opened", ago(each["opened_at"])),
                ("detail", each["detail"]),
                ("remedy", each["hint"]),
                ("closed", f"{ago(each['closed_at'])}: {each['because']}" if each["closed_at"] else None),
            ]
        )


@command(app, "close")
def close(
    service: Connection,
    out: Output,
    incident: Annotated[str, typer.Argument(metavar="INCIDENT", help="Id of the incident")],
    *,
    reason: Annotated[str, typer.Option(help="Kept with the incident")],
) -> None:
    """Close an incident by hand. A closed incident is not repaired, and cleaning may delete the files that a repair
    would need."""
    answer = service.send(calls.close_incident(incident, IncidentCloseIn(reason=reason)))
    out.answer(answer, f"{incident} is {answer['state']}: {answer['because']}")
