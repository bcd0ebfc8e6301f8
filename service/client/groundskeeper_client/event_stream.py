"""Parsing of the stream of server-sent events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from groundskeeper_client.errors import NoAnswerError
from groundskeeper_client.model import Model, described

_LONGEST = 16 * 1024 * 1024


class Event(Model, frozen=True, kw_only=True):
    """A CloudEvent of the service. `subject` is the id of the event's table. `sequence` grows in the order in which the
    service has stored the events: pass `int(sequence)` as `after` to continue a stream after this event. `document` is
    the whole JSON."""

    id: str
    type: str
    source: str
    time: datetime
    sequence: str
    data: Mapping[str, Any]
    subject: str | None = None
    document: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Messages:
    """Makes events from the lines of a stream. `position` is the last id in the stream."""

    def __init__(self, position: int | None = None) -> None:
        self.position = position
        self._id = ""
        self._data: list[str] = []
        self._size = 0

    def event(self, line: str) -> Event | None:
        """Returns the event that this line completes; None if the line completes no event. Raises NoAnswerError for a
        message that is not an event of the service."""
        if not line:
            return self._completed()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            self._id = value
        elif name == "data":
            self._size += len(value)
            if self._size > _LONGEST:
                raise NoAnswerError(f"An event of the stream is longer than {_LONGEST} characters.")
            self._data.append(value)
        return None

    def lost(self) -> None:
        """Forgets the incomplete event after the connection broke."""
        self._id, self._data, self._size = "", [], 0

    def _completed(self) -> Event | None:
        id_, data = self._id, "\n".join(self._data)
        self.lost()
        if id_.isascii() and id_.isdigit():
            self.position = int(id_)
        if not data:
            return None
        try:
            document = msgspec.json.decode(data)
            return msgspec.structs.replace(msgspec.convert(document, described(Event)), document=document)
        except msgspec.DecodeError as error:
            raise NoAnswerError(f"The stream has a message that is no event of Groundskeeper: {error}") from error
