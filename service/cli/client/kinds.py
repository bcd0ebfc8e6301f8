"""The kinds of jobs and their parameters, as the command line shows and completes them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import typer

from jobs.contract import JobKind
from jobs.kinds.parameters import ByService, Spec
from jobs.kinds.registry import KINDS


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kind. `default` is a text, which is empty if there is none. `choices` are all values, if there
    are few."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()


def parameters(kind: JobKind) -> list[Parameter]:
    """Returns the parameters that a request may have, in the order of the declaration."""
    declared = KINDS[kind].params
    hints = get_type_hints(declared, include_extras=True)
    found = []
    for each in msgspec.structs.fields(declared):
        parts = list(_parts(hints[each.name]))
        if ByService in parts:
            continue
        texts = [part.description for part in parts if isinstance(part, Spec) and part.description]
        choices = [choice for part in parts for choice in _choices(part)]
        default = (
            "required"
            if each.required
            else ""
            if each.default is None
            else str(each.default).lower()
            if isinstance(each.default, bool)
            else str(each.default)
        )
        found.append(Parameter(each.name, default, texts[0] if texts else "", tuple(choices)))
    return found


def complete_param(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Completes `name=`, and then the values of the parameter, if there are few."""
    try:
        known = parameters(JobKind(context.params["kind"]))
    except (KeyError, ValueError):
        return []
    name, equals, value = incomplete.partition("=")
    if not equals:
        return [(f"{each.name}=", each.description) for each in known if each.name.startswith(name)]
    choices = (choice for each in known if each.name == name for choice in each.choices)
    return [(f"{name}={choice}", "") for choice in choices if choice.startswith(value)]


def _parts(hint: Any) -> Iterator[Any]:
    """Yields the types of which a type is made, and their metadata, outer ones first."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        # The last metadata is that of the parameter; the others belong to the types that it uses.
        yield from reversed(metadata)
        yield from _parts(inner)
    elif get_origin(hint) in (Union, types.UnionType):
        for each in get_args(hint):
            yield from _parts(each)
    else:
        yield hint


def _choices(part: Any) -> Iterator[str]:
    if get_origin(part) is Literal:
        yield from map(str, get_args(part))
    elif part is bool:
        yield from ("true", "false")
    elif isinstance(part, type) and issubclass(part, Enum):
        yield from (str(each.value) for each in part)
