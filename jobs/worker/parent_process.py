"""The service that started a local worker."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time

logger = logging.getLogger(__name__)


def exit_with_parent() -> None:
    """Ends a local worker when the service that started it ends, even if the service was killed."""
    parent = os.environ.get("GROUNDSKEEPER_PARENT_PID")
    if parent is None:
        return

    def watch() -> None:
        _wait_for_end(int(parent))
        logger.warning("the service that started this worker is gone")
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


def _wait_for_end(parent: int) -> None:
    """Returns when the process is no longer the parent of this one. The kernel tells when the parent ends; where it
    cannot, this function looks for the parent every second."""
    with contextlib.suppress(AttributeError, OSError):
        opened = os.pidfd_open(parent)
        try:
            # The parent may have ended before. Then another process may have its number, and must not be waited for.
            if os.getppid() == parent:
                select.select([opened], [], [])
        finally:
            os.close(opened)
    while os.getppid() == parent:
        time.sleep(1.0)
