"""Tests what users are told about pending plans that hold up a job."""

from __future__ import annotations

import re
import shlex

import pytest

from jobs.problems.left_plan import LeftPlan, Maker, advice

ONE, OTHER = "20260101120000000", "20260101130000000"


def plan(action: str = "compaction", state: str = "REQUESTED", maker: Maker = Maker.FLINK, at: str = ONE) -> LeftPlan:
    return LeftPlan(at, action, state, "3 h", maker)


def commands(text: str) -> list[list[str]]:
    """Returns the words of the commands in a text, after the name of the program."""
    return [shlex.split(each)[1:] for each in re.findall("`(groundskeeper [^`]*)`", text)]


def test_a_plan_is_described_with_its_age_and_who_probably_made_it() -> None:
    assert str(plan()) == f"{ONE} (compaction, requested, 3 h old, probably made by a Flink job)"
    assert str(LeftPlan(ONE, "clustering", "INFLIGHT", None, Maker.OURS)) == (
        f"{ONE} (clustering, inflight, made by this service)"
    )


@pytest.mark.parametrize(
    ("left", "has_buckets", "words"),
    [
        (plan(), True, ["compaction", "my trips", "--param", f'plans=["{ONE}"]']),
        (
            plan(state="INFLIGHT"),
            True,
            ["compaction", "my trips", "--param", f'plans=["{ONE}"]', "--param", "take_over=true"],
        ),
        # A killed job of this service leaves a note, by which the next job begins the plan again.
        (plan(state="INFLIGHT", maker=Maker.OURS), True, ["compaction", "my trips", "--param", f'plans=["{ONE}"]']),
        (plan("clustering"), False, ["clustering", "my trips", "--param", f'plans=["{ONE}"]']),
        (plan("clustering"), True, ["rollback", "my trips", "--param", f'instant="{ONE}"']),
        (plan("replacecommit"), True, ["rollback", "my trips", "--param", f'instant="{ONE}"']),
    ],
)
def test_the_advice_has_the_command(left: LeftPlan, has_buckets: bool, words: list[str]) -> None:
    assert commands(advice([left], "my trips", has_buckets=has_buckets)) == [["jobs", "run", *words]]


def test_flink_must_not_execute_a_plan_at_the_same_time() -> None:
    assert "while the Flink job is stopped, or has `compaction.async.enabled=false`" in advice(
        [plan()], "trips", has_buckets=True
    )
    begun = advice([plan(state="INFLIGHT")], "trips", has_buckets=True)
    assert begun.startswith("If the Flink job that began the plan is stopped, execute it: ")
    assert "two executions of a plan corrupt the table" in begun
    assert "Flink" not in advice([plan(maker=Maker.OTHER)], "trips", has_buckets=True)


def test_plans_of_a_kind_have_one_command() -> None:
    left = [plan(), plan(state="INFLIGHT", at="20260101110000000"), plan(at=OTHER)]
    first, second = commands(advice(left, "trips", has_buckets=True))
    assert first[-1] == f'plans=["{ONE}", "{OTHER}"]'
    assert second[-1] == "take_over=true"


def test_a_requested_write_is_distinguished_from_a_plan() -> None:
    asked, begun = (plan("replacecommit", state, Maker.OTHER) for state in ("REQUESTED", "INFLIGHT"))
    assert (asked.is_request, begun.is_request, plan("clustering").is_request) == (True, False, False)
    assert "`run_ttl`" in advice([asked], "trips", has_buckets=True)
    # Instants of Flink never count as abandoned.
    for other in (begun, plan("replacecommit")):
        assert "`run_ttl`" not in advice([other], "trips", has_buckets=True)


def test_no_command_is_given_for_a_log_compaction_because_no_job_executes_or_removes_it() -> None:
    text = advice([plan("logcompaction")], "trips", has_buckets=True)
    assert commands(text) == []
    assert "hoodie.log.compaction.inline=false" in text
