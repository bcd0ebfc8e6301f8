"""Pieces of JSON Schemas (2020-12) for the events."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def object_of(**properties: Schema) -> Schema:
    """Returns the schema of an object whose members are all required. Later versions may add members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def document_of(**properties: Schema) -> Schema:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **object_of(**properties)}


def or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MOMENT: Schema = {"type": "string", "format": "date-time"}
