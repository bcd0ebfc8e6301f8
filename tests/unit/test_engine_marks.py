"""Tests the marks in a table's files that show which engine wrote it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import WriterEngine
from service.lake.engine_marks import mark_of_commit, marks_of_table
from service.lake.instant import Instant, InstantState
from service.lake.instant_metadata import InstantMetadata, parse_metadata
from service.lake.storage import open_storage
from service.lake.timeline import inflight_names_of
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPARK_SQL, FLINK = WriterEngine.SPARK_SQL, WriterEngine.FLINK


@pytest.mark.parametrize(
    ("action", "metadata", "has_empty_inflight", "engine"),
    [
        ("deltacommit", {"operation": "UPSERT"}, False, None),
        ("deltacommit", {"operation": "UPSERT"}, True, FLINK),
        ("commit", {"operation": "INSERT"}, True, FLINK),
        ("deltacommit", {"operation": "UPSERT", "flink_checkpoint": "7"}, False, FLINK),
        # Spark leaves the inflight files of these actions empty as well.
        ("deltacommit", {"operation": "BULK_INSERT"}, True, None),
        ("replacecommit", {"operation": "INSERT_OVERWRITE"}, True, None),
        ("deltacommit", {"operation": "DELETE"}, False, None),
        ("deltacommit", {"operation": "UPSERT_PREPPED"}, False, SPARK_SQL),
        ("commit", {"operation": "DELETE_PREPPED"}, False, SPARK_SQL),
        ("commit", {"operation": "COMPACT"}, True, None),
        ("clean", {}, True, None),
    ],
)
def test_the_engine_of_a_commit_is_recognized(
    action: str, metadata: dict[str, Any], has_empty_inflight: bool, engine: WriterEngine | None
) -> None:
    instant = Instant("001", action, InstantState.COMPLETED, "002")
    mark = mark_of_commit(instant, InstantMetadata(**metadata), NOW, has_empty_inflight=has_empty_inflight)
    assert (mark.engine if mark else None) is engine
    if mark:
        assert (mark.at, mark.instant) == (NOW, "001")


def test_the_checkpoint_of_a_flink_job_is_read_from_the_extra_metadata() -> None:
    content = b'{"operationType": "UPSERT", "extraMetadata": {"flink_checkpoint_id": "12"}}'
    assert parse_metadata("deltacommit", content, "").flink_checkpoint == "12"


@pytest.mark.parametrize(("version", "action"), [(6, "commit"), (6, "deltacommit"), (9, "commit"), (9, "deltacommit")])
def test_the_inflight_file_of_a_commit_is_found_in_both_layouts(tmp_path: Path, version: int, action: str) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table.begin("001", action, flink=True)
    names = {path.name for path in table.timeline.iterdir()}
    assert names & set(inflight_names_of(Instant("001", action, InstantState.COMPLETED)))


def test_a_flink_job_is_seen_before_its_first_commit(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    storage = open_storage(str(table.base), {})
    assert list(marks_of_table(storage)) == []
    aux = table.base / ".hoodie" / ".aux"
    (aux / ".bootstrap" / ".partitions").mkdir(parents=True)
    assert list(marks_of_table(storage)) == []
    (aux / "view_storage_conf_2").touch()
    os.utime(aux / "view_storage_conf_2", (1000, 1000))
    [mark] = marks_of_table(storage)
    assert (mark.engine, mark.at, mark.instant) == (FLINK, datetime.fromtimestamp(1000, UTC), None)


@pytest.mark.parametrize("folder", [".ids", "ckp_meta"])
def test_the_last_heartbeat_of_flinks_clients_counts(tmp_path: Path, folder: str) -> None:
    table = SmallTable(tmp_path / "t")
    aux = table.base / ".hoodie" / ".aux" / folder
    aux.mkdir(parents=True)
    for name, at in (("_", 5000), ("_1", 4000)):
        (aux / name).touch()
        os.utime(aux / name, (at, at))
    [mark] = marks_of_table(open_storage(str(table.base), {}))
    assert (mark.engine, mark.at.timestamp()) == (FLINK, 5000)
