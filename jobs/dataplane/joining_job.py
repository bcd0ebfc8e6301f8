"""Joins the small files of clustering groups with Arrow: one task per new file, and no shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.dataplane.joined_files import JoinedFile, join
from jobs.dataplane.merge_failures import LeftToHudi
from jobs.dataplane.spark_tasks import run_tasks
from jobs.errors import RefusedError, RowsDifferError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jobs.contract import Problem
    from jobs.dataplane.compacted_file import Compaction
    from jobs.dataplane.merge_rules import SliceFiles
    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext


def join_files(
    table: HudiTable,
    work: Compaction,
    groups: Mapping[int, Sequence[tuple[SliceFiles, ...]]],
    context: JobContext,
) -> tuple[dict[int, list[JoinedFile]], list[Problem]]:
    """Writes a file from each tuple of slices. Returns the files of each group whose files could all be written, and
    the reasons why Hudi has to execute the other groups. No commit names the files of the other groups. Raises
    RefusedError, and RowsDifferError if a file slice is in none of the files."""
    pieces = [
        ((work, number, slices), sum(each.bytes for each in slices))
        for number, files in groups.items()
        for slices in files
    ]
    found: dict[int, list[JoinedFile]] = {number: [] for number in groups}
    left: list[Problem] = []
    for number, made in run_tasks(table, "joining small files", _joined, pieces, context):
        if isinstance(made, RefusedError):
            raise RefusedError(made.reasons)
        if isinstance(made, LeftToHudi):
            found.pop(number, None)
            left.append(made.problem)
        elif number in found:
            found[number].append(made)
    for number, files in found.items():
        read = sorted(each.file_id for file in files for each in (*file.copied, *file.decoded))
        if read != sorted(each.file_id for slices in groups[number] for each in slices):
            raise RowsDifferError(f"clustering group {number}: only the file groups {', '.join(read)} were read")
    return found, list(dict.fromkeys(left))


def _joined(
    work: Compaction, number: int, slices: tuple[SliceFiles, ...], token: str
) -> Iterator[tuple[int, JoinedFile | LeftToHudi | RefusedError]]:
    try:
        yield number, join(work, slices, token)
    except RefusedError as error:
        yield number, error
    except Exception as error:
        yield number, LeftToHudi.after(slices[0], error)


def in_files(slices: Sequence[SliceFiles], number: int) -> list[tuple[SliceFiles, ...]]:
    """Distributes slices to at most `number` new files of about one size; in each the largest slice comes first."""
    files: list[list[SliceFiles]] = [[] for _ in range(max(1, min(number, len(slices))))]
    sizes = [0] * len(files)
    for each in sorted(slices, key=lambda files: (-files.bytes, files.file_id)):
        place = sizes.index(min(sizes))
        files[place].append(each)
        sizes[place] += each.bytes
    return [tuple(each) for each in files]
