"""Sync: the tables of a Hive metastore, or of AWS Glue, are updated to the state of the table."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.job_params import PartitionExtractor, SyncStrategy
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Flag, KindResult, Many, Part, SomeInstant, Text, Texts
from jobs.kinds.words import HIVE_NAME, METASTORE_URIS, Names

MetastoreUris = Annotated[
    str,
    Spec(
        "URIs of the Hive metastore, separated by commas; or `glue://` and the endpoint of AWS Glue, followed by a"
        " slash and the account's id if the account is another one. The administrator names the hosts that are allowed",
        max_length=2000,
        pattern=METASTORE_URIS,
        examples=("thrift://metastore:9083",),
    ),
]
HiveName = Annotated[str, Spec(pattern=HIVE_NAME)]


class SyncParams(Parameters, frozen=True, kw_only=True):
    metastore_uris: MetastoreUris
    database: Annotated[HiveName, Spec("Database of the metastore")] = "default"
    table: Annotated[HiveName | None, Spec("Name in the metastore. Default: the table's own")] = None
    strategy: Annotated[
        SyncStrategy,
        Spec(
            "The metastore tables of a merge-on-read table `trips`. `ALL`: `trips` and `trips_rt` with logs merged,"
            " and `trips_ro` without logs. `RT`: only `trips`, with logs merged. `RO`: only `trips`, without logs"
        ),
    ] = SyncStrategy.ALL
    partition_fields: Annotated[Names | None, Spec("Partition columns. Default: those of hoodie.properties")] = None
    partition_extractor: Annotated[
        PartitionExtractor | None,
        Spec("How partition values are read from a partition path. Default: chosen by the table's paths"),
    ] = None
    create_database: Annotated[bool, Spec("Create the database if there is none")] = True


class SyncedInstants(Part, frozen=True, kw_only=True):
    """The last synced instants of a metastore table, before and after the job"""

    before: Annotated[SomeInstant | None, Spec("Before the job")]
    after: Annotated[SomeInstant | None, Spec("After it")]


class SyncedTable(Part, frozen=True, kw_only=True):
    """A table in the metastore"""

    table: Annotated[str, Spec("Database and name")]
    created: Annotated[bool, Spec("Whether it was created")]
    columns_added: Annotated[tuple[str, ...], Spec("Columns that were added, with their types")]
    columns_changed: Annotated[tuple[str, ...], Spec("Columns that changed, with both types")]
    partitions_added: Annotated[int, Spec("Number of partitions that were added")]
    partitions_moved: Annotated[int, Spec("Number of partitions whose folder changed")]
    partitions_dropped: Annotated[int, Spec("Number of partitions that were dropped")]
    added_partitions: Annotated[Texts, Spec("Names of the first hundred added partitions")] = UNSET
    moved_partitions: Annotated[Texts, Spec("Names of the first hundred partitions whose folder changed")] = UNSET
    dropped_partitions: Annotated[Texts, Spec("Names of the first hundred dropped partitions")] = UNSET
    synced: Annotated[SyncedInstants, Spec("The last instant that was synced to it")]


class SyncResult(KindResult, frozen=True, kw_only=True):
    metastore: Annotated[Text, Spec("The metastore")] = UNSET
    changed: Annotated[Flag, Spec("Whether there was anything to do")] = UNSET
    tables: Annotated[Many[SyncedTable], Spec("The tables in the metastore")] = UNSET
    last_instant: Annotated[
        SomeInstant | UnsetType | None, Spec("The last completed instant of the table that the sync covers")
    ] = UNSET

    @property
    def seen_until(self) -> str | None:
        return self.last_instant or None


KIND = Kind(
    JobKind.SYNC,
    "Sync to a metastore",
    "Sy",
    "Updates the tables of a Hive metastore or of AWS Glue: columns, partitions, and the last synced commit.",
    SyncParams,
    {"params": {"metastore_uris": "thrift://metastore:9083", "database": "lake"}},
    policy=Policy(100, "When a metastore is updated"),
    writes=False,
    connects_to_metastore=True,
    result=SyncResult,
)
