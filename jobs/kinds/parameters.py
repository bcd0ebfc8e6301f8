"""The parameters of a kind of job as a type. Each has a name, a type, a default, and a sentence of documentation. The
types are `msgspec` structs, because a worker needs `msgspec` anyway, and pydantic would make its start slower. The
service derives the models of requests from them (`service.api.params`), which check everything. A worker does not check
bounds, and accepts missing and unknown parameters, because the service may be of another version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from jobs.contract import converted
from jobs.spec import Spec as Spec


class ByService:
    """Metadata of a parameter that the service adds when a worker leases the job; requests do not have it."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a kind. Rules between parameters are checked in `__post_init__`, by ValueErrors."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Returns the parameters of a work order. Raises ValueError; ignores unknown keys."""
        return converted(given, cls, strict=False)
