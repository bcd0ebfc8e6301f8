"""Tests how commits and file groups of Hudi's sink for Kafka Connect are recognized."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.format.kafka_connect import OFFSETS, OPERATION, is_file_id, position_in
from jobs.format.stale_writes import CompletedWrite, operation_of
from jobs.hudi.records import FileSlice
from jobs.protocol.repeated_file_ids import of_kafka_connect
from service.lake.engine_marks import mark_of_commit
from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import InstantMetadata

_INSTANT = "20260101120000000"
_BEFORE, _LATER, _AHEAD = "20260101110000000", "20260101130000000", "20260101140000000"
_DIGEST = "C81E728D9D4C2F636F067F89CC14862C"


@pytest.mark.parametrize(
    ("operation", "extra", "expected"),
    [
        ("UPSERT_PREPPED", {OFFSETS: "0=5"}, OPERATION),
        ("BULK_INSERT_PREPPED", {OFFSETS: "0=5"}, OPERATION),
        ("UPSERT_PREPPED", {}, "UPSERT_PREPPED"),
        # A job may carry the offsets of the latest commit on.
        ("COMPACT", {OFFSETS: "0=5"}, "COMPACT"),
    ],
)
def test_a_commit_of_the_sink_has_an_operation_of_its_own(operation: str, extra: dict[str, str], expected: str) -> None:
    assert operation_of(operation, extra) == expected


def test_the_sink_counts_neither_as_spark_sql_nor_as_flink() -> None:
    instant = Instant(_INSTANT, "deltacommit", InstantState.COMPLETED, _INSTANT)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    found = {
        operation: mark_of_commit(instant, InstantMetadata(operation=operation), at, has_empty_inflight=True)
        for operation in (OPERATION, "UPSERT_PREPPED", "UPSERT")
    }
    assert {name: mark and mark.engine.value for name, mark in found.items()} == {
        OPERATION: None,
        "UPSERT_PREPPED": "spark-sql",
        "UPSERT": "flink",
    }


def test_the_latest_position_is_kept() -> None:
    assert position_in([{OFFSETS: "0=5"}, {}, {OFFSETS: "0=9", "schema": "{}"}, {}]) == {OFFSETS: "0=9"}
    assert position_in([{}, {"schema": "{}"}]) == {}


def test_the_file_ids_of_the_sink_are_digests() -> None:
    others = (_DIGEST.lower(), "00000010-c81e-728d-9d4c-2f636f067f89-0", "6f80f89c-2fdf-4887-a479-43581de81624-0")
    assert all(is_file_id(each) for each in (_DIGEST, f"{_DIGEST}-0"))
    assert not any(is_file_id(each) for each in others)


@pytest.mark.parametrize(
    ("ended", "commits", "is_refused"),
    [
        (None, [_INSTANT], True),
        (_INSTANT, [_BEFORE, _INSTANT], False),
        (_BEFORE, [_BEFORE, _INSTANT], True),
        # The sink came back with another clock.
        (_INSTANT, [_INSTANT, _BEFORE], True),
        (_LATER, [_INSTANT], True),
        # All of its commits are archived.
        (None, [], True),
        (_INSTANT, [], False),
        (_LATER, [], False),
        (_AHEAD, [], True),
    ],
)
def test_only_the_last_commit_on_the_timeline_shows_that_the_sink_has_ended(
    ended: str | None, commits: list[str], *, is_refused: bool
) -> None:
    written = [(instant, OPERATION) for instant in commits] + [(_LATER, "UPSERT")]
    table: Any = SimpleNamespace(
        declared=SimpleNamespace(writers_kafka_connect_ended=ended),
        instants=lambda: [SimpleNamespace(requested=instant, state="COMPLETED") for instant, _ in written],
        commits=lambda: [SimpleNamespace(write=CompletedWrite(*each)) for each in written],
    )
    found = of_kafka_connect(table, [FileSlice("dt=1", _DIGEST, None, 0, (), 0)])
    assert [each.type for each in found] == ["file-ids-repeat"] * is_refused
    assert all((commits[-1] if commits else _LATER) in each.hint for each in found)
    assert of_kafka_connect(table, [FileSlice("dt=1", "6f80f89c-2fdf-4887-a479-43581de81624-0", None, 0, (), 0)]) == []
