"""`groundskeeper webhooks`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import DeliveryState, ReplayIn
from service.cli.client import arguments, deliveries
from service.cli.client.arguments import Since, Until, several
from service.cli.client.command import Limit, Yes, command
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.output import Columns, Output, age, ago
from service.model.formatting import count

app = typer.Typer(help="Send events to URLs and Kafka topics.", no_args_is_help=True)

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Id of the webhook")]

_DELIVERY = "dlv_"


@command(app, "add")
def add(
    service: Connection,
    out: Output,
    target: Annotated[
        str, typer.Argument(metavar="URL", help="https, or a Kafka topic: kafka+ssl://broker:9093/topic")
    ],
    *,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Type of events, such as 'job.*'; repeat it. Default: all")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="Id of a table, or pattern of names; repeat it. Default: all")
    ] = None,
    headers_file: Annotated[
        Path | None, typer.Option(help="JSON object of headers, which may be secret; - is standard input")
    ] = None,
    description: Annotated[str, typer.Option(help="For other users")] = "",
) -> None:
    """Create a webhook and print its secret, once. Receivers check signatures with it."""
    body: Any = {"url": target, "description": description}
    if type_:
        body["types"] = type_
    if table:
        body["tables"] = table
    if headers_file:
        body["headers"] = arguments.from_file(headers_file, "--headers-file")
    answer = service.send(calls.create_webhook(body))
    _show_secret(out, answer)


@command(app, "list")
def list_webhooks(service: Connection, out: Output, *, limit: Limit = 1000) -> None:
    """List the webhooks, and the error of each that fails."""
    columns: Columns = {
        "ID": "id",
        "STATE": _state,
        "PENDING": "pending",
        "DEAD": "dead",
        "TYPES": "types",
        "URL": "url",
    }
    out.listing(service.items(calls.list_webhooks(), limit), columns, empty="There are no webhooks.")


@command(app, "show")
def show(service: Connection, out: Output, webhook: WebhookId) -> None:
    """Show a webhook, and the deliveries that block others. `skip` gives up such a delivery."""
    found = service.send(calls.get_webhook(webhook))
    out.details(
        found,
        "id",
        "url",
        "description",
        "types",
        "tables",
        ("headers", ", ".join(found["headers"])),
        ("state", _state(found)),
        ("last success", ago(found["last_success_at"])),
        "pending",
        "dead",
        ("old secret ends", ago(found["old_secret_until"])),
    )
    if found["blocked"]:
        out.say("")
        rows = [
            (one["id"], one["event_type"], each["waiting_behind"], deliveries.last_answer(one["attempts"]))
            for each in found["blocked"]
            for one in [each["delivery"]]
        ]
        out.table(("BLOCKED", "EVENT", "BEHIND IT", "LAST ANSWER"), rows, empty="")


@command(app, "test")
def test(service: Connection, out: Output, webhook: WebhookId) -> None:
    """Send one event of the type webhook.test, and wait for the answer. Fails unless the receiver accepts it."""
    delivery = service.send(calls.test_webhook(webhook))
    deliveries.follow_test(service, out, delivery, delivery["id"])


@command(app, "enable")
def enable(service: Connection, out: Output, webhook: WebhookId) -> None:
    """Enable a webhook and try its pending deliveries now, also for a webhook that is enabled but fails. `replay` sends
    the events that it missed."""
    found = service.send(calls.enable_webhook(webhook))
    out.answer(found, f"{webhook} is enabled. Deliveries that are sent now: {found['pending']}")


@command(app, "disable")
def disable(service: Connection, out: Output, webhook: WebhookId) -> None:
    """Disable a webhook: its pending deliveries wait, and new events are not queued for it."""
    found = service.send(calls.disable_webhook(webhook))
    out.answer(found, f"{webhook} is {_state(found)}")


@command(app, "rotate-secret")
def rotate_secret(service: Connection, out: Output, webhook: WebhookId) -> None:
    """Give a webhook a new secret and print it, once. For a day messages are signed with both."""
    _show_secret(out, service.send(calls.rotate_webhook_secret(webhook)))


@command(app, "replay")
def replay(
    service: Connection,
    out: Output,
    id_: Annotated[str, typer.Argument(metavar="WEBHOOK|DELIVERY", help="Id of the webhook, or of one delivery")],
    *,
    since: Since = None,
    until: Until = None,
    with_delivered: Annotated[
        bool, typer.Option("--with-delivered", help="Also the events that were delivered")
    ] = False,
) -> None:
    """Send one delivery again; or send all events since a time that a webhook has missed, or whose deliveries were
    given up."""
    if id_.startswith(_DELIVERY):
        if since or until or with_delivered:
            raise CommandError.usage(
                "A single delivery is sent again whatever the time of its event.", "Leave the options out."
            )
        delivery = service.send(calls.replay_delivery(id_))
        out.answer(delivery, f"{id_} is sent again.")
        return
    if since is None:
        raise CommandError.usage("The time is missing.", "Add --since, such as --since 24h.")
    body = ReplayIn(since=since, until=until, with_delivered=with_delivered)
    answer = service.send(calls.replay_webhook(id_, body))
    out.document(answer)
    out.say(f"{count(answer['replayed'], 'event')} will be sent.")
    if not answer["is_complete"]:
        out.note("There are more: repeat the command when these are sent.")


@command(app, "skip")
def skip(
    service: Connection,
    out: Output,
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="Id of the delivery")],
) -> None:
    """Give up a delivery that blocks others. The others are then sent at once. `replay` can send the delivery later."""
    found = service.send(calls.skip_delivery(delivery))
    out.answer(found, f"{delivery} is {found['state']}; the deliveries behind it are sent.")


@command(app, "remove")
def remove(service: Connection, out: Output, webhook: WebhookId, *, yes: Yes = False) -> None:
    """Delete a webhook and its deliveries. Prints what was deleted."""
    found = service.send(calls.get_webhook(webhook))
    arguments.confirm(
        f"Delete the webhook {webhook} to {found['url']}, and its {found['pending']} pending events?", yes=yes
    )
    service.send(calls.delete_webhook(webhook))
    out.answer(found, f"Deleted {webhook}.")


@command(app, "deliveries")
def list_deliveries(
    service: Connection,
    out: Output,
    webhook: WebhookId,
    *,
    state: Annotated[list[DeliveryState] | None, several("in this state")] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
) -> None:
    """List the deliveries to a webhook, newest first, with the last answer of the receiver."""
    page = service.items(calls.list_deliveries(webhook, state=state, since=since, until=until), limit)
    attempts: Columns = {
        "ATTEMPTS": lambda each: len(each["attempts"]),
        "LAST ANSWER": lambda each: deliveries.last_answer(each["attempts"]),
    }
    columns: Columns = {"ID": "id", "EVENT": "event_type", "STATE": "state", "CREATED": age("created_at"), **attempts}
    out.listing(page, columns, empty="There are none.")


def _show_secret(out: Output, webhook: Json) -> None:
    out.details(webhook, "id", "url", "secret")
    out.note("The secret is not shown again.")


def _state(webhook: Json) -> str:
    if not webhook["enabled"]:
        return f"disabled: {webhook['disabled_because']}"
    return f"failing, since {ago(webhook['failing_since'])}" if webhook["failing_since"] else "ok"
