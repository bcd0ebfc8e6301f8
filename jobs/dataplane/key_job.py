"""Reads the record keys of base files. Each file or pair of files is one piece of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from jobs.dataplane import key_changes
from jobs.dataplane.spark_tasks import run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jobs.dataplane.key_changes import KeyChange
    from jobs.dataplane.key_digest import KeyDigest
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

Found = TypeVar("Found")

_ITEMS_OF_TASK = 8  # Fewer files are not worth another task.
# The share of a file that is read. Only one column is read, and most of a small file is its Bloom filter.
_SHARE = 1 / 8


def compare(
    table: HudiTable,
    storage: Storage,
    pairs: Sequence[tuple[str | None, str | None]],
    sizes: Sequence[int],
    context: JobContext,
) -> list[KeyChange]:
    """Compares pairs of base files at absolute paths (`key_changes.compare`); `sizes` has the bytes of each pair. In a
    table without meta fields only the numbers of rows are compared."""
    function = _compared if table.has_meta_fields else _counted
    return _read(table, function, [(storage, *pair) for pair in pairs], sizes, context)


def digests(
    table: HudiTable, storage: Storage, paths: Sequence[str], sizes: Sequence[int], context: JobContext
) -> list[KeyDigest]:
    """Returns the digests of base files at absolute paths; `sizes` has the bytes of each file."""
    return _read(table, _digested, [(storage, path) for path in paths], sizes, context)


def _read(
    table: HudiTable,
    function: Callable[..., Iterator[Found]],
    items: Sequence[tuple[Any, ...]],
    sizes: Sequence[int],
    context: JobContext,
) -> list[Found]:
    pieces = list(zip(items, sizes, strict=True))
    what = "comparing the record keys"
    return run_tasks(table, what, function, pieces, context, of_task=_ITEMS_OF_TASK, share=_SHARE)


def _compared(storage: Storage, before: str | None, after: str | None, _: str) -> Iterator[KeyChange]:
    yield key_changes.compare(storage, before, after)


def _counted(storage: Storage, before: str | None, after: str | None, _: str) -> Iterator[KeyChange]:
    yield key_changes.count(storage, before, after)


def _digested(storage: Storage, path: str, _: str) -> Iterator[KeyDigest]:
    yield key_changes.digest(storage, path)
