"""The details of incidents by their kinds, as they are stored and sent."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.kinds.parameters import Spec
from jobs.kinds.results import DamageFound, Part, SomeInstant


class GroupWrittenTo(Part, frozen=True, kw_only=True):
    """A replaced file group that a stale write wrote to"""

    partition: Annotated[str, Spec("Path of its partition")]
    file_id: Annotated[str, Spec("Its id")]
    replaced_by: Annotated[SomeInstant, Spec("The instant that had replaced it")]


class SuspectedPartition(Part, frozen=True, kw_only=True):
    """A partition that a writer with the old number of buckets may have written to"""

    partition: Annotated[str, Spec("Its path")]
    rows: Annotated[int, Spec("Rows that the commit wrote there")]
    buckets: Annotated[tuple[int, ...], Spec("The numbers of buckets before and after the change")]
    since: Annotated[SomeInstant, Spec("The instant that changed the number")]


class AstrayDetails(Part, frozen=True, kw_only=True):
    """A commit whose rows are, or may be, astray"""

    rows: Annotated[int | None, Spec("Rows that are astray; null if not known")]
    partitions: Annotated[int, Spec("Number of partitions that it wrote to")]
    file_groups: Annotated[int | UnsetType, Spec("Replaced file groups that the commit wrote to")] = UNSET
    groups: Annotated[tuple[GroupWrittenTo, ...] | UnsetType, Spec("The first of these file groups")] = UNSET
    doubt: Annotated[
        str | UnsetType, Spec("Why nothing proves that the commit came after the replacement; absent on proof")
    ] = UNSET
    by_partition: Annotated[tuple[SuspectedPartition, ...] | UnsetType, Spec("The first of the partitions")] = UNSET


class LateFilesDetails(Part, frozen=True, kw_only=True):
    """A write that a job has fenced"""

    job_id: Annotated[str, Spec("The job that found it, or fenced the write")]
    job_kind: Annotated[str, Spec("Kind of the job that fenced the write")]


class DamageDetails(DamageFound, frozen=True, kw_only=True):
    """A damage that a job has found"""

    job_id: Annotated[str, Spec("The job that found it, or fenced the write")]
