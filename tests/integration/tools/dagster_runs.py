"""Runs in the virtual environment of Dagster, with the definitions of the guide: `dagster_runs.py FILE SERVICE TOKEN`.

Each line of the input is a command, and each line of the output is its result as JSON.
"""

from __future__ import annotations

import json
import runpy
import sys
import tempfile
from typing import Any

from dagster import DagsterInstance, build_sensor_context

FILE, SERVICE, TOKEN = sys.argv[1:]
DEFINITIONS = runpy.run_path(FILE, init_globals={"SERVICE": SERVICE, "TOKEN": TOKEN})["defs"]


def run(instance: DagsterInstance) -> dict[str, Any]:
    ended = DEFINITIONS.get_job_def("upkeep").execute_in_process(instance=instance, raise_on_error=False)
    materialized = {
        event.asset_key.to_user_string(): {
            name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()
        }
        for event in ended.get_asset_materialization_events()
    }
    failures = [
        str(event.event_specific_data.error.cause or event.message)
        for event in ended.all_node_events
        if event.is_step_failure
    ]
    retries = sum(event.is_step_up_for_retry for event in ended.all_node_events)
    return {"success": ended.success, "retries": retries, "materialized": materialized, "failures": failures}


def tick(instance: DagsterInstance, name: str, cursor: str | None) -> dict[str, Any]:
    sensor = DEFINITIONS.get_sensor_def(name)
    resources = DEFINITIONS.resources
    with build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
        result = sensor.evaluate_tick(context)
    requests = [{"key": each.run_key, "tags": dict(each.tags)} for each in result.run_requests]
    events = [
        {
            "asset": each.asset_key.to_user_string(),
            "tags": dict(each.tags),
            **{key: value.value for key, value in each.metadata.items()},
        }
        for each in result.asset_events
    ]
    return {"cursor": result.cursor, "requests": requests, "events": events}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, DagsterInstance.local_temp(home) as own:
        for line in sys.stdin:
            call, *arguments = json.loads(line)
            print("\n" + json.dumps({"run": run, "tick": tick}[call](own, *arguments)), flush=True)
