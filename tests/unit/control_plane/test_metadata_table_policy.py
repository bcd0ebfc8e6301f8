"""Tests when the policy compacts the metadata table, and its reasons for not doing so."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind
from service.lake.metadata_table import MetadataTableState
from service.policies.settings import MetadataTableSettings
from service.scheduling import metadata_table
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import NOW, ago

ON = MetadataTableSettings(enabled=True, commits=6)


@pytest.mark.parametrize(
    ("settings", "found", "context", "code"),
    [
        (MetadataTableSettings(), MetadataTableState(NOW, 50), {}, "off"),
        (ON, None, {}, "no-metadata-table"),
        (ON, MetadataTableState(NOW, 5), {}, "not-yet"),
        (ON, MetadataTableState(NOW, 0), {"calendar": Calendar(True)}, "nothing-new"),
        (ON, MetadataTableState(NOW, 3), {"calendar": Calendar(False, NOW)}, "not-yet"),
    ],
)
def test_the_kind_is_not_due(
    settings: MetadataTableSettings, found: MetadataTableState | None, context: dict[str, Any], code: str
) -> None:
    answer = metadata_table.decide(settings, found, TriggerContext(NOW, **context))
    assert isinstance(answer, Skip)
    assert answer.code == code


@pytest.mark.parametrize(("commits", "calendar"), [(6, None), (1, Calendar(True))])
def test_it_is_due_at_the_threshold_or_at_its_time(commits: int, calendar: Calendar | None) -> None:
    context = TriggerContext(NOW, calendar, last_run_at=ago(hours=5))
    answer = metadata_table.decide(ON, MetadataTableState(NOW, commits), context)
    assert isinstance(answer, Run)
    assert (answer.kind, answer.params) == (JobKind.METADATA_TABLE, {"action": "compact"})
