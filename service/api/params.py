"""Requests for jobs: the model of each kind is made from the types in its declaration (`jobs.kinds`). Models of
policies are made in the same way."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, create_model, model_validator
from typing_extensions import TypedDict

from jobs.contract import BucketIndex, JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.parameters import ByService, Parameters, Spec
from jobs.kinds.registry import KINDS
from jobs.kinds.words import PartitionChoice, PartitionPrefix
from service.api.requests import BucketIndexIn, Request
from service.policies.policy import MOST_TIMEOUT_SECONDS, PRIORITY
from service.policies.settings import CronExpression
from service.scheduling.cron import next_after


def distinct(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise ValueError("contains the same name twice")
    return values


def _check_cron(expression: str) -> str:
    # The moment and the zone do not matter: the check is that the expression parses and matches at least one time.
    if next_after(expression, "UTC", datetime(2026, 1, 1, tzinfo=UTC)) is None:
        raise ValueError("no time ever matches this")
    return expression


class ParamsIn(Request):
    """Parameters of a job. Rules that concern several parameters come from the declaration."""

    declared: ClassVar[type[Parameters]] = Parameters

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        self.declared(**{name: getattr(self, name) for name in type(self).model_fields})
        return self


def _choice(prefix: Any) -> Any:
    """Returns the tag of the model that validates a value. So a mistake is reported only once, with the names that the
    caller used."""
    path = as_model(get_args(PartitionChoice)[0])
    is_prefix = Discriminator(lambda given: "<path>" if isinstance(given, str) else "<prefix>")
    return Annotated[Annotated[path, Tag("<path>")] | Annotated[prefix, Tag("<prefix>")], is_prefix]


@cache
def model_of(declared: type[msgspec.Struct]) -> type[Request]:
    """Returns a model with the name and the members of the struct, except the members that the service adds."""
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
    """Returns the type for pydantic. If `stored` is set, objects in a value are kept as they were sent."""
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


class JobRequest(Request):
    dry_run: bool = Field(False, description="Return the plan, and change nothing")
    priority: Annotated[int, Field(**PRIORITY.bounds())] = 0
    timeout_seconds: int | None = Field(
        None,
        ge=1,
        le=MOST_TIMEOUT_SECONDS,
        description="Time limit of one attempt. Default: the limit in the table's policy, else the service's limit",
    )


def _params_of(kind: Kind) -> Any:
    """Returns the type of the parameters of a request."""
    model = model_of(kind.params)
    if kind.delegated_plans is None:
        return model
    executing = model_of(kind.delegated_plans)

    def form(given: Any) -> str:
        has_plans = isinstance(given, executing) or (isinstance(given, dict) and "plans" in given)
        return "<plans>" if has_plans else "<own>"

    return Annotated[Annotated[model, Tag("<own>")] | Annotated[executing, Tag("<plans>")], Discriminator(form)]


def _request_of(kind: Kind) -> type[JobRequest]:
    its_name: Any = Literal[kind.kind]
    params = _params_of(kind)
    default: Any = ...
    if kind.can_do_without_params:
        default = Field(default_factory=lambda: params.model_validate({}))
    return create_model(
        f"{kind.type_name}In",
        __base__=JobRequest,
        __doc__=kind.summary,
        kind=(its_name, ...),
        params=(params, default),
    )


if TYPE_CHECKING:

    class JobIn(JobRequest):
        """The request for a job of any kind."""

        kind: JobKind
        params: Request
else:
    JobIn = Annotated[Union[*map(_request_of, KINDS.values())], Field(discriminator="kind")]


EXAMPLES: dict[str, Any] = {
    kind.value: {"value": {"kind": kind.value, **declared.example}} for kind, declared in KINDS.items()
}


def as_json(params: Request) -> dict[str, Any]:
    """Returns the parameters for a worker: with defaults, without members that are None."""
    return params.model_dump(mode="json", exclude_none=True)
