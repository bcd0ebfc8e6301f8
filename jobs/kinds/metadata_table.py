"""Metadata table: it is compared with the storage, compacted, or rebuilt."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Count, DamageFound, KindResult, Many, Part, Texts


class MetadataTableParams(Parameters, frozen=True, kw_only=True):
    action: Annotated[
        Literal["validate", "compact", "rebuild"],
        Spec(
            "`validate` compares the metadata table with the storage. `compact` merges its log files and deletes its"
            " old files, beside running writers. `rebuild` deletes the metadata table and builds it again"
        ),
    ] = "validate"


class MetadataTableFiles(Part, frozen=True, kw_only=True):
    """The latest file slices of the metadata table, and the commits since its last compaction"""

    commits: Annotated[int, Spec("Deltacommits that completed since its last compaction was planned")]
    base_files: Annotated[int, Spec("Base files (HFiles)")]
    log_files: Annotated[int, Spec("Log files, which each reader merges")]
    bytes: Annotated[int, Spec("Size of the base and log files in bytes")]


class MetadataTableResult(KindResult, frozen=True, kw_only=True):
    partitions: Annotated[Texts, Spec("Partitions of the metadata table")] = UNSET
    findings: Annotated[Many[DamageFound], Spec("Differences from the storage")] = UNSET
    before: Annotated[MetadataTableFiles | UnsetType, Spec("Before a compaction")] = UNSET
    after: Annotated[MetadataTableFiles | UnsetType, Spec("After a compaction")] = UNSET
    pending: Annotated[Count, Spec("Pending instants of the metadata table itself")] = UNSET


KIND = Kind(
    JobKind.METADATA_TABLE,
    "Metadata table",
    "Mt",
    "Compares the metadata table with the storage, compacts it, or rebuilds it. For a rebuild the writers must be"
    " stopped.",
    MetadataTableParams,
    {"params": {"action": "rebuild"}, "dry_run": True},
    policy=Policy(95, "When the metadata table is compacted"),
    for_damaged=True,
    result=MetadataTableResult,
)
