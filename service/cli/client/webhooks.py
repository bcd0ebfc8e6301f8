"""`groundskeeper webhooks`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.client import given
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.output import Output, ago
from service.delivery.webhook import DeliveryState
from service.model.formatting import count

app = typer.Typer(help="Send events to URLs and Kafka topics.", no_args_is_help=True)

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Id of the webhook")]


@app.command("add")
@of_service
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
    body: Json = {"url": target, "description": description}
    if type_:
        body["types"] = type_
    if table:
        body["tables"] = table
    if headers_file:
        body["headers"] = given.from_file(headers_file, "--headers-file")
    answer = service.call("POST", "/v1/webhooks", body=body)
    if out.as_json:
        out.json(answer)
        return
    out.pairs([("id", answer["id"]), ("url", answer["url"]), ("secret", answer["secret"])])
    out.note("The secret is not shown again.")


@app.command("list")
@of_service
def list_webhooks(service: Connection, out: Output, *, limit: Limit = 1000) -> None:
    """List the webhooks, and why one fails."""
    page = service.items("/v1/webhooks", limit=limit)
    if out.as_json:
        out.json(page)
        return
    rows = [
        (each["id"], _state(each), each["pending"], each["dead"], ", ".join(each["types"]), each["url"])
        for each in page["items"]
    ]
    out.table(("ID", "STATE", "PENDING", "DEAD", "TYPES", "URL"), rows, empty="There are no webhooks.")


@app.command("remove")
@of_service
def remove(
    service: Connection,
    out: Output,
    webhook: WebhookId,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
) -> None:
    """Delete a webhook and its deliveries. Prints what was deleted."""
    found = service.get(f"/v1/webhooks/{webhook}")
    given.confirm(
        f"Delete the webhook {webhook} to {found['url']}, and its {found['pending']} pending events?", yes=yes
    )
    service.call("DELETE", f"/v1/webhooks/{webhook}")
    if out.as_json:
        out.json(found)
    else:
        out.say(f"Deleted {webhook}.")


@app.command("deliveries")
@of_service
def deliveries(
    service: Connection,
    out: Output,
    webhook: WebhookId,
    *,
    state: Annotated[DeliveryState | None, typer.Option(help="Only in this state")] = None,
    limit: Limit = 20,
) -> None:
    """List the deliveries to a webhook, newest first, with the last answer of the receiver."""
    page = service.items(f"/v1/webhooks/{webhook}/deliveries", limit=limit, state=state.value if state else None)
    if out.as_json:
        out.json(page)
        return
    rows = [
        (
            each["id"],
            each["event_type"],
            each["state"],
            ago(each["created_at"]),
            len(each["attempts"]),
            _last_answer(each["attempts"]),
        )
        for each in page["items"]
    ]
    out.table(("ID", "EVENT", "STATE", "CREATED", "ATTEMPTS", "LAST ANSWER"), rows, empty="There are none.")


@app.command("enable")
@of_service
def enable(service: Connection, out: Output, webhook: WebhookId) -> None:
    """Enable a webhook, and try all that waits at once, also if it was enabled."""
    answer = service.call("POST", f"/v1/webhooks/{webhook}/enable")
    if out.as_json:
        out.json(answer)
    else:
        out.say(f"{webhook} is enabled; pending events: {answer['pending']}.")


@app.command("replay")
@of_service
def replay(
    service: Connection,
    out: Output,
    webhook: WebhookId,
    *,
    since: Annotated[str, typer.Option(help="From this time on, such as 2026-01-01T00:00:00Z")],
    until: Annotated[str | None, typer.Option(help="To this time. Default: now")] = None,
    with_delivered: Annotated[
        bool, typer.Option("--with-delivered", help="Also events that were delivered already")
    ] = False,
) -> None:
    """Send events that were given up, or happened before the webhook was created or while it was disabled."""
    body: Json = {"since": since, "with_delivered": with_delivered}
    if until is not None:
        body["until"] = until
    answer = service.call("POST", f"/v1/webhooks/{webhook}/replay", body=body)
    if out.as_json:
        out.json(answer)
        return
    out.say(f"{count(answer['replayed'], 'event')} will be sent.")
    if not answer["is_complete"]:
        out.note("There are more: repeat the command.")


def _state(webhook: Json) -> str:
    if not webhook["enabled"]:
        return f"disabled: {webhook['disabled_because']}"
    return f"failing, since {ago(webhook['failing_since'])}" if webhook["failing_since"] else "ok"


def _last_answer(attempts: list[Json]) -> str:
    if not attempts:
        return ""
    last = max(attempts, key=lambda each: str(each["at"]))
    retry = f"; retry {ago(last['retry_at'])}" if last["retry_at"] else ""
    return (str(last["error"] or last["status"] or "sent")) + retry
