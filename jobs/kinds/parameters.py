"""The parameters of a kind of job, as a type: names, types, defaults, and for people one sentence each.

They are `msgspec` structs, since a worker already has `msgspec`, and pydantic would make its start slower. The service
makes its models of requests from them (`service.api.params`) and is strict. A worker is not: a service of another
version may leave out parameters or send unknown ones, and bounds are not for it to check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from jobs.contract import converted
from jobs.spec import Spec as Spec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ByService:
    """Metadata of a parameter that the service adds when a worker leases the job; requests do not have it."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a kind. Rules between parameters are checked in `__post_init__`, by ValueErrors."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Returns the parameters of a work order. Raises ValueError; ignores unknown keys."""
        return converted(given, cls, strict=False)
