"""`groundskeeper tables poll`: requests a poll, and prints its result."""

from __future__ import annotations

import time

from groundskeeper_client import calls
from service.cli.client import arguments
from service.cli.client.arguments import TableName
from service.cli.client.command import of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output, ago

# Time limits: until the poll begins, and until a poll that finds changes has recorded them. The last value is the
# interval of the checks.
_BEGIN_SECONDS, _END_SECONDS, _LOOK_SECONDS = 10.0, 2.0, 0.1


@of_service
def poll(service: Connection, out: Output, table: TableName) -> None:
    """Have a table polled now, and print the result. If the table could not be read before, this shows at once whether
    it can be read again."""
    found = arguments.table_of(service, table)
    before = _state(service, found["id"])
    answer = service.send(calls.poll_table(found["id"]))
    out.document(answer)
    if out.as_json:
        return
    until = time.monotonic() + _BEGIN_SECONDS
    has_begun = isinstance(before, str)
    while _has_seen(now := _state(service, found["id"])) == _has_seen(before):
        if not has_begun and _next_poll_at(now) != _next_poll_at(before):
            has_begun, until = True, time.monotonic() + _END_SECONDS
        if time.monotonic() > until:
            break
        time.sleep(_LOOK_SECONDS)
    out.say(f"{found['name']}: {_described(before, now, has_begun=has_begun)}")
    out.note(f"What is wrong with it: groundskeeper problems --table {found['id']}")


def _described(before: Json | str, now: Json | str, *, has_begun: bool) -> str:
    if isinstance(now, str):
        return f"no poll has succeeded yet. {now}"
    if error := now["watch"]["error"]:
        return f"the poll failed. {error}"
    commit = f"the last commit is {now['last_commit']}, {ago(now['last_commit_at'])}" if now["last_commit"] else "empty"
    if _has_seen(now) != _has_seen(before):
        return f"the poll found changes; {commit}."
    return f"the poll found nothing new; {commit}." if has_begun else "the poll has not begun yet."


def _has_seen(state: Json | str) -> object:
    return state if isinstance(state, str) else [state["watch"][name] for name in ("looked_at", "error", "failures")]


def _next_poll_at(state: Json | str) -> object:
    return state if isinstance(state, str) else state["watch"]["next_poll_at"]


def _state(service: Connection, table_id: str) -> Json | str:
    """Returns the snapshot; while there is none, how many polls have failed, and why."""
    try:
        return service.send(calls.get_snapshot(table_id, partitions=1))
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND:
            raise
        return str(error.document["detail"])
