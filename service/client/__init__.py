"""A typed client of the service's REST API. It needs nothing of the service but httpx and msgspec.

`calls` and `models` are generated from the API's document (`python -m tests.client_generator`), the rest is not.
"""

from service.client.async_client import AsyncClient
from service.client.call import Answer, Call
from service.client.client import Client
from service.client.errors import (
    ApiError,
    ClientError,
    JobEndedError,
    NoAnswerError,
    UnreachableError,
    WaitedTooLongError,
)
from service.client.event_stream import Event
from service.client.generated import calls, models, problems
from service.client.model import typed
from service.client.retries import Retries

__all__ = [
    "Answer",
    "ApiError",
    "AsyncClient",
    "Call",
    "Client",
    "ClientError",
    "Event",
    "JobEndedError",
    "NoAnswerError",
    "Retries",
    "UnreachableError",
    "WaitedTooLongError",
    "calls",
    "models",
    "problems",
    "typed",
]
