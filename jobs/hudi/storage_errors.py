"""Errors of a storage that answers and refuses: each says what has to be done before another attempt can succeed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobs.errors import DamagedFileError, HudiError
from jobs.storage.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


class StorageRefusedError(HudiError):
    """The storage answered, and refused. No attempt on a worker like this one will succeed until somebody has done what
    the hint says."""

    retriable = False


class StorageLoginError(StorageRefusedError):
    type = "storage-login-failed"
    title = "The worker has no valid login for the table's storage"
    hint = (
        "Give the worker credentials that are valid now: access keys or a token in its storage options, a role of its"
        " machine, or for Kerberos a keytab (spark.kerberos.keytab, spark.kerberos.principal) or a ticket. Then start"
        " it again."
    )


class StorageDeniedError(StorageRefusedError):
    type = "storage-access-denied"
    title = "The storage does not let the worker do what the job needs"
    hint = (
        "Nothing of the table was changed by what was refused. Let the user or role of the workers read, write and"
        " delete below the table's base path, in .hoodie as well, and in the folder of its lock."
    )


class StorageReadOnlyError(StorageRefusedError):
    type = "storage-read-only"
    title = "The table is on a storage that can only be read"
    hint = (
        "A snapshot or a file system that is mounted for reading only takes no writes. Register the table at the path"
        " that its writers use, mount the file system for writing, or switch the services off in the table's policy."
    )


class StorageUnknownError(StorageRefusedError):
    """A name server that fails looks just like a host that does not exist, so that one may be `retriable`."""

    type = "storage-unknown"
    title = "The bucket, container or host of the table's storage does not exist"
    hint = (
        "See that the base path names it rightly, and that the worker's storage options have its endpoint and region."
    )

    def __init__(self, detail: str, *, retriable: bool = False) -> None:
        super().__init__(detail)
        self.retriable = retriable


class StorageFullError(StorageRefusedError):
    type = "storage-full"
    title = "No space is left, or a quota is used up"
    hint = (
        "Free space on the table's storage, or raise its quota: a `cleaning` job frees what no reader needs any more."
        " Where the path in the detail is of a worker's own disk (spark.local.dir), free space there."
    )


_DAMAGE = re.compile(
    # Parquet, by parquet-mr and by Arrow.
    r"is not a Parquet file|Parquet magic bytes not found|smaller than the minimum file footer|Parquet file size is 0"
    r"|Couldn't deserialize thrift|[Cc]ould not read page|Corrupt(?:ed)? snappy|corrupt (?:gzip|zstd|lz4)"
    # Avro: instants of the timeline, plans, blocks of logs.
    r"|Not an Avro data file|InvalidAvroMagicException|Invalid sync!"
    # JSON: instants before table version 8.
    r"|JsonParseException"
)


def hudi_error(detail: str, told: str | None = None) -> HudiError:
    """Returns the error of an operation that failed, by the words of its causes, which `told` may hold in full."""
    return DamagedFileError(detail) if _DAMAGE.search(told or detail) else HudiError(detail)


_TYPES: Mapping[Refusal, type[StorageRefusedError]] = {
    Refusal.LOGIN: StorageLoginError,
    Refusal.FULL: StorageFullError,
    Refusal.READ_ONLY: StorageReadOnlyError,
    Refusal.UNKNOWN: StorageUnknownError,
    Refusal.DENIED: StorageDeniedError,
}


def error_of(refusal: Refusal, detail: str) -> StorageRefusedError:
    if refusal is Refusal.UNKNOWN_HOST:
        return StorageUnknownError(detail, retriable=True)
    return _TYPES[refusal](detail)
