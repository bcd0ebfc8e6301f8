"""Upgrade: the table gets another table version, a later or an earlier one."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET

from jobs.contract import JobKind
from jobs.kinds.kind import Kind, WorksOn
from jobs.kinds.parameters import Parameters, Spec
from jobs.kinds.results import Count, Flag, KindResult, Many, Part, Text, Texts
from jobs.kinds.words import HAND_OVER_SECONDS, HandOverSeconds


class UpgradeParams(Parameters, frozen=True, kw_only=True):
    to_version: Annotated[int, Spec("The table version that the table gets: 6, 8 or 9", ge=6, le=9, examples=(9,))]
    undeclared: Annotated[
        bool,
        Spec(
            "Go on although the table does not declare which versions of Hudi its writers and readers have. Set this"
            " only if you know that all of them can use the new version"
        ),
    ] = False
    hand_over_seconds: HandOverSeconds = HAND_OVER_SECONDS


class ChangedProperty(Part, frozen=True, kw_only=True):
    """A property of the table that gets another value"""

    name: Annotated[str, Spec("Its name in hoodie.properties")]
    before: Annotated[str | None, Spec("Its value before; null if it had none")]
    after: Annotated[str | None, Spec("Its value afterwards; null if it has none")]


class UpgradeResult(KindResult, frozen=True, kw_only=True):
    files: Annotated[Count, Spec("Number of files")] = UNSET
    bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    rows: Annotated[Count, Spec("Number of rows, the same before and after")] = UNSET
    key_digest: Annotated[Text, Spec("Digest of all record keys, the same before and after")] = UNSET
    from_version: Annotated[Count, Spec("The table version before the change")] = UNSET
    to_version: Annotated[Count, Spec("The table version after the change")] = UNSET
    needs_hudi: Annotated[Text, Spec("The oldest Hudi that reads and writes this version", examples=("1.1",))] = UNSET
    excluded: Annotated[Texts, Spec("Declared writers and readers that cannot use this version")] = UNSET
    properties: Annotated[Many[ChangedProperty], Spec("Properties that change")] = UNSET
    instants: Annotated[Count, Spec("Instants on the active timeline whose files move to another folder")] = UNSET
    archived_instants: Annotated[Count, Spec("Archived instants that are written in another format")] = UNSET
    file_groups_with_logs: Annotated[Count, Spec("File groups with logs, which are compacted first")] = UNSET
    indexes: Annotated[Texts, Spec("Partitions of the metadata table before the change")] = UNSET
    indexes_dropped: Annotated[Texts, Spec("Indexes that the version does not know, which are dropped")] = UNSET
    backup_files: Annotated[Count, Spec("Files that the backup copies")] = UNSET
    backup_bytes: Annotated[Count, Spec("Size of these files in bytes")] = UNSET
    undone: Annotated[Flag, Spec("Whether the job first undid an upgrade that had not ended")] = UNSET


KIND = Kind(
    JobKind.UPGRADE,
    "Upgrade",
    "Up",
    "Raises or lowers the table version by Hudi's own upgrader. The writers must be stopped.",
    UpgradeParams,
    {"params": {"to_version": 9}, "dry_run": True},
    works_on=WorksOn.EVERYTHING,
    rewrites=True,
    stops_flink=True,
    for_damaged=True,
    rolls_back_dead=True,
    waits_for_repair=True,
    ends_with_instant=False,
    result=UpgradeResult,
)
