"""The connection to the service. It uses the typed client, but returns answers as JSON, and its errors end a
command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from types import NoneType
from typing import Any

from groundskeeper_client import ApiError, Call, Client, ClientError, Retries, UnreachableError, problems
from service.cli.client import stored_contexts
from service.cli.client.failure import CommandError, ExitCode

DEFAULT_URL = "http://127.0.0.1:8080"
MOST_ON_PAGE = 500
_EVERY = 10**9
# The retries end soon, because a person waits.
_RETRIES = Retries(times=3, first=0.2, most=1.0, longest=2.0)

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Patience(Retries):
    """Retries for ten minutes. `away` is called after the service has been unavailable for half a second."""

    away: Callable[[], None]
    times: int = 600
    first: float = 0.5
    most: float = 1.0

    def pause(self, tries: int, *, retry_after: str | None = None) -> float | None:
        if tries == 2:
            self.away()
        return super().pause(tries, retry_after=retry_after)


class Connection(AbstractContextManager["Connection"]):
    """The connection to the service. Answers are JSON as the API returns it. Every failure is a CommandError."""

    def __init__(self, url: str, token: str | None) -> None:
        try:
            self._client = Client(url, token, retries=_RETRIES)
        except ClientError as error:
            hint = f"Set GROUNDSKEEPER_URL or --url to an address such as {DEFAULT_URL}."
            raise CommandError.usage(str(error), hint) from error
        self.url = self._client.url

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(self, call: Call[Any], retries: Retries | None = None) -> Json:
        """Returns the answer, an empty object if it has no body."""
        return self.tagged(call, retries)[0]

    def tagged(self, call: Call[Any], retries: Retries | None = None) -> tuple[Json, str | None]:
        """Returns the answer, and its entity tag for `if_match`."""
        in_json: Call[Any] = call if call.answer is NoneType else replace(call, answer=dict)
        with _failing(may_be_repeated=call.with_key("any").is_repeatable):
            answer = self._client.exchange(in_json, retries=retries)
        return answer.value or {}, answer.headers.get("etag")

    def text(self, call: Call[str]) -> str:
        """Returns an answer that is plain text."""
        with _failing():
            return self._client.exchange(call).value

    def items(self, call: Call[Any], limit: int) -> Json:
        """Returns up to `limit` items of a list as one page. Its other members are those of the last page that was
        read."""
        items: list[Json] = []
        while True:
            size = min(limit - len(items), MOST_ON_PAGE)
            page = self.send(replace(call, query={**call.query, "limit": size}))
            items += page["items"]
            if page["next_cursor"] is None or len(items) >= limit:
                return {**page, "items": items}
            call = call.at(page["next_cursor"])

    def every(self, call: Call[Any]) -> list[Json]:
        """Returns all items of a list, whether it has pages or not."""
        found: list[Json] = (self.items(call, _EVERY) if "cursor" in call.query else self.send(call))["items"]
        return found

    def events(self, types: str, *, table_id: str | None, after: int | None, retries: Retries) -> Iterator[Json]:
        """Yields events without end. If the connection breaks, connects again, until all retries have failed in a
        row."""
        with _failing():
            for event in self._client.events(types, table_id=table_id, after=after, retries=retries):
                yield dict(event.document)


def connected(url: str | None, token_file: Path | None) -> Connection:
    """Returns a connection to the service that these options or variables name, or else to the service of the context
    in use."""
    return Connection(*address_and_token(url, token_file))


def address_and_token(url: str | None, token_file: Path | None) -> tuple[str, str | None]:
    """Returns the address of the service, and the token for it. The token of a context is only sent to the context's
    address."""
    context = None if url else stored_contexts.read().in_use
    token = token_of(token_file)
    if token is None and context is not None and context.token_file is not None:
        token = token_of(Path(context.token_file))
    return url or (context.url if context else DEFAULT_URL), token


def token_of(file: Path | None) -> str | None:
    """Returns the token of the file, else that of GROUNDSKEEPER_TOKEN. A token is never an argument, because every user
    of the machine can see arguments."""
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


@contextmanager
def _failing(*, may_be_repeated: bool = True) -> Iterator[None]:
    """Turns an error of the client into the failure of a command."""
    try:
        yield
    except ApiError as error:
        # A service that is about to stop, or has just started, answers with this status for a moment.
        is_passing = error.status == HTTPStatus.SERVICE_UNAVAILABLE
        raise CommandError(_code(error), error.document, is_passing=is_passing) from error
    except UnreachableError as error:
        hint = "Start the service with `groundskeeper serve`, or set GROUNDSKEEPER_URL or --url to its address."
        if error.was_sent and not may_be_repeated:
            hint = "The service may have carried out the call. Check this before you repeat the command."
        document = {"title": "The service cannot be reached", "detail": str(error), "hint": hint}
        raise CommandError(ExitCode.UNREACHABLE, document, is_passing=True) from error
    except ClientError as error:
        hint = "Set GROUNDSKEEPER_URL or --url to the address of the service."
        title = "This is not an answer of Groundskeeper"
        raise CommandError.of(ExitCode.FAILED, title, str(error), hint) from error


def _code(error: ApiError) -> ExitCode:
    if error.status == HTTPStatus.NOT_FOUND:
        return ExitCode.NOT_FOUND
    # Other types with the same statuses have other causes, for example a forbidden path.
    is_rejected = isinstance(error, problems.UnauthenticatedError | problems.ForbiddenError)
    return ExitCode.UNAUTHORISED if is_rejected else ExitCode.FAILED
