"""/v1/policy-shadows: policies on trial, which decide beside the real policies and start no jobs"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Body, Response
from pydantic import BaseModel, Field

from service.api.answers import ListOf, Shown
from service.api.dependencies import DatabaseDep, SimulatorDep
from service.api.entity_tags import set_tag
from service.api.policies import Pattern
from service.api.policy_models import EXAMPLES, PatternPolicyIn
from service.api.routes import Routes
from service.api.simulations import SimulationOut
from service.api.statuses import CREATED
from service.api.structs import struct_of
from service.db.engine import reading, writing
from service.model.storage_errors import ReadTimedOutError
from service.policies import shadow_store
from service.policies.errors import ShadowNotFoundError, TooManyShadowsError
from service.policies.shadow import ENOUGH, MOST, Shadow
from service.simulation.edit import Edit
from service.simulation.errors import SimulationTooLargeError
from service.simulation.what_if import Period

router = Routes(prefix="/v1/policy-shadows", tags=["policies"])


class ShadowOut(Shown, declared=Shadow):
    started_at: datetime


class ComparedShadowOut(BaseModel):
    shadow: ShadowOut = Field(description="The shadow")
    is_enough: bool = Field(description="Whether the shadow has decided for a week", examples=[True])
    comparison: SimulationOut = Field(
        description="Outcomes since the shadow has started, but of a week at most. `now`: the real policy; `new`: the"
        " shadow, with the same commits; `actual`: what really happened"
    )


@router.reader("GET ", "List the shadows of policies")
def list_shadows(database: DatabaseDep) -> ListOf[ShadowOut]:
    with reading(database.engine) as connection:
        return ListOf[ShadowOut].of(shadow_store.every(connection), ShadowOut.of)


@router.operator(
    "PUT /{pattern:path}",
    "Let a policy decide beside the real one",
    TooManyShadowsError,
    also={CREATED: "The pattern had no shadow before"},
)
def put_shadow(
    pattern: Pattern,
    wanted: Annotated[PatternPolicyIn, Body(openapi_examples=EXAMPLES)],
    database: DatabaseDep,
    response: Response,
) -> ShadowOut:
    """A shadow is a policy on trial for the pattern. The shadow decides about the same commits as the real policy from
    now on, but starts no jobs. The call replaces an earlier shadow of the pattern."""
    settings = {name: value for name, value in wanted.items() if name != "precedence"}
    shadow = Shadow(pattern, settings, database.clock(), wanted.get("precedence", 0))
    with writing(database.engine) as connection:
        if shadow_store.put(connection, shadow):
            if (number := shadow_store.number(connection)) > MOST:
                raise TooManyShadowsError(f"There are {number - 1} shadows.")
            response.status_code = CREATED
    return ShadowOut.of(shadow)


@router.reader(
    "GET /{pattern:path}", "Compare a shadow with the real policy", ShadowNotFoundError, SimulationTooLargeError
)
def get_shadow(
    pattern: Pattern, database: DatabaseDep, simulator: SimulatorDep, response: Response
) -> ComparedShadowOut:
    """The policy and the shadow decide about the commits since the shadow has started, or about those of the last week.
    The call takes seconds, or a minute for very many commits."""
    now = database.clock()
    with reading(database.engine) as connection:
        shadow = shadow_store.get(connection, pattern)
        set_tag(response, connection, database.cipher, "policy-shadow", pattern)
    edit = Edit(shadow.settings, shadow.pattern, shadow.precedence)
    # A clock that was set back would make the period end before it begins.
    period = Period(min(max(shadow.started_at, now - ENOUGH), now), now, now)
    try:
        found = simulator(edit, period)
    except ReadTimedOutError as error:
        raise SimulationTooLargeError("The simulation was ended after its time limit.") from error
    return struct_of(ComparedShadowOut)(
        shadow=ShadowOut.of(shadow),
        is_enough=now - shadow.started_at >= ENOUGH,
        comparison=SimulationOut.of(found),
    )


@router.operator("DELETE /{pattern:path}", "End a shadow", ShadowNotFoundError)
def delete_shadow(pattern: Pattern, database: DatabaseDep) -> None:
    with writing(database.engine) as connection:
        shadow_store.delete(connection, pattern)
