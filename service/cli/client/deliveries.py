"""The answers to deliveries, as `webhooks` and `notifications` print them."""

from __future__ import annotations

import time
from http import HTTPStatus

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import DeliveryState
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import ExitCode
from service.cli.client.output import Output, ago

# A test is sent only once, and the service waits at most two minutes for the receiver.
_TEST_SECONDS, _LOOK_SECONDS = 150.0, 0.25
_SHOWN_CHARACTERS = 100


def follow_test(service: Connection, out: Output, delivery: Json, what: str) -> None:
    """Waits for the answer to a test, and prints it. Exit code 1 unless the receiver has accepted it."""
    until = time.monotonic() + _TEST_SECONDS
    while delivery["state"] == DeliveryState.PENDING and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        delivery = service.send(calls.get_delivery(delivery["id"]))
    out.answer(delivery, f"{what} is {delivery['state']}: {last_answer(delivery['attempts']) or 'not sent yet'}")
    if delivery["state"] != DeliveryState.DELIVERED:
        raise typer.Exit(ExitCode.FAILED)


def last_answer(attempts: list[Json]) -> str:
    """Returns the answer to the newest attempt: the error or the status. If the receiver refused, also returns the text
    of its answer."""
    if not attempts:
        return ""
    last = max(attempts, key=lambda each: str(each["at"]))
    answer = str(last["error"] or last["status"] or "sent")
    if (last["status"] or 0) >= HTTPStatus.MULTIPLE_CHOICES and last["response"]:
        answer += f" {last['response'][:_SHOWN_CHARACTERS]}"
    return answer + (f"; retry {ago(last['retry_at'])}" if last["retry_at"] else "")
