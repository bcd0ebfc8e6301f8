"""`groundskeeper workers`"""

from __future__ import annotations

from groundskeeper_client import calls
from service.cli.client.command import of_service
from service.cli.client.connection import Connection
from service.cli.client.output import Output, ago
from service.model.formatting import count


@of_service
def workers(service: Connection, out: Output) -> None:
    """List the workers, what each one does, and how long the queue of each worker group is."""
    found = service.send(calls.list_workers())
    out.document(found)
    if out.as_json:
        return
    rows = [
        (
            each["id"],
            each["group"],
            each["state"] or "unknown",
            f"{len(each['job_ids'])} of {each['slots'] or '?'}",
            ago(each["last_seen"]),
            each["master"] or "",
            ", ".join(each["job_ids"]),
        )
        for each in found["items"]
    ]
    out.table(
        ("ID", "GROUP", "STATE", "SLOTS", "SEEN", "MASTER", "JOBS"),
        rows,
        empty="No worker was seen for a day. `groundskeeper worker --service URL` starts one.",
    )
    # If a worker is started again and again, each start reports the same error, which is printed once.
    reasons = (each["error"] for each in found["items"] if each["error"])
    for text in dict.fromkeys(f"{each['title']}: {each['detail'].rstrip('.')}. {each['hint']}" for each in reasons):
        out.say(f"Did not start: {text}")
    for name, group in service.send(calls.get_demand())["groups"].items():
        wanted = f"; needs {count(group['wanted_slots'], 'slot')}, has {group['slots']}" if group["queued"] else ""
        out.say(f"{name}: {group['forecast']}{wanted}")
