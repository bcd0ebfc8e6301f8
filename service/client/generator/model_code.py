"""Code of the models: a msgspec struct for each object of the document, an enum for each set of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.client.generator.names import constant, docstring, refers_to, snake

Schema = dict[str, Any]

_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = '''"""The objects of the API. Generated from its OpenAPI document by `python -m service.client.generator`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from groundskeeper_client.model import Model, Word

'''


class Types:
    """Makes annotations for schemas. Plain dictionaries stand for objects without a name, and for unions whose types
    cannot be distinguished in JSON."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def annotation(self, schema: Schema, *, is_request: bool = True) -> str:
        """Returns the type of a schema. A union of objects in an answer becomes `Any`, because the decoder cannot
        distinguish the objects."""
        if name := refers_to(schema):
            return name
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._union(schema[key], is_request=is_request)
        if "allOf" in schema and len(schema["allOf"]) == 1:
            return self.annotation(schema["allOf"][0], is_request=is_request)
        type_ = schema.get("type")
        if isinstance(type_, list):
            return self._union([{**schema, "type": each} for each in type_], is_request=is_request)
        if type_ == "array":
            return f"list[{self.annotation(schema.get('items', {}), is_request=is_request)}]"
        if type_ == "object":
            return f"dict[str, {self._value(schema, is_request=is_request)}]"
        if type_ == "string" and schema.get("format") == "date-time":
            return "datetime"
        return _SIMPLE.get(str(type_), "Any")

    def _value(self, schema: Schema, *, is_request: bool) -> str:
        values = [*schema.get("patternProperties", {}).values()]
        more = schema.get("additionalProperties")
        values += [more] if isinstance(more, dict) else []
        return self.annotation(values[0], is_request=is_request) if len(values) == 1 else "Any"

    def _union(self, choices: list[Schema], *, is_request: bool) -> str:
        objects = [choice for choice in choices if self._is_object(choice)]
        if len(objects) > 1 and not is_request:
            return "dict[str, Any]" + (" | None" if {"type": "null"} in choices else "")
        parts = list(dict.fromkeys(self.annotation(choice, is_request=is_request) for choice in choices))
        parts = ["Any"] if "Any" in parts else parts
        # The wider type includes the narrower one: `int` is left out beside `float`, and a time beside a text.
        parts = [part for part in parts if not (part == "int" and "float" in parts)]
        if not is_request and "str" in parts:
            parts = [part for part in parts if part != "datetime" and not self._is_words(part)]
        return " | ".join(sorted(parts, key=lambda part: part == "None"))

    def _is_object(self, schema: Schema) -> bool:
        target = self._schemas.get(refers_to(schema) or "", schema)
        return target.get("type") == "object"

    def _is_words(self, name: str) -> bool:
        return "enum" in self._schemas.get(name, {})


def code(schemas: Mapping[str, Schema], requests: set[str]) -> str:
    """Returns the code for all `schemas`. Those in `requests` are sent to the service, and perhaps received too."""
    types = Types(schemas)
    parts = [_HEAD]
    aliases: list[str] = []
    for name in sorted(schemas):
        schema = schemas[name]
        if "enum" in schema and schema.get("type") == "string":
            parts.append(_enum(name, schema))
        elif schema.get("type") == "object" and "properties" in schema:
            parts.append(_struct(name, schema, types, is_request=name in requests))
        else:
            aliases.append(f"{name} = {types.annotation(schema, is_request=name in requests)}\n")
    return "\n\n".join([*parts, *aliases, _defaults(schemas, requests)])


def _defaults(schemas: Mapping[str, Schema], requests: set[str]) -> str:
    """Returns the code of the default values: the service uses them for members that a request leaves out. A member
    without a default value is missing."""
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(requests & schemas.keys()):
        members = schemas[name].get("properties", {})
        if given := {member: each["default"] for member, each in members.items() if each.get("default")}:
            found[name] = given
    lines = [f"    {name!r}: {given!r}," for name, given in found.items()]
    text = '"""Values of members that are left out of a request, by the name of its model."""'
    return "\n".join(["DEFAULTS: dict[str, dict[str, Any]] = {", *lines, "}", text]) + "\n"


def _enum(name: str, schema: Schema) -> str:
    lines = [f"class {name}(Word):"]
    if schema.get("description"):
        lines += [*docstring(schema["description"]), ""]
    lines += [f"    {constant(word)} = {word!r}" for word in schema["enum"]]
    return "\n".join(lines) + "\n"


def _struct(name: str, schema: Schema, types: Types, *, is_request: bool) -> str:
    lines = [f"class {name}(Model, frozen=True, kw_only=True):"]
    if schema.get("description"):
        lines += [*docstring(schema["description"]), ""]
    required = set(schema.get("required", []))
    for given, property_ in schema["properties"].items():
        own = snake(given)
        annotation = types.annotation(property_, is_request=is_request)
        renamed = f'name="{given}"' if own != given else ""
        if "const" in property_:
            # A constant is the default of its member.
            default = repr(property_["const"])
        else:
            default = "" if given in required else "UNSET"
            annotation = annotation if given in required else _or_unset(annotation)
        if renamed:
            value = f" = field({', '.join(part for part in (default and f'default={default}', renamed) if part)})"
        else:
            value = f" = {default}" if default else ""
        lines.append(f"    {own}: {annotation}{value}")
        if property_.get("description"):
            lines += docstring(property_["description"])
    if not schema["properties"]:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def _or_unset(annotation: str) -> str:
    without = annotation.removesuffix(" | None")
    return f"{without} | UnsetType | None" if without != annotation else f"{annotation} | UnsetType"
