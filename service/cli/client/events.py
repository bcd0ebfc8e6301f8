"""`groundskeeper events`: lists events, or follows the service's stream of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from groundskeeper_client import Call, calls
from service.cli.client import arguments
from service.cli.client.arguments import TableOption
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json, Patience
from service.cli.client.output import Output, compact


@of_service
def events(
    service: Connection,
    out: Output,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new events as they happen, until Ctrl-C")
    ] = False,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Type of events, such as 'job.*'; repeat it. Default: all")
    ] = None,
    table: TableOption = None,
    after: Annotated[
        int | None, typer.Option(min=0, help="Start after the event with this number. Default: the oldest kept")
    ] = None,
    limit: Limit = 100,
) -> None:
    """List events, oldest first; or follow them, even if the service restarts meanwhile. If --json is given, each line
    of a followed stream is one event (CloudEvents)."""
    types, table_id = ",".join(type_ or ["*"]), arguments.id_of(service, table)
    if follow:
        # The call fails at once if the service cannot be reached, while the stream would wait for the service.
        service.send(calls.list_event_types())
        retries = Patience(away=lambda: out.note("The connection broke; trying again."))
        for event in service.events(types, table_id=table_id, after=after, retries=retries):
            if out.as_json:
                out.line(json.dumps(event))
            _print(out, event)
        return
    listed = Call("GET", "/v1/events", dict, query={"types": types, "table_id": table_id})
    items, position = _listed(service, listed, after or 0, limit)
    out.document({"items": items, "next_after": position})
    for event in items:
        _print(out, event)
    if not items:
        out.note("There are no such events.")


def _listed(service: Connection, call: Call[Any], position: int, limit: int) -> tuple[list[Json], int]:
    items: list[Json] = []
    while len(items) < limit:
        page = service.send(replace(call, query={**call.query, "after": position}))
        items += page["items"]
        if page["next_after"] == position:
            break
        position = page["next_after"]
    if len(items) > limit:
        items = items[:limit]
        position = int(items[-1]["sequence"])
    return items, position


def _print(out: Output, event: Json) -> None:
    table = (event.get("data") or {}).get("table") or {}
    rest = {name: value for name, value in (event.get("data") or {}).items() if name != "table"}
    out.say(f"{event['time']}  {event['type']}  {table.get('name', '')}  {compact(rest)}")
