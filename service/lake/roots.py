"""The check that a table lies below the allowed roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.lake.location import canonical
from service.model.errors import PathForbiddenError

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_allowed(base_path: str, allowed_roots: Sequence[str] | None) -> None:
    """Raises PathForbiddenError unless the canonical `base_path` is one of the roots or below one.

    Roots are made canonical too, then compared by whole segments: `/data` does not allow `/data2`. None allows all.
    """
    if allowed_roots is None:
        return
    for root in map(canonical, allowed_roots):
        if base_path == root or base_path.startswith(root.rstrip("/") + "/"):
            return
    raise PathForbiddenError(f"{base_path} is not below any of the allowed roots")
