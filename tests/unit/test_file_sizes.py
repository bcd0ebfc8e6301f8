"""Files must have the sizes that their commits say; logs may have grown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.hudi.file_listing import ListedFile
from jobs.hudi.records import commit_of
from jobs.services.checks import commits

BASE, LOG = "00000001-ab-0_1-2-3_20260101000000001.parquet", ".00000001-ab-0_20260101000000002.log.1_1-2-3"


def differing(name: str, there: int | None, *said: int, partition: str = "dt=1") -> list[str]:
    """Returns what is found of one file that commits have written with these sizes."""
    path = f"{partition}/{name}".lstrip("/")
    written = [
        commit_of(
            f"{number}",
            f"{number}",
            {"partitionToWriteStats": {partition: [{"fileId": "f", "path": path, "fileSizeInBytes": size}]}},
        )
        for number, size in enumerate(said, 1)
    ]
    entries = {} if there is None else {name: ListedFile(there, 0, is_folder=False)}
    examined: Any = SimpleNamespace(commits=written, entries={partition: entries})
    return [text for finding in commits.sized(cast("Any", examined)) for text in finding.items.values()]


@pytest.mark.parametrize("partition", ["dt=1", "a/b", ""])
def test_a_base_file_has_exactly_the_size_of_its_commit(partition: str) -> None:
    path = f"{partition}/{BASE}".lstrip("/")
    assert differing(BASE, 9, 10, partition=partition) == [f"{path} has 9 bytes, and 1 wrote 10"]
    assert differing(BASE, 11, 10, partition=partition) == [f"{path} has 11 bytes, and 1 wrote 10"]
    assert differing(BASE, 10, 10, partition=partition) == []


def test_a_log_has_at_least_the_bytes_of_each_commit_that_wrote_to_it() -> None:
    assert differing(LOG, 10, 10) == differing(LOG, 30, 10, 20) == []
    assert differing(LOG, 19, 10, 20) == [f"dt=1/{LOG} has 19 bytes, and 2 wrote 20"]


def test_files_that_are_gone_and_sizes_that_no_commit_says_are_left_to_other_checks() -> None:
    assert differing(BASE, None, 10) == differing(BASE, 10, 0) == []


def test_of_several_statistics_of_one_log_the_largest_counts() -> None:
    stats = [{"fileId": "f", "path": LOG, "fileSizeInBytes": size} for size in (10, 30, None)]
    assert commit_of("1", "1", {"partitionToWriteStats": {"": stats}}).sizes == {LOG: 30}
