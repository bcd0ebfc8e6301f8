"""Jobs that policies start have the same parameters as jobs that callers submit by the API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from jobs.contract import JobKind
from jobs.job_params import ClusteringLayout, CompactionEngine, TtlStrategy
from service.api.params import JobIn, as_json
from service.lake.snapshot import PartitionState
from service.policies.resize_settings import ResizeSettings
from service.policies.settings import (
    ArchivalSettings,
    AuditSettings,
    CleaningSettings,
    ClusteringSettings,
    CompactionSettings,
    ContractionSettings,
    DiagnosisSettings,
    ExpansionSettings,
    Mode,
    PartitionTtlSettings,
    RepairSettings,
    SyncSettings,
)
from service.scheduling import (
    archival,
    audit,
    bucket_contraction,
    bucket_expansion,
    bucket_resize,
    cleaning,
    clustering,
    compaction,
    diagnosis,
    partition_ttl,
    repair,
    sync,
)
from service.scheduling.decision import Run
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, an_incident

ADAPTER: TypeAdapter[Any] = TypeAdapter(JobIn)
DUE = TriggerContext(NOW, Calendar(is_due=True))
AUTO = ExpansionSettings(mode=Mode.AUTO, max_bucket_bytes=100)
LARGE = PartitionState("", base_bytes=900, buckets=4, num_buckets=4, largest_bucket=0, largest_bucket_bytes=300)
SMALL = PartitionState("dt=1", base_bytes=100, buckets=4, num_buckets=4, largest_bucket=0, largest_bucket_bytes=30)
PARTITION = PartitionState("dt=1", file_groups=4)

ANSWERS = [
    compaction.decide(CompactionSettings(), a_snapshot(PartitionState("", log_bytes=1)), DUE),
    compaction.decide(CompactionSettings(limit_bytes=5), a_snapshot(PartitionState("", log_bytes=1)), DUE),
    compaction.decide(CompactionSettings(limit_file_groups=5), a_snapshot(PartitionState("", log_bytes=1)), DUE),
    compaction.decide(
        CompactionSettings(engine=CompactionEngine.HUDI, codec="zstd"), a_snapshot(PartitionState("", log_bytes=1)), DUE
    ),
    clustering.decide(ClusteringSettings(enabled=True), a_snapshot(), DUE),
    cleaning.decide(CleaningSettings(), a_snapshot(PartitionState("", freed_files=1)), DUE),
    clustering.decide(
        ClusteringSettings(enabled=True, sort_by=("a", "b"), layout=ClusteringLayout.ZORDER), a_snapshot(), DUE
    ),
    bucket_expansion.decide(AUTO, a_snapshot(LARGE, num_buckets=4), DUE),
    bucket_expansion.decide(AUTO, a_snapshot(LARGE, SMALL, num_buckets=4), DUE),
    bucket_expansion.decide(
        ExpansionSettings(mode=Mode.AUTO, max_bucket_bytes=100, codec="zstd"),
        a_snapshot(LARGE, num_buckets=4),
        DUE,
    ),
    bucket_contraction.decide(
        ContractionSettings(mode=Mode.AUTO, min_bucket_bytes=300), a_snapshot(LARGE, num_buckets=4), DUE, limit=10**6
    ),
    bucket_contraction.decide(
        ContractionSettings(mode=Mode.AUTO, min_bucket_bytes=30, codec="zstd"),
        a_snapshot(LARGE, SMALL, num_buckets=4),
        DUE,
        limit=10**6,
    ),
    bucket_resize.decide(
        ResizeSettings(mode=Mode.AUTO, merge_bytes=0),
        a_snapshot(replace(LARGE, largest_range_bytes=1 << 30), replace(SMALL, largest_range_bytes=1)),
        DUE,
    ),
    archival.decide(ArchivalSettings(enabled=True), a_snapshot(timeline_commits=61), DUE),
    diagnosis.decide(DiagnosisSettings(enabled=True), DUE),
    audit.decide(AuditSettings(rows=True), a_snapshot(), DUE),
    sync.decide(
        SyncSettings(enabled=True, metastore_uris="thrift://metastore:9083", table="trips"),
        a_snapshot(last_commit="001"),
        DUE,
    ),
    repair.decide(RepairSettings(), [an_incident()], TriggerContext(NOW)),
    partition_ttl.decide(PartitionTtlSettings(enabled=True, days_retain=90), a_snapshot(PARTITION), DUE),
    partition_ttl.decide(
        PartitionTtlSettings(
            enabled=True,
            days_retain=90,
            strategy=TtlStrategy.KEEP_BY_CREATION_TIME,
            partitions=("dt=1", {"prefix": "dt=2"}),
            limit_partitions=7,
        ),
        a_snapshot(PARTITION),
        DUE,
    ),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.kind)
def test_the_parameters_are_complete_and_right(answer: Run) -> None:
    checked = ADAPTER.validate_python({"kind": answer.kind, "params": answer.params})
    assert as_json(checked.params) == answer.params


def test_every_kind_is_among_them() -> None:
    by_people = {
        JobKind.BUCKET_COUNT,
        JobKind.BUCKET_INDEX,
        JobKind.METADATA_TABLE,
        JobKind.INDEX,
        JobKind.UPGRADE,
        JobKind.FINISH_EXPANSION,
        JobKind.SAVEPOINT,
        JobKind.RESTORE,
        JobKind.ROLLBACK,
    }
    decided = set(JobKind) - by_people
    assert {answer.kind for answer in ANSWERS if isinstance(answer, Run)} == decided
