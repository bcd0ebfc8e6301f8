"""`groundskeeper workers`"""

from __future__ import annotations

from groundskeeper_client import calls
from service.cli.client.command import of_service
from service.cli.client.connection import Connection
from service.cli.client.output import Columns, Output, age
from service.model.formatting import count


@of_service
def workers(service: Connection, out: Output) -> None:
    """List the workers, what each one does, and how long the queue of each worker group is."""
    found = service.send(calls.list_workers())
    columns: Columns = {
        "ID": "id",
        "GROUP": "group",
        "STATE": lambda each: each["state"] or "unknown",
        "SLOTS": lambda each: f"{len(each['job_ids'])} of {each['slots'] or '?'}",
        "SEEN": age("last_seen"),
        "MASTER": "master",
        "JOBS": "job_ids",
    }
    empty = "No worker was seen for a day. `groundskeeper worker --service URL` starts one."
    out.listing(found, columns, empty=empty)
    if out.as_json:
        return
    # If a worker is started again and again, each start reports the same error, which is printed once.
    reasons = (each["error"] for each in found["items"] if each["error"])
    for text in dict.fromkeys(f"{each['title']}: {each['detail'].rstrip('.')}. {each['hint']}" for each in reasons):
        out.say(f"Did not start: {text}")
    for name, group in service.send(calls.get_demand())["groups"].items():
        wanted = f"; needs {count(group['wanted_slots'], 'slot')}, has {group['slots']}" if group["queued"] else ""
        out.say(f"{name}: {group['forecast']}{wanted}")
