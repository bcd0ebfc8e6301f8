"""Looks into some log files for what Hudi's readers on Spark cannot read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from jobs.contract import Problem
from jobs.dataplane import partial_rows
from jobs.dataplane.arrow_merge_job import files_of
from jobs.errors import NotProvedError, RefusedError
from jobs.format.log_blocks import BlockType, blocks_of
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.hadoop import storage_of
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.protocol import writer_engines
from jobs.table_errors import LogFormatError, RowsIncompleteError

_MOST_SLICES = 8
# `CREATE TABLE` of Spark SQL notes the schema.
_CREATED_BY_SQL = "hoodie.table.create.schema"


def unreadable(table: HudiTable, slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the problem of the first of these slices whose logs have HFile blocks, or parts of rows that no file has
    as a whole. It looks into eight slices at most, and only into the latest log of each for HFile blocks, so other
    slices may still have such logs."""
    try:
        storage = storage_of(table)
    except RefusedError:
        return []  # The job has this reason, if it needs the storage.
    for item in islice((item for item in slices if item.log_files), _MOST_SLICES):
        files = files_of(item)
        try:
            with storage.open_file(f"{storage.root}/{files.logs[-1]}") as file:
                kinds = {block.kind for block in blocks_of(file, file.size())}
            if table.version >= WITH_COMPLETION_TIMES:
                partial_rows.require_whole_rows(storage, files)
        except RowsIncompleteError as error:
            return [error.problem()]
        except (NotProvedError, OSError):
            continue  # The job itself says what is wrong with that log.
        if BlockType.HFILE_DATA in kinds:
            return [LogFormatError.because(f"partition '{item.partition}', log {item.log_files[-1]}")]
    return []


def require_whole_rows(table: HudiTable) -> None:
    """Raises RefusedError if Spark SQL may write the table, and a slice has a part of a row that it does not have as a
    whole. A query that reads such a row may end the JVM."""
    by_sql = _CREATED_BY_SQL in table.properties or writer_engines.evidence_of_statements(table)
    if not (by_sql and table.is_merge_on_read) or table.version < WITH_COMPLETION_TIMES:
        return
    try:
        storage = storage_of(table)
    except RefusedError:
        return
    partial_rows.require_whole(storage, [files_of(item) for item in table.file_slices() if item.log_files])
