"""Tests `groundskeeper webhooks` with a real service and a real receiver, which fails and then recovers."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from service.access.token import Role
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.integration.receiver import Receiver, Reply
from tests.integration.serving import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    with serving_command_line(tmp_path_factory.mktemp("webhooks")) as cli:
        cli.table("orders")
        yield cli


@pytest.fixture
def webhook(cli: CommandLine, receiver: Receiver) -> Iterator[dict[str, Any]]:
    """A webhook for the events of jobs, one of which `_publish` makes."""
    created: dict[str, Any] = cli.json("webhooks", "add", receiver.url, "--type", "job.*")
    yield created
    cli.run("webhooks", "remove", created["id"], "--yes")


def _publish(cli: CommandLine) -> None:
    cli.json("jobs", "run", "diagnosis", "orders", "--dry-run")


def _deliveries(cli: CommandLine, webhook: str, *options: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = cli.json("webhooks", "deliveries", webhook, *options)["items"]
    return items


def test_a_test_waits_for_the_answer_and_fails_with_the_receiver(
    cli: CommandLine, webhook: dict[str, Any], receiver: Receiver
) -> None:
    assert re.fullmatch(r"dlv_\w+ is delivered: 200\n", cli.run("webhooks", "test", webhook["id"]).stdout)
    receiver.answer = Reply(500)
    assert "is dead: 500" in cli.run("webhooks", "test", webhook["id"], code=1).stdout
    failed = cli.json("webhooks", "test", webhook["id"], code=1)
    assert (failed["state"], failed["attempts"][0]["status"]) == ("dead", 500)
    assert [got.event["type"] for got in receiver.received] == ["webhook.test"] * 3
    cli.refused("webhooks", "test", "wh_nothing", code=3)


def test_a_webhook_is_disabled_and_enabled_again(cli: CommandLine, webhook: dict[str, Any]) -> None:
    shown = cli.run("webhooks", "disable", webhook["id"]).stdout
    assert re.fullmatch(rf"{webhook['id']} is disabled: Ada \(\w+\) disabled it\.\n", shown)
    assert "is disabled" in cli.refused("webhooks", "test", webhook["id"], code=1)
    assert cli.json("webhooks", "disable", webhook["id"])["enabled"] is False
    assert re.search(r"^state +disabled: Ada .*disabled it\.$", cli.run("webhooks", "show", webhook["id"]).stdout, re.M)
    assert "is enabled" in cli.run("webhooks", "enable", webhook["id"]).stdout
    assert cli.json("webhooks", "enable", webhook["id"])["enabled"] is True
    cli.run("webhooks", "test", webhook["id"])
    for command in ("enable", "disable", "show"):
        cli.refused("webhooks", command, "wh_nothing", code=3)


def test_a_new_secret_is_printed_once_and_the_old_one_signs_on(cli: CommandLine, webhook: dict[str, Any]) -> None:
    ended = cli.run("webhooks", "rotate-secret", webhook["id"])
    [secret] = re.findall(r"^secret +(whsec_\S+)$", ended.stdout, re.MULTILINE)
    assert "not shown again" in ended.stderr
    again = cli.json("webhooks", "rotate-secret", webhook["id"])["secret"]
    assert len({webhook["secret"], secret, again}) == 3
    shown = cli.run("webhooks", "show", webhook["id"]).stdout
    assert re.search(r"^old secret ends +in (23 h|1 day)$", shown, re.MULTILINE)
    assert "whsec_" not in shown
    cli.refused("webhooks", "rotate-secret", "wh_nothing", code=3)
    operator = cli.token("operates", Role.OPERATOR)
    cli.refused("webhooks", "rotate-secret", webhook["id"], code=4, GROUNDSKEEPER_TOKEN=operator)


def test_a_delivery_that_holds_others_up_is_shown_skipped_and_sent_later(
    cli: CommandLine, webhook: dict[str, Any], receiver: Receiver
) -> None:
    receiver.answer = Reply(503)
    _publish(cli)
    assert eventually(lambda: cli.json("webhooks", "show", webhook["id"])["blocked"] != [], 60)
    _publish(cli)
    [blocked] = cli.json("webhooks", "show", webhook["id"])["blocked"]
    delivery = blocked["delivery"]["id"]
    shown = cli.run("webhooks", "show", webhook["id"]).stdout
    assert re.search(rf"^{delivery}  job\.queued +1 +503 ok; retry in ", shown, re.MULTILINE), shown
    receiver.answer = Reply()
    assert cli.run("webhooks", "skip", delivery).stdout == f"{delivery} is dead; the deliveries behind it are sent.\n"
    assert eventually(lambda: len(_deliveries(cli, webhook["id"], "--state", "delivered")) == 1, 60)
    assert "is dead" in cli.refused("webhooks", "skip", delivery, code=1)
    states = ("--state", "dead", "--state", "delivered")
    assert [each["state"] for each in _deliveries(cli, webhook["id"], *states)] == ["delivered", "dead"]
    assert [each["id"] for each in _deliveries(cli, webhook["id"], "--state", "dead")] == [delivery]

    assert cli.run("webhooks", "replay", delivery).stdout == f"{delivery} is sent again.\n"
    assert eventually(lambda: len(_deliveries(cli, webhook["id"], "--state", "delivered")) == 2, 60)
    assert cli.json("webhooks", "replay", delivery)["event_id"] == blocked["delivery"]["event_id"]
    cli.refused("webhooks", "replay", delivery, "--since", "1h", code=2)
    for command in ("skip", "replay"):
        cli.refused("webhooks", command, "dlv_nothing", code=3)


def test_missed_events_of_a_webhook_are_sent_from_a_time_or_an_age_on(
    cli: CommandLine, webhook: dict[str, Any], receiver: Receiver
) -> None:
    cli.run("webhooks", "disable", webhook["id"])
    before = datetime.now(UTC)
    _publish(cli)
    assert "is disabled" in cli.refused("webhooks", "replay", webhook["id"], "--since", "1h", code=1)
    cli.run("webhooks", "enable", webhook["id"])
    assert _deliveries(cli, webhook["id"]) == []
    too_early = cli.json("webhooks", "replay", webhook["id"], "--since", "1d", "--until", "12h")
    assert too_early == {"replayed": 0, "is_complete": True}
    assert (
        cli.run("webhooks", "replay", webhook["id"], "--since", before.isoformat()).stdout == "1 event will be sent.\n"
    )
    assert eventually(lambda: len(_deliveries(cli, webhook["id"], "--state", "delivered")) == 1, 60)
    # The time is in this machine's zone. Whole seconds would include events of earlier tests.
    since = before.astimezone().replace(tzinfo=None).isoformat()
    assert cli.json("webhooks", "replay", webhook["id"], "--since", since)["replayed"] == 0
    assert cli.json("webhooks", "replay", webhook["id"], "--since", since, "--with-delivered")["replayed"] == 1
    assert eventually(lambda: len(receiver.received) == 2, 60)
    assert _deliveries(cli, webhook["id"], "--until", "1h") == []
    assert len(_deliveries(cli, webhook["id"], "--since", "1h")) == 1
    assert "--since" in cli.refused("webhooks", "replay", webhook["id"], code=2)
    for wrong in ("yesterday", "7x", "2026-13-01", "99999999d"):
        assert wrong in cli.refused("webhooks", "replay", webhook["id"], "--since", wrong, code=2)
    ended = cli.run("webhooks", "replay", webhook["id"], "--since", "0030-01-01", "--json", code=1)
    assert json.loads(ended.stderr)["status"] == 422
    cli.refused("webhooks", "replay", "wh_nothing", "--since", "1h", code=3)


def test_a_reader_may_look_but_change_nothing(cli: CommandLine, webhook: dict[str, Any]) -> None:
    reader = cli.token("reads", Role.READER)
    cli.run("webhooks", "show", webhook["id"], GROUNDSKEEPER_TOKEN=reader)
    for command in ("test", "enable", "disable", "rotate-secret"):
        cli.refused("webhooks", command, webhook["id"], code=4, GROUNDSKEEPER_TOKEN=reader)
    cli.refused("webhooks", "replay", webhook["id"], "--since", "1h", code=4, GROUNDSKEEPER_TOKEN=reader)
    cli.refused("webhooks", "skip", "dlv_nothing", code=4, GROUNDSKEEPER_TOKEN=reader)
