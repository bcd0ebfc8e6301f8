"""Rewrites base files by copying row groups as bytes, if the keys prove that all rows of each row group go to one
bucket. The proof holds for a file that clustering has prepared for an expansion (`Rewrite.apart`), for files that a
contraction merges, and for a bucket whose rows all stay. Only the record keys are decoded, and `_hoodie_file_name` is
written anew. Runs inside Spark's Python workers and depends on neither Spark nor the JVM.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.dataplane import column_chunks, footer_entries, parquet_layout
from jobs.dataplane.column_chunks import CopyWriter, RawFile
from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.key_footer import KeyFooter
from jobs.dataplane.not_copyable import NotCopyableError
from jobs.dataplane.split_writer import MIN_ROW_GROUP_BYTES, BaseFile, new_base_file
from jobs.format import bucket_hash
from jobs.format.meta_columns import FILE_NAME, RECORD_KEY
from jobs.format.written_file import WrittenFile
from jobs.storage.paths import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.split_writer import Rewrite, Source

_SAMPLED_KEYS = 256
_FIELD_TYPE, _FIELD_REPETITION, _FIELD_NAME, _FIELD_CHILDREN = 1, 3, 4, 5  # of a SchemaElement
_MOST_NESTED = 24


@dataclass
class _Child:
    """The row groups of one new file, as (part, number in its file), and the facts about their keys."""

    keys: KeyFooter | None
    groups: list[tuple[int, int]] = field(default_factory=list)
    digest: KeyDigest = field(default_factory=KeyDigest)


@dataclass
class _Plan:
    """The files to be written from `parts`. `raw` is the file of a source that nothing is merged with."""

    parts: Sequence[Source]
    layout: Layout
    children: dict[int, _Child]
    raw: RawFile | None = None


def copied(work: Rewrite, source: Source, token: str, opened: pa.NativeFile | None) -> list[WrittenFile] | None:
    """Returns the files that replace the source and the sources merged with it; None if rows must be decoded.

    `opened` is the base file of a source that nothing is merged with. Raises `RecordKeyError` as the rewrite of rows.
    Memory: 64 MiB.
    """
    if work.sort_by or work.leaves_out is not None or work.apart > 1 or not work.hash_fields:
        return None
    parts = (source, *source.merged_with)
    try:
        plan = _planned(work, parts, opened)
        return None if plan is None else _written(work, plan, token)
    except NotCopyableError:
        return None


def _planned(work: Rewrite, parts: Sequence[Source], opened: pa.NativeFile | None) -> _Plan | None:
    """Reads the footers and the keys of all parts. Returns None as soon as a row group's rows go to several files."""
    plan: _Plan | None = None
    first: RawFile | None = None
    sizes: list[int] = []
    for number, part in enumerate(parts):
        with ExitStack() as stack:
            path = part.base_file or ""
            file = opened or stack.enter_context(work.storage.open_file(path))
            reader = stack.enter_context(work.storage.read_parquet(path, opened=file))
            if not _looks_sorted(work, part, reader):
                return None
            raw = RawFile(file)
            first = first or raw
            _require_alike(work, raw, first)
            groups = [group for group, each in enumerate(raw.groups) if each.rows]
            sizes += [raw.groups[group].uncompressed_bytes for group in groups]
            # Many small row groups would be read more slowly than few large ones.
            if len(parts) > 1 and sum(sizes) < MIN_ROW_GROUP_BYTES * len(sizes):
                return None
            if plan is None:
                layout = parquet_layout.of_file(reader, work.codec)
                empty = {each: _Child(KeyFooter(layout.keys) if layout.keys else None) for each in part.children}
                plan = _Plan(parts, layout, empty, raw if opened else None)
            for group in groups:
                if not _placed(work, part, reader, (number, group), plan):
                    return None
    return plan


def _require_alike(work: Rewrite, raw: RawFile, first: RawFile) -> None:
    for field_id in (column_chunks.SCHEMA, column_chunks.CREATED_BY, column_chunks.COLUMN_ORDERS):
        if raw.footer.get(field_id) != first.footer.get(field_id):
            raise NotCopyableError("files of several schemas, or of several writers")
    if footer_entries.lasting(raw.entries) != footer_entries.lasting(first.entries):
        raise NotCopyableError("files with several footers")
    codecs = {chunk.codec for group in raw.groups for chunk in group.chunks}
    if work.codec and {column_chunks.CODECS.get(codec) for codec in codecs} - {work.codec}:
        raise NotCopyableError("another codec was requested")


def _looks_sorted(work: Rewrite, part: Source, reader: pq.ParquetFile) -> bool:
    """Returns whether the first rows of a row group go to one bucket. If not, all must be decoded."""
    if not reader.num_row_groups:
        return True
    batches = reader.iter_batches(_SAMPLED_KEYS, row_groups=[0], columns=[RECORD_KEY], use_threads=False)
    sample = next(batches, None)
    if sample is None:
        return True
    residues = np.unique(bucket_hash.bucket_ids(sample.column(0), work.hash_fields, part.modulus)).tolist()
    return len({part.child(each) for each in residues}) <= 1


