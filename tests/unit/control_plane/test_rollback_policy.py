"""Tests when the policy rolls back the write of a dead writer, and its reasons for not doing so."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind
from service.lake.snapshot import Pending
from service.policies.settings import RollbackSettings
from service.scheduling import rollback
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago

ON = RollbackSettings()


def write(instant: str = "20260101120000000", *, minutes: float | None = 11, **more: Any) -> Pending:
    beat = ago(minutes=minutes) if minutes is not None else None
    return Pending(
        instant,
        **{"action": "deltacommit", "state": "inflight", "requested_at": ago(hours=2), **more},
        heartbeat_at=beat,
    )


def request(**more: Any) -> Pending:
    return write(minutes=None, **{"action": "replacecommit", "state": "requested", **more})


@pytest.mark.parametrize(
    ("settings", "pending", "more", "code"),
    [
        (RollbackSettings(enabled=False), write(), {}, "off"),
        (ON, write(minutes=9), {}, "nothing-dead"),
        (ON, write(minutes=None), {}, "nothing-dead"),
        (ON, write(action="clustering", is_plan=True), {}, "nothing-dead"),
        (ON, write(action="replacecommit"), {}, "nothing-dead"),
        (ON, write(action="compaction", is_plan=True), {}, "nothing-dead"),
        (ON, write(minutes=None, action="replacecommit"), {}, "nothing-dead"),
        (ON, request(requested_at=ago(minutes=59)), {}, "nothing-dead"),
        (ON, request(is_plan=True), {}, "nothing-dead"),
        (ON, request(), {"obstacle": "Flink writes the table"}, "not-provable"),
        (ON, write(), {"obstacle": "Flink writes the table"}, "not-provable"),
    ],
)
def test_a_rollback_is_not_due(settings: RollbackSettings, pending: Pending, more: dict[str, Any], code: str) -> None:
    answer = rollback.decide(settings, a_snapshot(pending=(pending,)), TriggerContext(NOW), **more)
    assert isinstance(answer, Skip)
    assert answer.code == code


def test_a_write_of_our_own_job_is_left_to_the_next_one() -> None:
    context = TriggerContext(NOW, own_instants=frozenset({"20260101120000000"}))
    answer = rollback.decide(ON, a_snapshot(pending=(write(),)), context)
    assert isinstance(answer, Skip)


def test_a_live_writer_is_checked_again_when_its_heartbeat_could_have_expired() -> None:
    answer = rollback.decide(ON, a_snapshot(pending=(write(minutes=4), write("2", minutes=1))), TriggerContext(NOW))
    assert isinstance(answer, Skip)
    assert answer.until == ago(minutes=-6)


def test_the_oldest_write_of_a_dead_writer_is_rolled_back() -> None:
    pending = (write("20260101120500000", minutes=70), write(minutes=80), write("20260101130000000", minutes=1))
    answer = rollback.decide(ON, a_snapshot(pending=pending), TriggerContext(NOW))
    assert isinstance(answer, Run)
    assert (answer.kind, answer.params) == (JobKind.ROLLBACK, {"instant": "20260101120000000"})
    assert answer.because == "the writer of 20260101120000000 has been silent for 80 min; 1 more writer too"


def test_a_replacecommit_that_was_requested_and_never_begun_is_rolled_back_after_an_hour() -> None:
    pending = (write("20260101120500000", minutes=70), request())
    answer = rollback.decide(ON, a_snapshot(pending=pending), TriggerContext(NOW))
    assert isinstance(answer, Run)
    assert (answer.kind, answer.params) == (JobKind.ROLLBACK, {"instant": "20260101120000000"})
    assert answer.because == "20260101120000000 was requested 2 h ago and never begun; 1 more writer too"
    young = a_snapshot(pending=(request(requested_at=ago(minutes=50)),))
    answer = rollback.decide(ON, young, TriggerContext(NOW))
    assert isinstance(answer, Skip)
    assert answer.until == ago(minutes=-10)
