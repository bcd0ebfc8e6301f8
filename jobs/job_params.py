"""Values of the parameters of jobs."""

from __future__ import annotations

from enum import StrEnum


class CleaningPolicy(StrEnum):
    """Hudi's `HoodieCleaningPolicy` (1.2)."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


class TtlStrategy(StrEnum):
    """Hudi's `PartitionTTLStrategyType` (1.2): a partition's age counts from its last modification, or from its
    creation."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


class CompactionEngine(StrEnum):
    """The executor of compaction plans. `AUTO`: Arrow where its merge is proved to be equal to Hudi's, else Hudi's."""

    AUTO = "auto"
    ARROW = "arrow"
    HUDI = "hudi"


class ClusteringLayout(StrEnum):
    """The order of rows: by one column after the other, or along a space-filling curve over all columns."""

    LINEAR = "linear"
    ZORDER = "zorder"
    HILBERT = "hilbert"


class OnActiveWriters(StrEnum):
    """The reaction of a job that replaces file groups to a write that is in flight when the job wants to commit.

    `FENCE` rolls the write back, so its batch must be written again.
    """

    WAIT = "wait"
    FENCE = "fence"
    ABORT = "abort"


class SyncStrategy(StrEnum):
    """Hudi's `HoodieSyncTableStrategy` (1.2): the metastore tables of a merge-on-read table."""

    ALL = "ALL"
    RO = "RO"
    RT = "RT"


class PartitionExtractor(StrEnum):
    """Hudi's `PartitionValueExtractor`s (1.2, `org.apache.hudi.hive`).

    `PARTS`: one value for each part of a path; `WHOLE`: the path is one value; `DAY`, `HOUR`: `2026/01/31`, or with an
    hour, is one value.
    """

    NONE = "none"
    PARTS = "parts"
    WHOLE = "whole"
    DAY = "day"
    HOUR = "hour"
