"""Tests whether this worker can write to a folder of a table, by making and removing a small file."""

from __future__ import annotations

import uuid
from contextlib import suppress

from jobs.errors import FileMissingError
from jobs.hudi.jvm import Jvm, translated
from jobs.storage_errors import StorageDeniedError

# Before table version 8 this folder is the timeline; Hudi ignores files there that are not instants.
_NAME = ".groundskeeper-probe-"
# The file is as large as the signature in a lock file.
_BYTES = 512


def require_writable(jvm: Jvm, folder: str) -> None:
    """Raises `StorageRefusedError` if the storage does not let this worker make or remove a file in the folder, and
    another `JobError` if it does not answer."""
    path = f"{folder}/{_NAME}{uuid.uuid4().hex[:12]}"
    try:
        with translated(f"writing to {folder}"):
            jvm.reads.probe(jvm.storage_conf(), path, _BYTES)
    except StorageDeniedError:
        # S3 gives no reason when it refuses the HEAD request of a write, but it does when it refuses a listing.
        with suppress(FileMissingError), translated(f"listing {folder}"):
            parent = jvm.hudi.storage.StoragePath(path).getParent()
            jvm.hudi.storage.HoodieStorageUtils.getStorage(parent, jvm.storage_conf()).listDirectEntries(parent)
        raise
