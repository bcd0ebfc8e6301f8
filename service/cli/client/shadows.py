"""`groundskeeper policy shadow`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from service.cli.client import arguments, policies, simulations
from service.cli.client.connection import Connection
from service.cli.client.failure import CommandError
from service.cli.client.output import Columns, Output, age, ago


def shadow(
    service: Connection,
    out: Output,
    pattern: Annotated[str | None, typer.Argument(metavar="PATTERN", help="Pattern of table names")] = None,
    settings: policies.Settings = None,
    *,
    file: Annotated[Path | None, typer.Option(help="JSON object of a whole policy; - is standard input")] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End the shadow")] = False,
    adopt: Annotated[bool, typer.Option("--adopt", help="Make it the real policy of the pattern")] = False,
) -> None:
    """Try a policy as a shadow, which decides beside the real policy but starts no jobs (NAME=VALUE or --file). Compare
    a shadow with the real policy (PATTERN), or list the shadows."""
    if pattern is None:
        columns: Columns = {"PATTERN": "pattern", "STARTED": age("started_at"), "SETTINGS": policies.described_settings}
        out.listing(service.send(calls.list_shadows()), columns, empty="No policy has a shadow.")
        return
    if stop + adopt + bool(settings or file) > 1:
        raise CommandError.usage("Give either settings, --stop or --adopt.")
    if settings or file:
        new: Any = arguments.from_file(file, "--file") if file else policies.own_of_pattern(service, pattern)[0]
        policies.edit(new, settings)
        answer = service.send(calls.put_shadow(pattern, new))
        out.answer(answer, f"The shadow of {pattern} decides from now on, and starts nothing.")
        return
    if stop:
        service.send(calls.delete_shadow(pattern))
        out.say(f"The shadow of {pattern} has ended.")
        return
    found = service.send(calls.get_shadow(pattern))
    known = found["shadow"]
    if adopt:
        # The precedence is a member of the policy that is sent, but not a setting.
        wanted: Any = {**known["settings"], "precedence": known["precedence"]}
        answer = service.send(calls.put_policy(pattern, wanted))
        service.send(calls.delete_shadow(pattern))
        out.answer(answer, f"The shadow of {pattern} is its policy now.")
        return
    out.document(found)
    out.say(f"{pattern} has had a shadow since {ago(known['started_at'])}: {policies.described_settings(known)}.")
    simulations.show(out, found["comparison"])
    if not found["is_enough"]:
        out.note("A week tells more, because then the shadow has decided on every day of a week.")
