"""Errors of a storage that answers and refuses: each says what has to be done before another attempt can succeed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.errors import HudiError
from jobs.storage.refusal import Refusal
from jobs.table_errors import DamagedFileError


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
    why = (
        "The storage does not accept the credentials: a key that it does not know, a wrong secret, a token that has"
        " expired, or none at all. Where Kerberos is used, the process has no ticket that is valid now and no keytab to"
        " get one. No attempt with the same credentials succeeds, so none is made."
    )
    example = "hdfs://namenode/lake/orders: no ticket"


class StorageRoleError(StorageRefusedError):
    type = "storage-role-refused"
    title = "A role for the table's storage cannot be assumed"
    hint = (
        "Let the role's trust policy name who assumes it, with the same external id; let the caller's own policy allow"
        " sts:AssumeRole, and sts:TagSession if tags are declared. A chain of roles allows `seconds` of 3600 at most."
    )
    why = (
        "The credentials are valid, and AWS refuses the role that the account in GROUNDSKEEPER_STORAGE_ACCOUNTS names:"
        " its trust policy does not name the caller, the external id is another one, tags may not be set, or the"
        " session would last too long. AWS gives the same answer to a wrong external id as to a role without trust."
    )
    example = (
        "assuming the role arn:aws:iam::111122223333:role/lake: AccessDenied: not authorized to perform: sts:AssumeRole"
    )


class StorageCertificateError(StorageRefusedError):
    type = "storage-not-trusted"
    title = "The certificate of the storage is not trusted"
    hint = (
        "Name the PEM file of the authority in `ca_file` of the account in GROUNDSKEEPER_STORAGE_ACCOUNTS, and use the"
        " host's name that is in the certificate."
    )
    why = (
        "The storage is reached by TLS, and its certificate was signed by an authority that this machine does not know,"
        " is for another host, or has ended. Nothing was sent."
    )
    example = "s3a://lake/orders: SSL peer certificate or SSH remote key was not OK"


class StorageRegionError(StorageRefusedError):
    type = "storage-wrong-region"
    title = "The bucket of the table is in another region"
    hint = "Set the bucket's region: `region` of its account, or fs.s3a.endpoint.region and fs.s3a.endpoint."
    why = "The storage knows the bucket, and answers that requests have to go to another region or endpoint."
    example = "s3a://lake/orders: AuthorizationHeaderMalformed: the region 'us-east-1' is wrong; expecting 'eu-west-1'"


class StorageKeyError(StorageRefusedError):
    type = "storage-key-denied"
    title = "The key that encrypts the table's files may not be used"
    hint = (
        "Let the role or user call kms:Decrypt and kms:GenerateDataKey with the key of the bucket: both its own policy"
        " and the key's policy have to allow it. Check that the key is enabled."
    )
    why = (
        "The storage lets the caller read or write, but the files are encrypted by a key of AWS KMS that the caller may"
        " not use, or that is disabled or deleted. Both policies, the caller's and the key's, have to allow it."
    )
    example = "User: arn:aws:sts::111122223333:assumed-role/lake/gk is not authorized to perform: kms:Decrypt"


class StorageDeniedError(StorageRefusedError):
    type = "storage-access-denied"
    title = "The storage does not let the worker do what the job needs"
    hint = (
        "The refused request changed nothing in the table. Let the user or role of the workers read, write and delete "
        "below the table's base path, in .hoodie as well, and in the folder of its lock."
    )
    why = (
        "The storage knows who asks, and does not allow it: the permissions of a folder, a policy of the bucket, or an"
        " access control list. A storage that answers 403 without a reason may mean the credentials as well. The"
        " workers may be another user than the service. No attempt succeeds before somebody allows it, so none is made."
    )
    example = "s3a://lake/orders/.hoodie/lock: PUT: Access Denied (status code 403)"


class StorageReadOnlyError(StorageRefusedError):
    type = "storage-read-only"
    title = "The table is on a storage that can only be read"
    hint = (
        "A snapshot or a file system that is mounted for reading only takes no writes. Register the table at the path"
        " that its writers use, mount the file system for writing, or switch the services off in the table's policy."
    )
    why = (
        "The file system is mounted for reading only, or the path leads into a snapshot. Jobs that write are not tried"
        " again; those that only read run."
    )
    example = "writing to /mnt/lake/orders/.hoodie: FileNotFoundException: lock (Read-only file system)"


class StorageUnknownError(StorageRefusedError):
    """The error is `retriable` for an unknown host, because a name server that fails gives the same answer."""

    type = "storage-unknown"
    title = "The bucket, container or host of the table's storage does not exist"
    hint = (
        "Check that the base path names it correctly, and that the worker's storage options have its endpoint and "
        "region."
    )
    why = (
        "The storage has no bucket, container or file system of that name, or the name of its host has no address. A "
        "name server that fails looks like an unknown host, so the job is tried again in that case."
    )
    example = "s3a://lkae/orders: NoSuchBucket: The specified bucket does not exist"


class StorageFullError(StorageRefusedError):
    type = "storage-full"
    title = "No space is left, or a quota is used up"
    hint = (
        "Free space on the table's storage, or raise its quota: a `cleaning` job frees what no reader needs any more. "
        "If the path in the detail is on a worker's own disk (spark.local.dir), free space there."
    )
    why = (
        "The disk, the bucket's quota or a quota of HDFS is used up. The next job rolls back what this one had begun."
        " The service does not try the job again by itself, since it would fill what is freed."
    )
    example = "compacting: IOException: No space left on device"


_DAMAGE = re.compile(
    # The words of parquet-mr and of Arrow for a damaged Parquet file.
    r"is not a Parquet file|Parquet magic bytes not found|smaller than the minimum file footer|Parquet file size is 0"
    r"|Couldn't deserialize thrift|[Cc]ould not read page|Corrupt(?:ed)? snappy|corrupt (?:gzip|zstd|lz4)"
    # Avro: instants of the timeline, plans, blocks of logs.
    r"|Not an Avro data file|InvalidAvroMagicException|Invalid sync!"
    # JSON: instants before table version 8.
    r"|JsonParseException"
)


def hudi_error(detail: str, message: str | None = None) -> HudiError:
    """Returns the error of an operation that failed. Words in `message`, or else in `detail`, show whether a file is
    damaged."""
    return DamagedFileError(detail) if _DAMAGE.search(message or detail) else HudiError(detail)


_TYPES: Mapping[Refusal, type[StorageRefusedError]] = {
    Refusal.KEY: StorageKeyError,
    Refusal.ROLE: StorageRoleError,
    Refusal.CERTIFICATE: StorageCertificateError,
    Refusal.REGION: StorageRegionError,
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
