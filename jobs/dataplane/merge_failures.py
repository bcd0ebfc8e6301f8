"""The reasons why Hudi has to merge a file slice or a plan that Arrow could not merge."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jobs.errors import JobError, refuse
from jobs.problems.arrow_merges import ARROW_FAILED
from jobs.table_errors import OperationsHiddenError, RowsIncompleteError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobs.contract import Problem
    from jobs.dataplane.merge_rules import SliceFiles

logger = logging.getLogger(__name__)

_MISREAD = (OperationsHiddenError.type, RowsIncompleteError.type)


@dataclass(frozen=True)
class LeftToHudi:
    """A slice that Hudi has to merge."""

    files: SliceFiles
    problem: Problem

    @classmethod
    def after(cls, files: SliceFiles, error: Exception) -> LeftToHudi:
        """Returns the reason with the name of the slice. Hudi can still merge it, whatever went wrong."""
        where = f"partition '{files.partition_path}', file group {files.file_id}"
        if isinstance(error, JobError):
            return cls(files, replace(error.problem(), detail=f"{where}: {error.detail}"))
        logger.error("%s was not merged", where, exc_info=error)
        return cls(files, failure(f"{where}: {type(error).__name__}: {str(error)[:200]}"))


def refuse_misread(reasons: Iterable[Problem]) -> None:
    """Raises RefusedError if Hudi would not merge the logs right either, for one of these reasons."""
    refuse([each for each in reasons if each.type in _MISREAD])


def failure(detail: str) -> Problem:
    """Returns the reason why Hudi has to do the work that has failed."""
    return ARROW_FAILED.because(detail)
