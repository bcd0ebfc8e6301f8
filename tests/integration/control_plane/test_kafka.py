"""Tests webhooks to a Kafka topic with a real broker, and without a broker."""

from __future__ import annotations

import asyncio
import base64
import itertools
import socket
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from standardwebhooks import Webhook as Verifier

from service.delivery import kafka
from service.delivery.guard import Guard
from service.delivery.guarded_loop import GuardedEventLoop
from service.delivery.http import SendLimits, trusted
from service.delivery.kafka import KafkaSender
from service.model.clock import utc_now
from tests.integration.control_plane.databases import MOSTLY_ON_POSTGRESQL
from tests.integration.control_plane.posting import LOCAL, PATIENT, Post, ids
from tests.integration.kafka_broker import PASSWORD, USER, Broker
from tests.integration.receiver import Receiver
from tests.integration.serving import Serving, eventually

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from fastapi.testclient import TestClient

    from service.delivery.webhook import SendResult

Result = TypeVar("Result")

_topics = (f"lake-{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def topic() -> str:
    return next(_topics)


def records(broker: Broker, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
    """Returns all records of a topic, in the order of each partition."""

    async def read() -> list[ConsumerRecord[bytes, bytes]]:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.address)
        await consumer.start()
        try:
            partitions = [TopicPartition(topic, number) for number in range(3)]
            ends = await consumer.end_offsets(partitions)
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
            found: list[ConsumerRecord[bytes, bytes]] = []
            async with asyncio.timeout(60):
                while len(found) < sum(ends.values()):
                    for some in (await consumer.getmany(timeout_ms=500)).values():
                        found += some
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


def headers(record: ConsumerRecord[bytes, bytes]) -> dict[str, str]:
    return {name: value.decode() for name, value in record.headers}


def ids_of_table(found: list[ConsumerRecord[bytes, bytes]], table: int) -> list[str]:
    return [headers(record)["webhook-id"] for record in found if record.key == f"tbl_{table}".encode()]


@contextmanager
def restarted_afterwards(broker: Broker) -> Iterator[None]:
    """Leaves a running broker to later tests, also if the one that kills it fails."""
    try:
        yield
    finally:
        if broker.process.poll() is not None:
            broker.start()


@contextmanager
def silent_server(host: str = "127.0.0.1") -> Iterator[tuple[str, socket.socket]]:
    """Accepts connections, and never answers."""
    with socket.create_server((host, 0)) as server:
        server.settimeout(0.2)
        yield f"{host}:{server.getsockname()[1]}", server


def has_a_caller(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except TimeoutError:
        return False
    return True


def run(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=GuardedEventLoop) as runner:
        return runner.run(work)


def produce(url: str, own: dict[str, str] | None = None, **options: Any) -> SendResult:
    async def send_once() -> SendResult:
        sender = KafkaSender(options.pop("guard", LOCAL), options.pop("limits", PATIENT), **options)
        try:
            return await sender.produce(url, "tbl_1", b"{}", {"webhook-id": "evt_1"}, own or {})
        finally:
            await sender.close()

    return run(send_once())


@MOSTLY_ON_POSTGRESQL
def test_each_table_arrives_in_order_under_its_key_signed_and_recorded(post: Post, broker: Broker, topic: str) -> None:
    post.clock.advance((utc_now() - post.clock()).total_seconds())  # The library uses the real time.
    created = post.webhook(f"kafka://{broker.address}/{topic}", headers={"X-Lake": "eu"})
    wanted = {table: ids(post.publish(60, table)) for table in (1, 2, 3)}
    post.deliver()
    found = records(broker, topic)
    assert {table: ids_of_table(found, table) for table in wanted} == wanted
    assert len({(record.key, record.partition) for record in found}) == 3
    for record in found:
        document = Verifier(created.secret).verify(record.value, headers(record))
        assert document["id"] == headers(record)["webhook-id"]
        assert document["subject"].encode() == record.key
        assert headers(record)["content-type"] == "application/cloudevents+json; charset=utf-8"
        assert headers(record)["X-Lake"] == "eu"
    places = {
        headers(record)["webhook-id"]: f"partition {record.partition}, offset {record.offset}" for record in found
    }
    for delivery in post.deliveries(created.webhook.id):
        [attempt] = post.attempts(delivery.id)
        assert delivery.state == "delivered"
        assert (attempt.answer.status, attempt.answer.error) == (None, None)
        assert attempt.answer.excerpt == places[delivery.event_id]
    assert post.get(created.webhook.id).last_success_at is not None


@MOSTLY_ON_POSTGRESQL
def test_a_broker_that_is_killed_in_the_middle_and_comes_back_has_everything_in_order(
    post: Post, topic: str, broker: Broker
) -> None:
    post.limits = SendLimits(connect=2, read=6, total=6)
    with restarted_afterwards(broker):
        webhook = post.webhook(f"kafka://{broker.address}/{topic}").webhook
        wanted = {table: ids(post.publish(400, table)) for table in (1, 2)}

        def kill_in_the_middle() -> None:
            assert eventually(lambda: "delivered" in post.states(webhook.id), 60)
            broker.kill()

        killing = threading.Thread(target=kill_in_the_middle)
        killing.start()
        post.deliver()
        killing.join()
        states = post.states(webhook.id)
        assert 0 < states.count("delivered") < 800
        assert states.count("pending") == 800 - states.count("delivered")
        assert post.get(webhook.id).failing_since is not None
        first = next(each for each in post.deliveries(webhook.id) if each.state == "pending")
        [attempt] = post.attempts(first.id)
        assert attempt.answer.error
        post.clock.advance(5)
        post.deliver()
        assert "none of the brokers" in (post.attempts(first.id)[1].answer.error or "")
        broker.start()
        post.clock.advance(300)
        post.deliver()
        assert set(post.states(webhook.id)) == {"delivered"}
        assert post.get(webhook.id).failing_since is None
        found = records(broker, topic)
        for table, expected in wanted.items():
            # A record that was written but not acknowledged is in the topic twice, with the same id.
            assert list(dict.fromkeys(ids_of_table(found, table))) == expected


@MOSTLY_ON_POSTGRESQL
def test_a_broker_that_does_not_answer_holds_up_no_other_webhook(post: Post, receiver: Receiver) -> None:
    with silent_server() as (address, _server):
        post.limits = SendLimits(connect=4, read=4, total=4)
        silent = post.webhook(f"kafka://{address}/lake").webhook
        post.webhook(receiver.url)
        published = post.publish(20)
        dispatcher = post.dispatcher()

        async def work() -> float:
            started = time.monotonic()
            while len(receiver.ids) < 20:
                await dispatcher.run_once()
                await asyncio.sleep(0.01)
            took = time.monotonic() - started
            assert post.attempts(post.deliveries(silent.id)[0].id) == []
            await dispatcher.settle()
            return took

        assert post.runner.run(work()) < 4
        assert receiver.ids == ids(published)
        [attempt] = post.attempts(post.deliveries(silent.id)[0].id)
        assert attempt.answer.error
        assert attempt.retry_at is not None


def test_tls_and_a_login_that_is_not_written_into_the_topic(broker: Broker, topic: str) -> None:
    url = f"kafka+ssl://{broker.address_with_login}/{topic}"
    local = {"guard": Guard.of(["localhost", "127.0.0.1"]), "tls": trusted(str(broker.authority))}
    basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    answer = produce(url, {"authorization": f"Basic {basic}", "X-Lake": "eu"}, **local)
    assert answer.is_accepted, answer
    [record] = records(broker, topic)
    assert headers(record) == {"X-Lake": "eu", "webhook-id": "evt_1"}
    wrong = base64.b64encode(f"{USER}:wrong".encode()).decode()
    for own in ({"Authorization": f"Basic {wrong}"}, {"Authorization": "Bearer s3cret"}, {}):
        answer = produce(url, own, limits=SendLimits(connect=2, read=3, total=3), **local)
        assert not answer.is_accepted
        assert answer.error
        assert not any(secret in answer.error for secret in ("s3cret", wrong))
    untrusted = produce(url, {"Authorization": f"Basic {basic}"}, guard=local["guard"])
    misnamed = produce(url.replace("localhost", "127.0.0.1"), {"Authorization": f"Basic {basic}"}, **local)
    assert not untrusted.is_accepted
    assert not misnamed.is_accepted
    assert len(records(broker, topic)) == 1


def test_connections_that_nobody_uses_are_closed_and_opened_again(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_IDLE_SECONDS", 0.5)

    async def work() -> None:
        sender = KafkaSender(LOCAL, PATIENT)
        for number in range(3):
            answer = await sender.produce(f"kafka://{broker.address}/{topic}", "tbl_1", b"{}", {}, {})
            assert answer.excerpt.endswith(f"offset {number}")
            # On a busy machine the connection may be closed already; the answer shows that there was one.
            [slot] = sender._slots.values()
            async with asyncio.timeout(60):
                while slot.producer is not None:
                    await asyncio.sleep(0.05)
        await sender.close()

    run(work())


def test_a_broker_name_that_resolves_to_a_private_address_is_refused_before_anything_is_sent() -> None:
    async def resolve_to_private(_host: str, _port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    with silent_server() as (address, server):
        port = address.rpartition(":")[2]
        answer = produce(f"kafka+ssl://localhost:{port}/lake", guard=Guard(), resolve=resolve_to_private)
        assert "localhost resolves to 127.0.0.1, which no webhook may reach" in (answer.error or "")
        assert not has_a_caller(server)


@pytest.mark.exhaustive
def test_a_broker_cannot_send_us_to_an_address_that_is_not_allowed(topic: str, tmp_path: Path) -> None:
    """The broker reports another address after a restart: neither a new producer nor an open one, which has trusted the
    broker before, connects to it."""

    async def work(broker: Broker, url: str, elsewhere: str) -> tuple[SendResult, SendResult]:
        old, new = KafkaSender(LOCAL, SendLimits(connect=2, read=6, total=6)), KafkaSender(LOCAL, PATIENT)
        try:
            assert (await old.produce(url, "tbl_1", b"{}", {}, {})).is_accepted
            broker.kill()
            broker.advertise(elsewhere)
            await asyncio.to_thread(broker.start)
            refused = await new.produce(url, "tbl_1", b"{}", {"webhook-id": "evt_1"}, {})
            [slot] = old._slots.values()
            async with asyncio.timeout(60):
                while [node.host for node in slot.producer.client.cluster.brokers()] != ["127.0.0.2"]:
                    await slot.producer.client.force_metadata_update()
            broker.kill()  # The kill also ends the reusable connection.
            return refused, await old.produce(url, "tbl_1", b"{}", {}, {})
        finally:
            await new.close()
            await old.close()

    with silent_server("127.0.0.2") as (elsewhere, server), Broker(tmp_path) as broker:
        refused, later = run(work(broker, f"kafka://{broker.address}/{topic}", elsewhere))
        assert "127.0.0.2 is not a public address" in (refused.error or "")
        assert not later.is_accepted
        assert not has_a_caller(server)


def test_a_server_that_talks_nonsense_is_a_failed_attempt() -> None:
    """The server answers a Kafka client as an HTTP server does."""
    with Receiver() as receiver:
        answer = produce(f"kafka://127.0.0.1:{receiver.port}/lake", limits=SendLimits(connect=2, read=3, total=3))
        assert not answer.is_accepted
        assert answer.error


def test_without_the_extra_the_service_runs_and_says_what_is_missing(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    answer = client.post("/v1/webhooks", json={"url": "kafka+ssl://93.184.216.34:9092/lake"})
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/kafka-not-installed")
    assert "pip install 'groundskeeper[kafka]'" in answer.json()["hint"]
    other = client.post("/v1/webhooks", json={"url": "https://93.184.216.34/lake"})
    assert other.status_code == 201
    changed = client.patch(f"/v1/webhooks/{other.json()['id']}", json={"url": "kafka+ssl://93.184.216.34:9092/lake"})
    assert changed.json()["type"] == "/problems/kafka-not-installed"


def test_the_service_writes_to_a_topic(tmp_path: Path, broker: Broker, topic: str) -> None:
    with Serving(tmp_path) as serving:
        created = httpx.post(f"{serving.url}/v1/webhooks", json={"url": f"kafka://{broker.address}/{topic}"}).json()
        sent = httpx.post(f"{serving.url}/v1/webhooks/{created['id']}/test", json={}).json()
        shown = f"{serving.url}/v1/deliveries/{sent['id']}"
        assert eventually(lambda: httpx.get(shown).json()["state"] == "delivered", 60), httpx.get(shown).text
        [record] = records(broker, topic)
        assert (record.key, headers(record)["webhook-id"]) == (b"", sent["event_id"])
        Verifier(created["secret"]).verify(record.value, headers(record))
        assert serving.stop() == 0


def test_a_private_broker_address_is_refused_when_the_webhook_is_created(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        for url in ("kafka+ssl://10.0.0.1:9093/lake", "kafka://127.0.0.1:9092,broker.example:9092/lake"):
            answer = httpx.post(f"{serving.url}/v1/webhooks", json={"url": url})
            assert (answer.status_code, answer.json()["type"]) == (422, "/problems/url-not-allowed")
