"""The thread that sends webhooks, with an event loop of its own: a slow receiver holds up nobody else."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from service.model.errors import DatabaseUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.delivery.dispatcher import Dispatcher
    from service.events.notifier import Notifier

log = logging.getLogger(__name__)

# What is under way when the service stops gets so long to end.
_PATIENCE_SECONDS = 5.0
_AWAY_SECONDS = 1.0
_GATHER_SECONDS = 0.02


class DispatchThread:
    """Woken by the bell; looks by itself every `poll_seconds`, for what other replicas published and for what is due
    again. Ends when the bell is closed. `make` builds the dispatcher inside the loop; it gets what wakes the loop."""

    def __init__(
        self, notifier: Notifier, make: Callable[[Callable[[], None]], Dispatcher], *, poll_seconds: float
    ) -> None:
        self._notifier = notifier
        self._make = make
        self._poll_seconds = poll_seconds
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="webhooks", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Returns when what was under way has ended or was let go of."""
        if self._thread.ident is not None:
            self._thread.join(2 * _PATIENCE_SECONDS)

    async def _run(self) -> None:
        with self._notifier.listener() as listener:
            dispatcher = self._make(listener.wake)
            while not self._notifier.is_closed:
                listener.forget()
                try:
                    did_something = await dispatcher.run_once()
                except DatabaseUnavailableError as error:
                    log.warning("webhooks: %s", error)
                    await asyncio.sleep(_AWAY_SECONDS)
                    continue
                if did_something:
                    # What comes back meanwhile is recorded at one go.
                    await asyncio.sleep(_GATHER_SECONDS)
                else:
                    await listener.wait(self._poll_seconds)
            try:
                await dispatcher.stop(_PATIENCE_SECONDS)
            except DatabaseUnavailableError as error:
                # The claims run out, and what was not recorded is sent again.
                log.warning("webhooks: %s", error)
