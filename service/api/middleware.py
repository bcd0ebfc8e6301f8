"""ASGI middleware: the limit on the size of a request, the audit log of changing calls, and latencies."""

from __future__ import annotations

import json
import logging
import time
from http import HTTPStatus

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.audit_trail import AuditTrail
from service.api.dependencies import LOGIN_CALLBACK_PATH
from service.api.errors import ServiceBusyError
from service.api.problems import answer
from service.api.statuses import status_of
from service.db import audit_record, turns
from service.metrics.process_metrics import ProcessMetrics
from service.model import call_times
from service.model.call_times import CallTimes
from service.model.errors import GroundskeeperError, RequestTooLargeError

audit = logging.getLogger("groundskeeper.audit")

READS = {"GET", "HEAD", "OPTIONS"}
_MOST_BODIES = 8
_FREQUENT_PATHS = ("/v1/worker/", "/v1/callbacks/", "/v1/lineage")


class SizeLimit:
    """Reads the whole body before the call. Refuses a body above the limit, and any body while the bodies of other
    requests take `_MOST_BODIES` times the limit in memory."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in READS:
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        body = bytearray()
        try:
            has_more = True
            self._check(int(announced) if announced.isdigit() else 0)
            while has_more:
                message = await receive()
                if message["type"] != "http.request":
                    return  # The caller has disconnected.
                part = message.get("body", b"")
                self._held += len(part)
                body += part
                self._check(len(body))
                has_more = bool(message.get("more_body"))
            waiting: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

            async def replay() -> Message:
                return waiting.pop() if waiting else await receive()

            await self._app(scope, replay, send)
        except (RequestTooLargeError, ServiceBusyError) as error:
            # The connection is closed, because the unread rest of the body would be taken for the next request.
            await answer(error, instance=scope["path"], headers={"Connection": "close"})(scope, receive, send)
        finally:
            self._held -= len(body)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise RequestTooLargeError(f"The limit is {self._max_bytes} bytes.")
        if self._held > _MOST_BODIES * self._max_bytes:
            raise ServiceBusyError("Too many large requests have arrived at once.")


class AuditLog:
    """Logs one line of JSON for each call that may change something: caller, path and status. Bodies are not logged.
    The call's entry in the audit trail is written before the call is answered.

    The frequent calls of workers, writers and readers are logged at the level DEBUG, and have no entry in the audit
    trail.
    """

    def __init__(self, app: ASGIApp, trail: AuditTrail) -> None:
        self._app = app
        self._trail = trail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (scope["method"] in READS and scope["path"] != LOGIN_CALLBACK_PATH):
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        started = time.monotonic()
        is_frequent = scope["path"].startswith(_FREQUENT_PATHS)
        record = None if is_frequent else self._trail.begin(scope)
        # The status if an unexpected exception is raised; it is answered outside of this middleware.
        status = int(status_of(GroundskeeperError))
        head: Message | None = None

        async def watch(message: Message) -> None:
            nonlocal status, head
            if message["type"] == "http.response.start":
                status = message["status"]
                if record is not None:
                    # The head is sent with the body, because the type of the problem is known only then.
                    head = message
                    return
            elif record is not None and head is not None:
                problem = state.get("problem") or _problem_in(message, status)
                if not self._trail.is_complete(record, status, problem):
                    await run_in_threadpool(self._trail.end, record, status, problem)
                if record.entity_tag is not None and status < HTTPStatus.BAD_REQUEST:
                    MutableHeaders(scope=head)["ETag"] = record.entity_tag
                held, head = head, None
                await send(held)
            await send(message)

        try:
            with audit_record.kept_by(record):
                await self._app(scope, receive, watch)
        except Exception:
            if record is not None:
                await run_in_threadpool(self._trail.end, record, status, GroundskeeperError.type)
            raise
        finally:
            level = logging.DEBUG if is_frequent else logging.INFO
            if audit.isEnabledFor(level):
                caller = state.get("caller")
                line = {
                    "who": caller.name if caller else None,
                    "role": caller.role.value if caller else None,
                    "from": scope["client"][0] if scope.get("client") else None,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "milliseconds": round((time.monotonic() - started) * 1000),
                }
                audit.log(level, json.dumps(line))


def _problem_in(message: Message, status: int) -> str | None:
    if status < HTTPStatus.BAD_REQUEST:
        return None
    try:
        return str(json.loads(message.get("body", b""))["type"]).rpartition("/")[2]
    except (ValueError, KeyError, TypeError):
        return None


class Latencies:
    """Measures the time until the head of each answer, by the template of the route. A header of the answer has this
    time and its parts, so that a caller can distinguish them from the time of the network."""

    def __init__(self, app: ASGIApp, metrics: ProcessMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        is_answered = False

        def answered(status: int) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self._metrics.answered(_route(scope), scope["method"], status, time.monotonic() - started)

        times = CallTimes()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered(message["status"])
                MutableHeaders(scope=message)["Server-Timing"] = times.header()
            await send(message)

        awaited, measured = turns.is_call.set(True), call_times.current.set(times)
        try:
            await self._app(scope, receive, watch)
        except Exception:
            # The error is answered outside of this middleware.
            answered(int(status_of(GroundskeeperError)))
            raise
        finally:
            turns.is_call.reset(awaited)
            call_times.current.reset(measured)


def _route(scope: Scope) -> str:
    """Returns the template of the route, one template for all static files, or `none`. The path itself must not be a
    label of metrics, because callers can send any number of paths."""
    route = scope.get("route")
    return str(getattr(route, "path", None) or "none")
