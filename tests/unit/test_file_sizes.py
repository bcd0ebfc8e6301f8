"""Files must have the sizes that their commits say; logs may have grown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.hudi.file_listing import ListedFile
from jobs.hudi.records import FileSlice, commit_of
from jobs.services.checks import commits

BASE, LOG = "00000001-ab-0_1-2-3_20260101000000001.parquet", ".00000001-ab-0_20260101000000002.log.1_1-2-3"


def sizes_of(**examined: Any) -> list[str]:
    """Returns what is found of a table; without `slices`, it has no metadata table."""
    table = SimpleNamespace(is_listed_by_metadata="slices" in examined)
    found = commits.sized(cast("Any", SimpleNamespace(table=table, **examined)))
    return [text for finding in found for text in finding.items.values()]


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
    return sizes_of(commits=written, entries={partition: entries})


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


def test_each_file_of_each_partition_and_commit_is_compared() -> None:
    other = BASE.replace("00000001", "00000002")
    stats = {
        partition: [
            {"fileId": name, "path": f"{partition}/{name}", "fileSizeInBytes": size} for name, size in sizes.items()
        ]
        for partition, sizes in {"dt=1": {BASE: 10, other: 20}, "dt=2": {BASE: 30}, "gone": {BASE: 40}}.items()
    }
    written = [commit_of("1", "1", {"partitionToWriteStats": {name: of}}) for name, of in stats.items()]
    entries = {
        "dt=1": {BASE: ListedFile(10, 0, is_folder=False), other: ListedFile(1, 0, is_folder=False)},
        "dt=2": {BASE: ListedFile(2, 0, is_folder=False)},
    }
    assert sizes_of(commits=written, entries=entries) == [
        f"dt=1/{other} has 1 bytes, and 1 wrote 20",
        f"dt=2/{BASE} has 2 bytes, and 1 wrote 30",
    ]


def sliced(base: int, logs: int = 0, *, file_id: str = "f", names: tuple[str, ...] = (LOG,)) -> FileSlice:
    return FileSlice("dt=1", file_id, f"/lake/dt=1/{BASE}" if base >= 0 else None, max(base, 0), names, logs)


def test_files_of_archived_commits_have_the_sizes_that_the_metadata_table_says() -> None:
    def by_metadata(said: FileSlice, there: FileSlice) -> list[str]:
        whole = sliced(1, 1, file_id="other")
        return sizes_of(commits=[], entries={}, slices=[whole, said], listed_slices=[whole, there])

    assert by_metadata(sliced(10, 20), sliced(10, 20)) == []
    assert by_metadata(sliced(10), sliced(9)) == [f"dt=1/{BASE} has 9 bytes, and 10 by the metadata table"]
    assert by_metadata(sliced(10), sliced(11)) == [f"dt=1/{BASE} has 11 bytes, and 10 by the metadata table"]
    assert by_metadata(sliced(0), sliced(11)) == []
    shorter = "the logs of dt=1/f have 19 bytes, and 20 by the metadata table"
    assert by_metadata(sliced(-1, 20), sliced(-1, 19)) == [shorter]
    assert by_metadata(sliced(-1, 20), sliced(-1, 21)) == []
    # Other checks find files that are not in both.
    assert by_metadata(sliced(-1, 20), sliced(-1, 19, names=())) == []
    assert by_metadata(sliced(10), sliced(-1)) == by_metadata(sliced(1, file_id="g"), sliced(2)) == []


def test_a_file_of_a_known_commit_is_named_once() -> None:
    stats = {"dt=1": [{"fileId": "f", "path": f"dt=1/{LOG}", "fileSizeInBytes": 20}]}
    written = [commit_of("1", "1", {"partitionToWriteStats": stats})]
    entries = {"dt=1": {LOG: ListedFile(19, 0, is_folder=False)}}
    found = sizes_of(commits=written, entries=entries, slices=[sliced(-1, 20)], listed_slices=[sliced(-1, 19)])
    assert found == [f"dt=1/{LOG} has 19 bytes, and 1 wrote 20"]
