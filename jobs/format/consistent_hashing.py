"""Consistent hashing: the files in which Hudi keeps the hash ranges of each partition's buckets.

`<folder>/<partition>/<instant>.hashing_meta` is the JSON of `HoodieConsistentHashingMetadata` (1.2.0). Each node is a
bucket: hashes up to its value belong to the file group `<fileIdPrefix>-0`. The first metadata of a partition has the
instant `BASELINE`; each later one belongs to a clustering, and an empty `<instant>.commit` says that it has completed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jobs.format.hashing_config import BASELINE

FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
SUFFIX = ".hashing_meta"
COMMITTED = ".commit"
MASK = 0x7FFFFFFF
"""`HoodieConsistentHashingMetadata.HASH_VALUE_MASK`: hashes are from 0 to this number."""

RANGES_STAY = (
    "Deletions and overwrites of partitions (DROP PARTITION, delete_partition, insert_overwrite) leave the hash ranges"
    " with the replaced file groups (Hudi 1.2), and no reader sees the rows that writers write there afterwards. Delete"
    " the rows of a partition by their keys or by a DELETE; an audit finds such ranges, and a `repair` renews them."
)
"""What owners of such tables have to know before they delete or overwrite a partition."""

MAX_BYTES = 16 << 20
_MOST_NODES = 100_000
_INSTANT = re.compile(r"^\d{14}(\d{3})?$")
_PREFIX = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class DamagedMetadataError(ValueError):
    """The file is not the JSON that Hudi writes."""


@dataclass(frozen=True)
class HashingMetadata:
    """The buckets of one partition, as the upper ends of their hash ranges, ascending, and their file ids."""

    instant: str
    ends: tuple[int, ...]
    file_ids: tuple[str, ...]

    @classmethod
    def from_json(cls, instant: str, content: bytes | str) -> HashingMetadata:
        """Raises `DamagedMetadataError`."""
        try:
            nodes = json.loads(content)["nodes"]
            found = sorted((each["value"], each["fileIdPrefix"]) for each in nodes[: _MOST_NODES + 1])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedMetadataError(str(error) or "not the JSON of hashing metadata") from error
        if not 0 < len(found) <= _MOST_NODES:
            raise DamagedMetadataError(f"it has {'no' if not found else 'too many'} nodes")
        for value, prefix in found:
            is_hash = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MASK
            if not (is_hash and isinstance(prefix, str) and _PREFIX.match(prefix)):
                raise DamagedMetadataError("a node has no hash value or no file id")
        ends, prefixes = zip(*found, strict=True)
        if len(set(ends)) < len(ends) or len(set(prefixes)) < len(prefixes):
            raise DamagedMetadataError("two nodes have one value or one file id")
        return cls(instant, ends, tuple(f"{prefix}-0" for prefix in prefixes))


@dataclass(frozen=True)
class Versions:
    """The instants of a partition's metadata: the one in force (None without any), and later ones without a commit."""

    in_force: str | None
    uncommitted: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str], has_completed: Callable[[str], bool]) -> Versions:
        """Chooses by the names of a partition's files, like `ConsistentBucketIndexUtils.loadMetadata` (1.2.0), which
        completes a missing `COMMITTED` when it reads. `loadMetadata` also takes metadata whose instant is unknown if
        one of its file groups exists; here such metadata have no commit."""
        listed = set(names)
        instants = sorted(name.removesuffix(SUFFIX) for name in listed if name.endswith(SUFFIX))
        later: list[str] = []
        for instant in reversed([each for each in instants if _INSTANT.match(each)]):
            if instant == BASELINE or instant + COMMITTED in listed or has_completed(instant):
                return cls(instant, tuple(reversed(later)))
            later.append(instant)
        return cls(None, tuple(reversed(later)))
