"""Tests how commits of Hudi's sink for Kafka Connect are recognized."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.format.kafka_connect import OFFSETS, OPERATION, position_in
from jobs.format.stale_writes import operation_of
from service.lake.engine_marks import mark_of_commit
from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import InstantMetadata

_INSTANT = "20260101120000000"


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
