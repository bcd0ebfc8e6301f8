"""The details of incidents, as they are stored and sent."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from jobs.kinds.parameters import Spec
from jobs.kinds.results import Count, DamageFound, Many, Part, SomeInstant, Text


class GroupWrittenTo(Part, frozen=True, kw_only=True):
    """A replaced file group to which a stale write wrote"""

    partition: Annotated[str, Spec("Path of the file group's partition")]
    file_id: Annotated[str, Spec("Its id")]
    replaced_by: Annotated[SomeInstant, Spec("The instant that had replaced the file group")]


class SuspectedPartition(Part, frozen=True, kw_only=True):
    """A partition to which a writer with the old number of buckets, or without the bucket index, may have written"""

    partition: Annotated[str, Spec("Its path")]
    rows: Annotated[int, Spec("Rows that the commit wrote to the partition")]
    buckets: Annotated[
        tuple[int, ...], Spec("The numbers of buckets before and after the change; one number if an index was adopted")
    ]
    since: Annotated[
        SomeInstant | UnsetType, Spec("The instant that changed the number or adopted the index, if known")
    ] = UNSET


class IncidentDetails(DamageFound, frozen=True, kw_only=True):
    """Figures of an incident, depending on its kind"""

    rows: Annotated[int | UnsetType | None, Spec("Rows that are misplaced; null if not known")] = UNSET
    file_groups: Annotated[Count, Spec("Number of replaced file groups to which the commit wrote")] = UNSET
    partitions: Annotated[Count, Spec("Number of partitions to which the commit wrote")] = UNSET
    groups: Annotated[Many[GroupWrittenTo], Spec("The first of these file groups")] = UNSET
    doubt: Annotated[
        Text, Spec("Why it is not proved that the commit came after the replacement; absent if it is proved")
    ] = UNSET
    by_partition: Annotated[Many[SuspectedPartition], Spec("The first of the partitions")] = UNSET
    job_id: Annotated[Text, Spec("The job that found the incident, or that fenced the write")] = UNSET
    job_kind: Annotated[Text, Spec("Kind of the job that fenced the write")] = UNSET
