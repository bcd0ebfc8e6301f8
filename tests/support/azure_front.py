"""The interfaces of the storage that `azure_dfs` starts, by HTTPS: "DFS" and blobs, on the same files.

`python -m tests.support.azure_front PORT PAGE CERTIFICATE KEY` serves it, with an empty container `lake`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import sys
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

from tests.support.azure_tree import Node, RefusedError, Tree
from tests.support.azurite import KEY

ACCOUNT = "devstoreaccount1"
REQUESTS = "/-requests"
_SIGNED = ("Encoding", "Language", "Length", "MD5", "Type")
_CONDITIONS = ("Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range")


class _Answer:
    def __init__(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.status, self.headers, self.body = status, headers or {}, body


class _Storage:
    """The container `lake` and others, and all received requests."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.trees: dict[str, Tree] = {}
        self.lock = threading.Lock()
        self.requests: list[str] = []

    def tree(self, container: str, missing: str) -> Tree:
        if container not in self.trees:
            raise RefusedError(404, missing)
        return self.trees[container]


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    storage: _Storage

    def log_message(self, *_: Any) -> None:
        """Writes no log."""

    def handle_expect_100(self) -> bool:
        is_to_go_on = super().handle_expect_100()
        self.wfile.flush()
        return is_to_go_on

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.address, _, query = self.path.partition("?")
        pairs = (pair.partition("=") for pair in query.split("&") if pair)
        self.query = {unquote(name): unquote(value) for name, _, value in pairs}
        # Java's own HTTP client does not support PATCH.
        self.method = self.headers.get("X-HTTP-Method-Override", self.command)
        is_of_dfs = self.method == "PATCH" or not {"restype", "comp"} & self.query.keys()
        with self.storage.lock:
            try:
                answer = self._answer(body)
            except RefusedError as error:
                answer = _refusal(error, self.method, is_json=is_of_dfs)
            if self.address != REQUESTS:
                self.storage.requests.append(f"{self.method} {self.path} {answer.status}")
        self.send_response(answer.status)
        common = {"x-ms-request-id": "0", "x-ms-request-server-encrypted": "true"}
        for name, value in ({"Content-Length": str(len(answer.body))} | common | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815 - names of the base class

    def _answer(self, body: bytes) -> _Answer:
        if self.address == REQUESTS:
            seen, self.storage.requests = self.storage.requests, []
            return _Answer(200, {"Content-Type": "application/json"}, json.dumps(seen).encode())
        if not hmac.compare_digest(self.headers.get("Authorization", ""), self._authorization()):
            raise RefusedError(403, "AuthenticationFailed")
        container, _, path = unquote(self.address).removeprefix(f"/{ACCOUNT}/").partition("/")
        path = path.strip("/")
        if "x-ms-lease-action" in self.headers:
            raise RefusedError(400, "UnsupportedHeader")
        if self.query.get("restype") == "container":
            return self._container(container)
        if self.query.get("resource") == "filesystem":
            return self._filesystem(container)
        is_of_blobs = "comp" in self.query or "x-ms-blob-type" in self.headers
        tree = self.storage.tree(container, "ContainerNotFound" if is_of_blobs else "FilesystemNotFound")
        match self.method:
            case "PUT":
                return self._put_blob(tree, path, body) if is_of_blobs else self._create(tree, path)
            case "PATCH":
                return self._update(tree, path, body)
            case "HEAD":
                return _Answer(200, {**_described(tree.node(path)), **_length(tree.node(path))})
            case "GET" if not is_of_blobs:
                return self._read(tree.node(path))
            case "DELETE" if not is_of_blobs:
                recursive = self.query.get("recursive") == "true"
                is_left = tree.delete(path, self.headers, recursive=recursive, not_empty="DirectoryNotEmpty")
                # The interface of blobs answers 202.
                status = 200 if "recursive" in self.query else 202
                return _Answer(status, {"x-ms-continuation": "more"} if is_left else {})
        raise RefusedError(400, "UnsupportedQueryParameter")

    def _authorization(self) -> str:
        """Returns the header of a request that is signed with the account's key ("Authorize with Shared Key").

        The paths of an emulator begin with the account, so the text that is signed has the account twice.
        """
        content = [self.headers.get(f"Content-{name}", "") for name in _SIGNED]
        content[2] = "" if content[2] == "0" else content[2]
        signed = [self.command, *content, *(self.headers.get(name, "") for name in _CONDITIONS)]
        own = sorted((name.lower(), value) for name, value in self.headers.items() if name.lower().startswith("x-ms-"))
        signed += [f"{name}:{value}" for name, value in own]
        signed += [f"/{ACCOUNT}{self.address}", *(f"{name.lower()}:{self.query[name]}" for name in sorted(self.query))]
        code = hmac.digest(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256)
        return f"SharedKey {ACCOUNT}:{base64.b64encode(code).decode()}"

    def _container(self, container: str) -> _Answer:
        if self.method == "PUT":
            if container in self.storage.trees:
                raise RefusedError(409, "ContainerAlreadyExists")
            self.storage.trees[container] = Tree(self.storage.page)
            return _Answer(201, _described(self.storage.trees[container].root))
        tree = self.storage.tree(container, "ContainerNotFound")
        if self.method in {"GET", "HEAD"} and "comp" not in self.query:
            return _Answer(200, _described(tree.root) | _OF_CONTAINERS)
        raise RefusedError(400, "UnsupportedQueryParameter")

    def _filesystem(self, container: str) -> _Answer:
        tree = self.storage.tree(container, "FilesystemNotFound")
        if self.method != "GET":
            raise RefusedError(400, "UnsupportedHttpVerb")
        folder = self.query.get("directory", "").strip("/")
        # A listing of a file has the file itself (Hadoop's `ITestAzureBlobFileSystemListStatus`).
        is_file = (node := tree.node(folder)).children is None
        entries = [(folder, node)] if is_file else list(tree.walk(folder, deep=self.query.get("recursive") == "true"))
        start = int(self.query.get("continuation") or 0)
        end = start + min(self.storage.page, int(self.query.get("maxResults") or 5000))
        paths = [
            {
                "name": path,
                "contentLength": str(len(node.content)),
                "lastModified": formatdate(node.modified, usegmt=True),
                "etag": node.tag,
                **_OWNED,
                **({"isDirectory": "true"} if node.children is not None else {}),
            }
            for path, node in entries[start:end]
        ]
        headers = {"Content-Type": "application/json"}
        if end < len(entries):
            headers["x-ms-continuation"] = str(end)
        return _Answer(200, headers, json.dumps({"paths": paths}).encode())

    def _create(self, tree: Tree, path: str) -> _Answer:
        if source := self.headers.get("x-ms-rename-source"):
            container, _, source = unquote(source.partition("?")[0]).lstrip("/").partition("/")
            container, _, source = source.partition("/") if container == ACCOUNT else (container, "", source)
            if self.storage.tree(container, "SourcePathNotFound") is not tree:
                raise RefusedError(400, "InvalidSourceUri")
            tree.rename(source, path, self.headers)
            return _Answer(201, _described(tree.node(path)))
        return _Answer(201, _described(tree.create(path, self.query["resource"], self.headers)))

    def _update(self, tree: Tree, path: str, body: bytes) -> _Answer:
        action, position = self.query.get("action"), int(self.query.get("position", 0))
        if action == "append":
            tree.append(path, position, body)
        if action == "flush" or self.query.get("flush") == "true":
            return _Answer(200, _described(tree.flush(path, position + len(body), self.headers)))
        if action not in {"append", "setProperties"}:
            raise RefusedError(400, "UnsupportedQueryParameter")
        return _Answer(202 if action == "append" else 200, _described(tree.node(path)))

    def _read(self, node: Node) -> _Answer:
        if node.children is not None:
            raise RefusedError(409, "ResourceTypeMismatch")
        if self.headers.get("If-Match", node.tag) not in {node.tag, "*"}:
            raise RefusedError(412, "ConditionNotMet")
        wanted = self.headers.get("x-ms-range") or self.headers.get("Range")
        if not wanted:
            return _Answer(200, _described(node), node.content)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(node.content)) + 1, len(node.content))
        if start >= len(node.content):
            raise RefusedError(416, "InvalidRange")
        ranged = {"Content-Range": f"bytes {start}-{end - 1}/{len(node.content)}"}
        return _Answer(206, _described(node) | ranged, node.content[start:end])

    def _put_blob(self, tree: Tree, path: str, body: bytes) -> _Answer:
        """Writes a blob. In a container with a hierarchical namespace this also makes its folders."""
        metadata = {name[10:]: value for name, value in self.headers.items() if name.lower().startswith("x-ms-meta-")}
        match self.query.get("comp"):
            case "block":
                try:
                    node = tree.node(path)
                except RefusedError:
                    node = tree.create(path, "file", {})
                node.blocks[self.query["blockid"]] = body
                return _Answer(201)
            case "blocklist":
                old = tree.node(path)
                content = b"".join(old.blocks[str(item.text)] for item in ElementTree.fromstring(body))
            case None if self.headers["x-ms-blob-type"] == "BlockBlob":
                content = body
            case _:
                raise RefusedError(400, "UnsupportedQueryParameter")
        node = tree.create(path, "file", self.headers, exists="BlobAlreadyExists")
        node.content, node.metadata, node.is_of_blob_interface = content, metadata, True
        return _Answer(201, _described(node))


