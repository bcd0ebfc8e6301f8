"""`groundskeeper report`"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import GroupBy
from service.cli.client.arguments import OwnerOption, Since, TagOption, Until
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection
from service.cli.client.failure import CommandError
from service.cli.client.output import Output
from service.model.clock import utc_now
from service.model.formatting import size

_HOUR = 3600


@of_service
def report(
    service: Connection,
    out: Output,
    *,
    week: Annotated[bool, typer.Option("--week", help="The last seven days, which is the default")] = False,
    since: Since = None,
    until: Until = None,
    by: Annotated[GroupBy, typer.Option(help="How the figures are grouped")] = GroupBy.TABLE,
    owner: OwnerOption = None,
    tag: TagOption = None,
    text: Annotated[bool, typer.Option("--text", help="Print short plain text, as for a message")] = False,
    limit: Limit = 20,
) -> None:
    """Sum up the work of the service in a period, and its cost."""
    if week and (since or until):
        raise CommandError.usage("--week already sets the period: leave out --since and --until.")
    begin = utc_now() - timedelta(days=7) if week else since
    found = service.send(calls.get_report(since=begin, until=until, by=by, owner=owner, tag=tag, limit=limit))
    out.document(found)
    if text:
        out.say(found["text"])
        return
    rows = [
        (
            *(name, figures["succeeded"], figures["failed"], size(figures["freed_bytes"])),
            *(int(figures["log_files"]), f"{int(figures['files_before'])} -> {int(figures['files_after'])}"),
            *(f"{figures['seconds'] / _HOUR:.1f}", f"{figures['gb_seconds'] / _HOUR:.1f}"),
            "" if figures["cost"] is None else f"{figures['cost']:.2f}",
        )
        for name, figures in [
            *((each["name"] or each["key"] or "(none)", each["figures"]) for each in found["groups"]),
            ("(total)", found["total"]),
        ]
    ]
    headings = (found["by"].upper(), "DONE", "FAILED", "FREED", "LOGS MERGED", "FILES", "HOURS", "GB-HOURS", "COST")
    out.table(headings, rows if found["groups"] else [], empty="Nothing ran in this period.")
    if found["left_out"]:
        out.note(f"There are {found['left_out']} more; --limit lists more.")
