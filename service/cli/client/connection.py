"""The connection to the service's REST API. It repeats calls that a lost connection broke, if that does no harm."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

from service.cli.client.failure import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

DEFAULT_URL = "http://127.0.0.1:8080"
MOST_ON_PAGE = 500
_PAUSES_SECONDS = (0.2, 0.5, 1.0)
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
# The service sends a sign of life every 15 s.
_SILENCE_SECONDS = 45.0
# Repeating these has the effect of one call.
_REPEATABLE = {"GET", "PUT"}
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_REJECTED = {"/problems/unauthenticated", "/problems/forbidden"}

Json = dict[str, Any]


class Connection:
    """Answers are JSON as the API returns it. Every failure is a CommandError."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        try:
            address = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise CommandError.usage(f"{url!r} is no address: {error}.", "Set GROUNDSKEEPER_URL or --url.") from error
        if address.scheme not in ("http", "https") or not address.host:
            raise CommandError.usage(f"{url!r} is no address of a service.", f"Give one such as {DEFAULT_URL}.")
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        # No proxy leads to this machine.
        self._http = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=address.host not in _LOOPBACK)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, /, **params: Any) -> Json:
        return self.call("GET", path, params=params)

    def tagged(self, path: str) -> tuple[Json, str | None]:
        """Returns the answer to a GET, and its entity tag for `if_match`."""
        answer = self._send("GET", path)
        return _content(answer), answer.headers.get("ETag")

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        key: str | None = None,
        if_match: str | None = None,
    ) -> Json:
        """Returns the answer, an empty object if it has no body. `key` is an Idempotency-Key; with `if_match` the
        service refuses to update what has changed meanwhile."""
        headers = {
            **({"Idempotency-Key": key} if key else {}),
            **({"If-Match": if_match} if if_match else {}),
        }
        return _content(self._send(method, path, body=body, params=params, headers=headers))

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        headers = dict(headers or {})
        if method != "GET":
            # Without tokens the service takes only calls that no web page can make by itself.
            headers["Content-Type"] = "application/json"
        # The second update would find the change of the first.
        is_repeatable = (method in _REPEATABLE and "If-Match" not in headers) or "Idempotency-Key" in headers
        request = self._http.build_request(method, self.url + path, json=body, params=given, headers=headers)
        for pause in (*_PAUSES_SECONDS, None):
            try:
                return self._http.send(request)
            except httpx.TransportError as error:
                # The service has not got a request that was never sent.
                was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if pause is None or (was_sent and not is_repeatable):
                    raise self._unreachable(error, was_sent=was_sent and not is_repeatable) from error
                time.sleep(pause)
        raise AssertionError

    def items(self, path: str, /, *, limit: int, **params: Any) -> Json:
        """Returns up to `limit` items of a list of pages, as one page of the API: `items` and `next_cursor`."""
        items: list[Json] = []
        cursor: str | None = None
        while True:
            page = self.get(path, limit=min(limit - len(items), MOST_ON_PAGE), cursor=cursor, **params)
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None or len(items) >= limit:
                return {"items": items, "next_cursor": cursor}

    @contextmanager
    def stream(self, path: str, last_id: str | None, **params: Any) -> Iterator[Iterator[str]]:
        """Opens a stream of server-sent events; yields its lines."""
        given = {name: value for name, value in params.items() if value is not None}
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        timeout = httpx.Timeout(_SILENCE_SECONDS, connect=5.0)
        try:
            with self._http.stream("GET", self.url + path, params=given, headers=headers, timeout=timeout) as answer:
                if answer.status_code != HTTPStatus.OK:
                    answer.read()
                    _content(answer)
                yield answer.iter_lines()
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.TransportError, *, was_sent: bool = False) -> CommandError:
        why = str(error) or type(error).__name__
        hint = "Start it with `groundskeeper serve`, or set GROUNDSKEEPER_URL or --url to its address."
        if was_sent:
            hint = "It may have done what was asked: look before you repeat the command."
        document = {"title": "The service cannot be reached", "detail": f"{self.url}: {why}", "hint": hint}
        return CommandError(ExitCode.UNREACHABLE, document, is_passing=True)


def token_of(file: Path | None) -> str | None:
    """Returns the token of the file, else that of GROUNDSKEEPER_TOKEN. It is never an argument, which every user of the
    machine can see."""
    if file is None:
        token, source = os.environ.get("GROUNDSKEEPER_TOKEN", ""), "GROUNDSKEEPER_TOKEN"
    else:
        source = str(file)
        try:
            token = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise CommandError.usage(f"The token file {file} cannot be read: {why}.") from error
    token = token.strip()
    if not token:
        if file is not None:
            raise CommandError.usage(f"The token file {file} is empty.")
        return None
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError.usage(f"{source} does not contain a token.", "`groundskeeper token create` prints one.")
    return token


def _content(answer: httpx.Response) -> Json:
    if answer.status_code == HTTPStatus.NO_CONTENT:
        return {}
    try:
        content = answer.json()
    except ValueError:
        content = None
    if answer.is_success and isinstance(content, dict):
        return content
    if not isinstance(content, dict) or "title" not in content:
        raise CommandError.of(
            ExitCode.FAILED,
            "This is not an answer of Groundskeeper",
            f"{answer.url.copy_with(query=None)} answered {answer.status_code} {answer.reason_phrase}.",
            "Set GROUNDSKEEPER_URL or --url to the address of the service.",
        )
    # A service that stops, or has just started, answers so for a moment.
    is_passing = answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    raise CommandError(_code(answer.status_code, str(content.get("type"))), content, is_passing=is_passing)


def _code(status: int, type_: str) -> ExitCode:
    if status == HTTPStatus.NOT_FOUND:
        return ExitCode.NOT_FOUND
    # Other answers with these statuses are about a path, for example.
    return ExitCode.UNAUTHORISED if type_ in _REJECTED else ExitCode.FAILED
