"""Names of base files and log files, and the bucket in a file id."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# Since Hudi 1.1 Flink counts the batches of a checkpoint in a fourth number of the token
# (`FlinkIncrementalMergeHandle.newFileNameWithRollover`).
_BASE = re.compile(r"(?P<file_id>[^_.]+)_(?P<token>\d+-\d+-\d+(?:-\d+)?)_(?P<instant>\d+)\.(?P<extension>\w+)")
_LOG = re.compile(
    r"\.(?P<file_id>[^._]+)_(?P<instant>[^.]*)\.log\.(?P<version>\d+)(?:_(?P<token>\d+-\d+-\d+)(?P<cdc>\.cdc)?)?"
)
_BUCKET = re.compile(r"(?P<bucket>[0-9]{8})(?P<tail>(-[0-9a-f]{4}){3}-[0-9a-f]{12})(-[0-9]+)?")
_FIXED_TAIL = "-0000-0000-0000-000000000000"


class BaseFileName(NamedTuple):
    """`<file id>_<write token>_<instant>.<extension>`: the instant that wrote it."""

    file_id: str
    write_token: str
    instant: str
    extension: str


class LogFileName(NamedTuple):
    """`.<file id>_<instant>.log.<version>_<write token>` (Hudi 1.2 `FSUtils.LOG_FILE_PATTERN`).

    In table version 6 the instant is that of the file slice. Since version 8 the instant is that of the delta commit
    that wrote the file.
    """

    file_id: str
    instant: str
    version: int
    write_token: str


@lru_cache(maxsize=4096)  # Each poll lists mostly the same files.
def parse_base_file_name(name: str) -> BaseFileName | None:
    match = _BASE.fullmatch(name)
    return BaseFileName(*match.groups()) if match else None


def is_change_log(name: str) -> bool:
    """Returns whether this is the name of a change-data-capture log, which has no rows of the table."""
    match = _LOG.fullmatch(name)
    return match is not None and match["cdc"] is not None


@lru_cache(maxsize=4096)
def parse_log_file_name(name: str) -> LogFileName | None:
    """Returns None for other files, including change-data-capture logs, which have no rows of the table."""
    match = _LOG.fullmatch(name)
    if match is None:
        return None
    file_id, instant, version, token, of_changes = match.groups()
    return None if of_changes else LogFileName(file_id, instant, int(version), token or "")


@lru_cache(maxsize=1000)  # The commits of a table name the same file groups again and again.
def bucket_of(file_id: str) -> int | None:
    """Returns the bucket in a file id of the bucket index's form (`BucketIdentifier.newBucketFileIdPrefix`, Hudi 1.2).

    About one random file id in forty has that form too, so the form proves nothing.
    """
    match = _BUCKET.fullmatch(file_id)
    return int(match["bucket"]) if match else None


def is_fixed(file_id: str) -> bool:
    """Returns whether the file id is one of non-blocking concurrency control:
    `BucketIdentifier.newBucketFileIdForNBCC`."""
    match = _BUCKET.fullmatch(file_id)
    return match is not None and match["tail"] == _FIXED_TAIL