def _placed(work: Rewrite, part: Source, reader: pq.ParquetFile, place: tuple[int, int], plan: _Plan) -> bool:
    """Adds a row group to a new file, if all rows of the row group go to this file. Reads all of its keys."""
    child: int | None = None
    for batch in reader.iter_batches(BATCH_ROWS, row_groups=[place[1]], columns=[RECORD_KEY], use_threads=False):
        keys = batch.column(0)
        residues = np.unique(bucket_hash.bucket_ids(keys, work.hash_fields, part.modulus)).tolist()
        # A row may belong to none of the buckets; then the rewrite that decodes rows refuses it.
        children = {part.child(each) if each in part.residues else None for each in residues}
        if len(children) != 1 or None in children or (child is not None and child not in children):
            return False
        (child,) = children
        if found := plan.children.get(child or 0):
            found.digest += KeyDigest.of(keys)
            if found.keys:
                found.keys.add(keys)
    if child is None:
        raise NotCopyableError("a row group without the keys of its rows")
    if child in plan.children:  # Otherwise another task writes the rows.
        plan.children[child].groups.append(place)
    return True


def _written(work: Rewrite, plan: _Plan, token: str) -> list[WrittenFile]:
    written = []
    for bucket, child in plan.children.items():
        if child.groups:
            written.append(_copy(work, plan, bucket, token))
        else:
            written.append(BaseFile(work, plan.parts[0], plan.layout, bucket, token).close())
    return written


def _copy(work: Rewrite, plan: _Plan, bucket: int, token: str) -> WrittenFile:
    source, child = plan.parts[0], plan.children[bucket]
    file_id, new = new_base_file(work, source.partition, bucket, token)
    output, file_name = new.create(), new.name
    try:
        writer: CopyWriter | None = None
        for number, part in enumerate(plan.parts):
            groups = [group for place, group in child.groups if place == number]
            if not groups:
                continue
            with ExitStack() as stack:
                path = part.base_file or ""
                raw = plan.raw or RawFile(stack.enter_context(work.storage.open_file(path, whole=True)))
                writer = writer or CopyWriter(output.stream, raw)
                for group in groups:
                    names = pa.table([one_file_name(file_name, raw.groups[group].rows)], [FILE_NAME])
                    writer.add(raw, group, [file_of(plan.layout, raw, names)])
        if writer is None or writer.rows != child.digest.rows:
            raise NotCopyableError("the files have changed while they were read")
        writer.close(plan.layout.footer(child.keys))
        size = output.close()
    except BaseException:
        with suppress(OSError, pa.ArrowException):
            output.abandon()
        raise
    rows, digest = child.digest.rows, str(child.digest)
    return WrittenFile(source.partition, source.file_id, file_id, file_name, rows, size, digest, copied=True)


def one_file_name(file_name: str, rows: int) -> pa.DictionaryArray:
    """Returns the column `_hoodie_file_name`: it stores the name once, and a small number per row."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), rows), [file_name])


def file_of(layout: Layout, raw: RawFile | None, table: pa.Table) -> RawFile:
    """Returns a file in memory with some columns of the layout, in one row group.

    Raises `NotCopyableError` if the input `raw` is given and a column would have another type than there.
    """
    part = layout.of_columns(table.schema)
    buffer = pa.BufferOutputStream()
    table = pa.Table.from_arrays(table.columns, schema=part.schema)
    with part.writer(buffer, table) as writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
    made = RawFile(pa.BufferReader(buffer.getvalue()))
    known = _columns(raw or made)
    if wrong := [path for path, form in _columns(made).items() if known.get(path) != form]:
        raise NotCopyableError(f"{wrong} of another type")
    return made


def _columns(raw: RawFile) -> dict[tuple[bytes, ...], list[object]]:
    """Returns the types and repetitions of each leaf and of the groups around it, by their paths."""
    found: dict[tuple[bytes, ...], list[object]] = {}
    elements = iter(raw.schema.values)

    def walk(count: int, path: tuple[bytes, ...], form: list[object]) -> None:
        for _ in range(count):
            element = next(elements, None)
            if element is None or len(path) > _MOST_NESTED:
                raise NotCopyableError("a schema with other groups than it says")
            at, own = (
                (*path, element[_FIELD_NAME].value),
                [*form, element.get(_FIELD_TYPE), element.get(_FIELD_REPETITION)],
            )
            if _FIELD_CHILDREN in element:
                walk(element[_FIELD_CHILDREN].value, at, own)
            else:
                found[at] = own

    walk(next(elements)[_FIELD_CHILDREN].value, (), [])
    return found
