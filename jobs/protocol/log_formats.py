"""Looks into some log files for blocks that Hudi's readers on Spark cannot read."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.contract import Problem
from jobs.errors import NotProvedError, RefusedError
from jobs.format.log_blocks import BlockType, blocks_of
from jobs.hudi.hadoop import storage_of
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.table_errors import LogFormatError

_MOST_LOGS = 8


def unreadable(table: HudiTable, slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the problem of logs with HFile blocks, if one of the latest logs of these slices has one. It reads the
    heads of the blocks of eight logs at most, so other logs may still have such blocks."""
    logs = [(item, log) for item in slices for log in item.log_files[-1:]]
    try:
        storage = storage_of(table)
    except RefusedError:
        return []  # The job has this reason, if it needs the storage.
    for item, log in logs[:_MOST_LOGS]:
        try:
            with storage.open_file("/".join(filter(None, [storage.root, item.partition, log]))) as file:
                found = any(block.kind is BlockType.HFILE_DATA for block in blocks_of(file, file.size()))
        except (NotProvedError, OSError):
            continue  # The job itself says what is wrong with that log.
        if found:
            return [LogFormatError.because(f"partition '{item.partition}', log {log}")]
    return []
