"""Tests the URLs of Kafka topics for webhooks, and their credentials."""

from __future__ import annotations

import base64

import pytest

from service.delivery.errors import HeaderNotAllowedError, UrlNotAllowedError
from service.delivery.guard import Guard
from service.delivery.kafka import login
from service.delivery.kafka_url import Broker, KafkaUrl, parsed
from service.delivery.transport import checked

INSIDE = Guard.of(["kafka.corp", "10.0.0.0/8", "fd00::/8"])


def test_brokers_topic_and_encryption_are_read() -> None:
    assert parsed("kafka+ssl://b-1.example:9094,[fd00::1],10.0.0.1:1/lake.events_1-a") == KafkaUrl(
        (Broker("b-1.example", 9094), Broker("fd00::1", 9092), Broker("10.0.0.1", 1)), "lake.events_1-a", True
    )
    assert not parsed("kafka://b/t").is_encrypted
    assert [str(broker) for broker in parsed("kafka://[fd00::1]:1,b/t").brokers] == ["[fd00::1]:1", "b:9092"]


@pytest.mark.parametrize(
    "url",
    [
        "kafka://b:9092",
        "kafka://b:9092/",
        "kafka:///topic",
        "kafka://b:9092/a/b",
        "kafka://b:9092/..",
        "kafka://b:9092/a b",
        f"kafka://b:9092/{'t' * 250}",
        "kafka://b:0/topic",
        "kafka://b:65536/topic",
        "kafka://b:9092,/topic",
        "kafka://b c/topic",
        "kafka://b/topic?x=1",
        "kafka://b/topic#x",
        "kafka://user:password@b/topic",
        "kafka://b/topic\n",
        "kafka+ssl://" + "b," * 1100 + "b/topic",
    ],
)
def test_an_invalid_address_of_a_topic_is_refused(url: str) -> None:
    with pytest.raises(UrlNotAllowedError) as refused:
        parsed(url)
    assert "password@" not in refused.value.detail


@pytest.mark.parametrize(
    "url",
    [
        "kafka+ssl://127.0.0.1:9093/t",
        "kafka+ssl://[::ffff:127.0.0.1]:9093/t",
        "kafka+ssl://2130706433:9093/t",
        "kafka+ssl://0x7f.1/t",
        "kafka+ssl://broker.example:9093,192.168.0.1:9093/t",
        "kafka://broker.example:9092/t",
        "kafka://8.8.8.8:9092/t",
        "kafka://kafka.corp:9092,broker.example:9092/t",
    ],
)
def test_a_broker_inside_or_a_public_one_without_tls_is_refused(url: str) -> None:
    with pytest.raises(UrlNotAllowedError):
        checked(url, INSIDE)


@pytest.mark.parametrize(
    "url", ["kafka+ssl://broker.example:9093/t", "kafka://kafka.corp:9092,10.1.2.3:9092,[fd00::1]:9092/t"]
)
def test_a_public_broker_with_tls_and_allowed_ones_without_are_let_pass(url: str) -> None:
    assert checked(url, INSIDE) == url


def test_basic_credentials_log_in() -> None:
    encoded = base64.b64encode(b"keeper:a:b").decode()
    assert login({"X-A": "1", "authorization": f"basic {encoded}"}) == {
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "keeper",
        "sasl_plain_password": "a:b",
    }
    assert login({"X-A": "1"}) == {}


@pytest.mark.parametrize("value", ["Bearer s3cret", "Basic s3cret!", "Basic czNjcmV0", "Basic", "Basic /w=="])
def test_other_credentials_are_refused_without_being_repeated(value: str) -> None:
    with pytest.raises(HeaderNotAllowedError) as refused:
        login({"Authorization": value})
    assert "s3cret" not in str(refused.value)
