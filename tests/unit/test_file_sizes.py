"""Files must have the sizes that their commits say; logs may have grown, and Flink adds up the sizes of its batches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.format.stale_writes import KNOWN_KEY
from jobs.hudi.file_listing import ListedFile
from jobs.hudi.records import FileSlice, commit_of
from jobs.services.checks import commits

BASE, LOG = "00000001-ab-0_1-2-3_20260101000000001.parquet", ".00000001-ab-0_20260101000000002.log.1_1-2-3"
# Two batches of one checkpoint: 3 of 10 rows, and all 10, into a file of 70 bytes.
OF_BATCHES = {
    "fileId": "f",
    "prevCommit": "20260101000000001",
    "fileSizeInBytes": 100,
    "totalWriteBytes": 100,
    "numWrites": 13,
    "numInserts": 2,
    "numDeletes": 1,
}


def sizes_of(**examined: Any) -> list[str]:
    """Returns what is found of a table; without `slices`, it has no metadata table."""
    table = SimpleNamespace(is_listed_by_metadata="slices" in examined)
    found = commits.sized(cast("Any", SimpleNamespace(table=table, **examined)))
    return [text for finding in found for text in finding.items.values()]


def differing(name: str, there: int | None, *said: int, partition: str = "dt=1") -> list[str]:
    """Returns the findings about one file that commits have written with these sizes."""
    path = f"{partition}/{name}".lstrip("/")
    written = [
        commit_of(
            f"{number}",
            f"{number}",
            {"partitionToWriteStats": {partition: [{"fileId": "f", "path": path, **_sizes(name, size)}]}},
        )
        for number, size in enumerate(said, 1)
    ]
    entries = {} if there is None else {name: ListedFile(there, 0, is_folder=False)}
    return sizes_of(commits=written, entries={partition: entries})


def _sizes(name: str, size: int) -> dict[str, int]:
    """Returns the statistics of a file of this size; those of a log are the appended bytes, and its size."""
    return {"totalWriteBytes": size, "fileSizeInBytes": size + 1000 * (name == LOG)}


@pytest.mark.parametrize("partition", ["dt=1", "a/b", ""])
def test_a_base_file_has_exactly_the_size_of_its_commit(partition: str) -> None:
    path = f"{partition}/{BASE}".lstrip("/")
    assert differing(BASE, 9, 10, partition=partition) == [f"{path} has 9 bytes, and 1 wrote 10"]
    assert differing(BASE, 11, 10, partition=partition) == [f"{path} has 11 bytes, and 1 wrote 10"]
    assert differing(BASE, 10, 10, partition=partition) == []


def test_a_log_has_at_least_the_bytes_that_its_commits_appended() -> None:
    assert differing(LOG, 10, 10) == differing(LOG, 30, 10, 20) == differing(LOG, 31, 10, 20) == []
    assert differing(LOG, 29, 10, 20) == [f"dt=1/{LOG} has 29 bytes, and 2 wrote 20 after 10"]
    assert differing(LOG, 9, 10) == [f"dt=1/{LOG} has 9 bytes, and 1 wrote 10"]


def test_a_base_file_that_two_commits_name_has_the_size_of_each() -> None:
    assert differing(BASE, 10, 10, 10) == []


def test_files_that_are_gone_and_sizes_that_no_commit_says_are_left_to_other_checks() -> None:
    assert differing(BASE, None, 10) == differing(BASE, 10, 0) == []


def test_the_largest_of_several_statistics_of_one_log_counts() -> None:
    stats = [{"fileId": "f", "path": LOG, "totalWriteBytes": size} for size in (10, 30, None)]
    assert commit_of("1", "1", {"partitionToWriteStats": {"": stats}}).sizes == {LOG: 30}


# The first token is one of Hudi before 1.1, the second one of later versions.
@pytest.mark.parametrize("token", ["0-1-0", "0-1-0-2"])
@pytest.mark.parametrize(
    ("before", "previous"), [("f_1-2-3_20250101000000000.parquet", "20250101000000000"), ("", "null")]
)
def test_statistics_of_several_batches_say_neither_size_nor_rows(token: str, before: str, previous: str) -> None:
    instant = OF_BATCHES["prevCommit"]
    stat = {**OF_BATCHES, "path": f"f_{token}_{instant}.parquet", "prevBaseFile": before}
    commit = commit_of(str(instant), "2", {"partitionToWriteStats": {"": [stat]}})
    assert (commit.sizes, commit.rows) == ({}, {})
    assert (commit.previous, commit.inserted, commit.deleted) == ({("", "f"): previous}, {("", "f"): 2}, {("", "f"): 1})


def test_a_log_of_a_new_file_group_may_name_its_own_instant_as_the_one_before() -> None:
    stat = {**OF_BATCHES, "path": LOG}
    commit = commit_of(str(OF_BATCHES["prevCommit"]), "2", {"partitionToWriteStats": {"": [stat]}})
    assert (commit.sizes, commit.rows) == ({LOG: 100}, {LOG: 13})


@pytest.mark.parametrize(("of_batches", "found"), [(True, []), (False, ["3 wrote 10 rows for 13"])])
def test_a_clustering_is_not_compared_with_row_counts_of_flinks_batches(of_batches: bool, found: list[str]) -> None:
    instant = str(OF_BATCHES["prevCommit"])
    name = f"f_0-1-0-2_{instant}.parquet"
    old = {**OF_BATCHES, "path": name, "prevCommit": instant if of_batches else "null"}
    new = {"fileId": "g", "path": "g_0-1-0_3.parquet", "numWrites": 10}
    written = [
        commit_of(instant, "2", {"partitionToWriteStats": {"": [old]}}),
        commit_of(
            "3",
            "4",
            {
                "operationType": "CLUSTER",
                "partitionToWriteStats": {"": [new]},
                "partitionToReplaceFileIds": {"": ["f"]},
            },
        ),
    ]
    # Rows that were written meanwhile are another matter.
    table = SimpleNamespace(version=9, has_consistent_hashing=lambda: True)
    examined: Any = SimpleNamespace(commits=written, table=table)
    assert [text for each in commits.replacements(examined) for text in each.items.values()] == found


@pytest.mark.parametrize(("known", "found"), [("1,4", []), ("1", ["3 wrote 150 rows for 140"])])
def test_a_replacement_has_the_rows_of_a_write_that_it_knew_whatever_their_order(known: str, found: list[str]) -> None:
    """The files of version 6 may show no order, and the write began later."""
    of_base = {"fileId": "f", "path": "f_0-1-0_1.parquet", "numWrites": 140}
    of_log = {"fileId": "f", "path": ".f_1.log.1_0-1-0", "numWrites": 70}
    copied = {"fileId": "g", "path": "g_0-1-0_3.parquet", "numWrites": 150}
    replaced = {
        "operationType": "CLUSTER",
        "partitionToWriteStats": {"": [copied]},
        "partitionToReplaceFileIds": {"": ["f"]},
        "extraMetadata": {KNOWN_KEY: known},
    }
    written = [
        commit_of("1", "2", {"partitionToWriteStats": {"": [of_base]}}),
        commit_of("3", "3", replaced),
        commit_of("4", "4", {"partitionToWriteStats": {"": [of_log]}}),
    ]
    table = SimpleNamespace(version=6, has_consistent_hashing=lambda: True)
    examined: Any = SimpleNamespace(commits=written, table=table)
    assert [text for each in commits.replacements(examined) for text in each.items.values()] == found


def test_each_file_of_each_partition_and_commit_is_compared() -> None:
    other = BASE.replace("00000001", "00000002")
    stats = {
        partition: [
            {"fileId": name, "path": f"{partition}/{name}", **_sizes(name, size)} for name, size in sizes.items()
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


def test_files_of_archived_commits_are_read_where_the_metadata_table_says_more_bytes() -> None:
    def cut_off(said: FileSlice, there: FileSlice, *, is_cut: bool = True, **more: Any) -> list[str]:
        whole = sliced(1, 1, file_id="other")
        more = {"commits": [], "entries": {}, "is_cut_off": lambda _: is_cut, **more}
        return sizes_of(slices=[whole, said], listed_slices=[whole, there], **more)

    assert cut_off(sliced(10, 20), sliced(10, 20)) == cut_off(sliced(0), sliced(11)) == []
    assert cut_off(sliced(10), sliced(9)) == [f"dt=1/{BASE} is cut off"]
    assert cut_off(sliced(-1, 20), sliced(-1, 19)) == [f"dt=1/{LOG} is cut off"]
    # Flink's commits say the sum of all batches.
    assert cut_off(sliced(10), sliced(9), is_cut=False) == cut_off(sliced(-1, 20), sliced(-1, 19), is_cut=False) == []
    assert cut_off(sliced(10), sliced(11)) == cut_off(sliced(-1, 20), sliced(-1, 21)) == []
    # Other checks find files that are not in both.
    assert cut_off(sliced(-1, 20), sliced(-1, 19, names=())) == []
    assert cut_off(sliced(10), sliced(-1)) == cut_off(sliced(2, file_id="g"), sliced(1)) == []
    # The commits of the active timeline say the exact bytes of their files.
    stats = {"dt=1": [{"fileId": "f", "path": f"dt=1/{LOG}", "totalWriteBytes": 19}]}
    written = [commit_of("1", "1", {"partitionToWriteStats": stats})]
    assert cut_off(sliced(-1, 20), sliced(-1, 19), commits=written) == []
