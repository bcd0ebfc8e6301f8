"""Canonical locations of tables and locks: one spelling for each place, so that places can be compared."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from functools import partial

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


_CLUSTER = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:\d{1,5})?", re.ASCII)
# Only Azure's own hosts are allowed, because any other host would get our tokens.
AZURE_ACCOUNT = re.compile(
    r"([a-z0-9$-]+)@([a-z0-9]+)\.dfs\.(core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net))", re.ASCII
)
_HDFS_PORT = ":8020"  # `HdfsClientConfigKeys.DFS_NAMENODE_RPC_PORT_DEFAULT`


class LocationError(ValueError):
    """The text cannot be a location; `hint` says how to write one."""

    def __init__(self, detail: str, hint: str | None = None) -> None:
        super().__init__(detail)
        self.hint = hint


class SchemeUnsupportedError(LocationError):
    """The location is on a storage that is not supported."""


def canonical(location: str) -> str:
    """Returns the canonical form of an absolute path or URI: equal for equal places, and usable by Hudi.

    Local paths and `file:` URIs become absolute plain paths with `..` and symbolic links resolved. `s3:` and `s3a:`
    both become `s3a://bucket/key`: Hadoop's own S3 filesystem has no other name, and one spelling keeps a table from
    being registered twice. `abfs:` becomes `abfss:`. `hdfs:` needs its cluster, since only a worker knows which one is
    the default. Only the root `/` ends in a slash. Percent signs are literal, as in Hadoop's `Path`. Raises
    LocationError.
    """
    match = _SCHEME.fullmatch(location)
    if match is None:
        return _local(location, location)
    scheme, rest = match.group(1).lower(), match.group(2)
    if scheme == "file":
        return _local(_after_host(rest, location), location)
    if scheme in _REMOTE:
        return _REMOTE[scheme](rest, location)
    raise SchemeUnsupportedError(f"{location!r} has the scheme {scheme!r}")


def plain(location: str) -> str:
    """Returns the canonical form of a location without links or `..`, without accessing any disk.

    Returns locations with an unsupported scheme unchanged.
    """
    match = _SCHEME.fullmatch(location)
    scheme, rest = (match.group(1).lower(), match.group(2)) if match else ("file", location)
    if scheme != "file":
        try:
            return _REMOTE[scheme](rest, location) if scheme in _REMOTE else location
        except LocationError:
            return location
    return f"/{rest.removeprefix('//localhost').strip('/')}"


def is_local(place: str) -> bool:
    """Returns whether a canonical location is on a disk of this machine."""
    return place.startswith("/")


def is_below(place: str, roots: Iterable[str]) -> bool:
    """Returns whether a canonical location is one of the canonical roots, or below one.

    Compares whole segments: `/data2` is not below `/data`.
    """
    return any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)


def is_inside(base_path: str, path: str) -> bool:
    """Returns whether a path in a table's metadata lies in the table: relative to it, or absolute.

    A writer may spell the base path in another way, even by a link, so absolute local paths are compared without links.
    """
    if ".." in path.split("/") or "\0" in path:
        return False
    if not path.startswith("/") and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
        return True
    if is_below(plain(path), [plain(base_path)]):
        return True
    try:
        return is_below(canonical(path), [canonical(base_path)])
    except LocationError:
        return False


def link_out(base_path: str, folder: str) -> str | None:
    """Returns a link in a folder of a local table that leads out of the table; None if there is none or the table is
    not local.

    `folder` is relative to the table.
    """
    try:
        root = canonical(base_path)
        with os.scandir(canonical(f"{root}/{folder}")) as entries:
            links = [f"{root}/{folder}", *(entry.path for entry in entries if entry.is_symlink())]
    except (OSError, LocationError):
        return None
    return next((link for link in links if not is_below(canonical(link), [root])), None)


def _after_host(rest: str, location: str) -> str:
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise SchemeUnsupportedError(f"{location!r} names the host {host!r}, but a file: URI must be local")
    return slash + path


def _local(path: str, location: str) -> str:
    if not path.startswith("/"):
        raise LocationError(f"{location!r} is not absolute", "Give an absolute path, beginning with a slash.")
    try:
        resolved = os.path.realpath(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL character
        raise LocationError(f"{location!r} cannot be a path: {error}") from error
    return "/" + resolved.lstrip("/")  # POSIX allows two leading slashes, and realpath keeps them


def _in_bucket(scheme: str, rest: str, location: str) -> str:
    bucket, path = _authority(rest)
    if not bucket or bucket in (".", ".."):
        raise LocationError(f"{location!r} contains no bucket", f"Write {scheme}://bucket/path.")
    return f"{scheme}://{bucket}{path}".rstrip("/")


def _hdfs(rest: str, location: str) -> str:
    cluster, path = _authority(rest)
    if not _CLUSTER.fullmatch(cluster):
        hint = "Write hdfs://nameservice/path or hdfs://host/path, as in fs.defaultFS."
        raise LocationError(f"{location!r} contains no cluster", hint)
    return f"hdfs://{cluster.lower().removesuffix(_HDFS_PORT)}{path}".rstrip("/")


def _abfs(rest: str, location: str) -> str:
    container, path = _authority(rest)
    container = container.lower()
    if not AZURE_ACCOUNT.fullmatch(container):
        hint = "Write abfss://container@account.dfs.core.windows.net/path."
        raise LocationError(f"{location!r} contains no container of an account", hint)
    return f"abfss://{container}{path}".rstrip("/")


def _authority(rest: str) -> tuple[str, str]:
    """Returns the part between `//` and the path, and the absolute path without `..`."""
    authority, _, path = rest.removeprefix("//").partition("/")
    return authority if rest.startswith("//") else "", posixpath.normpath("/" + path.strip("/"))


_REMOTE: dict[str, Callable[[str, str], str]] = {
    "s3": partial(_in_bucket, "s3a"),
    "s3a": partial(_in_bucket, "s3a"),
    "hdfs": _hdfs,
    "gs": partial(_in_bucket, "gs"),
    "abfs": _abfs,
    "abfss": _abfs,
}
