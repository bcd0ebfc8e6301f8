"""Tests when the policy syncs a table to a metastore, and its reasons for not doing so."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind
from service.policies.settings import SyncSettings
from service.scheduling import sync
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago

URIS = "thrift://metastore:9083"
ON = SyncSettings(enabled=True, metastore_uris=URIS, database="lake")


@pytest.mark.parametrize(
    ("settings", "last_commit", "context", "code"),
    [
        (SyncSettings(metastore_uris=URIS), "002", {}, "off"),
        (SyncSettings(enabled=True), "002", {}, "no-metastore"),
        (ON, None, {}, "nothing-new"),
        (ON, "002", {"last_run_at": NOW}, "nothing-new"),
        (ON, "002", {"last_run_at": NOW, "seen_instant": "002"}, "nothing-new"),
        # The instants since the last poll have already been synced.
        (ON, "002", {"last_run_at": NOW, "seen_instant": "003"}, "nothing-new"),
        (ON, "002", {"calendar": Calendar(False, NOW)}, "not-yet"),
    ],
)
def test_a_sync_is_not_due(settings: SyncSettings, last_commit: str | None, context: dict[str, Any], code: str) -> None:
    answer = sync.decide(settings, a_snapshot(last_commit=last_commit), TriggerContext(NOW, **context))
    assert isinstance(answer, Skip)
    assert answer.code == code


@pytest.mark.parametrize(
    ("context", "because"),
    [
        ({}, "002 was never synced"),
        ({"last_run_at": ago(hours=1), "seen_instant": "001"}, "002 was committed since the last sync"),
        # The writer's clock is behind that of the service.
        ({"last_run_at": NOW, "seen_instant": "001"}, "002 was committed since the last sync"),
        # A restore completes, and removes the later commits.
        ({"last_run_at": ago(hours=1), "seen_instant": "003"}, "002 was committed since the last sync"),
        ({"calendar": Calendar(True)}, "its scheduled time has come; 002 was never synced"),
    ],
)
def test_a_sync_is_due_after_a_commit_that_it_has_not_seen(context: dict[str, Any], because: str) -> None:
    answer = sync.decide(ON, a_snapshot(last_commit="002"), TriggerContext(NOW, **context))
    assert isinstance(answer, Run)
    assert (answer.kind, answer.because) == (JobKind.SYNC, because)
    assert answer.params == {
        "metastore_uris": URIS,
        "database": "lake",
        "strategy": "ALL",
        "create_database": True,
    }
