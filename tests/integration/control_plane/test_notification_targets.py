"""Tests each target of a notification against a receiver that checks the limits and the schema that the target
publishes."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from jsonschema import Draft202012Validator

from service.db.engine import writing
from service.delivery import delivery_store, outbox, webhook_store
from service.delivery.message import Entry, Fact, Message, MessageState
from service.delivery.targets import registry
from service.delivery.targets.registry import Target
from service.delivery.webhook_events import notification as event_of
from service.events.event import EventType
from service.notifications import notifications as flows
from tests.integration.certificate import self_signed
from tests.integration.control_plane.posting import LOCAL, Post
from tests.integration.receiver import Received, Receiver, Reply
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.notifications.notification import Notification

pytestmark = pytest.mark.mostly_sqlite

AT = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
TEXT = {"type": "string", "minLength": 1}

_PLAIN = {"type": "object", "properties": {"type": {"const": "plain_text"}, "text": {**TEXT, "maxLength": 150}}}
_MARKDOWN = {"type": "object", "properties": {"type": {"const": "mrkdwn"}, "text": {**TEXT, "maxLength": 3000}}}
_FIELD = {**_MARKDOWN, "properties": {**_MARKDOWN["properties"], "text": {**TEXT, "maxLength": 2000}}}
SLACK = {
    "type": "object",
    "required": ["text", "blocks"],
    "additionalProperties": False,
    "properties": {
        "text": {**TEXT, "maxLength": 40_000},
        "blocks": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {
                "oneOf": [
                    {
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "header"}, "text": {**_PLAIN, "required": ["type", "text"]}},
                    },
                    {
                        "required": ["type", "text"],
                        "properties": {
                            "type": {"const": "section"},
                            "text": {**_MARKDOWN, "required": ["type", "text"]},
                        },
                    },
                    {
                        "required": ["type", "fields"],
                        "properties": {
                            "type": {"const": "section"},
                            "fields": {"type": "array", "minItems": 1, "maxItems": 10, "items": _FIELD},
                        },
                    },
                    {
                        "required": ["type", "elements"],
                        "properties": {
                            "type": {"const": "context"},
                            "elements": {"type": "array", "maxItems": 10, "items": _MARKDOWN},
                        },
                    },
                ]
            },
        },
    },
}
_TEXT_BLOCK = {
    "type": "object",
    "required": ["type", "text"],
    "additionalProperties": False,
    "properties": {
        "type": {"const": "TextBlock"},
        "text": TEXT,
        "wrap": {"type": "boolean"},
        "separator": {"type": "boolean"},
        "size": {"enum": ["default", "small", "medium", "large", "extraLarge"]},
        "weight": {"enum": ["default", "lighter", "bolder"]},
        "color": {"enum": ["default", "dark", "light", "accent", "good", "warning", "attention"]},
        "fontType": {"enum": ["default", "monospace"]},
    },
}
_FACT_SET = {
    "type": "object",
    "required": ["type", "facts"],
    "additionalProperties": False,
    "properties": {
        "type": {"const": "FactSet"},
        "separator": {"type": "boolean"},
        "facts": {
            "type": "array",
            "minItems": 1,
            "items": {
                "required": ["title", "value"],
                "additionalProperties": False,
                "properties": {"title": TEXT, "value": TEXT},
            },
        },
    },
}
TEAMS = {
    "type": "object",
    "required": ["type", "attachments"],
    "properties": {
        "type": {"const": "message"},
        "attachments": {
            "type": "array",
            "minItems": 1,
            "items": {
                "required": ["contentType", "content"],
                "properties": {
                    "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                    "contentUrl": {"type": "null"},
                    "content": {
                        "required": ["type", "$schema", "version", "body"],
                        "properties": {
                            "type": {"const": "AdaptiveCard"},
                            "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
                            "version": {"enum": ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"]},
                            "body": {"type": "array", "minItems": 1, "items": {"oneOf": [_TEXT_BLOCK, _FACT_SET]}},
                            "actions": {
                                "type": "array",
                                "items": {
                                    "required": ["type", "title", "url"],
                                    "properties": {"type": {"const": "Action.OpenUrl"}},
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
PAGERDUTY = {
    "type": "object",
    "required": ["routing_key", "event_action", "dedup_key"],
    "properties": {
        "routing_key": {"type": "string", "minLength": 32, "maxLength": 32},
        "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
        "dedup_key": {**TEXT, "maxLength": 255},
        "payload": {
            "required": ["summary", "source", "severity"],
            "properties": {
                "summary": {**TEXT, "maxLength": 1024},
                "source": TEXT,
                "severity": {"enum": ["critical", "error", "warning", "info"]},
                "timestamp": {"type": "string", "format": "date-time"},
            },
        },
        "links": {"type": "array", "items": {"required": ["href"]}},
    },
    "if": {"properties": {"event_action": {"const": "trigger"}}},
    "then": {"required": ["payload"]},
}
_LABELS = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
    "additionalProperties": {"type": "string"},
}
ALERTMANAGER = {
    "type": "array",
    "items": {
        "required": ["labels"],
        "additionalProperties": False,
        "properties": {
            "labels": {**_LABELS, "required": ["alertname"], "minProperties": 1},
            "annotations": _LABELS,
            "startsAt": {"type": "string", "format": "date-time"},
            "endsAt": {"type": "string", "format": "date-time"},
            "generatorURL": {"type": "string", "format": "uri"},
        },
    },
}
SCHEMAS = {
    Target.SLACK: SLACK,
    Target.TEAMS: TEAMS,
    Target.PAGERDUTY: PAGERDUTY,
    Target.ALERTMANAGER: ALERTMANAGER,
}
MOST_BYTES = {Target.TEAMS: 28 * 1024, Target.PAGERDUTY: 512 * 1024}
ACCEPTED = {Target.TEAMS: 202, Target.PAGERDUTY: 202}


def service_of(target: Target) -> Receiver:
    """Starts a service that refuses what its documentation does not allow."""

    def answer(got: Received) -> Reply:
        if len(got.body) > MOST_BYTES.get(target, len(got.body)):
            return Reply(413)
        errors = [str(each.message) for each in Draft202012Validator(SCHEMAS[target]).iter_errors(json.loads(got.body))]
        return Reply(400, body=errors[0].encode()[:500]) if errors else Reply(ACCEPTED.get(target, 200))

    return Receiver(answer)


def options_of(target: Target, url: str) -> dict[str, Any]:
    base = url.removesuffix("/hook") if target is Target.ALERTMANAGER else url
    return {"url": base, **({"routing_key": "0123456789abcdef" * 2} if target is Target.PAGERDUTY else {})}


def a_message(state: MessageState = MessageState.OPEN, text: str = "It is wrong.", **more: Any) -> Message:
    entries = tuple(
        Entry(f"orders_{number} {text}", text, text, "https://k.example.com/#/tables/tbl_1") for number in range(10)
    )
    given = {"consequence": text, "remedy": text, "entries": entries, "count": 1000, **more}
    ended_at = AT if state is MessageState.RESOLVED else None
    title = f"It is wrong: {text}"
    return Message(
        "groundskeeper-1",
        state,
        "lock-awaited",
        "critical",
        title,
        AT,
        ended_at=ended_at,
        link="https://k.example.com",
        **given,
    )


def put(post: Post, target: Target, options: dict[str, Any]) -> Notification:
    return flows.put(post.database, LOCAL, "on-call", target=target, options=options, settings={}).notification


def send(post: Post, notification: Notification, *messages: Message) -> list[str]:
    """Sends messages, and returns the states of all deliveries."""
    with writing(post.engine) as connection:
        webhook = webhook_store.get(connection, notification.webhook_id)
        now = post.clock()
        events = [
            event_of(EventType.NOTIFICATION_SENT, webhook, "on-call", each, at=now, nonce=str(number))
            for number, each in enumerate(messages)
        ]
        new = outbox.write(connection, events)
        delivery_store.enqueue(connection, [(webhook.id, each) for each in new], now=now)
    post.deliver()
    return post.states(webhook.id)


HOSTILE = ["<!channel> & <https://evil.example.com|here> " * 500, "\ud800 \x00 ü" * 900, "`*_~|" * 2000]


@pytest.mark.parametrize("target", SCHEMAS)
@pytest.mark.parametrize("text", ["It is wrong.", *HOSTILE], ids=["short", "markup", "odd", "marks"])
def test_each_message_is_within_the_published_limits(post: Post, target: Target, text: str) -> None:
    with service_of(target) as receiver:
        notification = put(post, target, options_of(target, receiver.url))
        states = [MessageState.OPEN, MessageState.FAILED, MessageState.RESOLVED]
        found = send(post, notification, *(a_message(state, text) for state in states))
        answers = [post.attempts(each.id)[0].answer for each in post.deliveries(notification.webhook_id)]
        assert found == ["delivered"] * 3, answers
        assert b"990" in receiver.received[0].body
        if target is Target.SLACK:
            header, *others = receiver.received[0].event["blocks"]
            # Slack does not read mentions in plain text.
            assert header["text"]["type"] == "plain_text"
            assert "<!channel>" not in json.dumps([receiver.received[0].event["text"], others])


def a_report(text: str) -> Message:
    facts = tuple(Fact(f"Figure {number} {text}", text) for number in range(10))
    few = a_message(text=text).entries[:5]
    return a_message(MessageState.REPORT, text, facts=facts, consequence="", remedy="", entries=few)


@pytest.mark.parametrize("target", [Target.SLACK, Target.TEAMS])
@pytest.mark.parametrize("text", ["50 GiB", *HOSTILE], ids=["short", "markup", "odd", "marks"])
def test_a_report_is_within_the_published_limits(post: Post, target: Target, text: str) -> None:
    with service_of(target) as receiver:
        notification = put(post, target, options_of(target, receiver.url))
        found = send(post, notification, a_report(text))
        answers = [post.attempts(each.id)[0].answer for each in post.deliveries(notification.webhook_id)]
        assert found == ["delivered"], answers
        assert b"Figure 9" in receiver.received[0].body


def test_a_report_by_mail_has_its_figures_in_two_columns(post: Post, mail: MailServer) -> None:
    post.tls = mail.trusted
    notification = put(post, Target.EMAIL, mail_options(mail.port))
    facts = (Fact("Freed", "50 GiB in 3 files"), Fact("Log files merged", "800"))
    assert send(post, notification, a_message(MessageState.REPORT, facts=facts)) == ["delivered"]
    [(_, content)] = mail.box.mails
    got = message_from_bytes(content, policy=policy.default)
    assert got["Subject"].startswith("It is wrong")
    body = got.get_body()
    assert body is not None
    lines = body.get_content().splitlines()
    assert {"Freed             50 GiB in 3 files", "Log files merged  800"} <= set(lines)


@pytest.mark.parametrize("target", SCHEMAS)
def test_a_test_message_opens_no_alert(post: Post, target: Target) -> None:
    with service_of(target) as receiver:
        notification = put(post, target, options_of(target, receiver.url))
        flows.test(post.database, "on-call")
        post.deliver()
        assert set(post.states(notification.webhook_id)) == {"delivered"}
        assert len(receiver.received) == (2 if target.keeps_alerts else 1)


def test_pagerduty_triggers_acknowledges_and_resolves_by_one_key(post: Post) -> None:
    with service_of(Target.PAGERDUTY) as receiver:
        notification = put(post, Target.PAGERDUTY, options_of(Target.PAGERDUTY, receiver.url))
        send(post, notification, *map(a_message, (MessageState.OPEN, MessageState.ACKNOWLEDGED, MessageState.RESOLVED)))
        first, known, last = (got.event for got in receiver.received)
        assert set(post.states(notification.webhook_id)) == {"delivered"}
        assert [each["event_action"] for each in (first, known, last)] == ["trigger", "acknowledge", "resolve"]
        assert {each["dedup_key"] for each in (first, known, last)} == {"groundskeeper-1"}
        assert known.keys() == last.keys() == {"routing_key", "event_action", "dedup_key"}
        assert first["payload"]["custom_details"]["more"] == 990
        assert first["links"] == [{"href": "https://k.example.com", "text": "Open in Groundskeeper"}]


def test_alertmanager_gets_an_end_in_time_and_the_same_labels(post: Post) -> None:
    with service_of(Target.ALERTMANAGER) as receiver:
        notification = put(post, Target.ALERTMANAGER, options_of(Target.ALERTMANAGER, receiver.url))
        send(post, notification, a_message(), a_message(MessageState.RESOLVED))
        assert {got.path for got in receiver.received} == {"/api/v2/alerts"}
        [first], [last] = (json.loads(got.body) for got in receiver.received)
        assert first["labels"] == last["labels"]
        assert first["startsAt"] < first["endsAt"]
        assert last["endsAt"] == "2026-01-01T00:00:00Z"


def test_a_receiver_that_repeats_a_secret_does_not_reveal_it(post: Post) -> None:
    with Receiver(Reply(400, body=f"bad key {'0123456789abcdef' * 2}".encode())) as receiver:
        notification = put(post, Target.PAGERDUTY, options_of(Target.PAGERDUTY, receiver.url))
        send(post, notification, a_message())
        [delivery] = post.deliveries(notification.webhook_id)
        assert post.attempts(delivery.id)[0].answer.excerpt == "bad key ******"


def test_a_webhook_gets_the_signed_event(post: Post, receiver: Receiver) -> None:
    notification = put(post, Target.WEBHOOK, {"url": receiver.url, "headers": {"Authorization": "Bearer mine"}})
    send(post, notification, a_message())
    [got] = receiver.received
    assert got.headers["authorization"] == "Bearer mine"
    assert got.headers["webhook-signature"].startswith("v1,")
    assert got.event["type"] == "notification.sent"
    assert got.event["data"]["message"]["count"] == 1000


@dataclass
class Mailbox:
    """A mail server that asks for STARTTLS and a log-in."""

    refuses: str | None = None
    mails: list[tuple[list[str], bytes]] = field(default_factory=list)

    async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:  # noqa: N802
        if self.refuses:
            return self.refuses
        self.mails.append((envelope.rcpt_tos, envelope.content))
        return "250 OK"


def _log_in(_server: object, _session: object, _envelope: object, _mechanism: str, data: object) -> AuthResult:
    return AuthResult(success=data == LoginPassword(b"lake", b"pass-word"), handled=False)


@dataclass
class MailServer:
    box: Mailbox
    port: int
    trusted: ssl.SSLContext


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[MailServer]:
    certificate = self_signed("localhost", tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.public, certificate.private)
    box = Mailbox()
    controller = Controller(
        box,
        hostname="127.0.0.1",
        port=free_port(),
        tls_context=tls,
        require_starttls=True,
        auth_required=True,
        authenticator=_log_in,
    )
    controller.start()
    yield MailServer(box, controller.port, ssl.create_default_context(cafile=certificate.public))
    controller.stop()


def mail_options(port: int, **more: Any) -> dict[str, Any]:
    return {
        "host": "localhost",
        "port": port,
        "user": "lake",
        "password": "pass-word",
        "sender": "lake@example.com",
        "to": ["ada@example.com", "bob@example.com"],
        **more,
    }


@pytest.mark.parametrize(
    "text", ["It is wrong.\r\nBcc: eve@example.com", *HOSTILE], ids=["break", "markup", "odd", "marks"]
)
def test_mail_goes_by_starttls_and_log_in_as_one_thread(post: Post, mail: MailServer, text: str) -> None:
    post.tls = mail.trusted
    notification = put(post, Target.EMAIL, mail_options(mail.port))
    assert send(post, notification, a_message(text=text), a_message(MessageState.RESOLVED)) == ["delivered"] * 2, [
        post.attempts(each.id) for each in post.deliveries(notification.webhook_id)
    ]
    (to, content), (_, other) = mail.box.mails
    assert to == ["ada@example.com", "bob@example.com"]
    got, end = (message_from_bytes(each, policy=policy.default) for each in (content, other))
    assert got["Bcc"] is None
    assert got["Subject"].startswith("Critical: It is wrong")
    assert end["Subject"].startswith("Resolved: It is wrong")
    assert got["References"] == end["References"]
    assert got["Message-ID"] != end["Message-ID"]
    body = got.get_body()
    assert body is not None
    assert "and 990 more" in body.get_content()
    assert max(map(len, content.split(b"\r\n"))) <= 998


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"password": "wrong"}, "the server answered 535"),
        # Without TLS the server offers no log-in. The address is allowed, the name is not.
        ({"starttls": False, "host": "127.0.0.1"}, "AUTH extension not supported"),
    ],
)
def test_the_refusal_of_a_mail_server_is_shown(
    post: Post, mail: MailServer, change: dict[str, Any], error: str
) -> None:
    post.tls = mail.trusted
    notification = put(post, Target.EMAIL, mail_options(mail.port, **change))
    assert send(post, notification, a_message()) == ["pending"]
    [delivery] = post.deliveries(notification.webhook_id)
    assert error in str(post.attempts(delivery.id)[0].answer.error)
    assert mail.box.mails == []


def test_mail_is_not_sent_to_a_server_with_an_untrusted_certificate(post: Post, mail: MailServer) -> None:
    notification = put(post, Target.EMAIL, mail_options(mail.port))
    assert send(post, notification, a_message()) == ["pending"]
    [delivery] = post.deliveries(notification.webhook_id)
    assert "certificate" in str(post.attempts(delivery.id)[0].answer.error)
    assert mail.box.mails == []


def test_every_target_declares_its_members() -> None:
    assert set(registry.MEMBERS) == set(Target)
    assert {name for members in registry.MEMBERS.values() for name in members} >= registry.SECRETS
