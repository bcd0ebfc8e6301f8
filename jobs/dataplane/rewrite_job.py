"""Runs the Arrow data plane: one task per file slice, and no shuffle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.dataplane.arrow_merge_job import Merging, rewrite_by_arrow
from jobs.dataplane.hudi_merge_job import rewrite_by_hudi
from jobs.dataplane.merge_failures import failure
from jobs.dataplane.rehash_ways import MOST_OUTPUTS
from jobs.dataplane.rewrite import rewrite_base_file
from jobs.dataplane.spark_tasks import run_tasks, written_files
from jobs.dataplane.split_writer import Source
from jobs.errors import HudiError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.contract import Problem
    from jobs.dataplane.split_writer import Rewrite
    from jobs.format.bucket_rules import BucketChange
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext


def rewrite_slices(
    table: HudiTable,
    work: Rewrite,
    chosen: Sequence[FileSlice],
    everything: Sequence[FileSlice],
    buckets: BucketChange,
    *,
    context: JobContext,
    merging: Merging | None = None,
    all_merged: bool = False,
) -> list[WrittenFile]:
    """Rewrites the `chosen` slices: those without logs from their base files, the others from merged rows.

    `everything` holds all slices of the table. Without `merging`, Hudi merges. `all_merged` counts slices without logs
    as merged too, so that all files have the table's latest schema.
    """
    merging = merging or Merging()
    sources = [source_of(item, buckets, merged=all_merged or bool(item.log_files)) for item in chosen]
    plain = [(source, item.base_bytes) for item, source in zip(chosen, sources, strict=True) if source.base_file]
    written = rewrite_base_files(table, work, in_parts(plain, MOST_OUTPUTS), context) if plain else []
    modelled = _with_models(sources)
    merged = [(item, source) for item, source in zip(chosen, modelled, strict=True) if not source.base_file]
    if merged and merging.rules:
        files, left = _by_arrow(table, work, merged, merging, context)
        written += files
        merging.by_arrow += len(merged) - len(left)
        merged = left
    if merged:
        merging.by_hudi += len(merged)
        written += rewrite_by_hudi(table, work, merged, everything, buckets)
    return written


def _by_arrow(
    table: HudiTable,
    work: Rewrite,
    slices: list[tuple[FileSlice, Source]],
    merging: Merging,
    context: JobContext,
) -> tuple[list[WrittenFile], list[tuple[FileSlice, Source]]]:
    """Returns the written files, and the slices that Hudi has to merge. If the tasks have failed, these are all slices,
    because a crash of one process ends the others. Files that the tasks wrote are in no commit, and have markers."""
    if merging.rules is None:
        return [], slices
    try:
        files, left = rewrite_by_arrow(table, work, slices, merging.rules, context)
    except HudiError as error:
        context.checkpoint()
        merging.rules = None
        merging.leave([failure(error.detail)])
        return [], slices
    merging.leave(each.problem for each in left)
    to_hudi = {(each.files.partition_path, each.files.file_id) for each in left}
    return files, [(item, source) for item, source in slices if item.key in to_hudi]


def source_of(item: FileSlice, buckets: BucketChange, *, merged: bool) -> Source:
    return Source(
        item.partition,
        item.file_id,
        item.bucket,
        buckets.finer(item.partition),
        buckets.residues(item.partition, item.bucket),
        base_file=None if merged else item.base_file,
        model=item.base_file,
        new_number=buckets.after(item.partition),
    )


def in_parts(sources: Sequence[tuple[Source, int]], most: int) -> list[tuple[Source, int]]:
    """Returns a source for each task, so that none writes more than `most` files at once; each task reads all rows."""
    found = []
    for source, size in sources:
        children = source.children
        parts = [children[first : first + most] for first in range(0, len(children), most)]
        found += [(replace(source, only=part), size) for part in parts] if len(parts) > 1 else [(source, size)]
    return found


def rewrite_base_files(
    table: HudiTable, work: Rewrite, sources: Sequence[tuple[Source, int]], context: JobContext
) -> list[WrittenFile]:
    """Rewrites base files with pyarrow alone, one task per source; each comes with the bytes of its files."""
    pieces = [((work, source), size) for source, size in sources]
    return written_files(run_tasks(table, "rewriting the base files", _rewritten, pieces, context))


def _rewritten(work: Rewrite, source: Source, token: str) -> Iterator[WrittenFile | Problem]:
    try:
        yield from rewrite_base_file(work, source, token)
    except RefusedError as error:
        yield error.problem()


def _with_models(sources: Sequence[Source]) -> list[Source]:
    """Gives a slice without a base file the newest base file of the others, if any, as its model."""
    models = [name for source in sources if (name := source.base_file or source.model)]
    newest = max(models, key=lambda name: name.rsplit("_", 1)[-1], default=None)
    return [replace(source, model=source.base_file or source.model or newest) for source in sources]
