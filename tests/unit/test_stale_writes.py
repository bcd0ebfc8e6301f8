"""Tests which commits are stale, by their file ids and the order of their completion."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.format.stale_writes import CompletedWrite, Doubt, StaleWrite, runs_of, stale_writes

OLD, NEW, OTHER = ("p", "00000000-a-0"), ("p", "00000000-b-0"), ("p", "00000001-c-0")


def write(instant: str, *groups: tuple[str, str], operation: str = "UPSERT", **more: object) -> CompletedWrite:
    return CompletedWrite(instant, operation, written=frozenset(groups), **more)  # type: ignore[arg-type]


def replacement(instant: str = "20", **more: object) -> CompletedWrite:
    return write(instant, NEW, operation="CLUSTER", replaced=frozenset({OLD}), **more)


def test_a_write_to_a_group_that_was_replaced_before_is_stale_however_late() -> None:
    late = [write(str(number), OTHER) for number in range(30, 60)]
    found = stale_writes([write("10", OLD), replacement(), *late, write("99", OLD, OTHER)])
    assert found == [StaleWrite("99", "UPSERT", {OLD: "20"})]


def test_a_write_before_the_replacement_and_one_to_its_new_groups_are_not_stale() -> None:
    assert stale_writes([write("10", OLD), replacement(), write("30", NEW)]) == []


def test_a_write_to_a_group_that_hudi_made_in_place_of_a_replaced_one_is_stale() -> None:
    made = ("p", "00000000-a-0-0")
    assert stale_writes([replacement(), write("30", made)]) == [StaleWrite("30", "UPSERT", {made: "20"})]
    # A second write of the rows to the same file groups is stale, too.
    assert [each.instant for each in stale_writes([replacement(), write("30", made), write("40", made)])] == [
        "30",
        "40",
    ]


@pytest.mark.parametrize("operation", ["COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE"])
def test_table_services_that_write_to_replaced_groups_bring_no_rows(operation: str) -> None:
    assert stale_writes([replacement(), write("30", OLD, operation=operation)]) == []


def test_a_repaired_write_is_not_stale_any_more() -> None:
    mended = write("50", NEW, repaired=("30",))
    assert [each.instant for each in stale_writes([replacement(), write("30", OLD), write("40", OLD), mended])] == [
        "40"
    ]


def test_a_replacement_knows_no_commit_that_had_been_archived_and_has_copied_its_rows() -> None:
    archived = write("10", OLD, is_archived=True)
    known = replacement(known=frozenset({"15"}))
    assert stale_writes([archived, write("15", OLD), known]) == []
    # A commit that completed later is stale, whether it is archived or not.
    assert [each.instant for each in stale_writes([known, write("30", OLD, is_archived=True)])] == ["30"]


def test_a_commit_that_slipped_in_before_a_replacement_that_did_not_know_of_it_is_stale() -> None:
    slipped_in = write("15", OLD)
    known = [write("10", OLD), slipped_in]
    assert stale_writes([*known, replacement(known=frozenset({"10"}))]) == [StaleWrite("15", "UPSERT", {OLD: "20"})]
    assert stale_writes([*known, replacement(known=frozenset({"10", "15"}))]) == []
    assert stale_writes([*known, replacement()]) == []


def test_a_write_to_a_file_group_that_was_replaced_before_the_first_known_commit_is_stale() -> None:
    assert stale_writes([write("30", OLD)], {OLD: "05"}) == [StaleWrite("30", "UPSERT", {OLD: "05"})]


OVERWRITE = "INSERT_OVERWRITE_TABLE"


@pytest.mark.parametrize(
    ("by", "late", "misdated", "doubt"),
    [
        ({"completed": "25"}, {}, (), None),
        ({"completed": "25"}, {}, ("30",), Doubt.CLOCKS),
        ({"completed": "25"}, {}, ("20",), Doubt.CLOCKS),
        ({"completed": "31"}, {}, (), Doubt.ORDER),
        ({"completed": "25", "operation": OVERWRITE}, {}, (), Doubt.OVERWRITTEN),
        # The next instants are of a table before version 8.
        ({}, {}, (), None),
        ({}, {"is_ordered": False}, (), Doubt.ORDER),
        ({"operation": "DELETE_PARTITION"}, {}, (), Doubt.OVERWRITTEN),
        # The file groups that a replacement names outweigh all times.
        ({"completed": "31", "known": frozenset({"10"})}, {"is_ordered": False}, ("30",), None),
        ({"operation": "DELETE_PARTITION", "known": frozenset({"10"})}, {}, (), None),
    ],
)
def test_a_stale_write_without_proof_has_a_doubt(
    by: dict[str, Any], late: dict[str, Any], misdated: tuple[str, ...], doubt: Doubt | None
) -> None:
    replaced = CompletedWrite("20", **{"operation": "CLUSTER", "replaced": frozenset({OLD}), **by})
    [found] = stale_writes([replaced, write("30", OLD, **late)], misdated=misdated)
    assert (found.instant, found.doubt) == ("30", doubt)


def test_a_write_that_only_its_instant_places_after_an_overwrite_is_not_stale() -> None:
    """The overwrite may have completed later and have removed the write."""
    overwrite = CompletedWrite("20", OVERWRITE, replaced=frozenset({OLD}), is_ordered=False)
    assert stale_writes([overwrite, write("30", OLD, is_ordered=False)]) == []
    assert [each.doubt for each in stale_writes([overwrite, write("30", OLD)])] == [Doubt.OVERWRITTEN]


def test_an_overwrite_that_replaces_the_file_groups_to_which_it_writes_is_hidden_by_itself() -> None:
    both = write("20", OLD, NEW, operation=OVERWRITE, replaced=frozenset({OLD, OTHER}))
    [found] = stale_writes([write("10", OLD), both])
    assert (found.instant, found.groups, found.doubt) == ("20", {OLD: "20"}, Doubt.ITSELF)
    assert [each.instant for each in stale_writes([both, write("30", OLD)])] == ["20", "30"]
    assert stale_writes([both, write("40", repaired=("20",))]) == []
    assert stale_writes([write("20", OLD, operation="CLUSTER", replaced=frozenset({OLD}))]) == []


def test_a_repair_makes_a_commit_for_instants_without_another_in_between() -> None:
    assert runs_of(["7", "1", "2", "5"], ["0", "3", "5", "8"]) == [("1", "2"), ("5", "7")]
    assert runs_of([], ["3"]) == []
