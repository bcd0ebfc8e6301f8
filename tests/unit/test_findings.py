"""A finding of a diagnosis has only the items that two checks have found."""

from __future__ import annotations

from jobs.contract import JobKind
from jobs.kinds.results import Cure
from jobs.services.checks.finding import Finding, confirmed, named


def finding(kind: str, *items: str, cure: Cure | None = None) -> Finding:
    return Finding(kind, "A title", named(items), "An effect.", "A hint.", cure)


def test_a_write_that_was_only_in_flight_is_no_finding() -> None:
    # Each check met another file that was being written.
    assert confirmed([finding("commit-missing", "a")], [finding("commit-missing", "b")]) == []
    assert confirmed([finding("commit-missing", "a")], []) == []


def test_a_finding_names_only_the_items_that_both_checks_have_found() -> None:
    first = [finding("dead-write", "1", "2"), finding("commit-missing", "1")]
    again = [finding("dead-write", "2", "3"), finding("markers-left", "1")]
    assert confirmed(first, again) == [finding("dead-write", "2")]


def test_findings_of_one_type_may_be_several_and_come_in_another_order() -> None:
    plans = [finding("plan-files-gone", "1"), finding("plan-files-gone", "2")]
    assert confirmed(plans, reversed(plans)) == plans[::-1]


def test_the_text_of_an_item_comes_from_the_second_check() -> None:
    first = Finding("duplicate-keys", "t", {"dt=1": "2 in 'dt=1'"}, "e", "h")
    again = Finding("duplicate-keys", "t", {"dt=1": "3 in 'dt=1'"}, "e", "h", Cure(kind=JobKind.REPAIR))
    (found,) = confirmed([first], [again])
    assert found.result().to_json() == {
        "type": "duplicate-keys",
        "title": "t",
        "detail": "3 in 'dt=1'",
        "effect": "e",
        "hint": "h",
        "cure": {"kind": "repair", "params": {}},
    }
