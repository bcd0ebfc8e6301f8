"""Tests when the policy compacts the metadata table, and its reasons for not doing so."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.contract import JobKind
from service.lake.metadata_table import MetadataTableState, metadata_table_of
from service.lake.timeline import timeline_of
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
def test_a_compaction_of_the_metadata_table_is_not_due(
    settings: MetadataTableSettings, found: MetadataTableState | None, context: dict[str, Any], code: str
) -> None:
    answer = metadata_table.decide(settings, found, TriggerContext(NOW, **context))
    assert isinstance(answer, Skip)
    assert answer.code == code


@pytest.mark.parametrize(("commits", "calendar"), [(6, None), (1, Calendar(True))])
def test_a_compaction_of_the_metadata_table_is_due_at_the_threshold_or_at_its_time(
    commits: int, calendar: Calendar | None
) -> None:
    context = TriggerContext(NOW, calendar, last_run_at=ago(hours=5))
    answer = metadata_table.decide(ON, MetadataTableState(NOW, commits), context)
    assert isinstance(answer, Run)
    assert (answer.kind, answer.params) == (JobKind.METADATA_TABLE, {"action": "compact"})


@pytest.mark.parametrize("completed", ["_20260101000{}30000", ""])  # since table version 8, and before
def test_commits_since_the_last_listing_are_counted_until_writers_may_have_compacted(completed: str) -> None:
    def counted(commits: int, known: MetadataTableState) -> MetadataTableState | None:
        names = [f"20260101000{number}00000{completed.format(number)}.deltacommit" for number in range(1, commits + 1)]
        timeline = timeline_of([*names, "20260101005900000.deltacommit.inflight"])
        return metadata_table_of(storage, config, timeline, known, NOW)

    config: Any = SimpleNamespace(metadata_partitions=["files"], timeline_path=".hoodie/timeline", timeline_layout=2)
    listed: list[str] = []
    storage: Any = SimpleNamespace(list=lambda path, **_: listed.append(path) or [], base_path="/lake/trips")
    known = MetadataTableState(ago(minutes=4), 4, log_files=2, until="20260101000130000")
    assert counted(1, known) is known
    after = counted(4, known)
    assert after == replace(known, commits=7, until=f"202601010004{'3' if completed else '0'}0000")
    assert after is not None
    assert counted(4, after) is after
    assert not listed
    assert (read := counted(7, after))
    assert (read.commits, read.read_at, bool(listed)) == (0, NOW, True)
    listed.clear()
    counted(1, MetadataTableState(ago(minutes=6), until=known.until))
    assert listed
