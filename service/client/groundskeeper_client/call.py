"""A call of the API as a value. A function in `calls` makes the call, and a client of either kind sends the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from groundskeeper_client.errors import NoAnswerError
from groundskeeper_client.model import described

T_co = TypeVar("T_co", covariant=True)

KEY_HEADER = "idempotency-key"


@dataclass(frozen=True)
class Call(Generic[T_co]):
    """A call. `answer` is the type of the answer's body: a model, `str` for plain text, or `NoneType` for none. Members
    of `query` and `headers` that are None are not sent."""

    method: str
    path: str
    answer: type[T_co]
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None

    @property
    def is_repeatable(self) -> bool:
        """Whether the call has the same effect if it is sent twice."""
        # A second call with If-Match would fail, because the first one has changed the state.
        has_condition = any(name.lower() == "if-match" and value for name, value in self.headers.items())
        return (self.method in ("GET", "PUT") and not has_condition) or bool(self.headers.get(KEY_HEADER))

    def with_key(self, key: str) -> Call[T_co]:
        """Returns the call with this Idempotency-Key, if the call accepts such a key and has none yet."""
        if KEY_HEADER not in self.headers or self.headers[KEY_HEADER] is not None:
            return self
        return replace(self, headers={**self.headers, KEY_HEADER: key})

    def at(self, cursor: str) -> Call[T_co]:
        """Returns the call for another page of a list."""
        return replace(self, query={**self.query, "cursor": cursor})

    def for_httpx(self) -> dict[str, Any]:
        """Returns the arguments of `httpx.Client.build_request`, with the path as `url`."""
        headers = {name: _text(value) for name, value in self.headers.items() if value is not None}
        if self.method != "GET":
            # The content type is JSON even without a body. A service without tokens refuses other calls that change
            # something, because only calls with this type cannot come from a foreign web page.
            headers["content-type"] = "application/json"
        query: list[tuple[str, str]] = []
        for name, value in self.query.items():
            several = value if isinstance(value, list | tuple) else [value]
            query += [(name, _text(each)) for each in several if each is not None]
        content = None if self.body is None else msgspec.json.encode(self.body)
        return {"method": self.method, "url": self.path, "params": query, "headers": headers, "content": content}

    def parsed(self, content: bytes, where: str) -> T_co:
        """Decodes the body of an answer. Raises NoAnswerError if `content` is not the JSON that the API's document
        promises."""
        answer: Any = self.answer
        if answer is type(None):
            return None  # type: ignore[return-value]  # the type is None
        if answer is str:
            return content.decode("utf-8", "replace")  # type: ignore[return-value]  # the type is str
        try:
            return msgspec.json.decode(content, type=described(self.answer))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NoAnswerError(f"{where} answered what its document does not promise: {error}") from error


@dataclass(frozen=True)
class Answer(Generic[T_co]):
    """The body of an answer, and its headers by their names in lower case."""

    value: T_co
    headers: Mapping[str, str]


class Page(Protocol[T_co]):
    """A page of a list, with the members that all lists of the API have."""

    @property
    def items(self) -> Sequence[T_co]: ...

    @property
    def next_cursor(self) -> str | None: ...


def segment(value: str) -> str:
    """Returns a text as one segment of a path."""
    # httpx would resolve these two as relative paths.
    return {".": "%2E", "..": "%2E%2E"}.get(value, quote(value, safe=""))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value.value) if isinstance(value, Enum) else str(value)
