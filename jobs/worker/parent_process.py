"""The service that started a local worker."""

from __future__ import annotations

import logging
import os
import threading
import time

logger = logging.getLogger(__name__)


def exit_with_parent() -> None:
    """Ends a local worker when the service that started it ends, even if the service was killed."""
    parent = os.environ.get("GROUNDSKEEPER_PARENT_PID")
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        logger.warning("the service that started this worker is gone")
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
