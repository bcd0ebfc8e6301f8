"""Refusals to replace file groups whose ids their writers use again, because no reader would see later rows there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from jobs.contract import Problem
from jobs.format import kafka_connect
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.problems.plans import FILE_IDS_REPEAT
from jobs.problems.tables import NON_BLOCKING_WRITERS

_NBCC_FILE_ID = re.compile(r"^\d{8}-0000-0000-0000-000000000000(-\d+)?$")


def refusals(table: HudiTable, slices: Collection[FileSlice]) -> list[Problem]:
    """Returns the refusals to replace these file groups of the table."""
    return [*([NON_BLOCKING_WRITERS.because()] if non_blocking(slices) else []), *of_kafka_connect(table, slices)]


def non_blocking(slices: Iterable[FileSlice]) -> bool:
    """Returns whether file groups have the ids of writers that do not block each other (NBCC)."""
    return any(_NBCC_FILE_ID.match(item.file_id) for item in slices)


def of_kafka_connect(table: HudiTable, slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the refusal to replace file groups of Hudi's sink for Kafka Connect, which writes to the same file ids as
    long as it exists, also after a new start. Nothing is refused if the owner has declared the last commit of a sink
    that is gone, and the timeline has no later commit of it."""
    found = next((item for item in slices if kafka_connect.is_file_id(item.file_id)), None)
    if found is None:
        return []
    ended = table.declared.writers_kafka_connect_ended
    last = kafka_connect.last_commit((each.write.instant, each.write.operation) for each in table.commits())
    newest = max((item.requested for item in table.instants() if item.state == "COMPLETED"), default="")
    # The declared instant must not be later than the whole timeline. Once the sink's commits are archived, such an
    # instant could hide later commits of the sink.
    if ended and last in (None, ended) and ended <= newest:
        return []
    seen = f"last commit {last}" if last else "no commit on the active timeline"
    declared = f"; declared to have ended with {ended}" if ended else ""
    detail = f"partition '{found.partition}', file group {found.file_id}: Kafka Connect's sink, {seen}{declared}"
    return [FILE_IDS_REPEAT.because(detail, hint=_hint(last or newest))]


def _hint(last: str) -> str:
    return (
        "Compactions and cleanings are safe. If the sink is gone for good, PATCH the table with `{"
        f'"writers": {{"kafka_connect_ended": "{last}"}}'
        "}`. Never start it again on this table."
    )
