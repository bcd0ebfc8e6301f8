"""The metadata of members of types: a sentence for people, bounds for requests, and examples for documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, eq=False)
class Spec:
    """Metadata of a type (`Annotated`): a sentence for people, and the bounds that a request has to keep.

    The bounds are those of JSON Schema, by pydantic's names. `distinct`: a list may not contain a value twice.
    """

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

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        texts = {name: text for name, text in self.bounds().items() if name in ("description", "examples")}
        return {**handler(schema), **texts}


class Documented:
    """The base of a dataclass whose members have a `Spec`. The class's annotations are read at run time."""
