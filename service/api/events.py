"""/v1/events, as a stream or as pages, /v1/event-types, and the schema of this service's facet of OpenLineage events"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any

from fastapi import Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse

from service.access import session_store, token_store
from service.api.answers import ListOf
from service.api.dependencies import Caller, CallerDep, DatabaseDep, Exposure, ExposureDep
from service.api.event_catalogue import CATALOGUE, Entry
from service.api.event_schemas import STREAM, EventPage
from service.api.open_calls import OpenCalls
from service.api.query_parameters import OfTable, Since, Until
from service.api.routes import Routes
from service.api.webhook_forms import EventTypeOut
from service.db.engine import reading
from service.delivery import lineage_facet, outbox
from service.delivery.cloud_event import cloud_event
from service.events.database import Database
from service.events.event import Event, EventType, Published, event_id
from service.model import errors

router = Routes(tags=["webhooks"])
_STREAM = "text/event-stream"
_AT_ONCE = 100
# The database is also polled, because a notification of another replica may be lost, and without LISTEN none arrives.
_POLL_SECONDS = 1.0
_RELAYED_POLL_SECONDS = 10.0
# A comment is sent on a stream that was idle for this time, because proxies close idle connections.
_KEEP_ALIVE_SECONDS = 15.0

_Read = Callable[[int | None], Awaitable[tuple[list[Published], int] | None]]


class Streams(OpenCalls):
    most, most_of_token, readers = 200, 50, 4
    words, error = ("streams", "are open"), errors.TooManyStreamsError


@router.reader(
    "GET /v1/events",
    "Stream the events",
    errors.TooManyStreamsError,
    responses={
        200: {
            "description": "Server-sent events, each a CloudEvent; with `Accept: application/json` a page of them",
            "content": {_STREAM: {"schema": {"type": "string"}, "example": STREAM}},
            "model": EventPage,
        }
    },
    response_class=Response,
)
async def stream_events(
    request: Request,
    database: DatabaseDep,
    exposure: ExposureDep,
    caller: CallerDep,
    *,
    types: Annotated[
        str, Query(max_length=1000, description="Patterns, separated by commas", examples=["job.*"])
    ] = "*",
    table_id: OfTable = None,
    since: Since = None,
    until: Annotated[Until, Query(description="Before this time; for pages only")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=2**62, description="Start after this id. Default: only new events")
    ] = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=2**62, description="Takes precedence over `after`")] = None,
) -> Response:
    """A broken stream resumes at the header `Last-Event-ID`, which every browser sends by itself, if the events are
    still kept. A page starts at the oldest event. `since` moves the start of a stream or page forward."""
    is_stream = _wants_stream(request)
    if is_stream and until is not None:
        raise errors.ParamsInvalidError.of("until", "is for pages only: send `Accept: application/json`")
    start = after if last_event_id is None else last_event_id
    if since is not None:
        start = max(start or 0, await run_in_threadpool(_before, database, since))
    patterns = tuple(part.strip() for part in types.split(","))

    def matches(event: Event) -> bool:
        of_type = any(fnmatchcase(event.type, pattern) for pattern in patterns)
        is_timely = (since is None or event.at >= since) and (until is None or event.at < until)
        return of_type and is_timely and (table_id is None or event.table_id == table_id)

    streams: Streams = request.app.state.streams
    if not is_stream:
        page = await streams.read(_read, database, caller, start or 0)
        found, seq = page or ([], start)
        items = [cloud_event(each, exposure.event_source) for each in found if matches(each.event)]
        return JSONResponse({"items": items, "next_after": seq})
    streams.check(caller)

    async def read(seq: int | None) -> tuple[list[Published], int] | None:
        return await streams.read(_read, database, caller, seq)

    async def stream() -> AsyncIterator[str]:
        with streams.opened(caller):
            async for text in _stream(database, exposure, read, start, matches):
                yield text

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream(), media_type=_STREAM, headers=headers)


def _wants_stream(request: Request) -> bool:
    accepted = request.headers.get("accept", "*/*")
    return "application/json" not in accepted or _STREAM in accepted


def _before(database: Database, since: datetime) -> int:
    with reading(database.engine) as connection:
        return outbox.before(connection, since)


async def _stream(
    database: Database, exposure: Exposure, read: _Read, start: int | None, matches: Any
) -> AsyncIterator[str]:
    """Yields messages until the token or the session ends. At most one page of events is in memory. A slow reader gets
    further events from the database later."""
    loop = asyncio.get_running_loop()
    seq = start
    sent_at = loop.time()
    with database.notifier.listener() as listener:
        if seq is None:
            page = await read(None)
            if page is None:
                return
            _, seq = page
            # The first message tells the client its position. A client that reads the state after this message misses
            # no event.
            yield f"id: {seq}\n"
        yield ": the events of Groundskeeper\n\n"
        while not database.notifier.is_closed:
            listener.forget()
            page = await read(seq)
            if page is None:
                return
            found, seq = page
            for each in found:
                if matches(each.event):
                    yield _message(each, exposure.event_source)
                    sent_at = loop.time()
            if loop.time() - sent_at >= _KEEP_ALIVE_SECONDS:
                # The id moves the client's position forward even if no event passes its filter, so that the client does
                # not resume far back.
                yield f"id: {seq}\n: still here\n\n"
                sent_at = loop.time()
            if len(found) < _AT_ONCE:
                await listener.wait(_RELAYED_POLL_SECONDS if database.notifier.relay else _POLL_SECONDS)


@router.reader("GET /v1/event-types", "List the types of events")
def list_event_types(exposure: ExposureDep) -> ListOf[EventTypeOut]:
    """Returns each type with the JSON Schema of its `data` and an example of the whole event."""
    return ListOf[EventTypeOut].of(CATALOGUE.items(), lambda each: _described(*each, exposure.event_source))


def _described(type_: EventType, entry: Entry, source: str) -> EventTypeOut:
    table = entry.example.get("table")
    event = Event(
        event_id("example", type_.value),
        type_.value,
        datetime(2026, 1, 1, 12, 0, 3, tzinfo=UTC),
        table["id"] if table else None,
        entry.example,
    )
    return EventTypeOut(
        type=type_,
        description=entry.description,
        data_schema=dict(entry.schema),
        example=cloud_event(Published(4711, event), source),
    )


def _read(database: Database, caller: Caller, seq: int | None) -> tuple[list[Published], int] | None:
    """Returns the next events after `seq` and the new position. If `seq` is None, only events from now on are returned.

    The result is None once the caller's token or session is no longer valid.
    """
    with reading(database.engine) as connection:
        if caller.token is not None:
            token = token_store.current(connection, caller.token)
            if token is None or not token.is_valid(database.clock()):
                return None
        if caller.session is not None:
            session = session_store.find(connection, caller.session.id)
            if session is None or not session.is_valid(database.clock()):
                return None
        if seq is None:
            return [], outbox.newest(connection)
        found = outbox.after(connection, seq, _AT_ONCE)
    return found, found[-1].seq if found else seq


def _message(published: Published, source: str) -> str:
    data = json.dumps(cloud_event(published, source), separators=(",", ":"))
    return f"id: {published.seq}\nevent: {published.event.type}\ndata: {data}\n\n"


# The call needs no token, because receivers of OpenLineage events have none.
@router.on(
    f"GET /openlineage/{lineage_facet.NAME}.json", "Read the JSON Schema of the OpenLineage facet `groundskeeper_job`"
)
async def get_lineage_facet_schema() -> dict[str, Any]:
    """The `_schemaURL` of the facet is the `$id` of this schema."""
    return lineage_facet.schema()
