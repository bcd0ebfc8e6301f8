"""Canonical base paths and the allowed roots above them, with the service's own errors."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.storage import location as locations
from service.model.storage_errors import PathForbiddenError, PathNotFoundError, StorageUnsupportedError


def canonical(location: str) -> str:
    """Returns the canonical base path of a table: see `jobs.storage.location`.

    Raises StorageUnsupportedError for other schemes, PathNotFoundError for text that cannot be a path.
    """
    try:
        return locations.canonical(location)
    except locations.SchemeUnsupportedError as error:
        raise StorageUnsupportedError(str(error)) from error
    except locations.LocationError as error:
        raise PathNotFoundError(str(error), hint=error.hint) from error


def check_allowed(base_path: str, allowed_roots: Sequence[str] | None) -> None:
    """Raises PathForbiddenError unless the canonical `base_path` is one of the roots or below one. Roots need not be
    canonical. If `allowed_roots` is None, all paths are allowed."""
    if allowed_roots is not None and not locations.is_below(base_path, map(canonical, allowed_roots)):
        raise PathForbiddenError(f"{base_path} is not below any of the allowed roots")
