"""A hierarchical namespace in memory, the common part of both interfaces of the emulated storage (`azure_dfs`).

Conditions, error codes and their meaning are those that Azure's REST reference documents for accounts with a
hierarchical namespace ("Path - Create, Update, Read, Delete, List" of Data Lake Storage Gen2, "Put Blob").
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_tags = itertools.count(1)


class RefusedError(Exception):
    """A failing answer of the storage; `code` is Azure's code for the called interface."""

    def __init__(self, status: int, code: str, **headers: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Node:
    """A folder, or a file (`children` is None). `appended` and `blocks` are uploaded bytes that are not yet part of the
    file."""

    children: dict[str, Node] | None = None
    content: bytes = b""
    appended: dict[int, bytes] = field(default_factory=dict)
    blocks: dict[str, bytes] = field(default_factory=dict)
    is_of_blob_interface: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    tag: str = ""
    modified: float = 0.0

    def __post_init__(self) -> None:
        self.touch()

    def touch(self) -> None:
        self.tag, self.modified = f'"0x{next(_tags):X}"', time.time()

    @property
    def kind(self) -> str:
        return "file" if self.children is None else "directory"


class Tree:
    """One container. Paths are decoded, without a slash at either end; "" is the root. The caller holds a lock."""

    def __init__(self, page: int) -> None:
        self.root = Node({})
        self._page = page

    def node(self, path: str, missing: str = "PathNotFound") -> Node:
        node = self.root
        for name in filter(None, path.split("/")):
            if name not in (node.children or {}):
                raise RefusedError(404, missing)
            node = (node.children or {})[name]
        return node

    def create(self, path: str, kind: str, headers: Mapping[str, str], *, exists: str = "PathAlreadyExists") -> Node:
        """Makes a node and its parents. Replaces an existing file unless a condition forbids it, and does not change an
        existing folder."""
        folder, name = self._place(path)
        old = folder.get(name)
        if old and headers.get("If-None-Match") == "*":
            raise RefusedError(409, exists, x_ms_existing_resource_type=old.kind)
        _require_same(old, headers)
        if old and old.kind != kind:
            raise RefusedError(409, "PathConflict", x_ms_existing_resource_type=old.kind)
        if old and old.children is not None:
            old.touch()
            return old
        folder[name] = Node({} if kind == "directory" else None)
        return folder[name]

    def append(self, path: str, position: int, content: bytes) -> None:
        self._file(path).appended[position] = content

    def flush(self, path: str, position: int, headers: Mapping[str, str]) -> Node:
        """Makes the appended bytes part of the file. The bytes must end at `position`."""
        node = self._file(path)
        _require_same(node, headers)
        if node.is_of_blob_interface and node.appended:
            raise RefusedError(409, "InvalidFlushOperation")
        parts = [node.content]
        end = len(node.content)
        while end in node.appended and end < position:
            parts.append(node.appended.pop(end))
            end += len(parts[-1])
        if end != position or node.appended:
            raise RefusedError(400, "InvalidFlushPosition")
        node.content = b"".join(parts)
        node.touch()
        return node

    def delete(self, path: str, headers: Mapping[str, str], *, recursive: bool, not_empty: str) -> bool:
        """Returns whether some of a large folder is left, for the next call."""
        node = self.node(path)
        _require_same(node, headers)
        if node.children and not recursive:
            raise RefusedError(409, not_empty)
        below = list(self.walk(path))
        if len(below) > self._page:
            # The deepest first.
            for each in sorted(below, key=lambda item: -item[0].count("/"))[: self._page]:
                self._remove(each[0])
            return True
        self._remove(path)
        return False

    def rename(self, source: str, path: str, headers: Mapping[str, str]) -> None:
        """Renames a node with everything below it atomically."""
        node = self.node(source, "SourcePathNotFound")
        if path == source or path.startswith(f"{source}/"):
            raise RefusedError(409, "InvalidRenameSourcePath")
        parent, _, name = path.rpartition("/")
        folder = self.node(parent, "RenameDestinationParentPathNotFound").children
        if folder is None:
            raise RefusedError(409, "PathConflict")
        old = folder.get(name)
        if old and headers.get("If-None-Match") == "*":
            raise RefusedError(409, "PathAlreadyExists", x_ms_existing_resource_type=old.kind)
        if old and old.kind != node.kind:
            raise RefusedError(409, "InvalidSourceOrDestinationResourceType")
        if old and old.children:
            raise RefusedError(409, "DirectoryNotEmpty")
        self._remove(source)
        folder[name] = node

    def walk(self, path: str, *, deep: bool = True) -> Iterator[tuple[str, Node]]:
        """Yields all nodes below a folder by name, parents before their children."""
        for name, node in sorted((self.node(path).children or {}).items()):
            below = f"{path}/{name}".lstrip("/")
            yield below, node
            if deep:
                yield from self.walk(below)

    def _place(self, path: str) -> tuple[dict[str, Node], str]:
        *parents, name = path.split("/")
        folder = self.root
        for parent in parents:
            if folder.children is not None:
                folder = folder.children.setdefault(parent, Node({}))
        if folder.children is None:
            raise RefusedError(409, "PathConflict")
        return folder.children, name

    def _file(self, path: str) -> Node:
        node = self.node(path)
        if node.children is not None:
            raise RefusedError(409, "ResourceTypeMismatch")
        return node

    def _remove(self, path: str) -> None:
        folder, name = self._place(path)
        del folder[name]


def _require_same(node: Node | None, headers: Mapping[str, str]) -> None:
    wanted = headers.get("If-Match", "*")
    if wanted != "*" and (node is None or node.tag != wanted):
        raise RefusedError(412, "ConditionNotMet")
