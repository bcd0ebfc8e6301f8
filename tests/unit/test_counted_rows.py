"""Tests that faults in the counts of rows become findings with the partitions and the numbers of rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from jobs.services.checks import counted
from jobs.services.checks.row_counts import PartitionRows, first_and_last_keys

if TYPE_CHECKING:
    from jobs.services.checks.finding import Examined, Finding


def rows(path: str, **more: Any) -> PartitionRows:
    return PartitionRows(path, 10, more.pop("misplaced", 0), more.pop("duplicates", 0), "a", "z", 0, 0, **more)


def examined(*found: PartitionRows, **more: Any) -> Examined:
    return cast("Examined", SimpleNamespace(counted=list(found), **more))


def of_keys(*found: PartitionRows) -> dict[str, Finding]:
    return {each.type: each for each in counted.keys(examined(*found))}


def test_rows_that_name_another_partition_are_counted_by_the_partition_that_they_name() -> None:
    found = of_keys(rows("dt=1"), rows("dt=2", elsewhere=3), rows("", elsewhere=1))
    assert found.keys() == {"rows-in-wrong-partition"}
    finding = found["rows-in-wrong-partition"]
    assert finding.items == {"dt=2": "3 of 'dt=2'", "": "1 of ''"}
    # The rows name no other file, so no job can know where they belong.
    assert finding.cure is None


def test_each_fault_of_rows_is_a_finding_of_its_own() -> None:
    assert of_keys(rows("dt=1"), rows("dt=2")) == {}
    found = of_keys(rows("dt=1", duplicates=2), rows("dt=2", elsewhere=3, forms={"plain": 4, "other": 6}))
    assert {name: finding.detail for name, finding in found.items()} == {
        "duplicate-keys": "2 in 'dt=1'",
        "rows-in-wrong-partition": "3 of 'dt=2'",
        "record-keys-differ": "6 rows have a key that their columns do not make",
    }
    forms = of_keys(rows("dt=1", forms={"plain": 4}), rows("dt=2", forms={"named": 6}))
    assert forms["record-keys-differ"].detail == "keys in several forms: named (6 rows), plain (4 rows)"
    # If a key exists twice because of a wrong bucket, the hint names the job that moves the row.
    twice = of_keys(rows("dt=1", misplaced=2, duplicates=2))["duplicate-keys"]
    assert "`repair`" in twice.hint
    assert "`repair`" not in found["duplicate-keys"].hint.replace("a `repair` of that overwrite", "")
    # Another check reports rows in wrong buckets.
    assert of_keys(rows("dt=1", misplaced=9)) == {}


def test_keys_that_no_filter_finds_are_counted_by_partition() -> None:
    keys = {("dt=1", "a"), ("dt=1", "z"), ("dt=2", "a")}
    (finding,) = counted.hidden(examined(hidden_keys=keys))
    assert finding.items == {
        "dt=1": "2 of the first and the last key of 'dt=1'",
        "dt=2": "1 of the first and the last key of 'dt=2'",
    }
    assert list(counted.hidden(examined(hidden_keys=set()))) == []


def test_without_buckets_no_row_is_in_a_wrong_one() -> None:
    assert list(counted.in_buckets(examined(rows("dt=1", misplaced=9), table=None, rules=None))) == []


def test_only_some_of_many_partitions_are_probed() -> None:
    assert first_and_last_keys([]) == set()
    assert first_and_last_keys([rows("dt=1")]) == {("dt=1", "a"), ("dt=1", "z")}
    assert len(first_and_last_keys([rows(f"dt={number}") for number in range(401)])) == 2 * 134
