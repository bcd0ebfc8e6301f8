"""A glance at a table whose polls fail: three listings tell whether anything that a poll reads first has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from jobs.format import hashing_config
from service.lake.storage import open_storage
from service.lake.table_config import META_FOLDER
from service.model.errors import GroundskeeperError

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDERS = (META_FOLDER, f"{META_FOLDER}/timeline", hashing_config.FOLDER)


@dataclass(frozen=True)
class Glance:
    storage_options: Mapping[str, str] = field(repr=False)
    allowed_roots: tuple[str, ...] | None = None

    def __call__(self, base_path: str) -> str:
        """Returns a digest that changes as soon as a file of the timeline or of the table's properties comes, goes or
        changes, or the storage answers differently."""
        try:
            storage = open_storage(base_path, self.storage_options, self.allowed_roots)
            seen = [repr(sorted(storage.list(folder))) for folder in _FOLDERS]
        except GroundskeeperError as error:
            seen = [error.type]
        return blake2b("\n".join(seen).encode(errors="surrogateescape"), digest_size=16).hexdigest()
