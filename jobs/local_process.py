"""The agreement of a local worker with the service that starts it. The module needs the standard library only."""

from __future__ import annotations

import os
import socket
import uuid

STANDBY = "GROUNDSKEEPER_STANDBY"
"""The environment variable of a worker that takes no jobs until it gets a line on its standard input."""


def new_worker_id() -> str:
    """Returns an id for a worker in this process."""
    return f"{ids_of_process(os.getpid())}{uuid.uuid4().hex[:6]}"


def ids_of_process(process: int) -> str:
    """Returns the beginning of the ids of all workers that have run in this process of this machine."""
    return f"{socket.gethostname()}-{process}-"
