"""A base file as the task that wrote it reports it to the driver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WrittenFile:
    """One base file that was written. `source` is the file id of the slice that its rows come from.

    `key_digest` is that of the keys of its rows (`jobs.dataplane.key_digest`), 16 hexadecimal digits. `copied` says
    that its rows were not decoded.
    """

    partition: str
    source: str
    file_id: str
    file_name: str
    rows: int
    bytes: int
    key_digest: str
    copied: bool = False
