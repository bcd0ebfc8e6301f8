"""Tests when the policy archives the timeline, and its reasons for not doing so."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind
from service.policies.settings import ArchivalSettings
from service.scheduling import archival
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago

ON = ArchivalSettings(enabled=True, commits=60, retain=30)


@pytest.mark.parametrize(
    ("settings", "commits", "context", "code"),
    [
        (ArchivalSettings(), 500, {}, "off"),
        (ON, 30, {}, "nothing-to-archive"),
        (ON, 60, {}, "not-yet"),
        (ON, 61, {"last_run_at": NOW}, "nothing-new"),
        (ON, 61, {"calendar": Calendar(False, NOW)}, "not-yet"),
    ],
)
def test_an_archival_is_not_due(settings: ArchivalSettings, commits: int, context: dict[str, Any], code: str) -> None:
    answer = archival.decide(settings, a_snapshot(timeline_commits=commits), TriggerContext(NOW, **context))
    assert isinstance(answer, Skip)
    assert answer.code == code


@pytest.mark.parametrize(("commits", "calendar"), [(61, None), (31, Calendar(True))])
def test_an_archival_is_due_above_the_threshold_or_at_its_time(commits: int, calendar: Calendar | None) -> None:
    context = TriggerContext(NOW, calendar, last_run_at=ago(hours=5))
    answer = archival.decide(ON, a_snapshot(timeline_commits=commits), context)
    assert isinstance(answer, Run)
    assert (answer.kind, answer.params) == (JobKind.ARCHIVAL, {"retain": 30})
    assert f"{commits} commits on the active timeline, threshold 60" in answer.because
