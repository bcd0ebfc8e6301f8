"""uvicorn's httptools protocol with limits on what a client may send, and on the time that it takes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.api.errors import ServiceBusyError
from service.api.problems import answer
from service.runtime.connections import Admission, Connections

log = logging.getLogger(__name__)

_MAX_HEAD_BYTES = 64 * 1024
"""The same value as h11's `max_incomplete_event_size` in uvicorn; httptools has no such limit."""

_PROBES = {"/healthz", "/readyz"}


class BoundedHttp(HttpToolsProtocol):
    """Refuses heads and trailers without an end, and slow clients. `connections` limits the number of connections.

    uvicorn itself limits only the pause between two requests. `service.api.middleware.SizeLimit` limits bodies. `busy`
    answers on the connections that are kept for health checks.
    """

    def __init__(self, *args: Any, connections: Connections, busy: ASGIApp, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limiter = connections
        self._busy = busy
        self._unfinished_bytes = 0
        # A message begins with its first byte, and ends with its last one.
        self._is_in_message = False
        self._client_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        match self._limiter.admit(self, self.client[0] if self.client else ""):
            case Admission.NO:
                self.abort()
            case Admission.ONLY_PROBES:
                self.app = self._busy
        self._allow_client(self._limiter.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.close(self)
        self._stop_client_timer()
        self._stop_reading_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._client_timer is None and not self._is_in_message:
            # The first bytes of a request on an idle connection.
            self._allow_client(self._limiter.limits.head_seconds)
        self._unfinished_bytes += len(data)
        super().data_received(data)
        if self._unfinished_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        self._is_in_message = True
        self._limiter.renew_date(self.server_state)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._unfinished_bytes = 0
        self._allow_client(self._limiter.limits.body_seconds)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished_bytes = 0
        self._is_in_message = False
        self._stop_client_timer()
        if self.cycle.response_complete:
            # The request was answered before its end, so uvicorn does not limit the pause after it.
            self._allow_client(self.timeout_keep_alive)
        else:
            self._limiter.work(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self._limiter.wait(self)
        if self.transport.is_closing():
            # The connection closes only when the client has read all of the answer.
            self._allow_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._allow_reading()

    def resume_writing(self) -> None:
        self._stop_reading_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._allow_reading()

    def _allow_client(self, seconds: float) -> None:
        self._stop_client_timer()
        self._client_timer = self.loop.call_later(seconds, self.abort)

    def _stop_client_timer(self) -> None:
        if self._client_timer is not None:
            self._client_timer.cancel()
            self._client_timer = None

    def _allow_reading(self) -> None:
        self._stop_reading_timer()
        self._reading_timer = self.loop.call_later(self._limiter.limits.read_seconds, self.abort)

    def _stop_reading_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None


def only_probes(app: ASGIApp) -> ASGIApp:
    """Returns an application that answers health checks like `app`, and refuses all other requests as busy."""

    async def busy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await app(scope, receive, send)
        else:
            error = ServiceBusyError("Too many connections are open.")
            await answer(error, instance=scope["path"], headers={"Connection": "close"})(scope, receive, send)

    return busy


class AcceptErrors:
    """Handles errors of the event loop. When descriptors have run out, asyncio reports connections that it cannot
    accept a thousand times a second. They are logged only once a minute."""

    SECONDS = 60.0

    def __init__(self) -> None:
        self._logged_at: float | None = None

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if "accept" not in context["message"]:
            loop.default_exception_handler(context)
        elif self._logged_at is None or loop.time() - self._logged_at >= self.SECONDS:
            self._logged_at = loop.time()
            log.error("Connections cannot be accepted: %s", context.get("exception"))
