"""Runs in the virtual environment of Airflow: `airflow_runs.py run DAG_ID CONF`, or another of its functions.

Prints one line of JSON with the states of the tasks and what they returned.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.xcom import XComModel
from airflow.providers_manager import ProvidersManager
from airflow.utils.session import create_session


def run(dag_id: str, conf: str) -> dict:
    """Executes a whole run, with triggers, as `airflow dags test` does."""
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(bundle_path=Path.cwd() / "dags", bundle_name="dags-folder")
    assert not bag.import_errors, bag.import_errors
    sync_bag_to_db(bag, "dags-folder", None)
    dag = bag.get_dag(dag_id)
    ended = dag.test(run_conf=json.loads(conf))
    with create_session() as session:
        tasks = {task.task_id: str(task.state) for task in ended.get_task_instances(session=session)}
        returned = {
            row.task_id: json.loads(row.value) if isinstance(row.value, str) else row.value
            for row in session.query(XComModel).filter_by(dag_id=dag_id, run_id=ended.run_id, key="return_value")
        }
    return {"state": str(ended.state), "tasks": tasks, "returned": returned}


def kill_deferred(job_id: str) -> dict:
    """Cancels the trigger as the triggerer does when a person clears the deferred task."""
    from groundskeeper_client.airflow.triggers import JobTrigger

    trigger = JobTrigger(job_id, "groundskeeper_default", 0.1)
    path, fields = trigger.serialize()
    assert path.rpartition(".")[2] == "JobTrigger"
    asyncio.run(JobTrigger(**fields).on_kill())
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


if __name__ == "__main__":
    calls = {"run": run, "kill_deferred": kill_deferred, "provider": provider}
    print("\n" + json.dumps(calls[sys.argv[1]](*sys.argv[2:])))
