"""Requests for jobs: a model for each kind, made from its declaration in `jobs.kinds`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Discriminator, Field, Tag, create_model

from jobs.contract import JobKind
from jobs.kinds.kind import Kind
from jobs.kinds.registry import KINDS
from service.api.param_models import model_of
from service.api.requests import Request
from service.policies.policy import MOST_TIMEOUT_SECONDS


class JobRequest(Request):
    dry_run: bool = Field(False, description="Return the plan, and change nothing")
    priority: int = Field(0, ge=-100, le=100, description="Jobs with a higher value are handed out first")
    timeout_seconds: int | None = Field(
        None,
        ge=1,
        le=MOST_TIMEOUT_SECONDS,
        description="Time limit of one attempt. Default: that of the table's policy, else that of the service",
    )


def _params_of(kind: Kind) -> Any:
    """Returns the type of the parameters of a request."""
    model = model_of(kind.params)
    if kind.given_plans is None:
        return model
    executing = model_of(kind.given_plans)

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
        """Any of the requests."""

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
