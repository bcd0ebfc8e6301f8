"""Converts the HDFS options of the owner's Spark jobs to an Arrow file system over WebHDFS, which needs no JVM.

Mirrors Hadoop 3.3.4 (`DFSUtil`, `HAUtilClient`, `UserGroupInformation`). Options that WebHDFS cannot reproduce are
refused, because a small difference in reading or writing would go unnoticed.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from pyarrow import fs

from jobs.storage.hdfs_files import HdfsFiles
from jobs.storage.store import NotReproducibleError, not_reproduced
from jobs.storage.webhdfs import WebHdfs

AUTHENTICATION, KERBEROS = "hadoop.security.authentication", "kerberos"
_PORTS = {"http": 9870, "https": 9871}
# Options that change the written data or the access to the cluster in ways that are not supported here, with the values
# of each that are harmless (besides being unset).
_NOT_REPRODUCED = {
    "fs.hdfs.impl": ("org.apache.hadoop.hdfs.DistributedFileSystem",),
    AUTHENTICATION: ("simple", KERBEROS),
}
_UMASK, _REPLICATION, _BLOCK_SIZE = "fs.permissions.umask-mode", "dfs.replication", "dfs.blocksize"
_POLICY, _CONNECT = "dfs.http.policy", "ipc.client.connect.timeout"
# A regular expression for `Configuration.getValByRegex`.
OPTIONS = (
    rf"^({'|'.join(map(re.escape, (*_NOT_REPRODUCED, _UMASK, _REPLICATION, _BLOCK_SIZE, _POLICY, _CONNECT)))}"
    r"|dfs\.ha\.namenodes\..*|dfs\.namenode\.(rpc|http|https)-address(\..*)?)$"
)


@dataclass(frozen=True)
class Hdfs:
    """The access to one cluster; it can be sent to Spark's tasks. `name_nodes` are base URLs of WebHDFS.

    `user` is None with Kerberos, where the login is by `token` (a delegation token in the form of URLs), or else by a
    ticket of the process. `permission`, `replication` and `block_size` are those of new files. The last two have the
    form of Hadoop's options; None means the cluster's default.
    """

    name_nodes: tuple[str, ...]
    user: str | None
    token: str | None = field(default=None, repr=False)
    permission: str = "644"
    replication: str | None = None
    block_size: str | None = None
    connect_seconds: float = 20.0
    request_seconds: float = 60.0
    attempts: int = 10

    def filesystem(self) -> fs.FileSystem:
        """Returns Arrow's file system, one per process. Paths are absolute, without any encoding."""
        return _filesystem(self)

    def with_short_timeouts(self) -> Hdfs:
        return replace(self, connect_seconds=3.0, request_seconds=10.0, attempts=2)


@lru_cache(maxsize=16)
def _filesystem(hdfs: Hdfs) -> fs.FileSystem:
    client = WebHdfs(
        hdfs.name_nodes,
        hdfs.user,
        token=hdfs.token,
        connect=hdfs.connect_seconds,
        request=hdfs.request_seconds,
        attempts=hdfs.attempts,
    )
    options = {"permission": hdfs.permission, "replication": hdfs.replication, "blocksize": hdfs.block_size}
    return fs.PyFileSystem(HdfsFiles(client, {name: value for name, value in options.items() if value}))


def of_hadoop(options: Mapping[str, str], cluster: str) -> Hdfs:
    """Returns the access to this cluster, `host[:port]` of its name node or the name of a nameservice.

    Raises `NotReproducibleError`.
    """
    chosen = {name.removeprefix("spark.hadoop."): value.strip() for name, value in options.items() if value.strip()}
    if AUTHENTICATION in chosen:
        chosen[AUTHENTICATION] = chosen[AUTHENTICATION].lower()
    reasons = [f"{name} = {chosen[name]}" for name in not_reproduced(chosen, _NOT_REPRODUCED)]
    if reasons:
        raise NotReproducibleError("; ".join(reasons))
    block_size = chosen.get(_BLOCK_SIZE)
    return Hdfs(
        name_nodes=tuple(_name_nodes(chosen, cluster)),
        user=None if chosen.get(AUTHENTICATION) == KERBEROS else _user(),
        permission=_permission(chosen),
        replication=_matching(chosen, _REPLICATION, r"\d{1,4}"),
        block_size=None if block_size is None else str(_bytes(block_size)),
        connect_seconds=int(_matching(chosen, _CONNECT, r"\d{1,7}") or 20_000) / 1000,
    )


def _name_nodes(chosen: Mapping[str, str], cluster: str) -> Iterator[str]:
    """Yields the URLs of a nameservice's name nodes, or of the only one (`DFSUtil.getInfoServer`)."""
    scheme = "https" if chosen.get(_POLICY, "").upper() == "HTTPS_ONLY" else "http"
    name = cluster.partition(":")[0]
    http, rpc = f"dfs.namenode.{scheme}-address", "dfs.namenode.rpc-address"
    if nodes := chosen.get(f"dfs.ha.namenodes.{name}"):
        for node in filter(None, map(str.strip, nodes.split(","))):
            host = chosen.get(f"{rpc}.{name}.{node}", "").partition(":")[0]
            address = chosen.get(f"{http}.{name}.{node}") or host
            if not address:
                raise NotReproducibleError(f"{http}.{name}.{node} is not set")
            yield _url(scheme, address, host)
        return
    host = chosen.get(f"{rpc}.{name}", cluster).partition(":")[0]
    yield _url(scheme, chosen.get(f"{http}.{name}") or chosen.get(http) or host, host)


def _url(scheme: str, address: str, host: str) -> str:
    found = re.fullmatch(r"([A-Za-z0-9._-]+)(?::(\d{1,5}))?", address)
    if found is None:
        raise NotReproducibleError(f"{address} is no address of a name node")
    # Hadoop's default address is 0.0.0.0, which stands for the host of the name node.
    named = host if found[1] == "0.0.0.0" else found[1]  # noqa: S104
    return f"{scheme}://{named}:{found[2] or _PORTS[scheme]}"


def _user() -> str:
    """Returns Hadoop's user without Kerberos (`UserGroupInformation`)."""
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (OSError, KeyError) as error:
        raise NotReproducibleError("this process has a user without a name; set HADOOP_USER_NAME") from error


def _permission(chosen: Mapping[str, str]) -> str:
    umask = _matching(chosen, _UMASK, r"[0-7]{1,4}") or "022"
    return f"{0o666 & ~int(umask, 8):o}"


def _matching(chosen: Mapping[str, str], name: str, pattern: str) -> str | None:
    value = chosen.get(name)
    if value is not None and not re.fullmatch(pattern, value, re.ASCII):
        raise NotReproducibleError(f"{name} = {value}")
    return value


def _bytes(size: str) -> int:
    """Returns the bytes of `Configuration.getLongBytes`: a number with a binary prefix, such as `128m`."""
    found = re.fullmatch(r"(\d{1,15})([kmgtpe]?)", size.lower(), re.ASCII)
    if found is None:
        raise NotReproducibleError(f"{_BLOCK_SIZE} = {size}")
    return int(found[1]) << 10 * " kmgtpe".index(found[2] or " ")
