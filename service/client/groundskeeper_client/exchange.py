"""Rules that both clients follow: about answers, broken connections, and the end of a job."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any, TypeVar

import httpx

from groundskeeper_client.call import Answer, Call
from groundskeeper_client.errors import ApiError, ClientError, NoAnswerError, UnreachableError
from groundskeeper_client.generated import calls
from groundskeeper_client.generated.models import JobDetail, JobOut, JobState
from groundskeeper_client.generated.problems import BY_TYPE
from groundskeeper_client.retries import Retries, is_passing, may_repeat

T = TypeVar("T")

ENDED = {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}
TIMEOUT = httpx.Timeout(60.0, connect=10.0)
# The limit is several times the 15 s after which the service sends a comment on an idle stream.
STREAM_TIMEOUT = httpx.Timeout(45.0, connect=10.0)
_LONGEST_WAIT_SECONDS = 20.0
_FIRST_POLL_SECONDS = 0.2
# A proxy answers with these statuses when its service is unavailable. The service itself also answers some calls with
# the first one.
_OF_PROXIES = {HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def options(url: str, token: str | None) -> dict[str, Any]:
    """Returns the arguments of an httpx client. Raises ClientError if the URL is no address."""
    try:
        address = httpx.URL(url.rstrip("/"))
    except httpx.InvalidURL as error:
        raise ClientError(f"{url!r} is no address: {error}.") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise ClientError(f"{url!r} is no address of a service, such as http://127.0.0.1:8080.")
    if token is not None and (not token.isascii() or not token.isprintable() or " " in token):
        raise ClientError("The token has characters that a token cannot have.")
    headers = {"accept": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    return {
        "base_url": address,
        "headers": headers,
        "timeout": TIMEOUT,
        # Calls to this machine do not go through a proxy.
        "trust_env": address.host not in _LOOPBACK,
        # Without TLS, no certificates are needed. An empty context is used, because it would take longer than a call to
        # read the certificates of all authorities.
        "verify": address.scheme == "https" or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    }


def pause_after(answer: httpx.Response, call: Call[object], retries: Retries, tries: int) -> float | None:
    """Returns the seconds until the call is sent again; None if the answer is final."""
    if not may_repeat(answer.status_code, is_repeatable=call.is_repeatable):
        return None
    return retries.pause(tries, retry_after=answer.headers.get("retry-after"))


def pause_without(error: httpx.TransportError, call: Call[object], retries: Retries, tries: int) -> float | None:
    """Returns the seconds until the call is sent again after it got no answer; None if it must not be sent again."""
    return retries.pause(tries) if call.is_repeatable or not was_sent(error) else None


def was_sent(error: httpx.TransportError) -> bool:
    # Without a connection, the service cannot have received the request.
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def unreachable(error: httpx.TransportError, url: object) -> UnreachableError:
    why = str(error) or type(error).__name__
    return UnreachableError(f"{url} cannot be reached: {why}", was_sent=was_sent(error))


def answered(answer: httpx.Response, call: Call[T]) -> Answer[T]:
    """Returns the decoded answer. Raises ApiError or NoAnswerError. The answer's body must have been read."""
    if not answer.is_success:
        raise error_of(answer)
    if answer.content:
        _check_type(answer, "text/plain" if call.answer is str else "application/json")
    return Answer(call.parsed(answer.content, _where(answer)), dict(answer.headers))


def error_of(answer: httpx.Response) -> ClientError:
    """Returns the error for an answer without success."""
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("type"), str) or "title" not in document:
        why = f"{_where(answer)} answered {answer.status_code} {answer.reason_phrase}."
        return NoAnswerError(why, status=answer.status_code)
    return BY_TYPE.get(document["type"].rpartition("/")[2], ApiError)({"status": answer.status_code, **document})


def is_stream(answer: httpx.Response) -> bool:
    """Returns whether this is a stream of events, and not a refusal. Raises NoAnswerError for a successful answer that
    is not a stream."""
    if answer.is_success:
        _check_type(answer, "text/event-stream")
    return answer.is_success


def refused_stream(answer: httpx.Response) -> ClientError:
    """Returns the error of a refused stream, if another attempt to open the stream may help. Raises any other error.
    The answer's body must have been read."""
    error = error_of(answer)
    if is_passing(answer.status_code) or answer.status_code in _OF_PROXIES:
        return error
    raise error


def wait_for(job: str | JobOut | JobDetail, until: float | None) -> Call[JobDetail]:
    """Returns a call that waits until the job has ended, but not beyond `until` on the monotonic clock, and for 20 s at
    most. A service that is about to stop answers at once."""
    seconds = _LONGEST_WAIT_SECONDS if until is None else max(0.0, until - time.monotonic())
    call = calls.get_job(job if isinstance(job, str) else job.id)
    return replace(call, query={**call.query, "wait_seconds": round(min(seconds, _LONGEST_WAIT_SECONDS), 3)})


def polls(seconds: float) -> Iterator[float]:
    """Yields the least intervals between requests of a job's state: short ones at first, for jobs that end at once."""
    pause = min(_FIRST_POLL_SECONDS, seconds)
    while True:
        yield pause
        pause = min(pause * 1.5, seconds)


def _check_type(answer: httpx.Response, expected: str) -> None:
    """Raises NoAnswerError for another content type, such as that of a proxy's page about an unavailable service."""
    media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != expected:
        what = f"{_where(answer)} answered {answer.status_code} with {media_type or 'no content type'}"
        raise NoAnswerError(f"{what} instead of {expected}, so a proxy has answered, not Groundskeeper.")


def _where(answer: httpx.Response) -> str:
    return str(answer.url.copy_with(query=None, username=None, password=None))
