"""Tests the selection of the latest file slices for the samples of a registration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.lake.file_slices import read_snapshot
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from pathlib import Path

LOGS, COMPACTION = "20260101120000000", "20260101120100000"


def test_logs_alone_are_seen_while_a_compaction_writes_their_first_base_files(tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", version=6)
    one, other = bucket_id(0), bucket_id(1)
    table.commit(LOGS, {"p": {log_file(one, LOGS): 5, log_file(other, LOGS): 5}})
    table.begin(COMPACTION, "compaction")
    table.file("p", base_file(one, COMPACTION), 9)
    storage = open_storage(str(table.base), {})
    config = read_table_config(storage)
    slices = read_snapshot(storage, config, read_timeline(storage, config))
    assert [(each.file_id, each.base_file, each.log_bytes) for each in slices] == [(one, None, 5), (other, None, 5)]
