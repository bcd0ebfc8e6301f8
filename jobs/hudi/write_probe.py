"""A probe of whether this worker may write to a folder of a table: it makes a small file there and removes it again."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from jobs.errors import FileMissingError
from jobs.hudi.jvm import translated
from jobs.storage_errors import StorageDeniedError

if TYPE_CHECKING:
    from jobs.hudi.jvm import Jvm

# Hudi's timelines, which are folders like this one before table version 8, leave out what is no instant.
_NAME = ".groundskeeper-probe-"
# The signature of a lock has as many bytes.
_CONTENT = bytearray(512)


def require_writable(jvm: Jvm, folder: str) -> None:
    """Raises `StorageRefusedError` if the storage lets this worker make or remove no file in the folder, and another
    `JobError` if it does not answer."""
    path = jvm.hudi.storage.StoragePath(f"{folder}/{_NAME}{uuid.uuid4().hex[:12]}")
    with translated(f"writing to {folder}"):
        storage = jvm.hudi.storage.HoodieStorageUtils.getStorage(path, jvm.storage_conf())
    try:
        with translated(f"writing to {folder}"):
            try:
                stream = storage.create(path, False)
                try:
                    stream.write(_CONTENT)
                finally:
                    stream.close()
            finally:
                # On a full disk there is a file, and no content.
                storage.deleteFile(path)
    except StorageDeniedError:
        # S3 gives no reason in its answer to a request for a head, which comes first; it does in that to a listing.
        with suppress(FileMissingError), translated(f"listing {folder}"):
            storage.listDirectEntries(path.getParent())
        raise
