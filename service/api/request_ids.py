"""The id of each request: in its answer, in the log and in the audit trail."""

from __future__ import annotations

import re
import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobs.logs import add_log_context

HEADER = "X-Request-Id"

_NAME = HEADER.lower().encode()
_GIVEN = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_ABOUT = re.compile(r"/(tables|jobs|leases)/((?:tbl|job)_[0-9a-f]{1,32})(?=/|$)")


class RequestIds:
    """Takes the id from the header `X-Request-Id`, or makes a new id if the header is missing or malformed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _NAME), b"")
        request_id = given if _GIVEN.fullmatch(given) else f"req_{secrets.token_hex(8)}".encode()

        async def name(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [each for each in message.get("headers", ()) if each[0].lower() != _NAME]
                message = {**message, "headers": [*headers, (_NAME, request_id)]}
            await send(message)

        about = _ABOUT.match(scope["path"], 3) or _ABOUT.match(scope["path"], len("/v1/worker"))
        # The context is not reset, because the server may log an error in the same task after the application has
        # returned.
        add_log_context(request_id=request_id.decode(), **_ids(about))
        await self._app(scope, receive, name)


def _ids(about: re.Match[str] | None) -> dict[str, str]:
    if about is None:
        return {}
    return {"table_id" if about[1] == "tables" else "job_id": about[2]}
