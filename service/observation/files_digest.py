"""A digest of the files that a poll of a table reads first. The digest costs three listings, and shows cheaply whether
a table whose polls fail has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from jobs.format import hashing_config
from service.lake.storage import open_storage
from service.lake.table_config import META_FOLDER
from service.model.errors import GroundskeeperError

_FOLDERS = (META_FOLDER, f"{META_FOLDER}/timeline", hashing_config.FOLDER)


@dataclass(frozen=True)
class FilesDigest:
    storage_options: Mapping[str, str] = field(repr=False)
    allowed_roots: tuple[str, ...] | None = None

    def __call__(self, base_path: str) -> str:
        """Returns a digest of the files of the timeline and the properties, or else of the storage's error. The digest
        changes as soon as one of these changes."""
        try:
            storage = open_storage(base_path, self.storage_options, self.allowed_roots)
            seen = [repr(sorted(storage.list(folder))) for folder in _FOLDERS]
        except GroundskeeperError as error:
            seen = [error.type]
        return blake2b("\n".join(seen).encode(errors="surrogateescape"), digest_size=16).hexdigest()
