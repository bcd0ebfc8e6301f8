"""Tests which addresses and URLs a webhook may have."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.delivery.errors import UrlNotAllowedError
from service.delivery.guard import Guard
from service.model.errors import SettingsError

CLOSED = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",  # The metadata service of most clouds.
    "168.63.129.16",  # The metadata service of Azure.
    "100.100.100.200",  # The metadata service of Alibaba, in a range for carrier-grade NAT.
    "192.0.0.192",  # The metadata service of Oracle.
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",  # The metadata service of AWS.
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001::1",
    "::127.0.0.1",
]
OPEN = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("text", CLOSED)
def test_an_address_that_is_not_public_is_refused(text: str) -> None:
    assert Guard().refuses(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", OPEN)
def test_a_public_address_is_let_pass(text: str) -> None:
    assert not Guard().refuses(ipaddress.ip_address(text))


@given(st.ip_addresses(v=4))
def test_an_address_is_as_private_inside_an_address_of_ipv6(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    wrapped = [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
    ]
    if Guard().refuses(address):
        assert all(Guard().refuses(each) for each in wrapped)


def test_settings_allow_networks_and_addresses_but_nothing_beside_them() -> None:
    guard = Guard.of(["10.1.0.0/16", "127.0.0.1", "[::1]", "hooks.corp"])
    assert not guard.refuses(ipaddress.ip_address("10.1.2.3"))
    assert not guard.refuses(ipaddress.ip_address("::ffff:10.1.2.3"))
    assert not guard.refuses(ipaddress.ip_address("::1"))
    assert guard.refuses(ipaddress.ip_address("10.2.0.1"))
    assert guard.refuses(ipaddress.ip_address("127.0.0.2"))
    assert guard.trusts("HOOKS.corp.")
    assert not guard.trusts("a.hooks.corp")
    with pytest.raises(SettingsError):
        Guard.of(["10.0.0.0/99"])


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "nonsense",
        "https://user:password@example.com/",
        "https://example.com/#fragment",
        "https://example.com/a b",
        "https://example.com/\r\nX: y",
        "https://example.com/" + "a" * 2048,
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "http://127.0.0.1/",
    ],
)
def test_an_impossible_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(UrlNotAllowedError):
        Guard().checked(url)


@pytest.mark.parametrize(
    "url", ["https://example.com", "https://example.com:8443/a?b=c", "https://bücher.example/x", "https://8.8.8.8/"]
)
def test_an_https_url_of_a_public_host_is_taken_as_it_is(url: str) -> None:
    assert Guard().checked(url) == url


def test_http_is_for_allowed_hosts_only() -> None:
    guard = Guard.of(["hooks.corp", "10.0.0.0/8"])
    for url in ("http://hooks.corp:8080/x", "http://10.1.2.3/", "https://hooks.corp/"):
        assert guard.checked(url) == url
    for url in ("http://other.corp/", "http://192.168.0.1/", "https://192.168.0.1/"):
        with pytest.raises(UrlNotAllowedError):
            guard.checked(url)
