"""Arrow's file system for a bucket whose credentials end: a new one is opened when they are renewed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from jobs.storage.aws_session import Credentials, current
from jobs.storage.wrapped_files import WrappedFiles

if TYPE_CHECKING:
    from pyarrow import fs


class RenewedFiles(WrappedFiles):
    """A file that is open keeps the credentials of its opening. These are valid for at least a quarter of a session, or
    for 15 minutes; a task that needs a file for longer fails, and Spark runs it again."""

    def __init__(self, account: str, opened: Callable[[Credentials], fs.FileSystem]) -> None:
        self._account = account
        self._opened = opened
        self._guard = threading.Lock()
        self._keys: Credentials | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None

    @property
    def _inner(self) -> fs.FileSystem:
        keys = current(self._account).credentials
        with self._guard:
            if keys != self._keys:
                self._files, self._keys = self._opened(keys), keys
            return self._files

    def get_type_name(self) -> str:
        return "s3"
