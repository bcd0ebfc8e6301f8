"""A client of WebHDFS, the REST interface that every name node and data node of HDFS has.

Mirrors the WebHDFS REST API and `WebHdfsFileSystem` of Hadoop 3.3.4. Files are written by a single upload: the
libraries for Python append block by block, which opens a new pipeline of data nodes each time, and repeats nothing.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from random import uniform
from threading import Lock
from typing import IO, Any, TypeVar
from urllib.parse import quote

import httpx

from jobs.storage.negotiate import Negotiate
from jobs.storage.store import LoginError

T = TypeVar("T")

_PREFIX = "/webhdfs/v1"
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.2, 5.0
# Hadoop's exceptions -> ours. Everything else is an OSError.
_ERRORS: dict[str, type[OSError]] = {
    "FileNotFoundException": FileNotFoundError,
    "AccessControlException": PermissionError,
    "AuthorizationException": PermissionError,
    "FileAlreadyExistsException": FileExistsError,
    "ParentNotDirectoryException": NotADirectoryError,
    "PathIsNotEmptyDirectoryException": OSError,
}
# The next name node may answer, or the same one a little later.
_TRANSIENT = frozenset({"StandbyException", "RetriableException", "ObserverRetryOnActiveException"})
# Hadoop has this text in exceptions of several types (`JspHelper.getUGI`).
_OF_INVALID_TOKENS = "SecretManager$InvalidToken"


class _TryAgainError(OSError):
    """There was no answer, or one that says that another attempt may succeed. `node` is the data node that did not
    answer."""

    def __init__(self, detail: str, node: str | None = None) -> None:
        super().__init__(detail)
        self.node = node


class _InvalidTokenError(_TryAgainError):
    """The delegation token has expired, or the cluster does not know it."""


@dataclass(frozen=True)
class Status:
    """A file or folder. `name` is empty if the request asked for this very path. `size` is in bytes."""

    name: str
    is_folder: bool
    size: int
    modified_at: datetime


class WebHdfs:
    """`name_nodes` are base URLs, of which one is active. Thread-safe. All paths are absolute, and not encoded. Without
    a `user` this client logs in by Kerberos and gets a delegation token, unless `token` has one already. The token is
    used for all requests, as in Hadoop's client, because a name node makes and logs a new one for every file that is
    opened or created without a token.

    All methods raise FileNotFoundError, PermissionError, LoginError and other OSErrors with a message of one line.
    """

    def __init__(
        self,
        name_nodes: tuple[str, ...],
        user: str | None,
        *,
        token: str | None = None,
        connect: float,
        request: float,
        attempts: int,
    ) -> None:
        self._name_nodes = name_nodes
        self._active = 0
        self._user = user
        self._token = token
        self._may_get_token = token is None
        self._guard = Lock()
        self._attempts = attempts
        # The environment's proxies are not used: Hadoop uses none, and only the cluster knows the names of its data
        # nodes.
        self._client = httpx.Client(
            timeout=httpx.Timeout(request, connect=connect),
            trust_env=False,
            # Cookies are dropped, because a name node that gets the cookie of an earlier ticket ignores the new ticket.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            verify=ssl.create_default_context(),
            limits=httpx.Limits(max_keepalive_connections=8, keepalive_expiry=10),
        )

    def status(self, path: str) -> Status:
        found = self._ask("GET", path, "GETFILESTATUS")
        return _status(_part(found, "FileStatus"))

    def children(self, path: str) -> Iterator[Status]:
        """Yields the entries of a folder; for a file, only the file itself. One request for each thousand
        (`dfs.ls.limit`)."""
        after: dict[str, str] = {}
        while True:
            listing = _part(self._ask("GET", path, "LISTSTATUS_BATCH", after), "DirectoryListing")
            batch = [_status(each) for each in _part(_part(listing["partialListing"], "FileStatuses"), "FileStatus")]
            yield from batch
            if not batch or not listing.get("remainingEntries"):
                return
            after = {"startAfter": batch[-1].name}

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Returns `length` bytes, which the file must have."""
        excluded: dict[str, str] = {}

        def once() -> bytes:
            options = {"offset": str(offset), "length": str(length), **excluded}
            try:
                content = self._at_data_node("GET", path, "OPEN", options).content
            except _TryAgainError as error:
                if error.node:
                    excluded["excludedatanodes"] = error.node
                raise
            if len(content) != length:
                raise _TryAgainError(f"{len(content)} bytes came instead of {length}")
            return content

        return self._repeatedly(once)

    def write(self, path: str, content: IO[bytes], options: Mapping[str, str]) -> None:
        """Writes a file, with its folders. After a failure the whole file is sent again."""

        def once() -> None:
            content.seek(0)
            self._at_data_node("PUT", path, "CREATE", {"overwrite": "true", **options}, content)

        self._repeatedly(once)

    def make_folder(self, path: str) -> None:
        self._ask("PUT", path, "MKDIRS")

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Returns whether there was anything to delete; this is certain only if the first attempt got an answer."""
        return bool(self._ask("DELETE", path, "DELETE", {"recursive": str(recursive).lower()})["boolean"])

    def rename(self, path: str, target: str) -> None:
        """Raises OSError if HDFS refuses, for example because the target exists; HDFS gives no reason."""
        if not self._ask("PUT", path, "RENAME", {"destination": target})["boolean"]:
            raise OSError(f"{path} cannot be renamed to {target}")

    def _ask(self, method: str, path: str, operation: str, options: Mapping[str, str] | None = None) -> dict[str, Any]:
        def once() -> dict[str, Any]:
            return _json(self._send(method, self._url(path), self._query(operation, options or {})))

        return self._repeatedly(once)

    def _at_data_node(
        self, method: str, path: str, operation: str, options: Mapping[str, str], content: IO[bytes] | None = None
    ) -> httpx.Response:
        """The name node answers with the address of the data node that has or gets the data."""
        sent = self._send(method, self._url(path), self._query(operation, options))
        if not sent.is_redirect:
            return sent
        target = sent.url.join(sent.headers.get("Location", ""))
        if target.scheme not in ("http", "https") or not target.path.startswith(f"{_PREFIX}/"):
            raise OSError(f"{sent.url.host} leads elsewhere: {target.scheme}://{target.host}{target.path}"[:300])
        return self._send(method, target, None, content, node=target.netloc.decode())

    def _send(
        self,
        method: str,
        url: str | httpx.URL,
        query: Mapping[str, str] | None,
        content: IO[bytes] | None = None,
        node: str | None = None,
        *,
        auth: httpx.Auth | None = None,
    ) -> httpx.Response:
        headers = {} if content is None else {"Content-Type": "application/octet-stream"}
        try:
            answer = self._client.request(method, url, params=query, content=content, headers=headers, auth=auth)
        except httpx.RequestError as error:
            host = httpx.URL(url).netloc.decode()
            raise _TryAgainError(f"{host} does not answer: {error or type(error).__name__}", node) from error
        if answer.is_success or answer.is_redirect:
            return answer
        refusal = _error(answer, node)
        if isinstance(refusal, _InvalidTokenError):
            if not self._may_get_token:
                raise LoginError(str(refusal))
            self._token = None
        raise refusal

    def _repeatedly(self, once: Callable[[], T]) -> T:
        pause = _FIRST_PAUSE_SECONDS
        for attempt in range(1, self._attempts + 1):
            # Each name node is asked once before the first pause.
            for _ in self._name_nodes:
                try:
                    return once()
                except _TryAgainError as error:
                    last = error
                    if error.node is None:
                        self._active = (self._active + 1) % len(self._name_nodes)
            if attempt < self._attempts:
                time.sleep(uniform(pause / 2, pause))  # noqa: S311 - no secret
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        raise OSError(str(last)) from last

    def _url(self, path: str) -> str:
        return f"{self._name_nodes[self._active]}{_PREFIX}{quote(path)}"

    def _query(self, operation: str, options: Mapping[str, str]) -> dict[str, str]:
        return {"op": operation, **self._login(), **options}

    def _login(self) -> dict[str, str]:
        if self._user is not None:
            return {"user.name": self._user}
        with self._guard:
            if self._token is None:
                answer = self._send("GET", self._url("/"), {"op": "GETDELEGATIONTOKEN"}, auth=Negotiate())
                self._token = str(_part(_part(_json(answer), "Token"), "urlString"))
            return {"delegation": self._token}


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError as error:
        raise OSError(f"{answer.url.host} does not speak WebHDFS") from error
    if not isinstance(found, dict):
        raise OSError(f"{answer.url.host} does not speak WebHDFS")
    return found


def _error(answer: httpx.Response, node: str | None) -> OSError:
    try:
        remote = answer.json()["RemoteException"]
        kind, message = str(remote["exception"]), str(remote["message"])
    except (ValueError, KeyError, TypeError):
        kind, message = "", ""
    detail = f"{answer.url.host} answers {answer.status_code}" + (f", {kind}: {_first_line(message)}" if kind else "")
    if _OF_INVALID_TOKENS in message or kind == "InvalidToken":
        return _InvalidTokenError(detail)
    if kind in _TRANSIENT:
        # A data node may also say this, because a standby redirects to one without checking its own state.
        return _TryAgainError(detail)
    if not kind and answer.status_code in (429, 502, 503, 504):
        return _TryAgainError(detail, node)
    if kind == "" and answer.status_code == 401:
        return LoginError(f"{detail}: it wants a login by Kerberos (hadoop.security.authentication)")
    if kind == "" and answer.status_code == 404:
        return OSError(f"{detail}: it does not speak WebHDFS")
    if kind == "AccessControlException" and message.rstrip().endswith("(is not a directory)"):
        # A path below a file (`FSPermissionChecker.checkIsDirectory`).
        return NotADirectoryError(detail)
    return _ERRORS.get(kind, OSError)(detail)


def _first_line(message: str) -> str:
    return message.strip().partition("\n")[0][:300]


def _part(found: Any, name: str) -> Any:
    try:
        return found[name]
    except (KeyError, TypeError) as error:
        raise OSError(f"The answer has no {name}") from error


def _status(found: Mapping[str, Any]) -> Status:
    modified_at = datetime.fromtimestamp(int(found["modificationTime"]) / 1000, UTC)
    return Status(str(found["pathSuffix"]), found["type"] == "DIRECTORY", int(found["length"]), modified_at)
