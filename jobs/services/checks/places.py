"""The partitions of each file group, by which tasks recognize rows in the folder of another partition."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from jobs.format.stale_writes import Group


class Places:
    """The partitions of all file groups, as hashes: a task gets 16 bytes for each file group, so there is no need to
    leave some out.

    Several partitions have the same file ids where Flink writes with non-blocking concurrency control.
    """

    def __init__(self, groups: NDArray[np.uint64], ids: NDArray[np.uint64]) -> None:
        self._groups, self._ids = groups, ids

    @classmethod
    def of(cls, groups: Iterable[Group]) -> Self:
        known = list(groups)
        return cls(np.sort(_of_groups(known)), np.sort(_of_ids(known)))

    def elsewhere(self, partitions: pa.Array, files: pa.Array) -> pa.Array:
        """Returns for each row whether its file (`_hoodie_file_name`; in a log the file id) is in other partitions
        only."""
        away = pa.array([False] * len(files))
        pairs = pa.table({"p": partitions, "f": files}).group_by(["p", "f"]).aggregate([])
        names = list(zip(pairs["p"].to_pylist(), pairs["f"].to_pylist(), strict=True))
        groups = [(partition or "", name.partition("_")[0]) for partition, name in names]
        wrong = _among(self._ids, _of_ids(groups)) & ~_among(self._groups, _of_groups(groups))
        for (partition, name), is_away in zip(names, wrong.tolist(), strict=True):
            if is_away:
                away = pc.or_(away, pc.and_(pc.equal(partitions, partition), pc.equal(files, name)))
        return away


def _of_groups(groups: Sequence[Group]) -> NDArray[np.uint64]:
    return _hashes(map("/".join, groups))


def _of_ids(groups: Sequence[Group]) -> NDArray[np.uint64]:
    return _hashes(file_id for _, file_id in groups)


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(blake2b(each.encode(), digest_size=8).digest() for each in texts), np.uint64)


def _among(known: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    result: NDArray[np.bool_] = known[at] == wanted
    return result
