"""Tests which engines a table has by its declarations and by its files, and their precedence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.contract import WriterEngine
from service.access.secret_cipher import SecretCipher
from service.catalog.registration import FlinkWriter, Registration, Writers
from service.lake import engine_sighting
from service.lake.engine_sighting import Mark, Sighting, with_marks

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(minutes=1), NOW + timedelta(minutes=1)
SPARK, SPARK_SQL, FLINK = WriterEngine.SPARK, WriterEngine.SPARK_SQL, WriterEngine.FLINK


def sightings_of(*engines: WriterEngine, at: datetime = NOW) -> dict[WriterEngine, Sighting]:
    return {engine: Sighting(at, at, "001", "it shows") for engine in engines}


def test_marks_may_come_in_any_order_and_again() -> None:
    marks = [Mark(FLINK, NOW, "002", "b"), Mark(FLINK, BEFORE, "001", "a"), Mark(FLINK, AFTER, "003", "c")]
    found = with_marks(with_marks({}, marks), marks)
    assert found == {FLINK: Sighting(BEFORE, AFTER, "003", "c")}
    assert engine_sighting.from_json(engine_sighting.to_json(found)) == found


def test_detected_engines_are_added_to_the_declared_ones() -> None:
    assert Writers().known_engines({}) == ()
    assert Writers(engines=(SPARK,)).known_engines(sightings_of(FLINK)) == (SPARK, FLINK)
    assert Writers(flink=FlinkWriter("http://f", "job")).known_engines({}) == (FLINK,)
    table = Registration("t", "/t", "t", NOW, NOW, writers=Writers(engines=(SPARK,)))
    assert table.to_contract(sightings_of(SPARK_SQL), SecretCipher([])).writers_engines == ("spark", "spark-sql")


@pytest.mark.parametrize(("at", "counts"), [(BEFORE, False), (NOW, False), (AFTER, True)])
def test_detected_engines_count_until_the_owner_declares_the_engines_again(at: datetime, counts: bool) -> None:
    writers = Writers(engines=(SPARK,), engines_at=NOW)
    assert (FLINK in writers.known_engines(sightings_of(FLINK, at=at))) is counts
    assert FLINK in Writers(engines=(SPARK,), declared_at=NOW).known_engines(sightings_of(FLINK, at=at))


@pytest.mark.parametrize(("at", "are_stopped"), [(BEFORE, True), (AFTER, False)])
def test_a_flink_job_that_is_seen_after_the_writers_were_declared_stopped_is_not_stopped(
    at: datetime, are_stopped: bool
) -> None:
    writers = Writers(stopped=True, declared_at=NOW)
    assert writers.are_stopped(sightings_of(FLINK, at=at)) is are_stopped
    assert writers.are_stopped(sightings_of(SPARK_SQL, at=AFTER))
    table = Registration("t", "/t", "t", NOW, NOW, writers=writers)
    assert table.to_contract(sightings_of(FLINK, at=at), SecretCipher([])).writers_stopped is are_stopped
    assert not Writers(hudi_version="1.2.0", declared_at=NOW).are_stopped({})


def test_writers_are_stored_whole_and_those_of_earlier_versions_are_read() -> None:
    writers = Writers("1.2.0", engines=(FLINK,), flink=FlinkWriter("http://f", "job", "file:///sp"), declared_at=NOW)
    assert Writers.from_json(writers.to_json()) == writers
    assert Writers.from_json({"hudi_version": "1.1.0"}) == Writers("1.1.0")
