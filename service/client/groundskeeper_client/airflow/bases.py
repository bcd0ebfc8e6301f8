"""The classes of Airflow that the provider extends, in Airflow 2.10 to 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger

try:
    from airflow.sdk import BaseHook, BaseOperator, BaseSensorOperator
    from airflow.sdk.bases.sensor import PokeReturnValue
except ImportError:  # Airflow 2
    from airflow.hooks.base import BaseHook
    from airflow.models import BaseOperator
    from airflow.sensors.base import BaseSensorOperator, PokeReturnValue
try:
    from airflow.sdk.exceptions import AirflowException
except ImportError:  # before Airflow 3.1
    from airflow.exceptions import AirflowException

__all__ = [
    "AirflowException",
    "BaseHook",
    "BaseOperator",
    "BaseSensorOperator",
    "BaseTrigger",
    "PokeReturnValue",
    "connection_of",
    "is_ended_by_a_person",
]

TRIGGERS_ARE_KILLED = hasattr(BaseTrigger, "on_kill")
"""Whether the triggerer itself informs a trigger that a person has ended its task. Airflow 3.3 does."""


async def connection_of(conn_id: str) -> Any:
    """Returns a connection. Runs in the triggerer's event loop."""
    from asgiref import sync

    if hasattr(BaseHook, "aget_connection"):  # Airflow 3.1
        return await BaseHook.aget_connection(conn_id)
    return await sync.sync_to_async(BaseHook.get_connection)(conn_id)


async def is_ended_by_a_person(task_instance: Any) -> bool:
    """Returns whether a trigger was cancelled because a person has cleared or ended its task, and not because the
    triggerer stops. Triggers need this function before Airflow 3.3."""
    from asgiref import sync

    state: str | None = await sync.sync_to_async(_state)(task_instance)
    return state != "deferred"


def _state(task_instance: Any) -> str | None:
    names = ("dag_id", "task_id", "run_id", "map_index")
    of_task: Mapping[str, Any] = {name: getattr(task_instance, name) for name in names}
    try:
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
    except ImportError:
        return _state_in_database(of_task)
    states = RuntimeTaskInstance.get_task_states(
        dag_id=of_task["dag_id"],
        task_ids=[of_task["task_id"]],
        run_ids=[of_task["run_id"]],
        map_index=of_task["map_index"],
    )
    found: dict[str, str | None] = states.get(of_task["run_id"], {})
    return next(iter(found.values()), None)


def _state_in_database(of_task: Mapping[str, Any]) -> str | None:
    """Returns the state in Airflow 2, whose triggerer has access to the database."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.query(TaskInstance.state).filter_by(**of_task).scalar()
    return None if found is None else str(found)
