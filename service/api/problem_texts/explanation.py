"""The text about one type of problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Explanation:
    """`why` a call or a job ends so. `example` is the `detail` of one case, `extensions` are its further members."""

    why: str
    example: str
    extensions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobExplanation(Explanation):
    """Of a type that only a worker reports: title and hint are its own, since the service has no class for it."""

    title: str = ""
    hint: str = ""
