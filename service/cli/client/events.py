"""`groundskeeper events`: lists events, or follows the service's stream of them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.client import given
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.given import TableOption
from service.cli.client.output import Output, compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_RETRY_SECONDS = 1.0
_PATIENCE_SECONDS = 600.0


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
    """List events, oldest first; or follow them, over restarts of the service. With --json each line of a followed
    stream is one event (CloudEvents)."""
    wanted = {"types": ",".join(type_) if type_ else None, "table_id": given.id_of(service, table)}
    if follow:
        for event in followed(service, out, after, wanted):
            _print(out, event, as_line=True)
        return
    items, position = _listed(service, after, limit, wanted)
    if out.as_json:
        out.json({"items": items, "next_after": position})
        return
    for event in items:
        _print(out, event)
    if not items:
        out.note("There are no such events.")


def followed(service: Connection, out: Output, after: int | None, wanted: Json) -> Iterator[Json]:
    """Yields events for ever. After a broken connection it resumes behind the last event. Raises CommandError if the
    service stays away, or was never there."""
    position = None if after is None else str(after)
    was_connected, is_away, until = False, False, 0.0
    while True:
        try:
            with service.stream("/v1/events", position, **wanted) as lines:
                was_connected, is_away, until = True, False, time.monotonic() + _PATIENCE_SECONDS
                for id_, data in messages(lines):
                    position, until = id_, time.monotonic() + _PATIENCE_SECONDS
                    if data:
                        yield json.loads(data)
        except CommandError as error:
            if not error.is_passing or not was_connected or time.monotonic() > until:
                raise
            if not is_away:
                out.note("The connection broke; trying again.")
            is_away = True
        time.sleep(_RETRY_SECONDS)


def messages(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Parses server-sent events: yields the id and the data of each message, the data empty if it has only an id."""
    id_, data = "", ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if id_:
                yield id_, data
            id_, data = "", ""
        elif name == "id":
            id_ = value
        elif name == "data":
            data = value


def _listed(service: Connection, after: int | None, limit: int, wanted: Json) -> tuple[list[Json], int]:
    items: list[Json] = []
    position = after or 0
    while len(items) < limit:
        page = service.get("/v1/events", after=position, **wanted)
        items += page["items"]
        if page["next_after"] == position:
            break
        position = page["next_after"]
    if len(items) > limit:
        items = items[:limit]
        position = int(items[-1]["sequence"])
    return items, position


def _print(out: Output, event: Json, *, as_line: bool = False) -> None:
    if out.as_json and as_line:
        out.line(json.dumps(event))
        return
    table = (event.get("data") or {}).get("table") or {}
    rest = {name: value for name, value in (event.get("data") or {}).items() if name != "table"}
    out.say(f"{event['time']}  {event['type']}  {table.get('name', '')}  {compact(rest)}")
