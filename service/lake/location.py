"""Canonical base paths, with the service's own errors."""

from __future__ import annotations

from jobs.storage import location as locations
from jobs.storage.location import plain
from service.model.errors import PathNotFoundError, StorageUnsupportedError

__all__ = ["canonical", "is_s3", "plain"]


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


def is_s3(base_path: str) -> bool:
    return base_path.startswith("s3a://")
