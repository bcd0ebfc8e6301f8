"""A typed client of the service's REST API. The client depends on httpx and msgspec only.

The package `generated` has the calls, models and errors of the API's document. It also has `AsyncClient`, which is the
`Client` for event loops.
"""

from groundskeeper_client.call import Answer, Call
from groundskeeper_client.client import Client
from groundskeeper_client.errors import (
    ApiError,
    ClientError,
    JobEndedError,
    NoAnswerError,
    UnreachableError,
    WaitedTooLongError,
)
from groundskeeper_client.event_stream import Event
from groundskeeper_client.generated import calls, models, problems
from groundskeeper_client.generated.async_client import AsyncClient
from groundskeeper_client.model import typed
from groundskeeper_client.retries import Retries

__version__ = "0.1.0"

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
