"""Audit: the table is proved."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import (
    Bytes,
    Checked,
    Files,
    Findings,
    KeyDigestOfRows,
    KindResult,
    Part,
    Rows,
    SomeInstant,
    Unchecked,
)


class AuditParams(Parameters, frozen=True, kw_only=True):
    rows: Annotated[
        bool,
        Spec(
            "Read the key of every row as well: rows in wrong buckets, duplicate keys, rows that filters miss",
            examples=(True,),
        ),
    ] = True


class StaleWrite(Part, frozen=True, kw_only=True):
    """A commit that wrote rows to replaced file groups"""

    instant: Annotated[SomeInstant, Spec("The commit")]
    operation: Annotated[str | None, Spec("Hudi's WriteOperationType of that commit")]
    file_groups: Annotated[int, Spec("Replaced file groups that it wrote to")]
    doubt: Annotated[
        str | None,
        Spec(
            "Why nothing proves that it is one: `overwritten` by the owner's overwrite or deletion, `order` of"
            " completion not known, `clocks` that disagree"
        ),
    ]


class RowsOfReaders(Part, frozen=True, kw_only=True):
    """The rows of a partition by both kinds of readers"""

    partition: Annotated[str, Spec("Partition path")]
    rows_by_metadata_table: Annotated[int, Spec("Rows that readers with the metadata table find")]
    rows_by_listing: Annotated[int, Spec("Rows that readers find who list the storage")]
    same_keys: Annotated[bool, Spec("Whether both find the same keys")]


class AuditResult(KindResult, frozen=True, kw_only=True):
    files: Files = UNSET
    bytes: Bytes = UNSET
    rows: Rows = UNSET
    key_digest: KeyDigestOfRows = UNSET
    file_groups: Annotated[int | UnsetType, Spec("Number of file groups")] = UNSET
    partitions: Annotated[int | UnsetType, Spec("Number of partitions")] = UNSET
    misplaced: Annotated[int | UnsetType, Spec("Rows in a bucket that is not theirs")] = UNSET
    duplicates: Annotated[int | UnsetType, Spec("Rows whose key exists in another one, too")] = UNSET
    buckets_with_several_file_groups: Annotated[
        int | UnsetType | None, Spec("Buckets with more than one file group")
    ] = UNSET
    file_groups_without_bucket: Annotated[int | UnsetType | None, Spec("File groups whose names have no bucket")] = (
        UNSET
    )
    dangling_hashing_configs: Annotated[
        tuple[str, ...] | UnsetType, Spec("Hashing configs without a completed commit")
    ] = UNSET
    stale_writes: Annotated[tuple[StaleWrite, ...] | UnsetType, Spec("Commits whose rows no reader sees")] = UNSET
    keys_hidden_by_statistics: Annotated[
        int | UnsetType, Spec("Probed keys that a query with a filter does not find")
    ] = UNSET
    findings: Findings = ()
    checked: Checked = ()
    unchecked: Unchecked = ()
    readers: Annotated[
        tuple[RowsOfReaders, ...] | UnsetType,
        Spec("Partitions whose files differ by the metadata table and by listing"),
    ] = UNSET
    clean: Annotated[bool | UnsetType, Spec("Whether nothing of this is wrong, and all checks were made")] = UNSET
    pending_instants: Annotated[tuple[str, ...] | UnsetType, Spec("Instants that have not completed")] = UNSET


KIND = Kind(
    JobKind.AUDIT,
    "Audit",
    "Au",
    "Proves the table: what its commits, its metadata table and the storage say is the same, every row is in its"
    " bucket, and no key is there twice.",
    AuditParams,
    {"params": {"rows": False}},
    policy=Policy(120, "When the table is proved"),
    writes=False,
    has_plan=False,
    examines=True,
    for_damaged=True,
    result=AuditResult,
)
