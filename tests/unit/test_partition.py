"""Tests the rules of `service.lake.partition` about which files belong to the table, case by case."""

from __future__ import annotations

from service.lake.file_slices import Listed, Visibility, latest_slices
from service.lake.partition import describe
from service.lake.storage import Entry
from service.lake.timeline import timeline_of
from tests.support.small_table import base_file, bucket_id, log_file

A, B = bucket_id(0), bucket_id(1)


def visibility_of(*names: str, layout: int = 2) -> Visibility:
    return Visibility.of(timeline_of(names), layout)


def listed(files: dict[str, int], view: Visibility, replaced: dict[str, str] | None = None) -> Listed:
    return latest_slices("p", [Entry(f"p/{name}", size, False) for name, size in files.items()], view, replaced or {})


def only_slice(found: Listed) -> tuple[str | None, tuple[str, ...]]:
    (one,) = found.slices
    return one.base_file, one.logs


def test_the_newest_committed_base_file_counts_and_the_older_is_freed() -> None:
    files = {base_file(A, "001"): 10, base_file(A, "003"): 20, base_file(A, "005"): 40}
    found = listed(files, visibility_of("001_002.commit", "003_004.commit", "005.commit.requested", "005.inflight"))
    assert only_slice(found) == (base_file(A, "003"), ())
    assert (found.freed_files, found.freed_bytes, found.freed_since) == (1, 10, "003")


def test_files_of_instants_older_than_the_timeline_are_committed() -> None:
    found = listed({base_file(A, "001"): 10}, visibility_of("005_006.commit"))
    assert only_slice(found) == (base_file(A, "001"), ())


def test_files_of_a_pending_instant_do_not_count_however_old() -> None:
    found = listed({base_file(A, "001"): 10}, visibility_of("001.commit.requested", "001.inflight", "005_006.commit"))
    assert found.slices == ()
    assert found.freed_bytes == 0


def test_files_that_a_rollback_left_behind_do_not_count() -> None:
    assert listed({base_file(A, "003"): 10}, visibility_of("001_002.commit", "005_006.commit")).slices == ()


def test_a_savepointed_commit_does_not_begin_the_timeline() -> None:
    view = visibility_of("001_002.commit", "001_003.savepoint", "009_010.commit")
    assert only_slice(listed({base_file(A, "005"): 10}, view)) == (base_file(A, "005"), ())


def test_without_anything_committed_nothing_counts() -> None:
    assert listed({base_file(A, "001"): 10}, visibility_of("001.commit.requested")).slices == ()


def test_logs_from_version_8_on_count_by_the_completion_of_their_commit() -> None:
    """003 was written while the compaction requested at 005 ran: it completed afterwards, so it is not compacted."""
    names = ["001_002.deltacommit", "003_007.deltacommit", "004_0045.deltacommit", "005_008.commit"]
    files = {base_file(A, "001"): 10, base_file(A, "005"): 20, log_file(A, "003"): 3, log_file(A, "004"): 4}
    found = listed(files, visibility_of(*names))
    assert only_slice(found) == (base_file(A, "005"), (log_file(A, "003"),))
    assert (found.freed_files, found.freed_bytes, found.freed_since) == (2, 14, "005")


def test_logs_of_uncommitted_instants_do_not_count_from_version_8_on() -> None:
    view = visibility_of("001_002.deltacommit", "003.deltacommit.requested", "003.deltacommit.inflight")
    assert only_slice(listed({base_file(A, "001"): 10, log_file(A, "003"): 3}, view)) == (base_file(A, "001"), ())


def test_logs_of_version_6_go_by_the_slice_in_their_name() -> None:
    view = visibility_of("001.deltacommit", "005.commit", layout=1)
    files = {base_file(A, "001"): 10, log_file(A, "001"): 1, base_file(A, "005"): 20, log_file(A, "005"): 5}
    found = listed(files, view)
    assert only_slice(found) == (base_file(A, "005"), (log_file(A, "005"),))
    assert (found.freed_bytes, found.freed_since) == (11, "005")


def test_logs_on_a_pending_compaction_of_version_6_count_on_top_of_the_old_slice() -> None:
    view = visibility_of("001.deltacommit", "005.compaction.requested", layout=1)
    files = {base_file(A, "001"): 10, log_file(A, "001"): 1, log_file(A, "005"): 5}
    assert only_slice(listed(files, view)) == (base_file(A, "001"), (log_file(A, "001"), log_file(A, "005")))


