"""Audit: commits, metadata table, storage and rows of a table are compared with each other."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, Policy, WorksOn
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
            "Why no repair of it starts by itself. `itself`: an overwrite replaced the file groups it had written to;"
            " `overwritten`: the owner's overwrite or deletion replaced the file groups;"
            " `order`: the order of completion is unknown; `clocks`: the writers' clocks disagree"
        ),
    ]


class RowsOfReaders(Part, frozen=True, kw_only=True):
    """The rows of a partition as both kinds of readers find them"""

    partition: Annotated[str, Spec("Partition path")]
    rows_by_metadata_table: Annotated[int, Spec("Rows that readers with the metadata table find")]
    rows_by_listing: Annotated[int, Spec("Rows that readers who list the storage find")]
    same_keys: Annotated[bool, Spec("Whether both find the same keys")]


class AuditResult(ExaminedResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows")] = UNSET
    key_digest: Annotated[Text, Spec("Digest of all record keys: equal for equal sets of keys")] = UNSET
    file_groups: Annotated[Count, Spec("Number of file groups")] = UNSET
    partitions: Annotated[Count, Spec("Number of partitions")] = UNSET
    misplaced: Annotated[Count, Spec("Rows in a bucket that is not theirs")] = UNSET
    duplicates: Annotated[Count, Spec("Rows with the same key as another row")] = UNSET
    buckets_with_several_file_groups: Annotated[Maybe[int | None], Spec("Buckets with more than one file group")] = (
        UNSET
    )
    file_groups_without_bucket: Annotated[Maybe[int | None], Spec("File groups whose names have no bucket")] = UNSET
    dangling_hashing_configs: Annotated[Texts, Spec("Hashing configs without a completed commit")] = UNSET
    stale_writes: Annotated[Many[StaleWrite], Spec("Commits whose rows no reader sees")] = UNSET
    keys_hidden_by_statistics: Annotated[Count, Spec("Probed keys that a query with a filter does not find")] = UNSET
    readers: Annotated[
        Many[RowsOfReaders], Spec("Partitions for which the metadata table and the storage list different files")
    ] = UNSET
    clean: Annotated[Flag, Spec("Whether all checks were made and found nothing wrong")] = UNSET
    pending_instants: Annotated[Texts, Spec("Instants that have not completed")] = UNSET

    @property
    def input_bytes(self) -> object:
        return self.bytes


KIND = Kind(
    JobKind.AUDIT,
    "Audit",
    "Au",
    "Checks that commits, metadata table and storage agree, that every row is in its bucket, and that no key exists"
    " twice.",
    AuditParams,
    {"params": {"rows": False}},
    policy=Policy(120, "When the table is audited"),
    writes=False,
    has_plan=False,
    examines=True,
    for_damaged=True,
    works_on=WorksOn.EVERYTHING,
    result=AuditResult,
)
