"""A base file as the task that wrote it reports it to the driver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WrittenFile:
    partition: str
    source: str  # The file id of the slice from which the rows come.
    file_id: str
    file_name: str
    rows: int
    bytes: int
    key_digest: str  # Digest of the rows' keys (`jobs.dataplane.key_digest`), 16 hexadecimal digits.
    copied: bool = False  # Whether row groups were copied without decoding rows.

    @property
    def bucket(self) -> int:
        """The first eight digits of a file id, in tables with a bucket index (`BucketIdentifier`)."""
        return int(self.file_id[:8])
