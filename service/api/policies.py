"""Policies of patterns and tables, and the global pause: /v1/policies, /v1/tables/{id}/policy, /v1/pause"""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Response

from service.api.answers import ListOf
from service.api.audit_objects import settings_of
from service.api.dependencies import CallerDep, DatabaseDep, FleetDep, QueueDep
from service.api.entity_tags import set_tag, tag_of
from service.api.policy_models import (
    EXAMPLES,
    EffectivePolicyOut,
    ListedPolicyOut,
    PatternPolicyIn,
    PatternPolicyOut,
    PauseIn,
    PauseOut,
    PolicyIn,
    PreviewIn,
    PreviewOut,
    PreviewTableOut,
    StartOut,
)
from service.api.requests import SOME_TEXT
from service.api.routes import Routes
from service.api.statuses import CREATED
from service.api.structs import answered, made, struct_of
from service.api.tables import TableId
from service.db.engine import reading
from service.metrics.installation import Installation
from service.model import errors
from service.policies import pause_store, policy_registry, store
from service.policies.policy import PatternPolicy
from service.scheduling import pausing, policy_preview
from service.scheduling.scheduler import SchedulerConfig

router = Routes(prefix="/v1", tags=["policies"])

_MOST_NAMES = 20
_MOST_PREVIEWED = 20

# The name of a table may contain slashes, so a pattern may contain them too.
Pattern = Annotated[
    str,
    Path(
        min_length=1,
        max_length=255,
        pattern=SOME_TEXT,
        examples=["orders_*"],
        description="A glob for names of tables: `*`, `?`, `[abc]`; `*` alone matches all. Or `tag:` with a glob for"
        " keys of tags, or for `key=value`; or `owner:` with a glob for owners",
    ),
]


@router.reader("GET /policies", "List the policies of patterns")
def list_policies(database: DatabaseDep) -> ListOf[ListedPolicyOut]:
    """Lists each policy with the tables that have a setting from it. A table is left out if stronger patterns or the
    table's own policy replace all settings of this policy."""
    with reading(database.engine) as connection:
        found = policy_registry.decided_for(connection)

        def shown(policy: PatternPolicy) -> ListedPolicyOut:
            names = found[policy.pattern]
            return made(ListedPolicyOut, policy, tables=len(names), table_names=names[:_MOST_NAMES])

        return ListOf[ListedPolicyOut].of(store.every(connection), shown)


@router.reader(
    "POST /policy-preview",
    "Show the effect of an edit of a pattern's policy",
    errors.PolicyNotFoundError,
    errors.FleetUnavailableError,
)
def preview_policy(wanted: PreviewIn, fleet: FleetDep, queue: QueueDep) -> PreviewOut:
    """Shows the tables whose policy would change, and the jobs that would start there now. Starts nothing and stores
    nothing."""
    return answered(fleet, preview_of, wanted, queue.planning)


def preview_of(installation: Installation, wanted: PreviewIn, config: SchedulerConfig) -> PreviewOut:
    database, forecaster = installation.database, installation.monitoring.forecaster
    policy = None
    if wanted.policy is not None:
        settings = {name: value for name, value in wanted.policy.items() if name != "precedence"}
        now = database.clock()
        policy = PatternPolicy(wanted.pattern, settings, now, now, wanted.policy.get("precedence", 0))
    found, number = policy_preview.of_pattern(
        database, config, wanted.pattern, policy, limit=_MOST_PREVIEWED, forecaster=forecaster
    )
    items = [
        made(PreviewTableOut, each, starts=[StartOut(kind=job.kind, because=job.because) for job in each.starts])
        for each in found
    ]
    return struct_of(PreviewOut)(tables=number, items=items)


@router.reader("GET /policies/{pattern:path}", "Show the policy of a pattern", errors.PolicyNotFoundError)
def get_policy(pattern: Pattern, database: DatabaseDep, response: Response) -> PatternPolicyOut:
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "policy", pattern)
        return PatternPolicyOut.of(store.get(connection, pattern))


@router.operator(
    "PUT /policies/{pattern:path}",
    "Set the policy of all tables that match",
    errors.RouteNotFoundError,
    also={CREATED: "The pattern had no policy before"},
)
def put_policy(
    pattern: Pattern,
    wanted: Annotated[PatternPolicyIn, Body(openapi_examples=EXAMPLES)],
    database: DatabaseDep,
    response: Response,
) -> PatternPolicyOut:
    """Replaces the previous policy. Members that are left out come from weaker patterns, or from the defaults."""
    settings = {name: value for name, value in wanted.items() if name != "precedence"}
    policy, is_new = policy_registry.put_pattern(
        database.engine, database.clock, pattern, precedence=wanted.get("precedence", 0), settings=settings
    )
    if is_new:
        response.status_code = CREATED
    return PatternPolicyOut.of(policy)


@router.operator("DELETE /policies/{pattern:path}", "Delete the policy of a pattern", errors.PolicyNotFoundError)
def delete_policy(pattern: Pattern, database: DatabaseDep) -> None:
    policy_registry.delete_pattern(database.engine, database.clock, pattern)


@router.reader("GET /tables/{table_id}/policy", "Show the effective policy of a table")
def get_table_policy(table_id: TableId, database: DatabaseDep, response: Response) -> EffectivePolicyOut:
    """Returns all levels merged, and the source of each value. The `ETag` identifies the table's own policy."""
    with reading(database.engine) as connection:
        effective, own = policy_registry.levels_of(connection, table_id)
    response.headers["ETag"] = tag_of(settings_of(own))
    return EffectivePolicyOut.of(effective)


@router.operator("PUT /tables/{table_id}/policy", "Set the policy of one table")
def put_table_policy(
    table_id: TableId, wanted: Annotated[PolicyIn, Body(openapi_examples=EXAMPLES)], database: DatabaseDep
) -> EffectivePolicyOut:
    """Replaces the previous policy of this table, and returns the new effective one."""
    return EffectivePolicyOut.of(policy_registry.put_table(database.engine, database.clock, table_id, wanted))


@router.operator("DELETE /tables/{table_id}/policy", "Delete the policy of one table", errors.PolicyNotFoundError)
def delete_table_policy(table_id: TableId, database: DatabaseDep) -> None:
    policy_registry.delete_table(database.engine, database.clock, table_id)


@router.reader("GET /pause", "Show whether automatic jobs are paused")
def get_pause(database: DatabaseDep, response: Response) -> PauseOut:
    with reading(database.engine) as connection:
        set_tag(response, connection, database.cipher, "pause", "all")
        return PauseOut.of(pause_store.pause_of(connection))


@router.operator("PUT /pause", "Pause automatic jobs on all tables")
def pause(
    database: DatabaseDep, caller: CallerDep, wanted: Annotated[PauseIn, Body(default_factory=PauseIn)]
) -> PauseOut:
    """Withdraws automatic jobs that wait for their first worker; jobs that have begun go on. Jobs can still be
    submitted."""
    return PauseOut.of(
        pausing.pause(database.engine, database.notifier, database.clock, by=caller.name, reason=wanted.reason)
    )


@router.operator("DELETE /pause", "End the pause")
def resume(database: DatabaseDep) -> None:
    """Every table gets a new decision; a few jobs start at a time."""
    pausing.resume(database.engine, database.notifier, database.clock)
