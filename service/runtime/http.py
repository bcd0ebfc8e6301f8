"""uvicorn's httptools protocol with a limit on the bytes that the parser buffers for one request."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HEAD_BYTES = 64 * 1024
"""The same value as h11's `max_incomplete_event_size` in uvicorn; httptools has no such limit."""


class BoundedHttp(HttpToolsProtocol):
    """Refuses endless heads and trailers. `service.api.middleware.SizeLimit` limits bodies."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unfinished_bytes = 0

    def data_received(self, data: bytes) -> None:
        self._unfinished_bytes += len(data)
        super().data_received(data)
        if self._unfinished_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        self._unfinished_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished_bytes = 0
        super().on_message_complete()