_OF_CONTAINERS = {
    "x-ms-has-immutability-policy": "false",
    "x-ms-has-legal-hold": "false",
    "x-ms-immutable-storage-with-versioning-enabled": "false",
    "x-ms-default-encryption-scope": "$account-encryption-key",
    "x-ms-deny-encryption-scope-override": "false",
}
_OWNED = {"owner": "$superuser", "group": "$superuser", "permissions": "rwxr-x---"}


def _described(node: Node) -> dict[str, str]:
    """Returns the headers of both interfaces."""
    marks = {"hdi_isfolder": "true"} if node.children is not None else node.metadata
    return {
        "ETag": node.tag,
        "Last-Modified": formatdate(node.modified, usegmt=True),
        "x-ms-creation-time": formatdate(node.modified, usegmt=True),
        "x-ms-resource-type": node.kind,
        "x-ms-blob-type": "BlockBlob",
        "x-ms-lease-state": "available",
        "x-ms-lease-status": "unlocked",
        "x-ms-server-encrypted": "true",
        "x-ms-acl": "user::rwx,group::r-x,other::---",
        "x-ms-properties": "",
        **{f"x-ms-{name}": value for name, value in _OWNED.items()},
        **{f"x-ms-meta-{name}": value for name, value in marks.items()},
    }


def _length(node: Node) -> dict[str, str]:
    return {"Content-Length": str(len(node.content)), "Content-Type": "application/octet-stream"}


def _refusal(error: RefusedError, method: str, *, is_json: bool) -> _Answer:
    headers = {"x-ms-error-code": error.code, **error.headers}
    if method == "HEAD":
        return _Answer(error.status, headers)
    if is_json:
        text = json.dumps({"error": {"code": error.code, "message": error.code}})
        return _Answer(error.status, headers | {"Content-Type": "application/json"}, text.encode())
    text = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{error.code}</Code><Message/></Error>'
    return _Answer(error.status, headers | {"Content-Type": "application/xml"}, text.encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, certificate: str, key: str) -> None:
        super().__init__(("127.0.0.1", port), _Request)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        # The handshake is left to the thread of the connection.
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


def main(port: int, page: int, certificate: str, key: str) -> None:
    _Request.storage = _Storage(page)
    _Server(port, certificate, key).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5])
