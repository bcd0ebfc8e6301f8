"""A sensor that requests a run for each commit of a table's writers."""

from itertools import islice
from typing import Any

from dagster import DefaultSensorStatus, RunRequest, SensorDefinition, SensorEvaluationContext, SensorResult, sensor

from groundskeeper_client import calls
from groundskeeper_client.dagster.resource import GroundskeeperResource
from groundskeeper_client.generated.models import CommitOut
from groundskeeper_client.questions import id_of, is_of_writer

MOST_COMMITS = 1000


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

    `of_services` also counts the commits of table services. If there are more than `MOST_COMMITS` commits between two
    ticks, only the latest get runs.
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
        with groundskeeper.client() as client:
            table_id = id_of(client, table)
            seen = int(context.cursor or 0)
            latest = client.items(calls.list_commits(table_id=table_id, limit=100))
            new: list[CommitOut] = []
            for commit in islice(latest, MOST_COMMITS if context.cursor else 1):
                if commit.id <= seen:
                    break
                new.append(commit)
        if context.cursor is None:
            return SensorResult(cursor=str(new[0].id if new else 0))
        wanted = [commit for commit in reversed(new) if of_services or is_of_writer(commit)]
        return SensorResult(
            run_requests=[_request(table_id, commit) for commit in wanted],
            cursor=str(max([seen, *(commit.id for commit in new)])),
        )

    return commits


def _request(table_id: str, commit: CommitOut) -> RunRequest:
    return RunRequest(
        run_key=f"{table_id}/{commit.requested_time}/{commit.action}",
        tags={"groundskeeper/table": table_id, "groundskeeper/instant": commit.requested_time},
    )
