"""Audit: the table is proved."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Count, ExaminedResult, Flag, Many, Maybe, Part, SomeInstant, Text, Texts


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


class AuditResult(ExaminedResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Their size in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows")] = UNSET
    key_digest: Annotated[Text, Spec("Digest of all record keys: equal for equal sets of keys")] = UNSET
    file_groups: Annotated[Count, Spec("Number of file groups")] = UNSET
    partitions: Annotated[Count, Spec("Number of partitions")] = UNSET
    misplaced: Annotated[Count, Spec("Rows in a bucket that is not theirs")] = UNSET
    duplicates: Annotated[Count, Spec("Rows whose key exists in another one, too")] = UNSET
    buckets_with_several_file_groups: Annotated[Maybe[int | None], Spec("Buckets with more than one file group")] = (
        UNSET
    )
    file_groups_without_bucket: Annotated[Maybe[int | None], Spec("File groups whose names have no bucket")] = UNSET
    dangling_hashing_configs: Annotated[Texts, Spec("Hashing configs without a completed commit")] = UNSET
    stale_writes: Annotated[Many[StaleWrite], Spec("Commits whose rows no reader sees")] = UNSET
    keys_hidden_by_statistics: Annotated[Count, Spec("Probed keys that a query with a filter does not find")] = UNSET
    readers: Annotated[
        Many[RowsOfReaders], Spec("Partitions whose files differ by the metadata table and by listing")
    ] = UNSET
    clean: Annotated[Flag, Spec("Whether nothing of this is wrong, and all checks were made")] = UNSET
    pending_instants: Annotated[Texts, Spec("Instants that have not completed")] = UNSET


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
