"""The access to one bucket or cluster by Hadoop's options: the part that all stores of tables have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from pyarrow import fs


class NotReproducibleError(ValueError):
    """Arrow cannot reach this storage as Hadoop would. The message lists all options that prevent it, and no secret."""


def not_reproduced(chosen: Mapping[str, str], harmless: Mapping[str, Collection[str]], prefix: str = "") -> list[str]:
    """Returns the names, with `prefix`, of the options that are chosen and have none of their `harmless` values."""
    return [prefix + name for name, values in harmless.items() if name in chosen and chosen[name] not in values]


class LoginError(OSError):
    """The storage wants a login that this process does not have. The message is one line, and contains no secret."""


class Store(Protocol):
    """The access to one bucket or cluster. Hashable, and can be sent to Spark's tasks; its repr shows no secret."""

    def filesystem(self) -> fs.FileSystem:
        """Returns Arrow's file system, one per process."""

    def with_short_timeouts(self) -> Self:
        """Returns the same access with short timeouts and few attempts, for requests on whose answer a caller waits."""
