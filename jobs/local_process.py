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
    """Returns how the ids begin of the workers that this process of this machine is, or was."""
    return f"{socket.gethostname()}-{process}-"
