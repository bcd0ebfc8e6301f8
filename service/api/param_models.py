"""Models of requests, made from the types with which kinds of jobs and policies are declared (`jobs.kinds`)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, create_model, model_validator
from typing_extensions import TypedDict

from jobs.contract import BucketIndex
from jobs.kinds.parameters import ByService, Parameters, Spec
from jobs.kinds.words import PartitionChoice, PartitionPrefix
from service.api.requests import BucketIndexIn, Request
from service.policies.settings import CronExpression
from service.scheduling.cron import next_after


def distinct(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise ValueError("contains the same name twice")
    return values


def _check_cron(expression: str) -> str:
    # Any moment and zone will do: this checks that the expression parses and matches at least one time.
    if next_after(expression, "UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise ValueError("no time ever matches this")
    return expression


class ParamsIn(Request):
    """Parameters of a job. The rules between them are those of the declaration."""

    declared: ClassVar[type[Parameters]] = Parameters

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        self.declared(**{name: getattr(self, name) for name in type(self).model_fields})
        return self


def _choice(prefix: Any) -> Any:
    """The form that was sent selects the model that validates it, so that a mistake is reported once, in the caller's
    names."""
    path = as_model(get_args(PartitionChoice)[0])
    is_prefix = Discriminator(lambda given: "<path>" if isinstance(given, str) else "<prefix>")
    return Annotated[Annotated[path, Tag("<path>")] | Annotated[prefix, Tag("<prefix>")], is_prefix]


@cache
def model_of(declared: type[msgspec.Struct]) -> type[Request]:
    """Returns the model of the same name, with the same members, except those that the service adds."""
    hints = get_type_hints(declared, include_extras=True)
    members: dict[str, Any] = {
        each.name: (as_model(hints[each.name]), ... if each.default is msgspec.NODEFAULT else each.default)
        for each in msgspec.structs.fields(declared)
        if ByService not in getattr(hints[each.name], "__metadata__", ())
    }
    is_params = issubclass(declared, Parameters)
    base, text = ParamsIn if is_params else Request, declared.__dict__.get("__doc__")
    model: type[Request] = create_model(declared.__name__, __base__=base, __doc__=text, **members)
    if issubclass(model, ParamsIn):
        model.declared = declared  # type: ignore[assignment]
    return model


def as_model(hint: Any, *, stored: bool = False) -> Any:
    """Returns the type for pydantic. If `stored` is set, objects in it stay as they were sent."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint == PartitionChoice:
        return _choice(PrefixOfPolicy if stored else model_of(PartitionPrefix))
    if origin is Annotated:
        metadata = [found for each in parts[1:] for found in _metadata(each)]
        return Annotated[as_model(parts[0], stored=stored), *metadata]
    if origin in (Union, UnionType):
        return Union[*(as_model(each, stored=stored) for each in parts)]
    if origin is tuple:
        return list[as_model(parts[0], stored=stored)]  # type: ignore[misc]
    return BucketIndexIn if hint is BucketIndex else hint


def _metadata(given: Any) -> list[Any]:
    if given is CronExpression:
        return [AfterValidator(_check_cron)]
    if not isinstance(given, Spec):
        return [given]
    bounds = given.bounds()
    return [*([Field(**bounds)] if bounds else []), *([AfterValidator(distinct)] if given.distinct else [])]


class PrefixOfPolicy(TypedDict):
    """A `PartitionPrefix` in a level of a policy, which is stored as it was sent."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # pydantic's documented way

    prefix: as_model(get_type_hints(PartitionPrefix, include_extras=True)["prefix"])  # type: ignore[valid-type]
