"""Schemas made from structs: the results of jobs by kind, the details of incidents, and the objects inside both.

Every member may be missing: some are only in results of dry runs, others only in results of real jobs. Workers of other
versions may report further members.
"""

from __future__ import annotations

from functools import reduce
from inspect import cleandoc, get_annotations
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, UnsetType

from jobs.contract import Problem
from jobs.kinds.parameters import Spec
from jobs.kinds.registry import KINDS
from jobs.kinds.results import ResultReason
from service.incidents.details import IncidentDetails

Schema = dict[str, Any]

_NULL: Final[Schema] = {"type": "null"}
_TYPES: Final = {bool: "boolean", dict: "object", float: "number", int: "integer", str: "string"}


def schemas() -> dict[str, Schema]:
    """Returns the schemas by name, including the schemas to which they refer."""
    found: dict[str, Schema] = {}
    for kind in KINDS.values():
        name = f"{kind.type_name}Result"
        members = {"properties": _members(kind.result, found)}
        found[name] = _object(name, f"The result of a job of kind `{kind.kind.value}`") | members
    _of(IncidentDetails, found)
    return found


def _object(title: str, description: str) -> Schema:
    return {"title": title, "type": "object", "description": description}


def _members(form: type[Struct], named: dict[str, Schema]) -> Schema:
    """Returns the members of a struct; inherited ones come last."""
    hints = get_type_hints(form, include_extras=True)
    names = [name for base in form.__mro__ for name in get_annotations(base) if name in hints]
    return {name: _of(hints[name], named) for name in names}


def _of(hint: Any, named: dict[str, Schema]) -> Schema:
    """Returns the schema of a type. The schema of an object is added to `named`, and a reference to it is returned."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return reduce(
            or_, (each.bounds() for each in arguments[1:] if isinstance(each, Spec)), _of(arguments[0], named)
        )
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], named)}
    if origin in (Union, UnionType):
        choices = [_of(each, named) for each in arguments if each not in (NoneType, UnsetType)]
        if len(choices) == 1 and (NoneType not in arguments or "type" in choices[0]):
            (schema,) = choices
            return {**schema, "type": [schema["type"], "null"]} if NoneType in arguments else schema
        return {"anyOf": [*choices, _NULL] if NoneType in arguments else choices}
    if hint is Problem:
        return _of(ResultReason, named)
    if isinstance(hint, type) and issubclass(hint, Struct):
        if hint.__name__ not in named:
            schema = named[hint.__name__] = _object(hint.__name__, cleandoc(hint.__doc__ or ""))
            schema["properties"] = _members(hint, named)
        return {"$ref": f"#/components/schemas/{hint.__name__}"}
    return {"type": _TYPES[origin or hint]}
