"""The check that a table lies below the allowed roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.storage.location import is_below
from service.lake.location import canonical
from service.model.errors import PathForbiddenError

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_allowed(base_path: str, allowed_roots: Sequence[str] | None) -> None:
    """Raises PathForbiddenError unless the canonical `base_path` is one of the roots or below one.

    Roots are made canonical too. None allows all.
    """
    if allowed_roots is not None and not is_below(base_path, map(canonical, allowed_roots)):
        raise PathForbiddenError(f"{base_path} is not below any of the allowed roots")
