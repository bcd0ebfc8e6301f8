"""Marks of Hudi's sink for Kafka Connect (`hudi-kafka-connect`).

The sink has one file group for each partition of the topic in each partition of the table. Its file id is a digest of
both (`AbstractConnectWriter`), so the sink writes to the same file groups after each restart. It gives each row its
place in advance and writes all rows as `UPSERT_PREPPED`, also rows with new keys.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

OFFSETS = "kafka.commit.offsets"
"""Key in the extra metadata of each commit of the sink (`ConnectTransactionCoordinator`)."""

OPERATION = "KAFKA_CONNECT"
"""Our name for the operation of such a commit. Hudi's name (`PREPPED`) stands for rows that a statement has found."""

_FILE_ID = re.compile(r"[0-9A-F]{32}(-[0-9]+)?")
_PREPPED = frozenset({"UPSERT_PREPPED", "BULK_INSERT_PREPPED"})  # Merge-on-read and copy-on-write.


def made(operation: str | None, extra: Container[str]) -> bool:
    """Returns whether the sink made a commit with this `WriteOperationType` and these keys of extra metadata."""
    return OFFSETS in extra and operation in _PREPPED


def is_file_id(text: str) -> bool:
    """Returns whether this is a file id of the sink: an MD5 digest. All others of Hudi have a UUID."""
    return _FILE_ID.fullmatch(text) is not None


def last_commit(commits: Iterable[tuple[str, str | None]]) -> str | None:
    """Returns the last of these instants, each with its operation, that the sink made; None without one."""
    found = [instant for instant, operation in commits if operation == OPERATION]
    return found[-1] if found else None


def position_in(extras: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Returns the extra metadata by which a commit of a job keeps the position of the sink: after a restart the sink
    looks for it in the latest commit only, whoever made that (`KafkaConnectUtils.getCommitMetadataForLatestInstant`).
    `extras` are those of all commits, the latest last."""
    found = [extra[OFFSETS] for extra in extras if OFFSETS in extra]
    return {OFFSETS: found[-1]} if found else {}
