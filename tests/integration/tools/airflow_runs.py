"""Runs in the virtual environment of Airflow 2 or 3: `airflow_runs.py run DAG_ID CONF`, or another of its functions.

Prints one line of JSON with the states of the tasks and what they returned.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest.mock import patch

from airflow.models import dagrun
from airflow.models.dagrun import DagRun
from airflow.providers_manager import ProvidersManager
from airflow.utils.session import create_session

try:
    from airflow.models.xcom import XComModel
except ImportError:
    from airflow.models.xcom import XCom as XComModel
try:
    from airflow.models.asset import AssetEvent

    AIRFLOW_3 = True
except ImportError:
    from airflow.models.dataset import DatasetEvent as AssetEvent

    AIRFLOW_3 = False

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

DAGS = Path.cwd() / "dags"


def run(dag_id: str, conf: str, patience_seconds: str = "600") -> dict:
    """Executes a whole run, with triggers, as `airflow dags test` does."""
    _set_patience(patience_seconds)
    return _result(_dag(dag_id).test(run_conf=json.loads(conf)))


def run_twice(dag_id: str, patience_seconds: str) -> list:
    """Executes a whole run, clears its tasks as a person does, and executes it on."""
    _set_patience(patience_seconds)
    dag = _dag(dag_id)
    first = dag.test()
    told = _result(first)

    def keep(*_: object, session: Session, dag: object, **__: object) -> DagRun:
        found = session.get(DagRun, first.id)
        found.dag = dag
        found.state = "running"
        session.commit()
        return found

    # `test` clears the run of this date, but would then replace it by a new run.
    where = "dagrun.get_or_create_dagrun" if hasattr(dagrun, "get_or_create_dagrun") else "dag._get_or_create_dagrun"
    date = "logical_date" if "logical_date" in signature(dag.test).parameters else "execution_date"
    with patch(f"airflow.models.{where}", keep):
        return [told, _result(dag.test(**{date: first.logical_date}))]


def _result(ended) -> dict:  # The class differs by version.
    with create_session() as session:
        instances = ended.get_task_instances(session=session)
        tasks = {task.task_id: str(task.state) for task in instances}
        tries = {task.task_id: task.try_number for task in instances}
        of_run = {"dag_id": ended.dag_id, "run_id": ended.run_id, "key": "return_value"}
        returned = {row.task_id: _value(row.value) for row in session.query(XComModel).filter_by(**of_run)}
    return {"state": str(ended.state), "tasks": tasks, "tries": tries, "returned": returned}


def events() -> list:
    """Returns the extras of all events of assets, oldest first."""
    with create_session() as session:
        return [event.extra for event in session.query(AssetEvent).order_by(AssetEvent.id)]


def commit_after(table_id: str, after: str) -> dict:
    """Waits as the triggerer does for a commit after the position, and returns the event of the trigger."""
    from groundskeeper_client.airflow.triggers import CommitTrigger

    return asyncio.run(anext(CommitTrigger(table_id, int(after), "far").run())).payload


def kill_deferred(job_id: str) -> dict:
    """Cancels the trigger as the triggerer does when a person clears the deferred task."""
    from groundskeeper_client.airflow.triggers import JobTrigger

    trigger = JobTrigger(job_id, "groundskeeper_default", 0.1)
    path, fields = trigger.serialize()
    assert path.rpartition(".")[2] == "JobTrigger"
    asyncio.run(JobTrigger(**fields).on_kill())
    return {}


def kill_deferred_in_outage(job_id: str) -> dict:
    """Cancels the trigger during an outage, which lasts longer than Airflow waits, and goes on as the triggerer does.

    The file `killed` then exists. Airflow 2 cancels `run`, here between two tries to reach the service.
    """
    from groundskeeper_client.airflow.triggers import JobTrigger

    async def kill() -> None:
        trigger = JobTrigger(job_id, "far", 60.0)
        if AIRFLOW_3:
            with suppress(TimeoutError):
                await asyncio.wait_for(trigger.on_kill(), 8)
        else:
            # A task that is deleted is no longer deferred.
            of_task = {"dag_id": "deleted", "task_id": "deleted", "run_id": "deleted", "map_index": -1}
            trigger.task_instance = SimpleNamespace(**of_task)
            waiting = asyncio.ensure_future(anext(trigger.run()))
            await asyncio.sleep(8)
            waiting.cancel()
            await asyncio.wait({waiting}, timeout=8)
        Path("killed").touch()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    asyncio.run(kill())
    return {}


def provider() -> dict:
    """Returns the parts of our provider that Airflow has found."""
    manager = ProvidersManager()
    hook = manager.hooks["groundskeeper"]
    from groundskeeper_client.airflow.hook import GroundskeeperHook

    return {
        "version": manager.providers["groundskeeper-client"].version,
        "hook": [hook.hook_name, hook.connection_type],
        "connection": GroundskeeperHook().test_connection(),
    }


def _set_patience(seconds: str) -> None:
    from groundskeeper_client import patience

    patience.PATIENCE_SECONDS = float(seconds)


def _dag(dag_id: str):  # The class differs by version.
    of_bundle = ()
    if AIRFLOW_3:
        from airflow.dag_processing.bundles.manager import DagBundlesManager

        DagBundlesManager().sync_bundles_to_db()
        of_bundle = ("dags-folder", None)
    try:
        from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    except ImportError:  # Airflow before 3.1 needs this.
        from airflow.models.dagbag import DagBag

        bag = DagBag(DAGS, include_examples=False)
        # Airflow notes events only of datasets that its database knows.
        bag.sync_to_db(*of_bundle)
    else:
        bag = DagBag(bundle_path=DAGS, bundle_name="dags-folder")
        sync_bag_to_db(bag, *of_bundle)
    assert not bag.import_errors, bag.import_errors
    return bag.dags[dag_id]


def _value(stored: object) -> object:
    return json.loads(stored) if isinstance(stored, str | bytes) else stored


if __name__ == "__main__":
    calls = (run, run_twice, events, commit_after, kill_deferred, kill_deferred_in_outage, provider)
    called = {call.__name__: call for call in calls}[sys.argv[1]]
    print("\n" + json.dumps(called(*sys.argv[2:])))
