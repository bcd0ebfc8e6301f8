"""Executes a compaction plan with Arrow: one task per file slice, and no shuffle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.dataplane.bloom_filter import FilterKind
from jobs.dataplane.compacted_file import CompactedFile, Compaction, compact_slice
from jobs.dataplane.footer_entries import AVRO_SCHEMA
from jobs.dataplane.latest_layout import latest_layout
from jobs.dataplane.merge_failures import LeftToHudi
from jobs.dataplane.spark_tasks import run_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.contract import Problem
    from jobs.dataplane.slice_merge import MergeRules, SliceFiles
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext
    from jobs.storage.paths import Storage

CODEC = "hoodie.parquet.compression.codec"
_WITH_FILTER = "hoodie.parquet.bloom.filter.enabled"


def compaction_of(table: HudiTable, storage: Storage, instant: str, rules: MergeRules, codec: str | None) -> Compaction:
    """Returns the settings that all tasks share. The tasks write the same files as Hudi's own executor would write with
    the options of our clients.

    Without `codec` and without the owner's option the codec of the old base files stays, while Hudi's executor would
    use its default (gzip).
    """
    options = table.declared.hudi_options
    codec = codec or options.get(CODEC, "").lower().replace("uncompressed", "none") or None
    layout = latest_layout(table, codec)
    keys = None if options.get(_WITH_FILTER, "true").lower() == "false" else FilterKind.default()
    # The writer of Spark rows in Hudi's executor does not write this entry.
    footer = {key: value for key, value in (layout.schema.metadata or {}).items() if key != AVRO_SCHEMA}
    layout = replace(layout, schema=layout.schema.with_metadata(footer), keys=keys)
    return Compaction(storage, instant, rules, layout, codec)


def compact_slices(
    table: HudiTable, work: Compaction, slices: Sequence[SliceFiles], context: JobContext
) -> tuple[list[CompactedFile], list[Problem]]:
    """Compacts all slices, and returns the written files with the reasons why some slices were left to Hudi.

    `slices` come in the order in which they are begun. The files exist, but only count once a commit names them.
    """
    pieces = [((work, files), files.bytes) for files in slices]
    found = run_tasks(table, "merging the file slices", _compacted, pieces, context)
    written = [each for each in found if isinstance(each, CompactedFile)]
    left = [each.problem for each in found if isinstance(each, LeftToHudi)]
    return written, list(dict.fromkeys(left))


def _compacted(work: Compaction, files: SliceFiles, token: str) -> Iterator[CompactedFile | LeftToHudi]:
    try:
        yield compact_slice(work, files, token)
    except Exception as error:
        yield LeftToHudi.after(files, error)
