"""The spans of requests."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobs import tracing
from jobs.logs import add_log_context
from jobs.trace_context import parsed

# Calls that have no span: frequent calls are of no interest, and a stream of events has no end.
_LEFT_OUT = ("/v1/worker/", "/v1/callbacks/", "/v1/events")
_REPORT = "/result"


class Traces:
    """Measures each call of the API while traces are exported. The span of a call is below that of the caller
    (`traceparent`). Among the calls of workers, only reports are measured."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not tracing.is_on() or scope["type"] != "http" or not _is_measured(scope["path"]):
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        given = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")
        with tracing.span(method, parent=given.decode("latin-1") or None, kind="server") as span:
            span.set(http__request__method=method, url__path=scope["path"])
            if ids := parsed(span.traceparent):
                add_log_context(trace_id=f"{ids[0]:032x}")

            async def watch(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set(http__response__status_code=message["status"])
                    if message["status"] >= 500:
                        span.fail(f"status {message['status']}")
                await send(message)

            try:
                await self._app(scope, receive, watch)
            finally:
                if route := getattr(scope.get("route"), "path", None):
                    span.rename(f"{method} {route}")
                    span.set(http__route=str(route))


def _is_measured(path: str) -> bool:
    return path.startswith("/v1/") and (not path.startswith(_LEFT_OUT) or path.endswith(_REPORT))
