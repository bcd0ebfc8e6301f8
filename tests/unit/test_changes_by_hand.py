"""Tests the checks for changes that somebody made on the storage by hand: they find each fault, and nothing else."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from jobs.hudi.file_listing import ListedFile
from jobs.hudi.records import FileSlice, Instant, commit_of
from jobs.hudi.savepoints import Savepoint
from jobs.services.checks import buckets, commits, folders, remains, table_parts, timeline
from jobs.services.checks.finding import Examined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.services.checks.finding import Finding

METADATA = ".hoodie_partition_metadata"
FIXED = "00000001-0000-0000-0000-000000000000-0"
FILE = ListedFile(1, 0, is_folder=False)
FOLDER = ListedFile(0, 0, is_folder=True)


def base_file(file_id: str, instant: str, token: str = "1-2-3") -> str:
    return f"{file_id}_{token}_{instant}.parquet"


def text_of(found: list[Finding]) -> list[str]:
    return sorted(text for each in found for text in each.items.values())


# -- logs on a copy-on-write table


def logs_of(*slices: tuple[str, tuple[str, ...]], is_merge_on_read: bool = False) -> list[str]:
    listed = [SimpleNamespace(partition=partition, log_files=logs) for partition, logs in slices]
    table = SimpleNamespace(is_merge_on_read=is_merge_on_read)
    examined = SimpleNamespace(table=table, listed_slices=listed, slices=[])
    return text_of(list(table_parts.table_type(cast("Any", examined))))


def test_each_log_on_a_copy_on_write_table_is_found() -> None:
    slices = ("dt=1", ("a", "b")), ("dt=2", ()), ("", ("c",))
    assert logs_of(*slices) == ["c", "dt=1/a", "dt=1/b"]
    assert logs_of(*slices, is_merge_on_read=True) == logs_of(("dt=1", ())) == []


# -- the timeline in the place of another layout


def layouts(own: str, **names: list[str]) -> dict[str, str]:
    """Returns what is found of a table whose timeline is in `own`; `names` has the files of both places."""
    there = {".hoodie": names.get("flat", []), ".hoodie/timeline": names.get("folder", [])}
    table = SimpleNamespace(timeline_path=f"/lake/trips/{own}", files_in=lambda folder: set(there[folder]))
    found = list(table_parts.timeline_layout(cast("Any", SimpleNamespace(table=table))))
    return dict(found[0].items) if found else {}


@pytest.mark.parametrize("slash", ["", "/"])
def test_completed_instants_in_the_place_of_another_layout_are_counted(slash: str) -> None:
    flat = ["001.commit", "002.deltacommit", "003.replacecommit", "004.commit.requested", "hoodie.properties"]
    folder = ["001_002.commit", "003.deltacommit.inflight"]
    found = layouts(f".hoodie/timeline{slash}", flat=flat, folder=folder)
    assert found == {".hoodie": "3 completed instants in .hoodie"}
    found = layouts(f".hoodie{slash}", flat=flat, folder=folder)
    assert found == {".hoodie/timeline": "1 completed instants in .hoodie/timeline"}


def test_the_own_timeline_and_plans_in_the_other_place_are_no_finding() -> None:
    assert layouts(".hoodie", flat=["001.commit"]) == {}
    assert layouts(".hoodie/timeline", folder=["001_002.replacecommit"], flat=["hoodie.properties", "archived"]) == {}
    assert layouts(".hoodie", folder=["003.compaction.requested", "001.commit.inflight"]) == {}


# -- a table that was made anew with another index


@pytest.mark.parametrize(
    ("with_bucket", "others", "has_config", "expected"),
    [(0, 3, False, True), (1, 8, False, True), (1, 7, False, False), (0, 3, True, False), (0, 0, False, False)],
)
def test_a_table_may_have_another_index_if_hardly_a_file_group_is_one_of_a_bucket(
    monkeypatch: pytest.MonkeyPatch, with_bucket: int, others: int, *, has_config: bool, expected: bool
) -> None:
    monkeypatch.setattr(buckets.hashing_config, "is_in_force", lambda _: has_config)
    ids = [FIXED] * with_bucket + ["b1d38ce7-1a82-4ea0-84e1-58ad3af13f06-0"] * others
    ids += ["61386072-1a82-4ea0-84e1-58ad3af13f06-0"] * bool(others)  # A random file id that begins with digits.
    listed = [SimpleNamespace(file_id=each) for each in ids]
    assert buckets.has_no_buckets(cast("Any", SimpleNamespace(table=None, listed_slices=listed))) is expected


# -- files of savepoints


def saved(
    monkeypatch: pytest.MonkeyPatch, *found: Savepoint, listed: Mapping[str, set[str]], **unlisted: set[str]
) -> tuple[list[str], list[str]]:
    """Returns what is found of these savepoints, and the partitions that were listed for it."""
    monkeypatch.setattr(remains, "savepoints_of", lambda _: list(found))
    asked: list[str] = []

    def files_in(partition: str) -> set[str]:
        asked.append(partition)
        return set(unlisted.get(partition, ()))

    table = SimpleNamespace(files_in=files_in)
    return text_of(list(remains.saved_files(cast("Any", SimpleNamespace(table=table, files=listed))))), asked


def savepoint(instant: str, **files: set[str]) -> Savepoint:
    of_root = {"" if name == "root" else name: frozenset(names) for name, names in files.items()}
    return Savepoint(instant, "user", "", of_root)


def test_each_file_that_any_savepoint_needs_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = savepoint("1", a={"x", "y"}, b={"x"}), savepoint("2", a={"y", "z"}, root={"r", "s"})
    listed = {"a": {"y"}, "b": {"x"}, "": {"s"}}
    assert saved(monkeypatch, first, second, listed=listed) == (["a/x of 1", "a/z of 2", "r of 2"], [])
    assert saved(monkeypatch, first, listed={"a": {"x", "y", "more"}, "b": {"x"}}) == ([], [])
    assert saved(monkeypatch, listed=listed) == ([], [])


def test_a_partition_that_no_longer_counts_is_listed_for_its_savepoint(monkeypatch: pytest.MonkeyPatch) -> None:
    assert saved(monkeypatch, savepoint("1", gone={"x", "y"}), listed={}, gone={"x"}) == (["gone/y of 1"], ["gone"])


# -- copies of partition folders


def unlisted(known: list[str], tree: dict[str, list[str]], *, by_metadata: bool = True) -> dict[str, list[str]]:
    """Returns the unknown partitions in a tree of folders: their paths, each with names; `name/` is a folder. Asserts
    that only folders were listed, and each once."""
    asked: list[str] = []

    def entries_in(folder: str) -> dict[str, ListedFile]:
        return {name.rstrip("/"): FOLDER if name.endswith("/") else FILE for name in tree.get(folder, [])}

    def entries_of(paths: list[str]) -> dict[str, dict[str, ListedFile]]:
        asked.extend(paths)
        return {each: entries_in(each) for each in paths}

    table: Any = SimpleNamespace(is_listed_by_metadata=by_metadata, entries_of=entries_of)
    found = folders.unlisted_folders(table, {path: entries_in(path) for path in known})
    assert len(asked) == len({*asked} & tree.keys())
    return {path: sorted(entries) for path, entries in found.items()}


def test_a_copied_folder_is_found_beside_and_above_the_partitions() -> None:
    tree = {
        "": ["a/", "a.bak/", ".hoodie/"],
        "a": ["1/", "2/"],
        "a/1": [METADATA, "f", "1.bak/"],  # Hudi does not look for partitions inside a partition.
        "a/2": [f"{METADATA}.parquet", "g"],
        "a/1/1.bak": [METADATA, "f"],
        "a.bak": ["1/"],
        "a.bak/1": [METADATA, "f"],
        ".hoodie": [METADATA, "f"],
    }
    found = unlisted(["a/1"], tree)
    assert found == {
        "a/2": [f"{METADATA}.parquet", "g"],
        "a.bak/1": [METADATA, "f"],
    }
    assert unlisted(["a/1"], tree, by_metadata=False) == {}


def test_folders_without_partition_metadata_and_hidden_ones_are_no_partitions() -> None:
    tree = {"": ["a/", "tmp/", ".x/"], "a": [METADATA], "tmp": ["f"], ".x": [METADATA, "f"]}
    assert unlisted(["a"], tree) == {}
    assert unlisted([""], {"": [METADATA, "f"]}) == {}


def test_a_bounded_number_of_unknown_folders_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_MOST", 2)
    tree = {"": ["a/", *(f"b{number}/" for number in range(4))], "a": [METADATA]}
    tree |= {f"b{number}": [METADATA] for number in range(4)}
    assert len(unlisted(["a"], tree)) == 2
    # Folders above a partition do not count.
    above = {"": ["a/"], "a": ["1/", "b/"], "a/b": ["2/", "3/"], "a/b/3": [METADATA]}
    assert unlisted(["a/1", "a/b/2"], above) == {"a/b/3": [METADATA]}


def copies(
    known: dict[str, list[str]], listed: dict[str, list[str]], *, by_metadata: bool = True, **on_timeline: list[str]
) -> set[str]:
    """Returns base files that are copies or that no commit has written. The metadata table lists the
    `known` files, the storage has the `listed` ones, and `on_timeline` are commits with the paths of their files."""
    partitions = {"files"} if by_metadata else set[str]()
    table: Any = SimpleNamespace(metadata_partitions=partitions, has_logs_named_by_slice=False)
    with ExitStack() as opened:
        examined = Examined(table, opened)
        examined.__dict__["slices"] = [
            SimpleNamespace(partition=partition, base_file=name, base_name=name)
            for partition, names in known.items()
            for name in names
        ]
        examined.__dict__["files"] = {partition: set(names) for partition, names in listed.items()}
        examined.__dict__["commits"] = [
            SimpleNamespace(write=SimpleNamespace(instant=name.removeprefix("of_")), files={"a": {"f": paths}})
            for name, paths in on_timeline.items()
        ]
        return examined.strays


def test_a_copy_of_an_archived_file_is_known_by_the_metadata_table() -> None:
    one, other = base_file("f", "1"), base_file("g", "1")
    known = {"a": [one, other]}
    assert copies(known, {"a": [one, other], "a.bak": [one, other, METADATA]}) == {f"a.bak/{one}", f"a.bak/{other}"}
    # A second attempt of the task has another token.
    again = base_file("f", "1", "9-9-9")
    assert copies(known, {"a": [one, other, again]}) == {f"a/{again}"}
    # Without a metadata table nobody knows which of them is the copy.
    assert copies(known, {"a": [one, other, again]}, by_metadata=False) == set()


def test_older_files_of_other_groups_and_instants_are_no_copies() -> None:
    one = base_file("f", "2")
    older, stranger = base_file("f", "1"), base_file("h", "2")
    assert copies({"a": [one]}, {"a": [one, older, stranger]}) == set()
    fixed = base_file(FIXED, "2")
    assert copies({"a": [fixed]}, {"a": [fixed], "b": [fixed]}) == set()


def test_a_file_of_the_active_timeline_is_a_stray_if_no_commit_names_it() -> None:
    one, again = base_file("f", "2"), base_file("f", "2", "9-9-9")
    assert copies({"a": [one]}, {"a": [one]}, of_2=[]) == {f"a/{one}"}
    # The metadata table lacks the file of a commit. Such a file is no copy.
    assert copies({"a": [one]}, {"a": [one, again]}, of_2=[f"a/{one}", f"a/{again}"]) == set()


# -- instants that the timeline does not have


def unknown(
    files: dict[str, list[str]],
    *timelines: list[str],
    archived: str = "",
    undone: str = "",
    named: str = "",
    by_slice: bool = False,
) -> dict[str, str]:
    """Returns the findings about the files of each partition, by type. Each of `timelines` has the completed
    instants of one read; later reads find those of the last one. A commit has written the file `named`."""
    read = iter(timelines)
    last = timelines[-1]

    def instants() -> list[Instant]:
        states = [(each, "INFLIGHT" if each.startswith("8") else "COMPLETED") for each in next(read, last)]
        return [Instant(each, "deltacommit", state) for each, state in states]

    late_files = SimpleNamespace(rolled_back=lambda: dict.fromkeys(undone.split(), "9"))
    with ExitStack() as opened:
        table: Any = SimpleNamespace(
            instants=instants,
            reload=lambda: None,
            was_archived=lambda instant: instant in archived.split(),
            has_logs_named_by_slice=by_slice,
        )
        examined = Examined(table, opened)
        client, written = SimpleNamespace(late_files=late_files), [SimpleNamespace(sizes={named: 1})]
        examined.__dict__ |= {"files": files, "client": client, "commits": written}
        found = [*timeline.lost_commits(examined), *timeline.unknown_files(examined)]
        return {each.type: each.detail for each in found}


def test_a_commit_that_left_the_timeline_is_known_by_its_files() -> None:
    files = {"": [base_file("f", "1"), base_file("f", "3"), METADATA], "a": [".g_3.log.1_1-2-3", base_file("g", "2")]}
    assert unknown(files, ["1", "2"]) == {"commit-missing": "3 (2 files)"}
    assert unknown(files, ["1", "2", "3"]) == {}
    assert unknown(files, ["1"]) == {"commit-missing": "2 (1 files), 3 (2 files)"}
    # An earlier commit may have been archived, and without a timeline nobody knows.
    assert unknown(files, ["3"]) == unknown(files, []) == {}


def test_a_write_that_begins_while_the_files_are_listed_is_known_afterwards() -> None:
    files = {"": [base_file("f", "1"), base_file("f", "3")]}
    assert unknown(files, ["1"], ["1", "3"]) == {}
    assert unknown(files, ["1"], archived="3") == {}
    assert unknown({"": [base_file("f", "8")]}, ["1", "8"]) == {}


def test_a_slice_whose_first_writer_was_rolled_back_long_ago_is_no_lost_commit() -> None:
    files = {"a": [base_file("f", "1"), ".g_3.log.1_1-2-3", ".g_3.log.2_1-2-3"]}
    lost = {"commit-missing": "3 (2 files)"}
    # Before table version 8 the name of a log has the instant of its slice.
    assert unknown(files, ["1"], named="a/.g_3.log.2_1-2-3", by_slice=True) == {}
    for other in ("b/.g_3.log.2_1-2-3", "a/.h_3.log.2_1-2-3", "a/.g_2.log.2_1-2-3", f"a/{base_file('f', '1')}"):
        assert unknown(files, ["1"], named=other, by_slice=True) == lost
    assert unknown(files, ["1"], named="a/.g_3.log.2_1-2-3") == lost
    both = {"a": [base_file("f", "1"), ".g_3.log.1_1-2-3", base_file("h", "3")]}
    assert unknown(both, ["1"], named="a/.g_3.log.2_1-2-3", by_slice=True) == {"commit-missing": "3 (1 files)"}
    assert unknown(both, ["1"], named=f"a/{base_file('f', '1')}", by_slice=True) == lost


def test_files_of_a_rolled_back_write_are_no_lost_commit() -> None:
    files = {"a": [base_file("f", "1"), base_file("f", "3")]}
    assert unknown(files, ["1"], undone="3") == {"files-of-rolled-back-write": f"a/{base_file('f', '3')}"}


# -- base files that readers do not see

SEEN, LOGS_ALONE = ("/lake/a/x.parquet", ()), (None, (".f_2.log.1_1-2-3",))


def hidden(
    monkeypatch: pytest.MonkeyPatch,
    slices: Mapping[str, tuple[str | None, tuple[str, ...]]],
    *,
    replaced: str = "",
    planned: str = "",
    gone: str = "",
    metadata: str = METADATA,
) -> list[str]:
    """Returns the findings about a table with the file groups f and g, whose `slices` are listed."""
    names = {file_id: base_file(file_id, "1") for file_id in ("f", "g")}
    stats = [{"fileId": file_id, "path": f"a/{name}", "numWrites": 1} for file_id, name in names.items()]
    stats.append({"fileId": "logs", "path": "a/.logs_1.log.1_1-2-3"})
    written = [
        commit_of("1", "2", {"partitionToWriteStats": {"a": stats}}),
        commit_of("3", "4", {"partitionToReplaceFileIds": {"a": replaced.split()}}),
    ]
    monkeypatch.setattr(commits, "held_by_plans", lambda *_: {("a", each): "5" for each in planned.split()})
    listed = [FileSlice("a", file_id, base, 1, logs, 1) for file_id, (base, logs) in slices.items()]
    files = {"a": {name for file_id, name in names.items() if file_id not in gone.split()} | {*metadata.split()}}
    examined = SimpleNamespace(commits=written, listed_slices=listed, files=files, table=SimpleNamespace(version=9))
    return text_of(list(commits.hidden(cast("Any", examined))))


def test_a_base_file_that_no_listing_shows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    f, g = (f"a/{base_file(each, '1')} of 1" for each in ("f", "g"))
    assert hidden(monkeypatch, {"f": SEEN, "g": SEEN}) == []
    assert hidden(monkeypatch, {}) == [f, g]
    assert hidden(monkeypatch, {"f": LOGS_ALONE, "g": SEEN}) == [f]


def test_files_that_were_replaced_or_are_being_compacted_may_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hidden(monkeypatch, {"g": SEEN}, replaced="f") == []
    assert hidden(monkeypatch, {"f": LOGS_ALONE, "g": SEEN}, planned="f") == []
    assert hidden(monkeypatch, {"g": SEEN}, gone="f") == []
    # A partition without its metadata has a finding of its own.
    assert hidden(monkeypatch, {}, metadata="") == []
    assert len(hidden(monkeypatch, {}, metadata=f"{METADATA}.parquet")) == 2
