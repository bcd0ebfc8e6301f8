"""Code of the calls: a function for each operation of the document, and an exception for each type of problem."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from service.client.generator.model_code import Types
from service.client.generator.names import docstring, error_name, identifier, refers_to, snake

Schema = dict[str, Any]

_HEAD = '''"""The calls of the API. Generated from its OpenAPI document by `python -m service.client.generator`."""

from __future__ import annotations

from datetime import datetime
from types import NoneType
from typing import Literal

from groundskeeper_client.call import Call, segment
from groundskeeper_client.generated.models import (
{models}
)

'''
_PROBLEMS = '''"""The errors of the API, a class for each type of problem. Generated from its OpenAPI document by
`python -m service.client.generator`."""

from groundskeeper_client.errors import ApiError
'''
_JSON, _STREAM, _TEXT = "application/json", "text/event-stream", "text/plain"
# The type of a problem in a description, possibly as a link to its page.
_SLUG = re.compile(r"\[?`([a-z][a-z0-9-]*)`(?:\]\([^)]*\))?: ")


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    schema: Schema

    @property
    def id(self) -> str:
        return str(self.schema["operationId"])

    @property
    def body(self) -> Schema | None:
        content = self.schema.get("requestBody", {}).get("content", {})
        return content[_JSON]["schema"] if _JSON in content else None

    @property
    def answers(self) -> list[Mapping[str, Schema]]:
        """The contents of successful answers, each by media types."""
        return [each.get("content", {}) for status, each in self.schema["responses"].items() if status.startswith("2")]

    def problems(self) -> dict[str, str]:
        """The types of problems with their titles."""
        found = {}
        for status, response in self.schema["responses"].items():
            if not status.startswith("2"):
                parts = _SLUG.split(response["description"])[1:]
                found.update({slug: text.strip(" \n;.-") for slug, text in zip(parts[::2], parts[1::2], strict=True)})
        return found


def operations(document: Schema) -> Iterator[Operation]:
    """Yields the operations for people and programs. Operations for workers and streams are left out."""
    for path, methods in document["paths"].items():
        for method, schema in methods.items():
            operation = Operation(method.upper(), path, schema)
            is_stream = any(_STREAM in content for content in operation.answers)
            if not is_stream and not path.startswith("/v1/worker/"):
                yield operation


def code(found: list[Operation], schemas: Mapping[str, Schema]) -> str:
    types = Types(schemas)
    functions, aliases = [], []
    for operation in sorted(found, key=lambda each: snake(each.id)):
        body = types.annotation(operation.body) if operation.body is not None else None
        if body is not None and body.count("|") > 1:
            alias = f"{operation.id[0].upper()}{operation.id[1:]}Body"
            aliases.append(f"{alias} = {body}\n")
            body = alias
        functions.append(_function(operation, types, body))
    text = "\n\n".join([*aliases, *functions])
    # Only names that occur in the code are imported. Aliases need them at run time, too.
    used = sorted(name for name in schemas if re.search(rf"\b{name}\b", text))
    return _HEAD.format(models="\n".join(f"    {name}," for name in used)) + "\n" + text


def problems_code(found: list[Operation]) -> str:
    titles: dict[str, str] = {}
    for operation in found:
        titles.update({slug: title for slug, title in operation.problems().items() if slug not in titles})
    assert titles, "no answer describes a type of problem as this generator expects"
    classes = [
        "\n".join([f"class {error_name(slug)}(ApiError):", *docstring(title or slug), "", f'    type = "{slug}"'])
        + "\n"
        for slug, title in sorted(titles.items())
    ]
    names = "\n".join(f"        {error_name(slug)}," for slug in sorted(titles))
    by_type = f"BY_TYPE: dict[str, type[ApiError]] = {{\n    each.type: each\n    for each in (\n{names}\n    )\n}}\n"
    return "\n\n".join([_PROBLEMS, *classes, by_type])


def _function(operation: Operation, types: Types, body: str | None) -> str:
    parameters = operation.schema.get("parameters", [])
    in_path = [each for each in parameters if each["in"] == "path"]
    others = [each for each in parameters if each["in"] in ("query", "header")]
    positional = [f"{snake(each['name'])}: {_of_path(types, each['schema'])}" for each in in_path]
    if body is not None:
        is_needed = operation.schema["requestBody"].get("required", False)
        optional = body if body.endswith("None") else f"{body} | None"
        positional.append(f"body: {body}" if is_needed else f"body: {optional} = None")
    named = [_named(types, each) for each in others]
    arguments = ", ".join([*positional, *(["*", *named] if named else [])])
    answer, constructor = _answer(operation, types)
    fields = [f'"{operation.method}"', _path(operation, in_path), constructor]
    for kind, keyword in (("query", "query"), ("header", "headers")):
        given = [f'"{each["name"]}": {snake(each["name"])}' for each in others if each["in"] == kind]
        if given:
            fields.append(f"{keyword}={{{', '.join(given)}}}")
    if body is not None:
        fields.append("body=body")
    lines = [f"def {snake(operation.id)}({arguments}) -> Call[{answer}]:", *_described(operation, others)]
    return "\n".join([*lines, f"    return Call({', '.join(fields)})", ""])


def _described(operation: Operation, parameters: list[Schema]) -> list[str]:
    text = operation.schema.get("summary", operation.id).rstrip(".") + "."
    if more := operation.schema.get("description"):
        text += f"\n\n{more}"
    for each in parameters:
        if described := each.get("description"):
            text += f"\n\n`{snake(each['name'])}`: {described}"
    errors = [error_name(slug) for slug in sorted(operation.problems())]
    return docstring(f"{text}\n\nRaises {', '.join(errors)}." if errors else text)


def _answer(operation: Operation, types: Types) -> tuple[str, str]:
    """Returns the annotation of the answer, and the type to which the client decodes the answer."""
    for content in operation.answers:
        if _JSON in content:
            schema = content[_JSON].get("schema", {})
            name = types.annotation(schema, is_request=False)
            return (name, name) if refers_to(schema) else ("dict[str, object]", "dict[str, object]")
        if _TEXT in content:
            return "str", "str"
    return "None", "NoneType"


def _path(operation: Operation, in_path: list[Schema]) -> str:
    path = operation.path
    for each in in_path:
        path = path.replace(f"{{{each['name']}}}", f"{{segment({snake(each['name'])})}}")
    return f'f"{path}"' if in_path else f'"{path}"'


def _of_path(types: Types, schema: Schema) -> str:
    return "str" if types.annotation(schema) in ("str", "int") else types.annotation(schema)


def _named(types: Types, parameter: Schema) -> str:
    annotation = types.annotation(parameter["schema"])
    name = identifier(snake(parameter["name"]))
    if parameter.get("required"):
        return f"{name}: {annotation}"
    return f"{name}: {annotation if annotation.endswith('None') else f'{annotation} | None'} = None"
