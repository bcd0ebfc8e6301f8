"""Hudi's lock providers (1.2.0), by the short names that a registration may use, and the options of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from jobs.contract import TableLock
from jobs.format.hudi_options import EXTEND_CLASSES, REMOVE, Form, Refusal, malformed
from jobs.format.server_addresses import address, metastores

_OF_CLIENTS = "org.apache.hudi.client.transaction.lock."
FILESYSTEM = f"{_OF_CLIENTS}FileSystemBasedLockProvider"
ZOOKEEPER = (f"{_OF_CLIENTS}ZookeeperBasedLockProvider", f"{_OF_CLIENTS}ZookeeperBasedImplicitBasePathLockProvider")
IN_STORAGE = f"{_OF_CLIENTS}StorageBasedLockProvider"
HIVE = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
DYNAMODB = (
    "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
    "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider",
)
LOCK_PROVIDERS = {"filesystem": FILESYSTEM, "zookeeper": ZOOKEEPER[0]}
# Providers with a state outside of their client that shows who holds the lock.
_PROVABLE = frozenset({FILESYSTEM, *ZOOKEEPER, IN_STORAGE, HIVE, *DYNAMODB})

# For these schemes `StorageSchemes` names a class that is not in the bundle for Spark.
_BUNDLES_OF_STORAGES = {
    "s3": "org.apache.hudi:hudi-aws-bundle",
    "s3a": "org.apache.hudi:hudi-aws-bundle",
    "gs": "org.apache.hudi:hudi-gcp-bundle",
    **dict.fromkeys(("wasb", "wasbs", "abfs", "abfss"), "org.apache.hudi:hudi-azure-bundle"),
}

PREFIX = "hoodie.write.lock."
FOLDER = f"{PREFIX}filesystem.path"


def _under(prefix: str, form: Form, names: str) -> dict[str, Form]:
    return {f"{prefix}{name}": form for name in names.split()}


_OF_ALL = _under(
    PREFIX,
    Form.NUMBER,
    "client.num_retries client.wait_time_ms_between_retry heartbeat_interval_ms max_wait_time_ms_between_retry"
    " num_retries wait_time_ms wait_time_ms_between_retry",
)
_OF_ZOOKEEPER = _under(f"{PREFIX}zookeeper.", Form.TEXT, "base_path lock_key url") | _under(
    f"{PREFIX}zookeeper.", Form.NUMBER, "connection_timeout_ms port session_timeout_ms"
)
_OF_AWS = _under("hoodie.aws.", Form.TEXT, "access.key secret.key session.token")
_OF_DYNAMODB = _under(f"{PREFIX}dynamodb.", Form.TEXT, "billing_mode endpoint_url partition_key region table") | _under(
    f"{PREFIX}dynamodb.", Form.NUMBER, "read_capacity table_creation_timeout write_capacity"
)

_OPTIONS: dict[str, dict[str, Form]] = {
    FILESYSTEM: {FOLDER: Form.TEXT, f"{PREFIX}filesystem.expire": Form.NUMBER},
    IN_STORAGE: _OF_AWS
    | _under(f"{PREFIX}storage.", Form.NUMBER, "heartbeat.poll.secs renew.interval.secs validity.timeout.secs"),
    HIVE: _OF_ZOOKEEPER | _under(f"{PREFIX}hivemetastore.", Form.TEXT, "database table uris"),
    **dict.fromkeys(ZOOKEEPER, _OF_ZOOKEEPER),
    **dict.fromkeys(DYNAMODB, _OF_AWS | _OF_DYNAMODB),
}


def class_of(provider: str) -> str:
    """Returns the class name of a provider that is given by its short name or by its class."""
    return LOCK_PROVIDERS.get(provider, provider)


def first_release(provider: str) -> tuple[int, int]:
    """Returns the first release of Hudi that has the provider; (0, 0) if all have it, or if it is unknown."""
    return (1, 0) if class_of(provider) in {IN_STORAGE, ZOOKEEPER[1]} else (0, 0)


def is_in_a_file(provider: str) -> bool:
    """Returns whether the lock is Hudi's lock file, which never expires by itself and which anybody can delete."""
    return class_of(provider) == FILESYSTEM


def folder_of(lock: TableLock, base_path: str) -> str:
    """Returns the folder of the file `lock` of the filesystem provider (`FileSystemBasedLockProvider`)."""
    return lock.options.get(FOLDER) or f"{base_path.rstrip('/')}/.hoodie"


def file_of(lock: TableLock, base_path: str) -> tuple[str, str] | None:
    """Returns the folder and the name of the file that is the lock; None for a lock that is not in a file.

    The file of a lock in the storage is named `StorageBasedLockProvider.DEFAULT_TABLE_LOCK_FILE_NAME`.
    """
    if is_in_a_file(lock.provider):
        return folder_of(lock, base_path), "lock"
    if class_of(lock.provider) == IN_STORAGE:
        return f"{base_path.rstrip('/')}/.hoodie/.locks", "table_lock.json"
    return None


