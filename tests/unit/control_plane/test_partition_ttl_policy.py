"""Tests when the policy looks for expired partitions, and its reasons for not doing so."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.policies.settings import PartitionTtlSettings
from service.scheduling import partition_ttl
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago

ON = PartitionTtlSettings(enabled=True, days_retain=90)
TABLE = a_snapshot(PartitionState("dt=1", file_groups=4), PartitionState("dt=2", file_groups=4), PartitionState("dt=3"))


@pytest.mark.parametrize(
    ("settings", "snapshot", "context", "code"),
    [
        (PartitionTtlSettings(days_retain=1), TABLE, {}, "off"),
        (PartitionTtlSettings(enabled=True), TABLE, {}, "no-days-retain"),
        (ON, a_snapshot(PartitionState("", file_groups=4)), {}, "no-partitions"),
        (ON, a_snapshot(PartitionState("dt=1")), {}, "no-partitions"),
        (ON, TABLE, {"last_run_at": ago(hours=23)}, "not-yet"),
        (ON, TABLE, {"calendar": Calendar(False, NOW)}, "not-yet"),
    ],
)
def test_a_partition_ttl_is_not_due(
    settings: PartitionTtlSettings, snapshot: TableSnapshot, context: dict[str, Any], code: str
) -> None:
    answer = partition_ttl.decide(settings, snapshot, TriggerContext(NOW, **context))
    assert isinstance(answer, Skip)
    assert answer.code == code
    assert bool(answer.warning) is (code == "no-days-retain")


def test_the_policy_drops_no_partition_if_flink_would_have_to_stop() -> None:
    answer = partition_ttl.decide(ON, TABLE, TriggerContext(NOW), must_stop_flink=True)
    assert isinstance(answer, Skip)
    assert (answer.code, answer.until) == ("flink", None)


@pytest.mark.parametrize(
    ("context", "because"),
    [
        ({}, "no partition TTL yet; the table has 2 partitions; those older than 90 days are dropped"),
        ({"last_run_at": ago(days=1)}, "since the last partition TTL, threshold"),
        ({"last_run_at": ago(hours=1), "calendar": Calendar(True)}, "its scheduled time has come"),
        ({"last_run_at": ago(minutes=1), "is_unfinished": True}, "has reached its limit and left expired partitions"),
    ],
)
def test_a_partition_ttl_is_due_once_a_day_at_its_time_or_when_partitions_were_left(
    context: dict[str, Any], because: str
) -> None:
    answer = partition_ttl.decide(ON, TABLE, TriggerContext(NOW, **context))
    assert isinstance(answer, Run)
    assert answer.kind is JobKind.PARTITION_TTL
    assert (answer.params["days_retain"], answer.params["limit_partitions"]) == (90, 100)
    assert because in answer.because
