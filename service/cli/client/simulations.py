"""`groundskeeper policy simulate`"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import SimulateIn
from service.cli.client import arguments, policies, yaml_file
from service.cli.client.arguments import Since, Until
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.output import Output
from service.model.clock import utc_now
from service.model.formatting import duration, size

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 56
_DAYS = 14


def _days(text: str) -> timedelta:
    return utc_now() - arguments.moment(text)


def simulate(
    service: Connection,
    out: Output,
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help="Table, or pattern with --pattern")] = None,
    settings: policies.Settings = None,
    *,
    pattern: policies.AsPattern = False,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="JSON or YAML object of a policy; - is standard input")
    ] = None,
    last: Annotated[
        timedelta | None, typer.Option(parser=_days, metavar="AGE", help=f"Up to now; default: {_DAYS}d")
    ] = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """Show what another policy would have done with the commits of the past. Without a TARGET, the policy applies to
    all tables (the pattern `*`)."""
    if last is not None and (since or until):
        raise CommandError.usage("--last already sets the period: leave out --since and --until.")
    if target is not None and "=" in target and not pattern:
        settings, target = [target, *(settings or ())], None
    new: Any = _policy(file) if file else {}
    policies.edit(new, settings)
    if not new:
        raise CommandError.usage("Nothing to simulate: give NAME=VALUE or --file.")
    begin = utc_now() - (last or timedelta(days=_DAYS)) if since is None else since
    is_pattern = pattern or target is None
    wanted = SimulateIn(
        policy=new,
        pattern=(target or "*") if is_pattern else None,
        tables=None if is_pattern or target is None else [arguments.table_of(service, target)["id"]],
        from_=begin,
        to=until,
    )
    found = service.send(calls.simulate_policy(wanted))
    out.document(found)
    show(out, found)


def show(out: Output, found: Json) -> None:
    """Prints a simulation, with the figures of the present policy beside those of the new one."""
    out.say(found["text"])
    if found["caution"]:
        out.note(f"These figures may be wrong: {found['caution']}.")
    if not found["commits"]:
        return
    sides = [("now", found["now"]), ("new", found["new"]), ("really", found["actual"])]
    rows = [(name, *_figures(each)) for name, each in sides]
    out.table(
        ("POLICY", "JOBS", "WORK", "GB-HOURS", "REWRITTEN", "READ OVERHEAD", "KEPT", "LONGEST WAIT"), rows, empty=""
    )
    kinds = list(dict.fromkeys(each["kind"] for _, side in sides for each in side["kinds"]))
    jobs = [{each["kind"]: each["jobs"] for each in side["kinds"]} for _, side in sides]
    out.table(
        ("KIND", "NOW", "NEW", "REALLY"), [(kind, *(each.get(kind, 0) for each in jobs)) for kind in kinds], empty=""
    )
    most = max((point["read_overhead"] for _, side in sides for point in side["points"]), default=1.0)
    out.say(f"Read overhead from {found['from'][:16]} to {found['to'][:16]}, at most {most:.2f}:")
    for name, side in sides:
        out.say(f"{name:>6} {curve([each['read_overhead'] - 1 for each in side['points']], most - 1)}")
    if found["tables"] > len(found["items"]):
        out.note(f"{found['tables']} tables are simulated.")


def _policy(file: Path) -> Json:
    found = yaml_file.read(file)
    if not isinstance(found.value, dict):
        raise found.wrong((), "is not an object of settings")
    return dict(found.value)


def _figures(side: Json) -> tuple[Any, ...]:
    overhead, wait, kept = side["read_overhead"], side["longest_wait"], side["kept"]
    return (
        *(side["jobs"], duration(side["seconds"]), f"{side['gb_hours']:.3g}", size(side["rewritten_bytes"])),
        "" if overhead is None else f"{overhead:.2f}",
        "" if kept is None else f"{100 * kept:.1f} %",
        "" if wait is None else duration(wait),
    )


def curve(values: list[float], most: float) -> str:
    """Returns the values as a line of bars. If there are many values, several neighbours share a bar, which shows the
    largest of them."""
    if not values:
        return "(nothing is known)"
    width = min(_WIDTH, len(values))
    parts = [values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(width)]
    height = len(_BARS) - 1
    return "".join(_BARS[min(height, round(height * max(each) / most)) if most > 0 else 0] for each in parts)
