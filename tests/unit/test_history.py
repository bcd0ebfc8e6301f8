"""The history of both timeline layouts is read as Hudi reads it: also when it is long, damaged, or being compacted."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.lake import lsm_history
from service.lake.history import archived_since, is_archived
from service.lake.storage import Storage, open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from service.model.errors import GroundskeeperError
from service.model.storage_errors import FileDamagedError
from tests.support.small_table import SmallTable, base_file, bucket_id, later

if TYPE_CHECKING:
    from pathlib import Path

    from service.lake.archived import Archived

FIRST = "20260101000000000"


def instant(number: int) -> str:
    return later(FIRST, number)


def archived_table(base: Path, version: int, *, commits: int = 3) -> SmallTable:
    """Returns a table whose commits were archived one by one, except for the last."""
    table = SmallTable(base, version=version)
    for number in range(commits):
        table.commit(instant(10 * number), {"p": {base_file(bucket_id(0), instant(10 * number)): 100 + number}})
    for number in range(commits - 1):
        table.archive(instant(10 * number))
    return table


def search(table: SmallTable, since: str = "") -> tuple[tuple[Archived, ...], bool]:
    storage = open_storage(str(table.base), {})
    return archived_since(storage, read_table_config(storage), since)


def times(found: tuple[Archived, ...]) -> list[str]:
    return [each.instant.requested_time for each in found]


def is_in_history(table: SmallTable, requested: str) -> bool:
    storage = open_storage(str(table.base), {})
    config = read_table_config(storage)
    return is_archived(storage, config, read_timeline(storage, config), requested)


@pytest.mark.parametrize("version", [6, 9])
def test_archived_commits_have_their_metadata(tmp_path: Path, version: int) -> None:
    table = archived_table(tmp_path / "t", version)
    table.commit(instant(15), action="replacecommit", operation="CLUSTER", replaced={"p": [bucket_id(0)]})
    table.clean(instant(17), ("p",))
    table.archive(instant(15), instant(17))

    found, is_whole = search(table, instant(10))

    assert (times(found), is_whole) == ([instant(10), instant(15), instant(17)], True)
    written, clustered, cleaned = (each.metadata for each in found)
    assert (written.operation, written.rows_written, written.bytes_written) == ("UPSERT", 10, 101)
    assert written.partitions == ("p",)
    assert (clustered.operation, clustered.replaced) == ("CLUSTER", {"p": (bucket_id(0),)})
    assert cleaned.partitions == ("p",)
    assert is_in_history(table, instant(10))


def test_a_file_that_an_archival_left_without_a_manifest_does_not_count(tmp_path: Path) -> None:
    """Such an archival failed before it had written the manifest, or within the file."""
    table = archived_table(tmp_path / "t", 9)
    name = f"{instant(11)}_{instant(12)}_0.parquet"
    (table.timeline / "history" / name).write_bytes(b"PAR1 and no more")
    assert (times(search(table)[0]), search(table)[1]) == ([instant(0), instant(10)], True)
    assert not is_in_history(table, instant(11))
    assert is_in_history(table, instant(10))


def test_the_version_file_names_the_manifest_and_without_it_the_latest_counts(tmp_path: Path) -> None:
    table = archived_table(tmp_path / "t", 9)
    version = table.timeline / "history" / "_version_"
    version.write_text("1")
    assert times(search(table)[0]) == [instant(0)]
    for text in ("", "x"):
        version.write_text(text)
        assert times(search(table)[0]) == [instant(0), instant(10)]
    version.unlink()
    assert times(search(table)[0]) == [instant(0), instant(10)]
    shutil.rmtree(table.timeline / "history")
    assert (search(table), is_in_history(table, instant(0))) == (((), True), False)


def test_a_history_that_is_compacted_during_the_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = archived_table(tmp_path / "t", 9)
    history = table.timeline / "history"
    inputs = sorted(history.glob("*.parquet"))
    rows = pa.concat_tables([pa.parquet.read_table(each) for each in inputs])
    read = lsm_history._rows

    def compacted(storage: Storage, path: str, columns: list[str]) -> object:
        if inputs:
            table.add_to_history(rows, f"{instant(0)}_{instant(10)}_1.parquet", replaces_all=True)
            while inputs:
                inputs.pop().unlink()
        return read(storage, path, columns)

    monkeypatch.setattr(lsm_history, "_rows", compacted)
    assert (times(search(table)[0]), search(table)[1]) == ([instant(0), instant(10)], True)


@pytest.mark.parametrize("version", [6, 9])
def test_a_damaged_file_hides_only_its_own_instants(tmp_path: Path, version: int) -> None:
    table = archived_table(tmp_path / "t", version, commits=4)
    folder = table.base / ".hoodie/archived" if version < 8 else table.timeline / "history"
    second = sorted(each for each in folder.iterdir() if each.suffix == ".parquet" or each.name[0] == ".")[1]
    second.write_bytes(second.read_bytes()[:-1])
    found, is_whole = search(table)
    assert not is_whole
    # The record before the damage is complete in a log.
    assert {instant(0), instant(20)} <= set(times(found))
    if version == 9:
        with pytest.raises(FileDamagedError):
            is_in_history(table, instant(10))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_anywhere_in_a_log_is_an_error_of_ours_or_tells_that_instants_may_be_missing(
    tmp_path: Path, data: st.DataObject
) -> None:
    base = tmp_path / "t"
    shutil.rmtree(base, ignore_errors=True)
    table = archived_table(base, 6, commits=2)
    (path,) = (base / ".hoodie/archived").iterdir()
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        found, is_whole = search(table)
    except GroundskeeperError:
        return
    assert not is_whole or len(found) <= 1


@pytest.mark.parametrize("version", [6, 9])
def test_a_long_history_is_read_as_far_as_it_is_asked_for(tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    number = 10_000 if version == 9 else 300
    if version == 9:
        times_ = [instant(10 * each) for each in range(number)]
        columns = {
            "instantTime": times_,
            "completionTime": [later(each) for each in times_],
            "action": ["commit"] * number,
            "metadata": pa.array([b""] * number, pa.binary()),
        }
        table.add_to_history(pa.table(columns), f"{times_[0]}_{times_[-1]}_2.parquet")
    else:
        for each in range(number):
            table.commit(instant(10 * each))
        table.archive(*(instant(10 * each) for each in range(number)))
    table.commit(instant(10 * number))
    found, is_whole = search(table, instant(10 * (number - 20)))
    assert (len(found), is_whole) == (20, True)
    assert len(search(table)[0]) == number
    assert is_in_history(table, instant(10 * (number - 1)))
