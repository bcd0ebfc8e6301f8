"""The operator that updates an asset by the commits of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from groundskeeper_client import published
from groundskeeper_client.airflow.bases import AirflowException, BaseOperator
from groundskeeper_client.airflow.hook import GroundskeeperHook
from groundskeeper_client.airflow.triggers import CommitTrigger
from groundskeeper_client.questions import id_of

POSITION = "groundskeeper_position"
"""Name of the member of an asset event's `extra` that has the position after the event's last commit."""


class CommitAssetOperator(BaseOperator):
    """Waits in the triggerer for commits to a table that the asset (in Airflow 2: the dataset) has not announced yet.
    Then updates the asset: one event of the asset announces all these commits, with their instants in `extra`.

    The asset's last event has the position up to which commits are announced, and Airflow stores an event together with
    the success of its task. So no commit is missed or announced twice, as long as the events are kept. Before the first
    event of the asset, commits from `since` on count, by default from the DAG's start date on. Two runs must not be
    active at once (`max_active_runs=1`).

    Returns the commits. If `of_services` is set, the commits of table services count as well.
    """

    template_fields: ClassVar[Sequence[str]] = ("table", "conn_id")

    def __init__(
        self,
        *,
        table: str,
        asset: Any,
        since: datetime | None = None,
        of_services: bool = False,
        conn_id: str = GroundskeeperHook.default_conn_name,
        wait_timeout: timedelta | None = None,
        **more: Any,
    ) -> None:
        super().__init__(inlets=[asset], outlets=[asset], **more)
        self.table = table
        self.asset = asset
        self.since = since
        self.of_services = of_services
        self.conn_id = conn_id
        self.wait_timeout = wait_timeout

    def execute(self, context: Any) -> list[dict[str, Any]]:
        after = _position(context["inlet_events"][self.asset])
        with GroundskeeperHook(self.conn_id).get_conn(patient=True) as client:
            table_id = id_of(client, self.table)
            if after is None:
                after = published.position(client, self.since or self.start_date)
        return self._announced(context, table_id, after)

    def resume(self, context: Any, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Continues after the trigger has fired. All that is needed comes from the trigger's event, because
        `dag.test()` of some versions of Airflow passes nothing else."""
        if "error" in event:
            raise AirflowException(event["error"])
        return self._announced(context, event["table_id"], int(event["after"]))

    def _announced(self, context: Any, table_id: str, after: int) -> list[dict[str, Any]]:
        with GroundskeeperHook(self.conn_id).get_conn(patient=True) as client:
            commits, reached = published.commits_after(client, table_id, after, of_services=self.of_services)
        if not commits:
            self.defer(
                trigger=CommitTrigger(table_id, reached, self.conn_id, of_services=self.of_services),
                method_name="resume",
                timeout=self.wait_timeout,
            )
        latest = commits[-1]
        context["outlet_events"][self.asset].extra = {
            POSITION: reached,
            "table_id": table_id,
            "instant": latest.instant,
            "instants": [commit.instant for commit in commits],
            "rows_written": sum(commit.rows_written or 0 for commit in commits),
        }
        return [commit.as_dict() for commit in commits]


def _position(events: Sequence[Any]) -> int | None:
    """Returns the position in the asset's last event that has a position. Other programs may update the asset, too, and
    their events have none."""
    for event in reversed(events):
        position = (event.extra or {}).get(POSITION)
        if isinstance(position, int):
            return position
    return None
