"""Clients that wait while the service is unavailable."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TypeVar
from uuid import uuid4

from groundskeeper_client import ApiError, AsyncClient, Client, ClientError, NoAnswerError, Retries, UnreachableError
from groundskeeper_client.call import Answer, Call
from groundskeeper_client.retries import is_passing

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_SECONDS = 600.0
"""Time for which the service may be unavailable before a task fails."""
PAUSE_SECONDS = 5.0


class Patience:
    """Distinguishes an outage, which passes, from a refusal."""

    def __init__(self) -> None:
        self._since: float | None = None

    def restart(self) -> None:
        """Ends the outage: the service has answered."""
        self._since = None

    def is_over(self, error: ClientError) -> bool:
        if not _is_of_outage(error):
            return True
        if self._since is None:
            log.warning("Trying again: %s", error)
            self._since = time.monotonic()
        return time.monotonic() - self._since >= PATIENCE_SECONDS


class PatientClient(Client):
    """A client whose repeatable calls wait for the end of an outage. Each call has the whole time limit."""

    def exchange(self, call: Call[T], *, retries: Retries | None = None) -> Answer[T]:
        call, patience = call.with_key(uuid4().hex), Patience()
        while True:
            try:
                return super().exchange(call, retries=retries)
            except ClientError as error:
                if not call.is_repeatable or patience.is_over(error):
                    raise
            time.sleep(PAUSE_SECONDS)


class PatientAsyncClient(AsyncClient):
    """The same client as `PatientClient`, for an event loop."""

    async def exchange(self, call: Call[T], *, retries: Retries | None = None) -> Answer[T]:
        call, patience = call.with_key(uuid4().hex), Patience()
        while True:
            try:
                return await super().exchange(call, retries=retries)
            except ClientError as error:
                if not call.is_repeatable or patience.is_over(error):
                    raise
            await asyncio.sleep(PAUSE_SECONDS)


def _is_of_outage(error: ClientError) -> bool:
    if isinstance(error, NoAnswerError) and error.status is None:
        # A proxy that does not reach its service may answer with a page of its own and the status 200.
        return True
    if isinstance(error, ApiError | NoAnswerError):
        # The service refuses a call with 429 if the token already has too many calls.
        return error.status is not None and (error.status >= 500 or is_passing(error.status))
    return isinstance(error, UnreachableError)
