"""`groundskeeper notifications`"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import SnoozeIn
from service.cli.client import arguments, deliveries
from service.cli.client.command import Yes, command
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.output import Columns, Output, ago

app = typer.Typer(help="Tell people of problems and failed jobs.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the notification")]


@command(app, "add")
def add(
    service: Connection,
    out: Output,
    name: Name,
    type_: Annotated[
        str, typer.Argument(metavar="TYPE", help="slack, teams, pagerduty, alertmanager, email or webhook")
    ],
    *,
    target_file: Annotated[
        Path,
        typer.Option(help='JSON object with the members of the target, such as {"url": "..."}; - is standard input'),
    ],
    event: Annotated[list[str] | None, typer.Option(help="opened, resolved or failed; repeat it. Default: all")] = None,
    severity: Annotated[str | None, typer.Option(help="Lowest severity that is reported. Default: warning")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Kind of problem; repeat it. Default: all")] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="Id of a table, or pattern of names; repeat it. Default: all")
    ] = None,
    most_per_hour: Annotated[int | None, typer.Option(help="Most messages in an hour. Default: 20")] = None,
    quiet: Annotated[
        list[str] | None,
        typer.Option(help="Hours in which only critical problems are reported: 22:00-06:00; repeat it"),
    ] = None,
    report: Annotated[
        str | None, typer.Option(help="Day and hour of a weekly report, such as mon-08. Default: no report")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of the quiet hours and of the report. Default: UTC")
    ] = None,
) -> None:
    """Create a notification, or replace the one of this name. The guide lists the members of each target."""
    target = {"type": type_, **arguments.from_file(target_file, "--target-file")}
    given: dict[str, Any] = {
        "events": event,
        "least_severity": severity,
        "kinds": kind,
        "tables": table,
        "most_per_hour": most_per_hour,
        "quiet_hours": [_window(each) for each in quiet or ()],
        "time_zone": time_zone,
        "report": _weekly(report) if report else None,
    }
    body: Any = {"target": target, **{member: value for member, value in given.items() if value}}
    found = service.send(calls.put_notification(name, body))
    out.answer(found, f"{name} tells {type_}. `groundskeeper notifications test {name}` sends a message.")
    if found["secret"]:
        out.pairs([("secret", found["secret"])])
        out.note("The secret is not shown again.")


@command(app, "list")
def list_notifications(service: Connection, out: Output) -> None:
    """List the notifications, and the error of each that fails."""
    columns: Columns = {
        "NAME": "name",
        "TARGET": "target.type",
        "STATE": _state,
        "FROM": "least_severity",
        "LAST HOUR": "sent_last_hour",
    }
    out.listing(service.send(calls.list_notifications()), columns, empty="There are no notifications.")


@command(app, "show")
def show(service: Connection, out: Output, name: Name) -> None:
    """Show a notification, and the alerts that it has sent."""
    found = service.send(calls.get_notification(name))
    target = found["target"]
    out.details(
        found,
        "name",
        ("target", target["type"]),
        ("address", target.get("url") or target.get("host")),
        "events",
        "least_severity",
        "kinds",
        "tables",
        ("quiet hours", ", ".join(f"{each['start']}-{each['end']}" for each in found["quiet_hours"])),
        ("report", "{day} {hour:02}:00".format(**found["report"]) if found["report"] else ""),
        "time_zone",
        ("state", _state(found)),
        ("snoozed by", found["snoozed_because"]),
        ("last success", ago(found["last_success_at"])),
        ("messages", f"{found['sent_last_hour']} of {found['most_per_hour']} in the last hour"),
        ("reported", found["told"]),
        "waiting",
        ("webhook", found["webhook_id"]),
    )
    if found["alerts"]:
        out.say("")
        rows = [(each["severity"], each["title"], each["problems"], ago(each["began_at"])) for each in found["alerts"]]
        out.table(("SEVERITY", "ALERT", "PROBLEMS", "BEGAN"), rows, empty="")


@command(app, "test")
def test(service: Connection, out: Output, name: Name) -> None:
    """Send a test message, and wait for the answer. Fails unless the receiver accepts it."""
    deliveries.follow_test(service, out, service.send(calls.test_notification(name)), "The message")


@command(app, "snooze")
def snooze(
    service: Connection,
    out: Output,
    name: Name,
    *,
    hours: Annotated[float, typer.Option(min=0, max=8760, help="How long; 0 ends the snooze")] = 8.0,
    reason: Annotated[str | None, typer.Option(help="For others")] = None,
) -> None:
    """Send nothing for a time. After that, problems that are still open are reported."""
    if not hours:
        service.send(calls.wake_notification(name))
        out.say(f"{name} is awake.")
        return
    body = SnoozeIn(until=datetime.now(UTC) + timedelta(hours=hours), reason=reason)
    found = service.send(calls.snooze_notification(name, body))
    out.answer(found, f"{name} is {_state(found)}.")


@command(app, "remove")
def remove(service: Connection, out: Output, name: Name, *, yes: Yes = False) -> None:
    """Delete a notification and its messages. Prints what was deleted."""
    found = service.send(calls.get_notification(name))
    arguments.confirm(f"Delete the notification {name}, which has reported {found['told']} open problems?", yes=yes)
    service.send(calls.delete_notification(name))
    out.answer(found, f"Deleted {name}.")


def _window(text: str) -> Json:
    start, dash, end = text.partition("-")
    if not dash:
        raise CommandError.usage(f"--quiet: {text!r} is not a span of time, such as 22:00-06:00.")
    return {"start": start.strip(), "end": end.strip()}


def _weekly(text: str) -> Json:
    day, dash, hour = text.partition("-")
    if not (dash and hour.isdecimal()):
        raise CommandError.usage(f"--report: {text!r} is not a day and an hour, such as mon-08.")
    return {"day": day.strip(), "hour": int(hour)}


def _state(found: Json) -> str:
    if not found["enabled"]:
        return f"disabled: {found['disabled_because']}"
    until = found["snoozed_until"]
    if until and datetime.fromisoformat(until) > datetime.now(UTC):
        return f"snoozed until {until}"
    return f"failing, since {ago(found['failing_since'])}" if found["failing_since"] else "ok"
