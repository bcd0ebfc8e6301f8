"""Schemas from structs: of the results of jobs by kind, of the details of incidents, and of the objects inside them.

Every member may be missing: some belong to dry runs, some to work that was done. Workers of other versions may report
more.
"""

from __future__ import annotations

from inspect import cleandoc, get_annotations
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, UnsetType

from jobs.contract import Problem
from jobs.kinds.parameters import Spec
from jobs.kinds.registry import KINDS
from service.incidents.details import AstrayDetails, DamageDetails, LateFilesDetails

Schema = dict[str, Any]

_NULL: Final[Schema] = {"type": "null"}
_TYPES: Final[dict[Any, str]] = {
    NoneType: "null",
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    str: "string",
}
_TEXTS: Final = {
    "type": "Type of the problem",
    "title": "What it is",
    "detail": "This case",
    "hint": "What to do",
    "retriable": "Whether it may pass by itself",
}


def schemas() -> dict[str, Schema]:
    """Returns the schemas by name, those that they refer to included."""
    found: dict[str, Schema] = {}
    found["ResultReason"] = {
        **_object("ResultReason", "A reason against something, as a problem"),
        "properties": {
            name: {"type": "boolean" if name == "retriable" else "string", "description": text}
            for name, text in _TEXTS.items()
        },
    }
    for kind in KINDS.values():
        name = f"{kind.type_name}Result"
        found[name] = {
            **_object(name, f"The result of a job of kind `{kind.kind.value}`"),
            "properties": _members(kind.result, found),
        }
    found["IncidentDetails"] = {
        **_object("IncidentDetails", "Figures of an incident; which of them it has depends on its kind"),
        "properties": {
            name: schema
            for form in (AstrayDetails, LateFilesDetails, DamageDetails)
            for name, schema in _members(form, found).items()
        },
    }
    return found


def _object(title: str, description: str) -> Schema:
    return {"title": title, "type": "object", "description": description}


def _members(form: type[Struct], named: dict[str, Schema]) -> Schema:
    """Returns the members of a struct, its own before those that others share."""
    hints = get_type_hints(form, include_extras=True)
    names = [name for base in form.__mro__ for name in get_annotations(base) if name in hints]
    return {name: _of(hints[name], named) for name in names}


def _of(hint: Any, named: dict[str, Schema]) -> Schema:
    """Returns the schema of a type; of an object a reference to it, which `named` then has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [each.bounds() for each in arguments[1:] if isinstance(each, Spec)]
        return {**_of(arguments[0], named), **{name: value for each in bounds for name, value in each.items()}}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], named)}
    if origin in (Union, UnionType):
        choices = [_of(each, named) for each in arguments if each is not UnsetType]
        return choices[0] if len(choices) == 1 else _any_of(choices)
    if hint is Problem:
        return {"$ref": "#/components/schemas/ResultReason"}
    if isinstance(hint, type) and issubclass(hint, Struct):
        if hint.__name__ not in named:
            schema = _object(hint.__name__, cleandoc(hint.__doc__ or ""))
            named[hint.__name__] = schema
            schema["properties"] = _members(hint, named)
        return {"$ref": f"#/components/schemas/{hint.__name__}"}
    return {"type": _TYPES[origin or hint]}


def _any_of(choices: list[Schema]) -> Schema:
    some = [each for each in choices if each != _NULL]
    if len(some) == 1 and "type" in some[0] and len(some) < len(choices):
        return {**some[0], "type": [some[0]["type"], "null"]}
    return {"anyOf": choices}
