"""Rewrites file slices with logs from the rows that Arrow merges: one task per slice, and no shuffle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jobs.dataplane.latest_layout import latest_layout
from jobs.dataplane.merge_failures import LeftToHudi, refuse_misread
from jobs.dataplane.merge_rules import SliceFiles
from jobs.dataplane.rewrite import rewrite_slice_with_logs
from jobs.dataplane.spark_tasks import run_tasks, written_files
from jobs.errors import EngineRefusedError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jobs.contract import Problem
    from jobs.dataplane.merge_rules import MergeRules
    from jobs.dataplane.parquet_layout import Layout
    from jobs.dataplane.split_writer import Rewrite, Source
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

MOST_REASONS = 5


@dataclass
class Merging:
    """How a job merges slices with logs, and the number of slices merged so far. A slice that is rewritten again counts
    again."""

    rules: MergeRules | None = None  # The rules of Arrow's merge; None lets Hudi's readers merge.
    only_arrow: bool = False  # Whether it is an error that Arrow leaves a slice to Hudi.
    by_arrow: int = 0
    by_hudi: int = 0
    reasons: list[Problem] = field(default_factory=list)  # Why Arrow left slices to Hudi.

    def leave(self, reasons: Iterable[Problem]) -> None:
        """Records why slices are left to Hudi. Raises EngineRefusedError if the job demands Arrow, and RefusedError if
        Hudi would not merge them right either."""
        self.reasons = list(dict.fromkeys([*self.reasons, *reasons]))
        refuse_misread(self.reasons)
        if self.reasons and self.only_arrow:
            raise EngineRefusedError(self.reasons[:MOST_REASONS])


def rewrite_by_arrow(
    table: HudiTable,
    work: Rewrite,
    slices: Sequence[tuple[FileSlice, Source]],
    rules: MergeRules,
    context: JobContext,
) -> tuple[list[WrittenFile], list[LeftToHudi]]:
    """Rewrites these slices, and returns the written files and the slices that Hudi has to merge.

    Raises `RefusedError` if a slice holds rows of another bucket.
    """
    layout = latest_layout(table, work.codec)
    pieces = [((work, (rules, layout), source, files_of(item)), item.bytes) for item, source in slices]
    found = run_tasks(table, "merging and rewriting file slices", _rewritten, pieces, context)
    left = [each for each in found if isinstance(each, LeftToHudi)]
    return written_files(each for each in found if not isinstance(each, LeftToHudi)), left


def _rewritten(
    work: Rewrite, how: tuple[MergeRules, Layout], source: Source, files: SliceFiles, token: str
) -> Iterator[WrittenFile | Problem | LeftToHudi]:
    rules, layout = how
    try:
        yield from rewrite_slice_with_logs(work, source, files, token, rules=rules, latest=layout)
    except RefusedError as error:
        yield error.problem()
    except Exception as error:
        yield LeftToHudi.after(files, error)


def files_of(item: FileSlice) -> SliceFiles:
    """Returns the files of a slice by their paths relative to the table."""
    at = f"{item.partition}/" if item.partition else ""
    base = at + item.base_file.rpartition("/")[2] if item.base_file else None
    return SliceFiles(item.partition, item.file_id, base, tuple(at + name for name in item.log_files), item.bytes)
