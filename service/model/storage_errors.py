"""Errors of a storage that answers and refuses."""

from __future__ import annotations

from service.model.errors import StorageError


class StorageLoginError(StorageError):
    type = "storage-login-failed"
    title = "The service has no valid login for the table's storage"
    hint = (
        "Give it credentials that are valid now: access keys in GROUNDSKEEPER_STORAGE_OPTIONS or in the environment, a"
        " role of its machine, or a keytab (KRB5_CLIENT_KTNAME) or ticket (KRB5CCNAME) as in the guide to storage."
    )


class StorageDeniedError(StorageError):
    type = "storage-access-denied"
    title = "The storage does not let the service read the table"
    hint = "Let the service's user or role list and read all that is below the table's base path, in .hoodie as well."


class StorageUnknownError(StorageError):
    type = "storage-unknown"
    title = "The bucket, container or host of the table's storage does not exist"
    hint = "See that the base path names it rightly, and GROUNDSKEEPER_STORAGE_OPTIONS its endpoint and region."
