from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from service.lake.history import is_archived
from service.lake.instant import Instant, InstantState
from service.lake.pending import read_pending
from service.lake.storage import open_storage
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline, parse_instant, read_timeline, timeline_files
from tests.support.small_table import instant_at

if TYPE_CHECKING:
    from pathlib import Path

VERSION_6 = TableConfig({"hoodie.table.version": "6"})
VERSION_9 = TableConfig({"hoodie.table.version": "9"})
REQUESTED, INFLIGHT, COMPLETED = InstantState.REQUESTED, InstantState.INFLIGHT, InstantState.COMPLETED


def timeline_of(table: Path, folder: str, config: TableConfig, *names: str) -> Timeline:
    (table / folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        (table / folder / name).touch()
    return read_timeline(open_storage(str(table), {}), config)


@pytest.mark.parametrize(
    ("name", "instant"),
    [
        ("20260101000000000.commit.requested", Instant("20260101000000000", "commit", REQUESTED)),
        ("20260101000000000.inflight", Instant("20260101000000000", "commit", INFLIGHT)),
        ("20260101000000000.commit", Instant("20260101000000000", "commit", COMPLETED)),
        ("20260101000000000.deltacommit.inflight", Instant("20260101000000000", "deltacommit", INFLIGHT)),
        (
            "20260101000000000_20260101000000009.clean",
            Instant("20260101000000000", "clean", COMPLETED, "20260101000000009"),
        ),
        ("hoodie.properties", None),
        (".20260101000000000.commit.crc", None),
        ("20260101000000000.commit.crc", None),
        ("20260101000000000.unknown", None),
        ("history", None),
    ],
)
def test_file_names_are_instants(name: str, instant: Instant | None) -> None:
    assert parse_instant(name) == instant


def test_each_instant_appears_once_in_its_furthest_state(tmp_path: Path) -> None:
    timeline = timeline_of(
        tmp_path,
        ".hoodie/timeline",
        VERSION_9,
        *("002.compaction.requested", "002.compaction.inflight", "002_005.commit"),
        *("001.deltacommit.requested", "001.deltacommit.inflight", "001_003.deltacommit"),
        *("004.clustering.requested", "004.clustering.inflight"),
        *("006.replacecommit.requested",),
        *("007.clustering.requested", "007.clustering.inflight", "007_008.replacecommit"),
    )
    assert timeline.instants == (
        Instant("001", "deltacommit", COMPLETED, "003"),
        Instant("002", "commit", COMPLETED, "005"),
        Instant("004", "clustering", INFLIGHT),
        Instant("006", "replacecommit", REQUESTED),
        Instant("007", "replacecommit", COMPLETED, "008"),
    )
    assert [i.requested_time for i in timeline.pending()] == ["004", "006"]
    assert timeline.completed("002")
    assert not timeline.completed("004")


def test_the_timeline_of_version_6_lies_among_other_files(tmp_path: Path) -> None:
    (tmp_path / ".hoodie" / "metadata").mkdir(parents=True)
    names = ["001.commit.requested", "001.inflight", "001.commit", "002.commit.requested", "002.inflight"]
    timeline = timeline_of(tmp_path, ".hoodie", VERSION_6, *names, "hoodie.properties", ".001.commit.crc")
    assert timeline.instants == (Instant("001", "commit", COMPLETED), Instant("002", "commit", INFLIGHT))


def test_the_timeline_folder_comes_from_the_properties(tmp_path: Path) -> None:
    config = TableConfig({"hoodie.table.version": "9", "hoodie.timeline.path": "elsewhere"})
    assert len(timeline_of(tmp_path, ".hoodie/elsewhere", config, "001_002.commit").instants) == 1


def test_a_table_without_a_timeline_folder_has_no_instants(tmp_path: Path) -> None:
    assert read_timeline(open_storage(str(tmp_path), {}), VERSION_9).instants == ()


def test_in_version_6_instants_before_the_timeline_count_as_archived(tmp_path: Path) -> None:
    timeline = timeline_of(tmp_path, ".hoodie", VERSION_6, "009.commit")
    storage = open_storage(str(tmp_path), {})
    assert is_archived(storage, VERSION_6, timeline, "003")
    assert not is_archived(storage, VERSION_6, timeline, "010")


@pytest.mark.parametrize(("version", "folder"), [("6", ".hoodie"), ("9", ".hoodie/timeline")])
def test_instants_are_converted_to_moments_by_the_clock_of_the_writers(
    tmp_path: Path, version: str, folder: str
) -> None:
    """The writers' clock is 8 hours and 10 minutes behind UTC, and the table's zone is not UTC."""
    config = TableConfig({"hoodie.table.version": version, "hoodie.table.type": "MERGE_ON_READ"})
    storage = open_storage(str(tmp_path), {})
    behind = timedelta(hours=8, minutes=10)
    (tmp_path / folder).mkdir(parents=True)
    for second in (0, 20, 40):
        begun = datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC)
        requested, completed = (instant_at(at - behind) for at in (begun, begun + timedelta(seconds=9)))
        ends = {".deltacommit.requested": 0, f"_{completed}.deltacommit" if version == "9" else ".deltacommit": 9}
        for name, seconds in ends.items():
            file = tmp_path / folder / f"{requested}{name}"
            file.touch()
            os.utime(file, (begun.timestamp() + seconds, begun.timestamp() + seconds))
    plan = f"{instant_at(begun - behind + timedelta(seconds=15))}.compaction.requested"
    (tmp_path / folder / plan).touch()
    files = timeline_files(storage, config)
    timeline = read_timeline(storage, config)
    [pending] = read_pending(storage, config.in_frame_of(files), timeline)
    assert pending.requested_at == begun + timedelta(seconds=15)
    assert config.in_frame_of([]).moment("20260101120000000") == config.moment("20260101120000000")
