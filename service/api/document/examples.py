"""Examples of objects, made of the examples of their members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOMENT = "2026-01-01T12:00:00Z"
_DEEPEST = 6


class Examples:
    """`schemas` are those of an OpenAPI 3.1 document, by name."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas

    def of(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Returns a value that the schema allows: its own example, or one of its parts."""
        given = self._given(schema)
        if given is not None:
            return given[0]
        if "$ref" in schema:
            return self.of(self._schemas[schema["$ref"].rpartition("/")[2]], depth)
        if "anyOf" in schema:
            return self._of_any(schema, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if "default" in schema and not isinstance(schema["default"], dict | list):
            return schema["default"]
        return self._of_type(schema, depth)

    def _given(self, schema: Mapping[str, Any]) -> list[Any] | None:
        if "example" in schema:
            return [schema["example"]]
        return schema["examples"][:1] if schema.get("examples") else None

    def _of_any(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Returns an example of one of several types; an object rather than null, since its form is of interest."""
        choices = [each for each in schema["anyOf"] if each.get("type") != "null"]
        is_nullable = len(choices) < len(schema["anyOf"])
        if is_nullable and (depth >= _DEEPEST or not any("$ref" in each for each in choices)):
            return None
        return self.of(choices[0], depth)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            return None if "null" in kind else self._of_type({**schema, "type": kind[0]}, depth)
        match kind:
            case "object":
                members = schema.get("properties", {})
                return {name: self.of(each, depth + 1) for name, each in members.items()}
            case "array":
                return [] if depth >= _DEEPEST else [self.of(schema.get("items", {}), depth + 1)]
            case "integer":
                return schema.get("minimum", 0)
            case "number":
                return schema.get("minimum", 0.0)
            case "boolean":
                return False
            case "string":
                return _MOMENT if schema.get("format") == "date-time" else "..."
        return None
