"""Sync: a Hive metastore is brought up to the table."""

from __future__ import annotations

from typing import Annotated

from jobs.contract import JobKind
from jobs.job_params import PartitionExtractor, SyncStrategy
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.words import HIVE_NAME, METASTORE_URIS, Names

MetastoreUris = Annotated[
    str,
    Spec(
        "Of the Hive metastore, separated by commas; the administrator names the hosts that are allowed",
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
            "Of a merge-on-read table. `ALL`: the table under its name and with `_rt` (merged), and with `_ro` "
            "(without its logs); `RT`: only merged, `RO`: only without logs, under its name"
        ),
    ] = SyncStrategy.ALL
    partition_fields: Annotated[Names | None, Spec("Default: those of the table's own config")] = None
    partition_extractor: Annotated[
        PartitionExtractor | None,
        Spec("How the values are taken from a partition path. Default: as the table's paths are"),
    ] = None
    create_database: Annotated[bool, Spec("Create the database if there is none")] = True


KIND = Kind(
    JobKind.SYNC,
    "Sync to a metastore",
    "Sy",
    "Brings a Hive metastore up to the table: columns, partitions, and the commit that was synced last.",
    SyncParams,
    {"params": {"metastore_uris": "thrift://metastore:9083", "database": "lake"}},
    policy=Policy(100, "When a Hive metastore is brought up to the table"),
    writes=False,
    connects_to_metastore=True,
)
