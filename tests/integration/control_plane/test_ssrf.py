"""A webhook cannot reach the service's own network. The connections are real, and the test resolves the names."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import pytest

from service.delivery.guard import Guard
from service.delivery.http import Sender, SendLimits, trusted
from tests.integration.certificate import self_signed
from tests.integration.receiver import Receiver, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from service.delivery.webhook import SendResult

LIMITS = SendLimits(connect=5.0, read=10.0, total=10.0)


def send(
    url: str,
    guard: Guard | None = None,
    resolve: Callable[[str], Sequence[str]] | None = None,
    tls: ssl.SSLContext | None = None,
    times: int = 1,
) -> SendResult:
    """Sends this number of times, and returns the last result. `resolve` plays the name server."""

    async def answer_of(host: str, _port: int) -> Sequence[str]:
        assert resolve is not None
        return resolve(host)

    async def post() -> SendResult:
        sender = Sender(guard or Guard(), LIMITS, tls=tls, resolve=answer_of if resolve else None)
        try:
            for _ in range(times):
                answer = await sender.post(url, b"{}", {"webhook-id": "evt_1"}, {})
            return answer
        finally:
            await sender.close()

    return asyncio.run(post())


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "127.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
    ],
)
def test_no_spelling_of_loopback_leads_to_a_local_server(receiver: Receiver, host: str) -> None:
    answer = send(f"http://{host}:{receiver.port}/")
    assert answer.status is None
    assert "which no webhook may reach" in (answer.error or "")
    assert receiver.received == []


def test_the_same_server_is_reached_where_the_settings_allow_it(receiver: Receiver) -> None:
    for guard in (Guard.of(["127.0.0.0/8"]), Guard.of(["localhost"])):
        assert send(f"http://localhost:{receiver.port}/", guard).status == 200
    assert len(receiver.received) == 2
    assert receiver.received[0].headers["host"] == f"localhost:{receiver.port}"


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["169.254.169.254"], ["fd00:ec2::254"], ["93.184.216.34", "127.0.0.1"], ["::ffff:10.0.0.1"]],
)
def test_a_public_name_that_resolves_to_a_private_address_is_refused_before_anything_is_sent(
    addresses: list[str],
) -> None:
    with Receiver() as receiver:
        answer = send(f"http://innocent.example:{receiver.port}/", resolve=lambda _: addresses)
        assert "which no webhook may reach" in (answer.error or "")
        assert receiver.received == []


def test_a_name_that_changes_between_the_check_and_the_connection_gains_nothing(receiver: Receiver) -> None:
    """Each connection makes one look-up, and connects to its result."""
    asked: list[str] = []

    def rebind(host: str) -> list[str]:
        asked.append(host)
        # Nobody listens at the first address. A network for documentation would be refused; this one is allowed below.
        return ["127.0.0.9"] if len(asked) == 1 else ["127.0.0.1"]

    guard = Guard.of(["127.0.0.9/32"])
    first = send(f"http://rebinding.example:{receiver.port}/", guard, rebind)
    assert asked == ["rebinding.example"]
    assert first.status is None
    assert "which no webhook may reach" not in (first.error or "")
    second = send(f"http://rebinding.example:{receiver.port}/", guard, rebind)
    assert "which no webhook may reach" in (second.error or "")
    assert receiver.received == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_recorded_and_not_followed(status: int) -> None:
    with Receiver() as inside, Receiver(Reply(status, {"Location": inside.url})) as outside:
        answer = send(outside.url, Guard.of(["127.0.0.1"]))
        assert answer.status == status
        assert (len(outside.received), len(inside.received)) == (1, 0)


def test_the_environment_names_no_proxy(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert send(receiver.url, Guard.of(["127.0.0.1"])).status == 200
        assert (len(receiver.received), len(proxy.received)) == (1, 0)


def test_a_cookie_that_a_receiver_sets_is_not_sent_back() -> None:
    with Receiver(Reply(headers={"Set-Cookie": "a=b"})) as receiver:
        send(receiver.url, Guard.of(["127.0.0.1"]), times=2)
        assert [got.headers.get("cookie") for got in receiver.received] == [None, None]


def test_the_certificate_is_that_of_the_name_although_the_address_is_connected_to(tmp_path: Path) -> None:
    certificate = self_signed("hooks.example", tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate.public, certificate.private)
    with Receiver(tls=server) as receiver:
        guard = Guard.of(["127.0.0.1"])
        here = ["127.0.0.1"]
        good = send(f"https://hooks.example:{receiver.port}/", guard, lambda _: here, trusted(str(certificate.public)))
        assert good.status == 200
        assert receiver.received[0].headers["host"] == f"hooks.example:{receiver.port}"
        other = send(f"https://other.example:{receiver.port}/", guard, lambda _: here, trusted(str(certificate.public)))
        unknown = send(f"https://hooks.example:{receiver.port}/", guard, lambda _: here)
        for answer in (other, unknown):
            assert answer.status is None
            assert "CERTIFICATE_VERIFY_FAILED" in (answer.error or "")
        assert len(receiver.received) == 1
