"""Tests /v1/notifications, acknowledgements, and `groundskeeper notifications`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from service.access.token import Role
from service.db import schema
from service.db.engine import reading
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.integration.receiver import Receiver, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import sqlalchemy as sa
    from fastapi.testclient import TestClient


URL = "https://hooks.slack.com/services/T0/B0/" + "s3cr3t" * 4
SLACK = {"target": {"type": "slack", "url": URL}}
MAIL = {
    "type": "email",
    "host": "smtp.example.com",
    "user": "lake",
    "password": "pass-word",
    "sender": "lake@example.com",
    "to": ["ada@example.com"],
}
PATH = "/v1/notifications/on-call"


def put(client: TestClient, status: int = 201, **wanted: Any) -> dict[str, Any]:
    answer = client.put(PATH, json={**SLACK, **wanted})
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_secrets_are_sealed_and_never_shown(client: TestClient, sqlite: sa.Engine) -> None:
    for target in (SLACK["target"], MAIL, {"type": "pagerduty", "routing_key": "s3cr3t" * 5}):
        put(client, 200 if client.get(PATH).status_code == 200 else 201, target=target)
        answers = [client.get(path).text for path in ("/v1/notifications", PATH, "/v1/webhooks", "/v1/audit")]
        with reading(sqlite) as connection:
            rows = [str(connection.execute(table.select()).all()) for table in (schema.webhooks, schema.audit_entries)]
        for text in (*answers, *rows):
            assert "s3cr3t" not in text
            assert "pass-word" not in text
    put(client, 200)
    target = client.get(PATH).json()["target"]
    assert {name: value for name, value in target.items() if value} == {
        "type": "slack",
        "url": "https://hooks.slack.com/******",
    }


def test_a_put_of_the_shown_notification_changes_nothing(client: TestClient, sqlite: sa.Engine) -> None:
    def stored() -> list[Any]:
        with reading(sqlite) as connection:
            return [connection.execute(each.select()).all() for each in (schema.webhooks, schema.notifications)]

    for target in (
        SLACK["target"],
        MAIL,
        {"type": "webhook", "url": URL.replace("slack", "example"), "headers": {"X": "y"}},
    ):
        made = put(client, 200 if client.get(PATH).status_code == 200 else 201, target=target, tables=["a*"])
        before = stored()
        tag = client.get(PATH).headers["etag"]
        members = ("target", "events", "least_severity", "kinds", "tables", "most_per_hour", "quiet_hours", "time_zone")
        put(client, 200, **{name: made[name] for name in members})
        assert stored() == before
        assert client.get(PATH).headers["etag"] == tag


def test_a_stale_update_is_refused(client: TestClient) -> None:
    put(client)
    tag = client.get(PATH).headers["etag"]
    put(client, 200, target={"type": "slack", "url": URL + "x"})
    assert client.get(PATH).headers["etag"] != tag
    answer = client.put(PATH, json=SLACK, headers={"If-Match": tag})
    assert answer.status_code == 412


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"target": {"type": "slack"}}, "params-invalid"),
        ({"target": {"type": "slack", "url": URL, "host": "x"}}, "params-invalid"),
        ({"target": {"type": "irc", "url": URL}}, "params-invalid"),
        ({"target": {"type": "slack", "url": "https://10.0.0.1/x"}}, "url-not-allowed"),
        ({"target": {"type": "alertmanager", "url": "http://alertmanager:9093"}}, "url-not-allowed"),
        ({"target": {**MAIL, "starttls": False}}, "url-not-allowed"),
        ({"target": {**MAIL, "host": "127.0.0.1"}}, "url-not-allowed"),
        ({"target": {**MAIL, "to": ["ada@example.com\r\nBcc: eve@example.com"]}}, "params-invalid"),
        ({"target": {"type": "webhook", "url": URL, "headers": {"Host": "x"}}}, "header-not-allowed"),
        ({"kinds": ["bad-luck"]}, "params-invalid"),
        ({"events": []}, "params-invalid"),
        ({"most_per_hour": 0}, "params-invalid"),
        ({"quiet_hours": [{"start": "25:00", "end": "01:00"}]}, "params-invalid"),
        ({"time_zone": "Middle/Earth"}, "params-invalid"),
    ],
)
def test_invalid_members_are_refused(client: TestClient, wanted: dict[str, Any], problem: str) -> None:
    answer = client.put(PATH, json={**SLACK, **wanted})
    assert (answer.status_code, answer.json()["type"]) == (422, f"/problems/{problem}")
    assert client.get("/v1/notifications").json()["items"] == []


@pytest.mark.parametrize("host", ["hooks.slack.com", "acme.webhook.office.com", "events.pagerduty.com"])
def test_a_plain_webhook_to_a_chat_is_refused_with_the_hint(client: TestClient, host: str) -> None:
    for scheme in ("http", "https"):
        answer = client.post("/v1/webhooks", json={"url": f"{scheme}://{host}/services/x"})
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/notification-needed")
        assert "/v1/notifications" in answer.json()["hint"]
    made = client.post("/v1/webhooks", json={"url": "https://hooks.example.com/"}).json()
    answer = client.patch(f"/v1/webhooks/{made['id']}", json={"url": f"https://{host}/services/x"})
    assert answer.json()["type"] == "/problems/notification-needed"


def test_a_weekly_report_is_set_shown_and_refused_where_it_would_raise_an_alarm(client: TestClient) -> None:
    slack = {"type": "slack", "url": "https://hooks.slack.com/services/T0/B0/XXXX"}
    wanted = {"target": slack, "report": {"day": "fri", "hour": 17}, "time_zone": "Europe/Berlin", "events": []}
    assert client.put(PATH, json=wanted).status_code == 201
    shown = client.get(PATH).json()
    assert (shown["report"], shown["events"]) == ({"day": "fri", "hour": 17}, [])
    for change in (
        {"target": {"type": "pagerduty", "routing_key": "R" * 32}},
        {"report": {"day": "someday"}},
        {"report": {"day": "mon", "hour": 24}},
        {"report": None},
    ):
        answer = client.put(PATH, json={**wanted, **change})
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/params-invalid")


def test_a_webhook_of_a_notification_is_changed_with_it_only(client: TestClient) -> None:
    made = put(client)
    webhook = f"/v1/webhooks/{made['webhook_id']}"
    assert client.get(webhook).json()["url"] == "slack+https://hooks.slack.com"
    for answer in (client.patch(webhook, json={"url": "https://example.com/"}), client.delete(webhook)):
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/webhook-of-notification")
    assert client.delete(PATH).status_code == 204
    assert client.get(webhook).status_code == 404
    assert client.get(PATH).json()["type"] == "/problems/notification-not-found"


def test_each_call_about_notifications_needs_its_role(
    client: TestClient, make_token: Callable[..., dict[str, str]]
) -> None:
    admin, operator, reader = (make_token(role) for role in (Role.ADMIN, Role.OPERATOR, Role.READER))
    assert client.put(PATH, json=SLACK, headers=operator).status_code == 403
    assert client.put(PATH, json=SLACK, headers=admin).status_code == 201
    assert client.get(PATH, headers=reader).status_code == 200
    assert client.post(f"{PATH}/test", headers=reader).status_code == 403
    snooze = {"until": "2026-01-01T08:00:00Z", "reason": "works"}
    assert client.put(f"{PATH}/snooze", json=snooze, headers=reader).status_code == 403
    shown = client.put(f"{PATH}/snooze", json=snooze, headers=operator).json()
    assert shown["snoozed_until"] == "2026-01-01T08:00:00Z"
    assert shown["snoozed_because"].endswith(": works")
    assert client.delete(f"{PATH}/snooze", headers=operator).status_code == 204
    assert client.delete(PATH, headers=operator).status_code == 403


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("notifications")) as cli:
        yield cli


def test_the_command_line_adds_tests_snoozes_and_removes(cli: CommandLine, tmp_path: Path) -> None:
    with Receiver() as receiver:
        file = tmp_path / "target.json"
        file.write_text(json.dumps({"url": receiver.url}))
        target = ("--target-file", str(file))
        added = cli.run(
            *("notifications", "add", "ops", "slack", *target, "--severity", "critical"),
            *("--report", "mon-08"),
            *("--event", "opened", "--table", "orders*", "--quiet", "22:00-06:00", "--time-zone", "Europe/Berlin"),
        )
        assert "ops tells slack" in added.stdout
        assert "ops" in cli.run("notifications", "list").stdout
        shown = cli.run("notifications", "show", "ops").stdout
        assert "22:00-06:00" in shown
        assert "mon 08:00" in shown
        assert "mon-08" in cli.refused("notifications", "add", "x", "slack", *target, "--report", "monday", code=2)
        assert "/hook" not in shown
        assert "delivered" in cli.run("notifications", "test", "ops").stdout
        assert "blocks" in receiver.received[0].event
        receiver.answer = Reply(404, body=b"no_service")
        assert "no_service" in cli.run("notifications", "test", "ops", code=1).stdout
        assert "snoozed until" in cli.run("notifications", "snooze", "ops", "--hours", "2").stdout
        assert cli.json("notifications", "show", "ops")["snoozed_until"]
        assert "awake" in cli.run("notifications", "snooze", "ops", "--hours", "0").stdout
        assert "Deleted ops" in cli.run("notifications", "remove", "ops", "--yes").stdout
        cli.refused("notifications", "show", "ops", code=3)
