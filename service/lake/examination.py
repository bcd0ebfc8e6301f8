"""The examination of a table before it is registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from jobs.contract import BucketIndex
from service.lake.engine_sighting import Mark


class Profile(Protocol):
    def to_json(self) -> dict[str, Any]: ...


class Examination(Protocol):
    """The result of an examination; see `service.registration.detection.Examination`."""

    @property
    def base_path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def index(self) -> BucketIndex | None: ...
    @property
    def marks(self) -> Sequence[Mark]: ...


class Examine(Protocol):
    """Examines the table at a location: `service.registration.detection.examine`, or a stand-in in tests.

    If `allowed_roots` is None, every location is allowed; an empty tuple allows none.
    """

    def __call__(
        self,
        location: str,
        *,
        allowed_roots: tuple[str, ...] | None,
        claimed: BucketIndex | None,
        storage_options: Mapping[str, str],
    ) -> Examination: ...
