"""Rewrites file slices into buckets of another number, without a shuffle.

If g is the greatest common divisor of both numbers, the old buckets i with i mod g = c feed exactly the new buckets j
with j mod g = c: a family. If a family has one slice, one task splits it. Otherwise a task reads all slices of the
family one after the other, or each slice is split first (`rehash_ways`). If slices have logs, or files of several
schemas, each slice is first merged into base files of its own. The commit does not name these intermediate files, so
Hudi removes them by their markers, like the files of a failed task.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jobs.dataplane import footer_entries, parquet_layout
from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.rehash_ways import MOST_OUTPUTS, FamilySize, SliceSize, Way
from jobs.dataplane.rewrite_job import in_parts, rewrite_base_files, rewrite_slices, source_of
from jobs.dataplane.split_writer import Source, rows_differ
from jobs.errors import RefusedError
from jobs.format.bucket_rules import BucketChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jobs.dataplane.arrow_merge_job import Merging
    from jobs.dataplane.split_writer import Rewrite
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

_FOOTERS_AT_ONCE = 16

Key = tuple[str, int]


@dataclass(frozen=True)
class Family:
    """The slices whose rows go to the same new buckets, the largest first: the written files get its layout."""

    key: Key
    slices: tuple[FileSlice, ...]
    outputs: int

    @property
    def size(self) -> FamilySize:
        sizes = (SliceSize(item.bytes, bool(item.log_files)) for item in self.slices)
        return FamilySize(tuple(sizes), self.outputs)


def families_of(slices: Iterable[FileSlice], buckets: BucketChange) -> list[Family]:
    found: dict[Key, list[FileSlice]] = {}
    for item in sorted(slices, key=lambda each: (-each.base_bytes, each.bucket)):
        found.setdefault((item.partition, buckets.family(item.partition, item.bucket)), []).append(item)
    return [
        Family(key, tuple(items), len(buckets.children(items[0].partition, items[0].bucket)))
        for key, items in found.items()
    ]


@dataclass(frozen=True)
class Rehash:
    """Rewrites slices into the new buckets. `everything` holds all slices of the table. Raises `RefusedError` if other
    rows are written than were read."""

    table: HudiTable
    work: Rewrite
    everything: Sequence[FileSlice]
    buckets: BucketChange
    context: JobContext
    merging: Merging | None

    def rewrite(self, chosen: Sequence[FileSlice], way: Way, outputs: int) -> list[WrittenFile]:
        """Rewrites the `chosen` slices: of each family either all or none.

        A task of `ONE_REHASH` writes at most this many `outputs`. A written file names a slice of its family as its
        source.
        """
        direct: list[Family] = []
        one_step: list[Family] = []
        two_steps: list[Family] = []
        for family in families_of(chosen, self.buckets):
            size = family.size
            is_twice = way is Way.THROUGH_MULTIPLE and size.has_two_ways
            (direct if size.is_direct else two_steps if is_twice else one_step).append(family)
        return self._split(direct, self.buckets) + self._in_one_step(one_step, outputs) + self._in_two_steps(two_steps)

    def _split(
        self, families: Sequence[Family], buckets: BucketChange, *, all_merged: bool = False
    ) -> list[WrittenFile]:
        """Writes each slice into files of its own, by these numbers of buckets."""
        slices = [item for family in families for item in family.slices]
        return rewrite_slices(
            self.table,
            self.work,
            slices,
            self.everything,
            buckets,
            context=self.context,
            merging=self.merging,
            all_merged=all_merged,
        )

    def _in_one_step(self, families: Sequence[Family], outputs: int) -> list[WrittenFile]:
        uniform, mixed, read = self._sorted_out(families)
        paths = self._settled(mixed, read)
        whole = [(self._source(family.slices, self.buckets, paths), family.size.bytes) for family in uniform + mixed]
        return self._written(in_parts(whole, outputs), read)

    def _in_two_steps(self, families: Sequence[Family]) -> list[WrittenFile]:
        uniform, mixed, read = self._sorted_out(families)
        finer = replace(self.buckets, to_finer=True)
        at_once = [family for family in mixed if family.outputs <= MOST_OUTPUTS]
        pieces = self._split(uniform, finer)
        self._require_equal({family.key: read[family.key] for family in uniform}, pieces)
        pieces += self._split(at_once, finer, all_merged=True)
        many = [family for family in mixed if family.outputs > MOST_OUTPUTS]
        paths = self._settled(many, read)
        alone = [(self._source([item], finer, paths), item.bytes) for family in many for item in family.slices]
        pieces += self._written(in_parts(alone, MOST_OUTPUTS), {family.key: read[family.key] for family in many})
        return self._written(self._joined(pieces), self._keys(pieces))

    def _sorted_out(self, families: Sequence[Family]) -> tuple[list[Family], list[Family], dict[Key, KeyDigest]]:
        """Returns the families whose base files have one schema, the other families, and the numbers of rows of the
        first ones."""
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            rows = list(pool.map(lambda family: _rows_if_uniform(self.work.storage, family), families))
        found = list(zip(families, rows, strict=True))
        read = {family.key: KeyDigest(count) for family, count in found if count is not None}
        mixed = [family for family, count in found if count is None]
        return [family for family, count in found if count is not None], mixed, read

    def _settled(self, families: Sequence[Family], read: dict[Key, KeyDigest]) -> dict[tuple[str, str], str]:
        """Merges each slice into a base file of its own. Returns the files' paths, and adds their keys to `read`."""
        files = self._split(families, BucketChange(self.buckets.old, self.buckets.old), all_merged=True)
        read |= self._keys(files)
        return {(file.partition, file.source): self._path(file) for file in files}

    def _written(self, sources: Sequence[tuple[Source, int]], read: dict[Key, KeyDigest]) -> list[WrittenFile]:
        files = rewrite_base_files(self.table, self.work, sources, self.context)
        self._require_equal(read, files)
        return files

    def _source(
        self, slices: Sequence[FileSlice], buckets: BucketChange, settled: dict[tuple[str, str], str]
    ) -> Source:
        first, *others = (
            replace(source_of(item, buckets, merged=False), base_file=settled.get(item.key, item.base_file))
            for item in slices
        )
        return replace(first, merged_with=tuple(others))

    def _joined(self, pieces: Sequence[WrittenFile]) -> list[tuple[Source, int]]:
        """Returns a source for each new bucket: the pieces that were split for the bucket, without empty pieces."""
        found: dict[Key, list[WrittenFile]] = {}
        for piece in sorted(pieces, key=lambda each: -each.bytes):
            found.setdefault((piece.partition, piece.bucket % self.buckets.after(piece.partition)), []).append(piece)
        sources = []
        for files in found.values():
            parts = [file for file in files if file.rows] or files[:1]
            first, *others = map(self._source_of_piece, parts)
            sources.append((replace(first, merged_with=tuple(others)), sum(file.bytes for file in parts)))
        return sources

    def _source_of_piece(self, file: WrittenFile) -> Source:
        return Source(
            file.partition,
            file.source,
            file.bucket,
            self.buckets.finer(file.partition),
            (file.bucket,),
            base_file=self._path(file),
            new_number=self.buckets.after(file.partition),
        )

    def _path(self, file: WrittenFile) -> str:
        return "/".join(filter(None, [self.table.base_path.rstrip("/"), file.partition, file.file_name]))

    def _keys(self, files: Iterable[WrittenFile]) -> dict[Key, KeyDigest]:
        """Returns the digest of the keys of each family in these files."""
        found: dict[Key, KeyDigest] = {}
        for file in files:
            key = (file.partition, self.buckets.family(file.partition, file.bucket))
            found[key] = found.get(key, KeyDigest()) + KeyDigest.parse(file.rows, file.key_digest)
        return found

    def _require_equal(self, read: dict[Key, KeyDigest], written: Iterable[WrittenFile]) -> None:
        """Raises `RefusedError` unless the tasks of a family together have written all rows of it. Only the number of
        rows is known of base files that were not written here; each task compares the keys that it has read."""
        found = self._keys(written)
        for key, digest in read.items():
            whole = found.get(key, KeyDigest())
            if whole.rows != digest.rows or digest.total not in {0, whole.total}:
                raise RefusedError([rows_differ(key[0], f"buckets of the family {key[1]}", digest, whole)])


def _rows_if_uniform(storage: Storage, family: Family) -> int | None:
    """Returns the number of rows if all slices are base files without logs, and hold the same columns, dates of one
    calendar and vectors of one kind (which are bytes in Parquet); else None."""
    if any(item.log_files or item.base_file is None for item in family.slices):
        return None
    layout, rows = None, 0
    calendars, vectors = set(), set()
    for item in family.slices:
        with storage.read_parquet(item.base_file or "") as reader:
            rows += reader.metadata.num_rows
            layout = layout or parquet_layout.of_file(reader)
            entries = reader.metadata.metadata or {}
            calendars.add(footer_entries.calendar(entries))
            # Files of older releases of Groundskeeper lack the entry.
            vectors |= {entries[each] for each in [footer_entries.VECTOR_COLUMNS] if each in entries}
            try:
                parquet_layout.require_reproducible(layout, reader.schema, item.file_id)
            except RefusedError:
                return None
    return rows if len(calendars) <= 1 and len(vectors) <= 1 else None
