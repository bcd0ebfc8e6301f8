"""Sensors of the commits of a table: one requests runs, the other updates an asset."""

from typing import Any

from dagster import (
    AssetKey,
    AssetMaterialization,
    DefaultSensorStatus,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    sensor,
)

from groundskeeper_client import published
from groundskeeper_client.dagster.resource import GroundskeeperResource
from groundskeeper_client.published import PublishedCommit
from groundskeeper_client.questions import id_of

# A cursor that is a position of events begins with this text.
_POSITION = "event:"


def build_commit_sensor(
    table: str,
    *,
    job: Any = None,
    target: Any = None,
    name: str | None = None,
    of_services: bool = False,
    minimum_interval_seconds: int = 30,
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
) -> SensorDefinition:
    """Returns a sensor on the table (id, name or base path), with the resource `groundskeeper`. The sensor starts with
    the first commit after its first tick, and requests a run of `job` or `target` for each commit, oldest first, with
    the tags `groundskeeper/table` and `groundskeeper/instant`.

    If `of_services` is set, the commits of table services count as well.
    """
    of_what = {"job": job} if job is not None else {"target": target}

    @sensor(
        name=name or f"commits_of_{table}",
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description=f"A run for each commit to {table}",
        **of_what,
    )
    def commits(context: SensorEvaluationContext, groundskeeper: GroundskeeperResource) -> SensorResult:
        table_id, new, cursor = _new(context, groundskeeper, table, of_services=of_services)
        return SensorResult(run_requests=[_request(table_id, commit) for commit in new], cursor=cursor)

    return commits


def build_commit_asset_sensor(
    table: str,
    asset_key: AssetKey,
    *,
    name: str | None = None,
    of_services: bool = False,
    minimum_interval_seconds: int = 30,
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
) -> SensorDefinition:
    """Returns a sensor with the resource `groundskeeper`. For each commit to the table (id, name or base path), oldest
    first, the sensor reports a materialization of an external asset. The metadata has the commit's instant, action,
    operation and rows; the tag `groundskeeper/event` is the id of the commit's event. The sensor starts with the first
    commit after its first tick.

    Dagster stores the materializations before the cursor. If its daemon is killed in between, the commits of this tick
    are reported again.
    """

    @sensor(
        name=name or f"updates_of_{table}",
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
        description=f"A materialization of {asset_key.to_user_string()} for each commit to {table}",
    )
    def updates(context: SensorEvaluationContext, groundskeeper: GroundskeeperResource) -> SensorResult:
        _, new, cursor = _new(context, groundskeeper, table, of_services=of_services)
        return SensorResult(asset_events=[_materialization(asset_key, commit) for commit in new], cursor=cursor)

    return updates


def _new(
    context: SensorEvaluationContext, groundskeeper: GroundskeeperResource, table: str, *, of_services: bool
) -> tuple[str, list[PublishedCommit], str]:
    """Returns the table's id, the commits since the last tick, and the new cursor, which is a position of the events. A
    cursor of an earlier version is the id of a commit, not a position. The sensor starts anew with such a cursor."""
    position = (context.cursor or "").removeprefix(_POSITION)
    is_known = position != context.cursor and position.isdecimal()
    with groundskeeper.client() as client:
        table_id = id_of(client, table)
        if not is_known:
            return table_id, [], f"{_POSITION}{published.position(client)}"
        new, reached = published.commits_after(client, table_id, int(position), of_services=of_services)
    return table_id, new, f"{_POSITION}{reached}"


def _request(table_id: str, commit: PublishedCommit) -> RunRequest:
    return RunRequest(
        run_key=f"{table_id}/{commit.instant}/{commit.action}",
        tags={"groundskeeper/table": table_id, "groundskeeper/instant": commit.instant},
    )


def _materialization(asset_key: AssetKey, commit: PublishedCommit) -> AssetMaterialization:
    metadata = {
        "instant": commit.instant,
        "action": commit.action,
        "operation": commit.operation,
        "rows_written": commit.rows_written,
    }
    return AssetMaterialization(
        asset_key=asset_key,
        metadata={name: value for name, value in metadata.items() if value is not None},
        tags={"groundskeeper/event": commit.event_id},
    )
