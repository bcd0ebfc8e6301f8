"""Tests which overwrites count as later than a stale write, by the order and the times of the commits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jobs.format.stale_writes import REPAIRED_KEY, REPAIRS_KEY, CompletedWrite
from jobs.hudi.records import Commit
from jobs.services.checks import overwritten
from jobs.services.later_overwrites import since


def _commit(instant: str, completed: str, operation: str = "UPSERT", *replaced: tuple[str, str]) -> Commit:
    write = CompletedWrite(instant, operation, replaced=frozenset(replaced))
    return Commit(write, completed, {}, {}, {}, {})


def test_only_overwrites_that_begin_after_the_end_of_the_write_remove_its_rows_and_only_in_their_partitions() -> None:
    commits = [
        _commit("01", "02", "INSERT_OVERWRITE", ("p", "f0")),
        _commit("03", "05"),
        _commit("04", "06", "INSERT_OVERWRITE", ("q", "f1")),
        _commit("07", "08", "CLUSTER", ("r", "f2")),
        _commit("09", "10", "DELETE_PARTITION", ("p", "f3"), ("s", "f4")),
        _commit("11", "12"),
    ]
    assert since(commits, {"03", "11"}) == {("03", "p"): "09", ("03", "s"): "09"}


def test_the_instant_counts_where_the_completion_is_not_known() -> None:
    """Commits of a copied table of version 6 have no later time than their instants."""
    commits = [_commit("03", "03"), _commit("05", "05", "INSERT_OVERWRITE_TABLE", ("", "f1"))]
    assert since(commits, {"03"}) == {("03", ""): "05"}


def test_a_partition_without_any_file_group_in_use_is_overwritten_too() -> None:
    stale = Commit(CompletedWrite("01", "UPSERT", written=frozenset({("p", "f1"), ("q", "f2")})), "02", {}, {}, {}, {})

    def overwrites_since(
        operation: str, written: frozenset[tuple[str, str]], emptied: frozenset[str]
    ) -> dict[tuple[str, str], str]:
        overwrite = Commit(CompletedWrite("03", operation, written), "04", {}, {}, {}, {}, emptied=emptied)
        return since([stale, overwrite], {"01"})

    assert overwrites_since("INSERT_OVERWRITE", frozenset({("p", "f3")}), frozenset()) == {("01", "p"): "03"}
    assert overwrites_since("DELETE_PARTITION", frozenset(), frozenset("q")) == {("01", "q"): "03"}
    assert overwrites_since("INSERT_OVERWRITE_TABLE", frozenset(), frozenset()) == {
        ("01", "p"): "03",
        ("01", "q"): "03",
    }
    assert overwrites_since("UPSERT", frozenset({("p", "f3")}), frozenset("q")) == {}


def test_a_repair_brings_nothing_back_whose_rows_are_overwritten_before_its_last_commit() -> None:
    """Rows in wrong buckets are first written to the right ones, and taken out of the wrong ones by a later commit."""
    groups = frozenset({("p", "f0"), ("p", "f1")})
    stale = Commit(CompletedWrite("01", "UPSERT", written=frozenset({("p", "f0")})), "02", {}, {}, {}, {})
    rows = CompletedWrite("03", "UPSERT", written=frozenset({("p", "f1")}))
    repair = Commit(rows, "04", {}, {}, {}, {REPAIRS_KEY: "01"})
    delete = Commit(CompletedWrite("06", "DELETE_PARTITION", replaced=groups), "07", {}, {}, {}, {})
    left_out = CompletedWrite("05", "CLUSTER", replaced=frozenset({("q", "f2")}), repaired=("01",))
    last = Commit(left_out, "08", {}, {}, {}, {REPAIRS_KEY: "01", REPAIRED_KEY: "01"})

    def types_of_findings(*commits: Commit) -> list[str]:
        examined: Any = SimpleNamespace(commits=commits, slices=[], table=SimpleNamespace(version=6))
        return [finding.type for finding in overwritten.back(examined)]

    assert types_of_findings(stale, repair, delete, last) == []
    assert types_of_findings(stale, delete, repair, last) == ["overwritten-rows-back"]
