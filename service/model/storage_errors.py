"""Errors of paths, of storages, and of reading a table from a storage."""

from __future__ import annotations

from jobs import storage_errors, table_errors
from jobs.problems.permissions import PATH_NOT_ALLOWED, STORAGE_NOT_SUPPORTED
from service.model.errors import GroundskeeperError, InvalidError


class PathNotFoundError(InvalidError):
    type = "path-not-found"
    title = "The path does not exist, or the service cannot read it"
    hint = "Check the spelling of the path, and that the service has the storage options that it needs."
    why = (
        "The path does not exist, or the account of the service may not list the folder above it. Some storages give"
        " the same answer in both cases."
    )
    example = "/data/trips does not exist"


class PathForbiddenError(GroundskeeperError, like=PATH_NOT_ALLOWED):
    type = "path-not-allowed"
    title = "The path is not below one of the allowed roots"
    hint = "An administrator can name a folder above the table in GROUNDSKEEPER_ALLOWED_ROOTS of the service."


class StorageUnsupportedError(InvalidError, like=STORAGE_NOT_SUPPORTED):
    type = "storage-not-supported"
    title = "This kind of storage is not supported"
    hint = "Supported are local paths, S3 (s3a:), HDFS (hdfs:), Google Cloud Storage (gs:) and Azure (abfss:)."


class StorageError(GroundskeeperError):
    type = "storage-error"
    title = "Reading the table's storage failed"
    hint = "Check that the storage is up and that the service may read it, then try again."
    why = "The storage answered with an error, or not at all. The failure says nothing about the table itself."
    example = "s3a://lake/orders/.hoodie: timed out after 10 s"


class PathOutsideTableError(StorageError, like=table_errors.PathOutsideTableError):
    type = "path-outside-table"
    title = "A path of the table leads out of it"
    hint = "The service does not follow this link or property. Find out who wrote it."


class ReadTimedOutError(StorageError):
    type = "table-too-slow"
    title = "Reading the table took too long"
    hint = "Check the storage. A registered table is polled again, at growing intervals while the failure lasts."
    why = (
        "A read of the table's folders or timeline took longer than its time limit and was ended. The usual cause is a"
        " storage that does not answer, or a folder with very many files."
    )
    example = "Reading the table took longer than 30 seconds."


class ReaderCrashedError(StorageError):
    type = "table-not-readable"
    title = "Reading the table ended the process that read it"
    hint = "A file of the table is damaged or malicious. Find out which program wrote the newest files below `.hoodie`."
    why = (
        "Files of tables are parsed in separate processes, because anybody may have written the files. The process that"
        " read this table crashed, or reached its limit of memory."
    )
    example = "The process that read the table ended by SIGKILL."


class PollFailedError(StorageError):
    type = "look-failed"
    title = "The poll of the table failed"
    hint = "Read the service's log. The table is polled again, at growing intervals while the failure lasts."
    why = "The poll of the table's timeline ended with an unexpected error, which is a fault of Groundskeeper."
    example = "KeyError"


class FileDamagedError(StorageError, like=table_errors.DamagedFileError):
    title = "A file of the table is damaged"
    hint = (
        "Run a diagnosis: it names each damaged file of the timeline and the job that cures the damage. Or restore the"
        " file from a copy; the next poll reads it."
    )
    example = "/data/trips/.hoodie/timeline/20260101120000000_20260101120001000.deltacommit is damaged: EOFError"


class ReadersBusyError(GroundskeeperError):
    type = "too-many-reads"
    title = "Too many tables are being read at this moment"
    hint = "Try again in a moment. If the problem lasts, look for tables on a storage that does not answer."
    why = "A limited number of processes reads tables. All of them are busy, and the queue for them is full."
    example = "Too many tables are being read at this moment"


class StorageLoginError(StorageError, like=storage_errors.StorageLoginError):
    type = "storage-login-failed"
    title = "The service has no valid login for the table's storage"
    hint = (
        "Give the service valid credentials: access keys in GROUNDSKEEPER_STORAGE_OPTIONS or in the environment, a role"
        " of its machine, or a keytab (KRB5_CLIENT_KTNAME) or ticket (KRB5CCNAME). The guide to storage describes them."
    )


class StorageDeniedError(StorageError, like=storage_errors.StorageDeniedError):
    type = "storage-access-denied"
    title = "The storage does not let the service read the table"
    hint = "Let the service's user or role list and read everything below the table's base path, including .hoodie."


class StorageUnknownError(StorageError, like=storage_errors.StorageUnknownError):
    type = "storage-unknown"
    title = "The bucket, container or host of the table's storage does not exist"
    hint = "Check its name in the base path, and its endpoint and region in GROUNDSKEEPER_STORAGE_OPTIONS."


class StorageRoleError(StorageError, like=storage_errors.StorageRoleError):
    pass


class StorageCertificateError(StorageError, like=storage_errors.StorageCertificateError):
    pass


class StorageRegionError(StorageError, like=storage_errors.StorageRegionError):
    pass


class StorageKeyError(StorageError, like=storage_errors.StorageKeyError):
    pass
