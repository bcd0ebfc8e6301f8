"""Answers as structs. A model of pydantic describes an answer in the API's document. A struct with the same members and
types is filled, and written as JSON, in a fraction of the time. The struct is made from the model, so an answer cannot
differ from the document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, Union, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel
from typing_extensions import is_typeddict

from jobs.contract import converted
from service.metrics.installation import FleetWork, Installation

P = ParamSpec("P")
_Model = TypeVar("_Model", bound=BaseModel)


def struct_of(model: type[_Model]) -> type[_Model]:
    """Returns the struct with the members of the model. Its instances have the same attributes. The struct does not
    check the types of its arguments, because a type checker does so."""
    return _struct(model)  # type: ignore[no-any-return]


@cache
def _struct(model: Any) -> Any:
    members = [_member(name, field) for name, field in model.model_fields.items()]
    names = {name: field.alias for name, field in model.model_fields.items() if field.alias}
    return msgspec.defstruct(model.__name__, members, kw_only=True, gc=False, rename=names or None)


def made(model: type[_Model], source: object, **members: Any) -> _Model:
    """Returns the struct of the model with the attributes of a dataclass or named tuple; `members` replace some of
    them, or add those that `source` lacks. Raises msgspec.ValidationError for values of other types."""
    struct = _struct(model)
    kind: Any = type(source)
    defaults, others = _others(struct, kind)
    given = source.__dict__ if kind.__dictoffset__ else {}
    values = {**defaults, **given, **members}
    for name in others:
        if name not in members:
            values[name] = getattr(source, name)
    return converted(values, struct, from_attributes=True)  # type: ignore[no-any-return]


def as_json(answer: object) -> bytes:
    """Returns an answer of structs and models as JSON. The name of a file may contain half of a surrogate pair, which
    UTF-8 cannot encode. It is escaped."""
    try:
        return _encoder.encode(answer)
    except UnicodeEncodeError:
        return json.dumps(as_members(answer), separators=(",", ":")).encode()


def answered(
    fleet: FleetWork, function: Callable[Concatenate[Installation, P], _Model], *args: P.args, **kwargs: P.kwargs
) -> _Model:
    """Returns the result of the function, already written as JSON. Structs are written in the process in which they are
    made."""
    return cast("_Model", msgspec.Raw(fleet.run(_written, function, args, kwargs)))


def _written(installation: Installation, function: Callable[..., object], args: Any, kwargs: Any) -> bytes:
    return as_json(function(installation, *args, **kwargs))


def as_members(answer: object) -> Any:
    """Returns an answer as plain values, as if its JSON had been read."""
    return msgspec.to_builtins(answer, enc_hook=_members_of)


def _members_of(value: object) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        names = {name: field.alias or name for name, field in type(value).model_fields.items()}
        return {names.get(name, name): each for name, each in value}
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be a part of an answer")


_encoder = msgspec.json.Encoder(enc_hook=_members_of)


@cache
def _others(struct: Any, source: Any) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Returns the members of a dataclass that the dictionary of an instance may lack. First the defaults, which are
    missing if msgspec has made the instance; second the names of the members that no instance's dictionary has."""
    own = getattr(source, "__dataclass_fields__", {}) if source.__dictoffset__ else {}
    defaults = {name: field.default for name, field in own.items() if field.default is not MISSING}
    return defaults, [name for name in struct.__struct_fields__ if name not in own and hasattr(source, name)]


def _member(name: str, field: Any) -> tuple[str, Any] | tuple[str, Any, Any]:
    hint = _plain(field.annotation)
    return (name, hint) if field.is_required() else (name, hint, field.get_default(call_default_factory=True))


def _plain(hint: Any) -> Any:
    """Returns the type with structs in place of models, and without metadata."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _plain(arguments[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(_plain, arguments))
    if origin in (list, Sequence):
        return list[_plain(arguments[0])]  # type: ignore[misc]  # computed
    if origin in (dict, Mapping):
        return dict[_plain(arguments[0]), _plain(arguments[1])]  # type: ignore[misc]  # computed
    if is_typeddict(hint):
        # A union may have only one type that msgspec decodes from an object. The content of this one is already JSON.
        return dict[str, Any]
    return _struct(hint) if isinstance(hint, type) and issubclass(hint, BaseModel) else hint
