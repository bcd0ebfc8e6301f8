"""The parameters of each kind of job."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from jobs.contract import JobKind
from jobs.job_params import PartitionExtractor, SyncStrategy
from jobs.kinds.words import HAND_OVER_SECONDS
from service.api.patterns import NO_NUL
from service.api.requests import BucketIndexIn, HiveName, MetastoreUris, Names, Request, Word
from service.api.service_params import (
    BucketContractionParams,
    BucketExpansionParams,
    CleaningParams,
    Clustering,
    CompactionParams,
    HandOverSeconds,
    Instant,
    PartitionTtlParams,
)
from service.policies.policy import MOST_TIMEOUT_SECONDS


class FinishExpansionParams(Request):
    undo: bool = Field(False, description="Restore the hashing config that was retired last")
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class RepairParams(Request):
    instants: Annotated[list[Word], Field(min_length=1, max_length=1000)] | None = Field(
        None,
        description="Completed instants to repair, also without proof, in addition to those that are proved to be "
        "stale. Default: all that seem to be, unless an overwrite or a deletion replaced their file groups",
    )
    accepted: list[Word] | None = Field(
        None,
        max_length=1000,
        description="Instants that count as repaired: their deletes were lost and have been run again, or nothing "
        "proves that their rows are astray, and these shall stay where they are",
    )
    leftovers: bool | None = Field(
        None,
        description="Instead remove what a diagnosis names as left behind: markers of writes that have ended, files of "
        "writes that were rolled back, and hashing configs without a commit, if no row was written by them",
    )
    wait_seconds: int = Field(300, ge=0, le=86_400, description="How long to wait for a moment without writes")
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS

    @model_validator(mode="after")
    def _one_purpose(self) -> Self:
        if self.leftovers and (self.instants or self.accepted):
            raise ValueError("a repair of leftovers takes no instants: start one job for each")
        return self


class ArchivalParams(Request):
    retain: int = Field(
        30, ge=2, le=1_000_000, description="Completed commits to keep on the active timeline, at least"
    )


_TableName = Annotated[Word, Field(description="The table's name, typed in: rows are removed for good")]


class SavepointParams(Request):
    action: Literal["create", "list", "delete"] = "create"
    instant: Instant | None = Field(None, description="The commit. Default when creating: the latest completed one")
    comment: str = Field("", max_length=1000, pattern=NO_NUL, description="Why, for others")
    wait_seconds: int = Field(60, ge=0, le=86_400, description="How long to wait for writes that began before it")

    @model_validator(mode="after")
    def _names_what_to_delete(self) -> Self:
        if self.action == "delete" and self.instant is None:
            raise ValueError("name the instant of the savepoint to delete")
        return self


class RestoreParams(Request):
    savepoint: Instant = Field(description="The instant of the savepoint")
    table_name: _TableName
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class RollbackParams(Request):
    instant: Instant = Field(description="A pending instant, or the latest completed commit")
    table_name: _TableName | None = Field(None, description="Needed for a completed instant: the table's name")
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class AuditParams(Request):
    rows: bool = Field(
        True,
        description="Read the key of every row as well: rows in wrong buckets, duplicate keys, rows that filters miss",
        examples=[True],
    )


class MetadataTableParams(Request):
    action: Literal["validate", "rebuild"] = "validate"


class SyncParams(Request):
    metastore_uris: MetastoreUris
    database: HiveName = Field("default", description="Database of the metastore")
    table: HiveName | None = Field(None, description="Name in the metastore. Default: the table's own")
    strategy: SyncStrategy = Field(
        SyncStrategy.ALL,
        description="Of a merge-on-read table. `ALL`: the table under its name and with `_rt` (merged), and with `_ro` "
        "(without its logs); `RT`: only merged, `RO`: only without logs, under its name",
    )
    partition_fields: Names | None = Field(None, description="Default: those of the table's own config")
    partition_extractor: PartitionExtractor | None = Field(
        None, description="How the values are taken from a partition path. Default: as the table's paths are"
    )
    create_database: bool = Field(True, description="Create the database if there is none")


class DiagnosisParams(Request):
    rows: bool = Field(
        True, description="Read the key of every row as well: rows in wrong buckets, duplicate keys", examples=[True]
    )
    index: BucketIndexIn | None = Field(
        None, description="The writers' bucket index, for a table that contradicts it and is registered without one"
    )


class _JobIn(Request):
    dry_run: bool = Field(False, description="Return the plan, and change nothing")
    priority: int = Field(0, ge=-100, le=100, description="Jobs with a higher value are handed out first")
    timeout_seconds: int | None = Field(
        None,
        ge=1,
        le=MOST_TIMEOUT_SECONDS,
        description="Time limit of one attempt. Default: that of the table's policy, else that of the service",
    )


class CompactionIn(_JobIn):
    """Merges log files into new base files."""

    kind: Literal[JobKind.COMPACTION]
    params: CompactionParams = Field(default_factory=lambda: CompactionParams.model_validate({}))


class CleaningIn(_JobIn):
    """Deletes file slices that no retained instant needs."""

    kind: Literal[JobKind.CLEANING]
    params: CleaningParams = Field(default_factory=lambda: CleaningParams.model_validate({}))


class ClusteringIn(_JobIn):
    """Sorts the rows; inside each bucket when the table has a bucket index. Or merges small files."""

    kind: Literal[JobKind.CLUSTERING]
    params: Clustering


class BucketExpansionIn(_JobIn):
    """Gives a bucket-indexed table more buckets, without a shuffle."""

    kind: Literal[JobKind.BUCKET_EXPANSION]
    params: BucketExpansionParams


class BucketContractionIn(_JobIn):
    """Gives a bucket-indexed table fewer buckets: the files of several become one, without a shuffle."""

    kind: Literal[JobKind.BUCKET_CONTRACTION]
    params: BucketContractionParams


class FinishExpansionIn(_JobIn):
    """Retires the hashing config of an expansion once every writer has the new number of buckets as its own option."""

    kind: Literal[JobKind.FINISH_EXPANSION]
    params: FinishExpansionParams = Field(default_factory=lambda: FinishExpansionParams.model_validate({}))


class RepairIn(_JobIn):
    """Recovers the rows of commits that wrote to replaced file groups, or with an old number of buckets."""

    kind: Literal[JobKind.REPAIR]
    params: RepairParams = Field(default_factory=lambda: RepairParams.model_validate({}))


class ArchivalIn(_JobIn):
    """Moves the oldest instants of the timeline to the history, and says what keeps others from that."""

    kind: Literal[JobKind.ARCHIVAL]
    params: ArchivalParams = Field(default_factory=lambda: ArchivalParams.model_validate({}))


class PartitionTtlIn(_JobIn):
    """Drops partitions that were not modified, or created, for a number of days. Cleaning removes their files later."""

    kind: Literal[JobKind.PARTITION_TTL]
    params: PartitionTtlParams


class SavepointIn(_JobIn):
    """Creates, lists or deletes savepoints: commits whose files are kept, and to which the table can be restored."""

    kind: Literal[JobKind.SAVEPOINT]
    params: SavepointParams = Field(default_factory=lambda: SavepointParams.model_validate({}))


class RestoreIn(_JobIn):
    """Takes the table back to a savepoint. All later commits are gone for good; the writers must be stopped."""

    kind: Literal[JobKind.RESTORE]
    params: RestoreParams


class RollbackIn(_JobIn):
    """Rolls back a pending instant that nobody works on, or the latest completed commit."""

    kind: Literal[JobKind.ROLLBACK]
    params: RollbackParams


class AuditIn(_JobIn):
    """Proves the table: what its commits, its metadata table and the storage say is the same, every row is in its
    bucket, and no key is there twice."""

    kind: Literal[JobKind.AUDIT]
    params: AuditParams = Field(default_factory=lambda: AuditParams.model_validate({}))


class MetadataTableIn(_JobIn):
    """Compares the metadata table with the storage, or builds it anew; for that the writers must be stopped."""

    kind: Literal[JobKind.METADATA_TABLE]
    params: MetadataTableParams = Field(default_factory=lambda: MetadataTableParams.model_validate({}))


class SyncIn(_JobIn):
    """Brings a Hive metastore up to the table: columns, partitions, and the commit that was synced last."""

    kind: Literal[JobKind.SYNC]
    params: SyncParams


class DiagnosisIn(_JobIn):
    """Looks for the damages that users of Hudi meet, and names the job that cures each. It only reads."""

    kind: Literal[JobKind.DIAGNOSIS]
    params: DiagnosisParams = Field(default_factory=lambda: DiagnosisParams.model_validate({}))


JobIn = Annotated[
    CompactionIn
    | CleaningIn
    | ClusteringIn
    | BucketExpansionIn
    | BucketContractionIn
    | FinishExpansionIn
    | RepairIn
    | ArchivalIn
    | PartitionTtlIn
    | SavepointIn
    | RestoreIn
    | RollbackIn
    | MetadataTableIn
    | SyncIn
    | AuditIn
    | DiagnosisIn,
    Field(discriminator="kind"),
]

EXAMPLES: dict[str, Any] = {
    "compaction": {"value": {"kind": "compaction"}},
    "cleaning": {"value": {"kind": "cleaning", "params": {"policy": "KEEP_LATEST_COMMITS", "retain": 10}}},
    "clustering": {"value": {"kind": "clustering", "params": {"sort_by": ["city"], "layout": "linear"}}},
    "bucket_expansion": {"value": {"kind": "bucket_expansion", "params": {"num_buckets": 8}, "dry_run": True}},
    "bucket_contraction": {"value": {"kind": "bucket_contraction", "params": {"num_buckets": 4}, "dry_run": True}},
    "finish_expansion": {"value": {"kind": "finish_expansion"}},
    "repair": {"value": {"kind": "repair"}},
    "archival": {"value": {"kind": "archival", "params": {"retain": 30}}},
    "partition_ttl": {"value": {"kind": "partition_ttl", "params": {"days_retain": 90}, "dry_run": True}},
    "savepoint": {"value": {"kind": "savepoint", "params": {"comment": "before the migration"}}},
    "restore": {
        "value": {
            "kind": "restore",
            "params": {"savepoint": "20260101120000000", "table_name": "trips"},
            "dry_run": True,
        }
    },
    "rollback": {"value": {"kind": "rollback", "params": {"instant": "20260101120000000"}, "dry_run": True}},
    "metadata_table": {"value": {"kind": "metadata_table", "params": {"action": "rebuild"}, "dry_run": True}},
    "sync": {"value": {"kind": "sync", "params": {"metastore_uris": "thrift://metastore:9083", "database": "lake"}}},
    "audit": {"value": {"kind": "audit", "params": {"rows": False}}},
    "diagnosis": {"value": {"kind": "diagnosis", "params": {"rows": False}}},
}


def as_json(params: Request) -> dict[str, Any]:
    """Returns the parameters for a worker: with defaults, without members that are None."""
    return params.model_dump(mode="json", exclude_none=True)
