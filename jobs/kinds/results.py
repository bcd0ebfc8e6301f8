"""The results of jobs as types, from which the schemas in the API's document follow.

A job builds its result and sends it as JSON. The service stores and shows that as it came: a worker of another version
may send fewer or other members.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from jobs.contract import Problem
from jobs.kinds.parameters import Spec

SomeInstant = Annotated[str, Spec(examples=("20260101120000000",))]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """An object in a result. Its docstring and its members' sentences are those of the document."""

    def to_json(self) -> dict[str, Any]:
        """Returns the members that are set."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return found


class KindResult(Part, frozen=True, kw_only=True):
    """The result of a job, or of its dry run."""

    nothing_to_do: Annotated[bool | UnsetType, Spec("Whether there is, or was, nothing to do")] = UNSET
    refusals: Annotated[
        tuple[Problem, ...] | UnsetType, Spec("Every reason for which the job would be refused; only of a dry run")
    ] = UNSET


class WorkLeft(Part, frozen=True, kw_only=True):
    """Work that a job with a limit leaves to the next one"""

    file_groups: Annotated[int | UnsetType, Spec("File groups that are left to the next job")] = UNSET
    partitions: Annotated[int | UnsetType, Spec("Partitions that are left to the next job")] = UNSET
    bytes: Annotated[int | UnsetType, Spec("Their size in bytes")] = UNSET
    plans: Annotated[tuple[str, ...] | UnsetType, Spec("Plans that are left")] = UNSET
