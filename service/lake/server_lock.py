"""A table's lock on a server, read without Hudi: a node of ZooKeeper, or an item in DynamoDB."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx

from jobs.contract import TableLock
from jobs.format.lock_providers import DYNAMODB, PREFIX, ZOOKEEPER, class_of, servers_of
from jobs.format.server_addresses import address, is_among
from service.lake.dynamodb import Credentials, DynamodbError, item
from service.lake.zookeeper import ZookeeperError, connected

SECONDS = 3.0
"""Time limit for all answers of a server together."""

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
_NUMBER_OF_NODE = re.compile(r"\d{10}$")


@dataclass(frozen=True)
class ServerLock:
    """The state of a lock as its server reports it. `holder` is None if nobody holds the lock. A live holder renews the
    lock, which changes its `id`; if the `id` stays the same for `expires_after`, the lock has ended."""

    holder: str | None = None
    id: str | None = None
    since: datetime | None = None
    expires_after: timedelta | None = None


class UnreadableLockError(Exception):
    """The service cannot read the lock. `is_silent` says that the lock's server does not answer."""

    def __init__(self, why: str, *, is_silent: bool = False) -> None:
        super().__init__(why)
        self.is_silent = is_silent


def read_server_lock(lock: TableLock, lock_hosts: Collection[str], now: datetime) -> ServerLock:
    """Reads the lock. Connects only to `lock_hosts`, which the administrator has named, and to DynamoDB at AWS. `lock`
    has the options of the registration, with their secrets. Raises UnreadableLockError."""
    provider = class_of(lock.provider)
    if provider == ZOOKEEPER[0]:
        return _of_zookeeper(lock, lock_hosts)
    if provider == DYNAMODB[0]:
        return _of_dynamodb(lock, lock_hosts, now)
    raise UnreadableLockError("The service has no client for locks of this provider.")


def _of_zookeeper(lock: TableLock, lock_hosts: Collection[str]) -> ServerLock:
    url = _option(lock, "zookeeper.url")
    base, key = _option(lock, "zookeeper.base_path"), _option(lock, "zookeeper.lock_key")
    try:
        servers = servers_of(lock)
    except ValueError as error:
        raise UnreadableLockError(f"{error}.") from error
    _require_permitted(servers, lock_hosts)
    # The text after the servers is the root folder of all paths (`ConnectStringParser`).
    root = url.partition("/")[2].strip("/")
    folder = "/" + "/".join(part.strip("/") for part in (root, base, key) if part.strip("/"))
    try:
        with connected(servers, SECONDS) as session:
            # The first of the lock's nodes belongs to the holder, the others to waiting clients (`InterProcessMutex`).
            nodes = [name for name in session.children(folder) or () if _NUMBER_OF_NODE.search(name)]
            for name in sorted(nodes, key=lambda each: each[-10:]):
                if node := session.node(f"{folder}/{name}"):
                    since = datetime.fromtimestamp(node.created, UTC)
                    return ServerLock(f"the ZooKeeper session 0x{node.session:x}", _short(name), since)
            return ServerLock()
    except ZookeeperError as error:
        raise UnreadableLockError(f"ZooKeeper: {error}.") from error
    except TimeoutError as error:
        raise UnreadableLockError(f"ZooKeeper did not answer within {SECONDS:g} s.", is_silent=True) from error
    except OSError as error:
        raise UnreadableLockError(f"ZooKeeper: {error.strerror or error}.", is_silent=True) from error


def _of_dynamodb(lock: TableLock, lock_hosts: Collection[str], now: datetime) -> ServerLock:
    """Reads the item of `AmazonDynamoDBLockClient`. The holder keeps rewriting the item (`recordVersionNumber`), and
    deletes or marks the item when it releases the lock."""
    region, endpoint = _option(lock, "dynamodb.region"), lock.options.get(f"{PREFIX}dynamodb.endpoint_url")
    table, key = _option(lock, "dynamodb.table"), _option(lock, "dynamodb.partition_key")
    if endpoint:
        try:
            _require_permitted([address(endpoint, 443 if endpoint.startswith("https:") else 80)], lock_hosts)
        except ValueError as error:
            raise UnreadableLockError(f"{error}.") from error
    elif not _REGION.fullmatch(region):
        raise UnreadableLockError(f"{region} is no region of AWS.")
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    try:
        found = item(
            endpoint or f"https://dynamodb.{region}.{domain}",
            region,
            _credentials(lock),
            table,
            {"key": key},
            seconds=SECONDS,
            now=now,
        )
    except DynamodbError as error:
        raise UnreadableLockError(f"DynamoDB: {error}.") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        is_silent = isinstance(error, httpx.TransportError)
        raise UnreadableLockError(f"DynamoDB: {error or type(error).__name__}.", is_silent=is_silent) from error
    version, lease = found.get("recordVersionNumber"), found.get("leaseDuration", "")
    if version is None or "isReleased" in found:
        return ServerLock()
    milliseconds = int(lease) if lease.isascii() and lease.isdecimal() and len(lease) < 12 else 60_000
    return ServerLock(
        found.get("ownerName") or "an owner without a name",
        _short(version),
        expires_after=timedelta(milliseconds=milliseconds),
    )


def _credentials(lock: TableLock) -> Credentials:
    """Returns the credentials in the lock's options, or else those in the service's environment. The role of this
    machine is not used, because the workers' machines have other roles."""
    own = [lock.options.get(f"hoodie.aws.{name}") for name in ("access.key", "secret.key", "session.token")]
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    access_key, secret_key, token = own if own[0] else [os.environ.get(name) for name in names]
    if not access_key or not secret_key:
        raise UnreadableLockError("Only the workers have credentials for DynamoDB.")
    return Credentials(access_key, secret_key, token)


def _require_permitted(servers: Collection[tuple[str, int]], lock_hosts: Collection[str]) -> None:
    for host, port in servers:
        if not is_among(lock_hosts, host, port):
            raise UnreadableLockError(f"{host}:{port} is not among the GROUNDSKEEPER_LOCK_HOSTS.")


def _option(lock: TableLock, name: str) -> str:
    if not (value := lock.options.get(f"{PREFIX}{name}")):
        raise UnreadableLockError(f"The registration does not say {PREFIX}{name}.")
    return value


def _short(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:16]
