"""The parameters of a kind of job, as a type: names, types, defaults, and a sentence of documentation each. They are
`msgspec` structs, because a worker needs `msgspec` anyway, and pydantic would make its start slower. The service
derives the models of requests from them (`service.api.params`), which check everything. A worker does not check bounds,
and accepts missing and unknown parameters, because the service may be of another version."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import msgspec

from jobs.contract import converted

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, eq=False)
class Spec:
    """Metadata of a type (`Annotated`): a sentence of documentation, and the bounds of values in requests. The bounds
    are those of JSON Schema, with pydantic's names. `distinct`: a list must not contain a value twice."""

    description: str | None = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    examples: tuple[Any, ...] | None = None
    distinct: bool = False

    def bounds(self) -> dict[str, Any]:
        """Returns the bounds that are set, except `distinct`."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "distinct"}
        if self.examples is not None:
            given["examples"] = list(self.examples)
        return {name: value for name, value in given.items() if value is not None}


class ByService:
    """Metadata of a parameter that the service adds when a worker leases the job; requests do not have it."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a kind. Rules between parameters are checked in `__post_init__`, by ValueErrors."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Returns the parameters of a work order. Raises ValueError; ignores unknown keys."""
        return converted(given, cls, strict=False)
