"""Index: an index of the metadata table is built, dropped, or compared with the rows."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, WorksOn
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Count, Flag, KindResult, Many, Maybe, Number, Part, Texts, WriterOption
from jobs.kinds.words import WAIT_SECONDS, Names, Word

IndexName = Literal["record", "partitioned_record", "column_stats", "bloom_filters", "secondary", "expression"]

MOST_LOCK_SECONDS = 3600
LOCK_SECONDS = 120


class IndexParams(Parameters, frozen=True, kw_only=True):
    action: Annotated[
        Literal["verify", "build", "drop"],
        Spec(
            "`verify` compares the indexes with the rows and shows their size and age. `build` builds the `index`, and"
            " `drop` drops it, both under the table's lock"
        ),
    ] = "verify"
    index: Annotated[
        IndexName | None,
        Spec(
            "The index: `record` (one for the whole table), `partitioned_record` (keys are unique in each partition"
            " only), `column_stats`, `bloom_filters`; `secondary` and `expression` can only be verified and dropped."
            " Required to build and to drop; `verify` without it compares all"
        ),
    ] = None
    name: Annotated[
        Word | None, Spec("The name of a secondary or expression index, as in `CREATE INDEX`", examples=("city",))
    ] = None
    columns: Annotated[
        Names | None,
        Spec("The columns of `column_stats`. Default: the first 32 columns of the table, as Hudi's writers do"),
    ] = None
    file_groups: Annotated[
        int | None,
        Spec("Number of file groups of a record index. Default: Hudi chooses by the number of rows", ge=1, le=10_000),
    ] = None
    lock_seconds: Annotated[
        int,
        Spec(
            "The maximum time for which writers may have to wait while the index is built and compared. A build that"
            " takes longer is taken back",
            ge=1,
            le=MOST_LOCK_SECONDS,
        ),
    ] = LOCK_SECONDS
    wait_seconds: Annotated[int, Spec("How long to wait for a moment without writes in flight", ge=0, le=86_400)] = (
        WAIT_SECONDS
    )

    def __post_init__(self) -> None:
        if self.action != "verify" and self.index is None:
            raise ValueError(f"`index` is required to {self.action} an index")
        is_named = self.index in ("secondary", "expression")
        if self.name is not None and not is_named:
            raise ValueError("only a secondary or an expression index has a `name`")
        if self.action == "drop" and is_named and self.name is None:
            raise ValueError(f"`name` is required to drop a {self.index} index")
        if self.columns is not None and (self.action, self.index) != ("build", "column_stats"):
            raise ValueError("`columns` are only for building `column_stats`")
        if self.file_groups is not None and (self.action != "build" or "record" not in str(self.index)):
            raise ValueError("`file_groups` is only for building a record index")


class IndexShown(Part, frozen=True, kw_only=True):
    """An index of the table: one partition of its metadata table"""

    partition: Annotated[str, Spec("Its partition of the metadata table", examples=("record_index",))]
    columns: Annotated[Texts, Spec("The columns of the index, if its definition names any")] = UNSET
    base_files: Annotated[int, Spec("Base files (HFiles)")]
    log_files: Annotated[int, Spec("Log files, which each reader merges")]
    bytes: Annotated[int, Spec("Size of the base and log files in bytes")]
    age_seconds: Annotated[Number, Spec("Time since the index was built")] = UNSET


class IndexDifference(Part, frozen=True, kw_only=True):
    """A difference between an index and the rows"""

    partition: Annotated[str, Spec("The index")]
    missing: Annotated[
        tuple[str, ...],
        Spec(
            "Rows without a right entry, at most 100; for statistics, files or partitions without any entry, which"
            " readers never skip"
        ),
    ]
    hiding: Annotated[
        tuple[str, ...], Spec("Columns by whose statistics queries skip files or partitions although they match")
    ] = ()
    beyond: Annotated[tuple[str, ...], Spec("Entries without a row, at most 100")]


class IndexCost(Part, frozen=True, kw_only=True):
    """What the index costs a writer, by the latest commits of the table"""

    commits: Annotated[int, Spec("Number of commits from which this was computed")]
    entries_per_commit: Annotated[int, Spec("Entries that a commit writes, at most")]
    bytes_per_commit: Annotated[int, Spec("Size of these entries in bytes, at most")]


class IndexResult(KindResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files of the latest file slices")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    partitions: Annotated[Texts, Spec("Partitions of the metadata table that are built or dropped")] = UNSET
    cost: Annotated[Maybe[IndexCost], Spec("What it would cost a writer; only in a dry run")] = UNSET
    writer_options: Annotated[
        Many[WriterOption],
        Spec("Options that every Spark writer needs, because a writer without them drops the index at its next commit"),
    ] = UNSET
    compared: Annotated[Texts, Spec("Indexes that were compared with the rows")] = UNSET
    differences: Annotated[Many[IndexDifference], Spec("Differences from the rows")] = UNSET
    indexes: Annotated[Many[IndexShown], Spec("The indexes of the table")] = UNSET
    locked_seconds: Annotated[Number, Spec("Time for which the table's lock was held")] = UNSET
    undone: Annotated[Flag, Spec("Whether the job first removed an index that was half built or half dropped")] = UNSET


KIND = Kind(
    JobKind.INDEX,
    "Index",
    "Ix",
    "Builds an index of the metadata table, drops it, or compares it with the rows.",
    IndexParams,
    {"params": {"action": "build", "index": "record"}, "dry_run": True},
    works_on=WorksOn.EVERYTHING,
    rewrites=True,
    for_damaged=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    result=IndexResult,
)
