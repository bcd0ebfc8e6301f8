"""The tokens that calls have used within the last moment, so that few calls have to read the database for them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from sqlalchemy import Engine

from service.access import token_store
from service.access.token import Token
from service.db.engine import may_find, reading

KEPT_SECONDS = 0.25
"""A change by another process takes effect within this time. The command line waits for it."""

_MOST_KEPT = 1000


class NotKnownError(Exception):
    """The answer cannot be given without reading the database."""


class KnownTokens:
    """Reads tokens and keeps them for a moment. A token that does not exist is not kept, so a new token is valid at
    once. A change by this process takes effect at once, unless a call reads the token between the change and its
    commit. Thread-safe. If `reads` is False, methods raise NotKnownError when they would have to read; otherwise they
    may raise DatabaseUnavailableError."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, tuple[Token, _Read]] = OrderedDict()
        self._exist = False
        self._none: _Read | None = None

    def find(self, token_id: str, *, reads: bool) -> Token | None:
        kept = self._kept.get(token_id)
        if kept is not None and kept[1].is_fresh:
            return kept[0]
        if not reads:
            raise NotKnownError
        read = _Read()
        with reading(self._engine) as connection:
            token = token_store.find(connection, token_id)
        with self._guard:
            self._kept.pop(token_id, None)
            if token is not None:
                self._kept[token_id] = (token, read)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return token

    def exist(self, *, reads: bool) -> bool:
        """Returns whether a token was ever created. Tokens are never deleted, so this stays true."""
        if self._exist or (self._none is not None and self._none.is_fresh):
            return self._exist
        if not may_find(self._engine, token_store.ANY):
            return False
        if not reads:
            raise NotKnownError
        read = _Read()
        with reading(self._engine) as connection:
            self._exist = token_store.exist(connection)
        self._none = read
        return self._exist


class _Read:
    """When the database was read."""

    def __init__(self) -> None:
        self._last_change, self._at = token_store.last_change(), time.monotonic()

    @property
    def is_fresh(self) -> bool:
        return self._last_change is token_store.last_change() and time.monotonic() - self._at < KEPT_SECONDS