def test_a_group_may_consist_of_logs_alone() -> None:
    assert only_slice(listed({log_file(A, "001"): 5}, visibility_of("001_002.deltacommit"))) == (
        None,
        (log_file(A, "001"),),
    )


def test_a_replaced_group_is_freed_altogether() -> None:
    found = listed(
        {base_file(A, "001"): 10, base_file(B, "003"): 20},
        visibility_of("001_002.commit", "003_004.replacecommit"),
        {A: "003"},
    )
    assert only_slice(found) == (base_file(B, "003"), ())
    assert (found.freed_bytes, found.freed_since) == (10, "003")


def test_files_are_out_of_use_since_the_first_instant_that_took_one_out_of_use() -> None:
    view = visibility_of("001_002.deltacommit", "003_004.commit", "005_006.commit", "007_008.commit")
    logs_first = {log_file(A, "001"): 1, base_file(A, "005"): 10, base_file(A, "007"): 10}
    assert listed(logs_first, view).freed_since == "005"
    two_groups = {**logs_first, base_file(B, "001"): 10, base_file(B, "003"): 10}
    assert listed(two_groups, view).freed_since == "003"
    assert listed(two_groups, view, {B: ""}).freed_since == ""
    assert listed({base_file(A, "001"): 10}, view).freed_since == ""


def test_other_files_do_not_belong_to_the_table() -> None:
    files = {".hoodie_partition_metadata": 96, "x.crc": 8, log_file(A, "001") + ".cdc": 9}
    assert listed(files, visibility_of("001_002.commit")).groups == frozenset()


def test_a_partition_is_summed_up_with_its_buckets() -> None:
    view = visibility_of("001_002.deltacommit", "003_004.deltacommit")
    files = {base_file(A, "001"): 100, log_file(A, "003"): 30, base_file(B, "001"): 10}
    rows = {base_file(A, "001"): 7, base_file(B, "001"): 1, "gone": 99}
    gone = {"x": "002"}
    found = describe("p", listed(files, view), base_rows=rows, replaced=gone, num_buckets=4, small_file_bytes=50)
    state = found.state
    assert (state.file_groups, state.base_files, state.base_bytes, state.log_files, state.log_bytes) == (
        2,
        2,
        110,
        1,
        30,
    )
    assert (state.small_files, state.small_bytes, state.rows) == (1, 10, 8)
    assert (state.buckets, state.num_buckets, state.largest_bucket, state.largest_bucket_bytes) == (2, 4, 0, 130)
    assert [(b.number, b.bytes, b.rows) for b in found.buckets] == [(0, 130, 7), (1, 10, 1)]
    assert found.base_rows == {base_file(A, "001"): 7, base_file(B, "001"): 1}
    assert found.replaced == gone
    assert state.base_sizes == (2, *[0] * 9)


def test_base_files_are_counted_by_size_and_a_bound_belongs_to_the_class_above_it() -> None:
    mib = 1024**2
    sizes = {1: mib - 1, 2: mib, 3: 4 * mib - 1, 4: 1024 * mib, 5: 5000 * mib}
    files = {base_file(bucket_id(number), "001"): size for number, size in sizes.items()}
    files[log_file(bucket_id(9), "001")] = 700 * mib
    found = describe(
        "p",
        listed(files, visibility_of("001_002.deltacommit")),
        base_rows={},
        replaced={},
        num_buckets=0,
        small_file_bytes=50,
    )
    assert found.state.base_sizes == (1, 2, 0, 0, 0, 0, 0, 0, 0, 2)


def test_rows_are_unknown_unless_known_of_each_file() -> None:
    found = listed({base_file(A, "001"): 100, base_file(B, "001"): 10}, visibility_of("001_002.commit"))
    detail = describe("p", found, base_rows={base_file(A, "001"): 7}, replaced={}, num_buckets=0, small_file_bytes=1)
    assert detail.state.rows is None
    assert (detail.state.buckets, detail.buckets) == (0, ())


def test_the_newest_replaced_file_groups_without_files_are_remembered() -> None:
    """All replaced file groups with files are remembered as well, so that their rows never count again."""
    replaced = {"with-files": "000", **{f"gone-{number:04d}": f"{number:04d}" for number in range(1, 1200)}}
    name = base_file("with-files", "001")
    found = describe(
        "p",
        listed({name: 1}, visibility_of("001_002.commit")),
        base_rows={},
        replaced=replaced,
        num_buckets=0,
        small_file_bytes=1,
    )
    assert len(found.replaced) == 1001
    assert found.replaced["with-files"] == "000"
    assert "gone-1199" in found.replaced
    assert "gone-0001" not in found.replaced
