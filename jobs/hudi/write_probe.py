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
_BYTES = 512


def require_writable(jvm: Jvm, folder: str) -> None:
    """Raises `StorageRefusedError` if the storage lets this worker make or remove no file in the folder, and another
    `JobError` if it does not answer."""
    path = f"{folder}/{_NAME}{uuid.uuid4().hex[:12]}"
    try:
        with translated(f"writing to {folder}"):
            jvm.reads.probe(jvm.storage_conf(), path, _BYTES)
    except StorageDeniedError:
        # S3 gives no reason in its answer to a request for a head, which comes first; it does in that to a listing.
        with suppress(FileMissingError), translated(f"listing {folder}"):
            parent = jvm.hudi.storage.StoragePath(path).getParent()
            jvm.hudi.storage.HoodieStorageUtils.getStorage(parent, jvm.storage_conf()).listDirectEntries(parent)
        raise
