"""The thread that sends webhooks. The thread has its own event loop, so that a slow receiver delays nothing else."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from service.delivery.dispatcher import Dispatcher
from service.delivery.guarded_loop import GuardedEventLoop
from service.events.notifier import Notifier
from service.model.errors import DatabaseUnavailableError
from service.model.task_health import TaskHealth

log = logging.getLogger(__name__)

_NAME = "webhooks"
# When the service stops, attempts in flight get this much time.
_STOP_SECONDS = 5.0
_DATABASE_RETRY_SECONDS = 1.0
_BATCH_SECONDS = 0.02
# The longest wait while no delivery is pending. The notifier is called for commits of all processes to SQLite.
_IDLE_SECONDS = 5.0


class DispatchThread:
    """Runs the dispatcher when it is notified, and every `poll_seconds` for events of other replicas and for due
    retries. The thread ends when the notifier is closed. `make` builds the dispatcher inside the loop; its argument is
    a function that wakes the loop."""

    def __init__(
        self,
        notifier: Notifier,
        make: Callable[[Callable[[], None]], Dispatcher],
        *,
        poll_seconds: float,
        tasks: TaskHealth | None = None,
    ) -> None:
        self._notifier = notifier
        self._make = make
        self._poll_seconds = poll_seconds
        self._tasks = tasks or TaskHealth()
        self._thread = threading.Thread(target=self._run_in_loop, name=_NAME, daemon=True)

    def start(self) -> None:
        self._tasks.expect(_NAME, self._poll_seconds)
        self._thread.start()

    def join(self) -> None:
        """Waits until the attempts in flight have ended or were abandoned."""
        if self._thread.ident is not None:
            self._thread.join(2 * _STOP_SECONDS)

    def _run_in_loop(self) -> None:
        with asyncio.Runner(loop_factory=GuardedEventLoop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        with self._notifier.listener() as listener:
            dispatcher = self._make(listener.wake)
            listener.may_find = lambda: not dispatcher.is_idle()
            while not self._notifier.is_closed:
                listener.forget()
                try:
                    did_something = await dispatcher.run_once()
                except DatabaseUnavailableError as error:
                    log.warning("webhooks: %s", error)
                    self._tasks.ended(_NAME)
                    await asyncio.sleep(_DATABASE_RETRY_SECONDS)
                    continue
                self._tasks.ended(_NAME, fails=False)
                if did_something:
                    # Results that arrive within this time are recorded in one batch.
                    await asyncio.sleep(_BATCH_SECONDS)
                else:
                    await listener.wait(_IDLE_SECONDS if dispatcher.is_idle() else self._poll_seconds)
            try:
                await dispatcher.stop(_STOP_SECONDS)
            except DatabaseUnavailableError as error:
                # The claims of abandoned attempts expire, so deliveries whose result was not recorded are sent again.
                log.warning("webhooks: %s", error)
