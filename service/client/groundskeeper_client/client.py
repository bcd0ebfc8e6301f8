"""The client for programs without an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar
from uuid import uuid4

import httpx

from groundskeeper_client import exchange
from groundskeeper_client.call import Answer, Call, Page
from groundskeeper_client.errors import JobEndedError, WaitedTooLongError
from groundskeeper_client.event_stream import Event, Messages
from groundskeeper_client.generated.models import JobDetail, JobOut, JobState
from groundskeeper_client.retries import Retries

T = TypeVar("T")


class Client:
    """A connection to a service. Every failure is a ClientError. Several threads may share it."""

    def __init__(
        self, url: str = "http://127.0.0.1:8080", token: str | None = None, *, retries: Retries | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(**exchange.options(url, token))
        self._retries = retries or Retries()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[T], *, retries: Retries | None = None) -> T:
        """Sends a call, repeats it after a failure if that does no harm, and returns the body of the answer.

        `retries` replaces the client's retries for this call. Raises ApiError (a class of `problems` for each type),
        UnreachableError or NoAnswerError.
        """
        return self.exchange(call, retries=retries).value

    def exchange(self, call: Call[T], *, retries: Retries | None = None) -> Answer[T]:
        """Sends a call as `send` does, and returns the answer with its headers, such as `etag`."""
        call, retries = call.with_key(uuid4().hex), retries or self._retries
        tries = 0
        while True:
            tries += 1
            try:
                answer = self._http.send(self._http.build_request(**call.for_httpx()))
                pause = exchange.pause_after(answer, call, retries, tries)
                if pause is None:
                    return exchange.answered(answer, call)
            except httpx.TransportError as error:
                pause = exchange.pause_without(error, call, retries, tries)
                if pause is None:
                    raise exchange.unreachable(error, self.url) from error
            time.sleep(pause)

    def items(self, call: Call[Page[T]]) -> Iterator[T]:
        """Yields the items of a list, page after page."""
        while True:
            page = self.send(call)
            yield from page.items
            if page.next_cursor is None:
                return
            call = call.at(page.next_cursor)

    def wait_for(
        self,
        job: str | JobOut | JobDetail,
        *,
        seconds: float | None = None,
        poll_seconds: float = 2.0,
        check: bool = True,
    ) -> JobDetail:
        """Waits until a job has ended. The wait has no limit if `seconds` is None. The state of the job is requested
        every `poll_seconds`, at first more often.

        Raises JobEndedError if the job failed or was cancelled, unless `check` is False. Also raises WaitedTooLongError
        and the errors of `send`.
        """
        end = None if seconds is None else time.monotonic() + seconds
        for pause in exchange.polls(poll_seconds):
            began = time.monotonic()
            now = self.send(exchange.wait_for(job, end))
            if now.state in exchange.ENDED:
                if check and now.state is not JobState.SUCCEEDED:
                    raise JobEndedError(now)
                return now
            rest = max(0.0, began + pause - time.monotonic())
            if end is not None and time.monotonic() + rest >= end:
                raise WaitedTooLongError(now, seconds or 0.0)
            time.sleep(rest)
        raise AssertionError

    def events(
        self,
        types: str = "*",
        *,
        table_id: str | None = None,
        after: int | None = None,
        retries: Retries | None = None,
        heard: Callable[[], object] | None = None,
    ) -> Iterator[Event]:
        """Yields events as they happen, without end. A broken connection is opened again: after the first line of the
        stream, which arrives within 15 s, no event is lost or repeated.

        `types` are patterns, separated by commas. `after` is the `sequence` of the last known event; by default the
        stream begins with new events. `retries` replaces the client's retries for this stream. `heard` is called at
        each line, and the service sends a line at least every 15 s. Raises the errors of `send`, and UnreachableError
        if all retries in a row have failed.
        """
        messages = Messages(after)
        retries = retries or self._retries
        tries = 0
        while True:
            tries += 1
            request = self._http.build_request(
                "GET",
                "/v1/events",
                params={"types": types, **({"table_id": table_id} if table_id else {})},
                headers={"accept": "text/event-stream", **_resumed(messages.position)},
                timeout=exchange.STREAM_TIMEOUT,
            )
            failure: Exception | None = None
            retry_after = None
            try:
                answer = self._http.send(request, stream=True)
                try:
                    if exchange.is_stream(answer):
                        for line in answer.iter_lines():
                            tries = 1
                            if heard is not None:
                                heard()
                            event = messages.event(line)
                            if event is not None:
                                yield event
                    else:
                        answer.read()
                        failure, retry_after = exchange.refused_stream(answer), answer.headers.get("retry-after")
                finally:
                    answer.close()
            except httpx.TransportError as error:
                failure = exchange.unreachable(error, self.url)
            messages.lost()
            pause = retries.pause(tries, retry_after=retry_after)
            if pause is None:
                raise failure or exchange.unreachable(httpx.ReadError("the stream ended"), self.url)
            time.sleep(pause)


def _resumed(position: int | None) -> dict[str, str]:
    return {} if position is None else {"last-event-id": str(position)}
