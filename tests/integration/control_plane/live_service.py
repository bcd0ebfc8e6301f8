"""Serves the API of a context in this process, on a real socket."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from service.api.app import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.api.dependencies import AppContext


def served(app_context: AppContext) -> Iterator[str]:
    """Serves the API while a fixture lasts, and yields its URL."""
    opened = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(app_context), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    yield f"http://127.0.0.1:{opened.getsockname()[1]}"
    app_context.database.notifier.close()
    server.should_exit = True
    thread.join(timeout=10)
    assert not thread.is_alive()