def seconds_to_expiry(lock: TableLock) -> int | None:
    """Returns the age at which a lock file expires, so that the next client deletes it; None if it never does
    (`FileSystemBasedLockProvider.checkIfExpired`)."""
    minutes = _number(lock, "filesystem.expire", 0)
    return minutes * 60 if is_in_a_file(lock.provider) and minutes > 0 else None


def ending_of(lock: TableLock) -> str:
    """Returns a sentence that says how such a lock ends if its holder never releases it. The defaults are Hudi's."""
    provider = class_of(lock.provider)
    if is_in_a_file(provider):
        if (seconds := seconds_to_expiry(lock)) is not None:
            return f"{seconds // 60} min after it was taken the next client that wants the lock removes it."
        return "The lock never ends by itself: the file stays until somebody deletes it."
    if provider == IN_STORAGE:
        validity = _number(lock, "storage.validity.timeout.secs", 300)
        return f"The lock ends {validity} s after its holder last renewed it, and a living holder does so all the time."
    if provider in ZOOKEEPER:
        milliseconds = _number(lock, "zookeeper.session_timeout_ms", 60_000)
        return f"The lock is an ephemeral node: it ends {milliseconds / 1000:g} s after its holder's last sign of life."
    if provider in DYNAMODB:
        return f"The lock ends {_number(lock, 'wait_time_ms', 60_000) / 1000:g} s after its holder last renewed it."
    if provider == HIVE:
        return (
            "A metastore with housekeeping ends it `hive.txn.timeout` (five minutes by default) after its holder's "
            "last heartbeat. Without housekeeping it never ends: `SHOW LOCKS` finds it in Hive."
        )
    return "Its provider is the table owner's own class, so only that class knows when it ends."


def _number(lock: TableLock, name: str, default: int) -> int:
    """Returns an option of the lock. A registration by an earlier version may not have checked its form."""
    text = lock.options.get(f"{PREFIX}{name}", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else default


def is_provable(provider: str) -> bool:
    """Returns whether a job can prove right before a commit that the lock is still its own."""
    return class_of(provider) in _PROVABLE


def servers_of(lock: TableLock) -> list[tuple[str, int]]:
    """Returns the hosts and ports in the lock's options, of which the lock needs one; empty if unknown. DynamoDB's
    hosts are left out, because the way to them may be a proxy. Raises `ValueError` for an invalid address."""
    provider = class_of(lock.provider)
    if provider in ZOOKEEPER:
        # Hudi ignores `zookeeper.port`; the rest of the string after a slash is a path (`ConnectStringParser`).
        text = lock.options.get(f"{PREFIX}zookeeper.url", "").partition("/")[0]
        return [address(f"//{each.strip()}", 2181) for each in text.split(",") if each.strip()]
    if provider == HIVE:
        return metastores(lock.options.get(f"{PREFIX}hivemetastore.uris", ""))
    return []


def bundle_of(lock: TableLock, base_path: str) -> str | None:
    """Returns group and artifact of the jar with the provider or its storage client; None if the bundle for Spark has
    its classes, or if the provider is not Hudi's."""
    provider = class_of(lock.provider)
    if provider in DYNAMODB:
        return "org.apache.hudi:hudi-aws-bundle"
    return _BUNDLES_OF_STORAGES.get(base_path.partition(":")[0]) if provider == IN_STORAGE else None


def refusals(lock: TableLock, allowed_classes: Collection[str] = (), *, base_path: str) -> Iterator[Refusal]:
    """Yields the refusals of a table's lock. `allowed_classes` are allowed providers in addition to Hudi's own. Hudi's
    in-process providers are refused, because they do not exclude other writers."""
    provider = class_of(lock.provider)
    if provider in _OPTIONS:
        yield from _unknown(lock.options, _OF_ALL | _OPTIONS[provider])
    elif provider in allowed_classes:
        # The options of a user's own class are not known here.
        given = {key: Form.TEXT for key in lock.options if re.fullmatch(r"hoodie\.write\.lock\.[\w.-]+", key, re.ASCII)}
        yield from _unknown(lock.options, given | _OF_ALL)
    else:
        yield Refusal("lock.provider", "it is not one of Hudi's lock providers", EXTEND_CLASSES)
    if provider == IN_STORAGE and not bundle_of(lock, base_path):
        yield Refusal("lock.provider", "this lock provider needs a table on S3, GCS or Azure", "Use another one.")
    try:
        servers_of(lock)
    except ValueError as error:
        field = f"{PREFIX}{'hivemetastore.uris' if provider == HIVE else 'zookeeper.url'}"
        yield Refusal(f"lock.options.{field}", str(error), "Give hosts and ports, separated by commas.")


def _unknown(options: Mapping[str, str], forms: Mapping[str, Form]) -> Iterator[Refusal]:
    for key, value in options.items():
        if key in forms and key != f"{PREFIX}provider":
            yield from malformed(f"lock.options.{key}", value, forms[key])
        else:
            yield Refusal(f"lock.options.{key}", "this lock provider has no such option", REMOVE)
