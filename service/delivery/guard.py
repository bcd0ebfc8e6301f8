"""Where a webhook may go: not into the network that the service stands in, unless a setting says so.

What counts is the address that is connected to, so it is looked at after the name was resolved and right before the
connection is made (`service.delivery.network`). The check of the URL only tells early what can be told early.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from service.model.errors import SettingsError, UrlNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_MOST_CHARACTERS = 2048
# An IPv4 address in the last 32 bits (RFC 6052); gateways translate it back.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_CLOSED: tuple[Network, ...] = (
    # Public by its number, yet inside of every machine of a large cloud (Azure's platform address).
    ipaddress.IPv4Network("168.63.129.16/32"),
    # Not known as closed to every version of Python: protocol assignments (a cloud's metadata among them), NAT64 of
    # one's own (RFC 8215), and the old site-local range.
    ipaddress.IPv4Network("192.0.0.0/24"),
    ipaddress.IPv6Network("64:ff9b:1::/48"),
    ipaddress.IPv6Network("fec0::/10"),
)


@dataclass(frozen=True)
class Guard:
    """`names` are hosts that are trusted wherever they lead, in lower case; `networks` are trusted addresses."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[str]) -> Guard:
        """`allowed` are host names, addresses and networks (CIDR). Raises SettingsError for what is none of them."""
        names, networks = set(), []
        for entry in allowed:
            try:
                networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
            except ValueError as error:
                if "/" in entry or ":" in entry:
                    raise SettingsError(
                        f"'{entry}' is no host name, no address and no network.",
                        hint="GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS takes entries like hooks.corp, 10.1.2.3, 10.0.0.0/8.",
                    ) from error
                names.add(entry.lower().rstrip("."))
        return cls(frozenset(names), tuple(networks))

    def trusts(self, host: str) -> bool:
        """By its name, without looking at where it leads."""
        return host.lower().rstrip(".") in self.names

    def refuses(self, address: Address) -> bool:
        """Whether nobody may connect to it."""
        inner = _unwrapped(address)
        if any(inner in network for network in self.networks):
            return False
        carried = inner.sixtofour if isinstance(inner, ipaddress.IPv6Address) else None
        return not _is_public(inner) or (carried is not None and not _is_public(carried))

    def checked(self, text: str) -> str:
        """The URL as it was given. Raises UrlNotAllowedError."""
        url = _parsed(text)
        if url.userinfo:
            raise UrlNotAllowedError("It carries a user or a password.", hint="Send credentials in `headers`.")
        if url.fragment:
            raise UrlNotAllowedError("It has a fragment, which is never sent.")
        if url.scheme not in ("http", "https"):
            raise UrlNotAllowedError("It is neither https nor http, and no Kafka topic.")
        self.check_host(url.host, is_encrypted=url.scheme == "https")
        return text

    def check_host(self, host: str, *, is_encrypted: bool) -> None:
        """As far as it can be told without a look-up. Raises UrlNotAllowedError."""
        literal = _literal(host)
        if literal is not None and self.refuses(literal):
            raise UrlNotAllowedError(f"{literal} is not a public address.")
        if not is_encrypted and not self.trusts(host) and not self._trusts_address(literal):
            raise UrlNotAllowedError(f"Without TLS only allowed hosts are written to, and {host} is none.")

    def _trusts_address(self, address: Address | None) -> bool:
        return address is not None and any(_unwrapped(address) in network for network in self.networks)


def _parsed(text: str) -> httpx.URL:
    if len(text) > _MOST_CHARACTERS or any(character <= " " or character == "\x7f" for character in text):
        raise UrlNotAllowedError(f"It is longer than {_MOST_CHARACTERS} characters, or has spaces in it.")
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise UrlNotAllowedError(f"It cannot be understood: {error}.") from error
    if not url.host:
        raise UrlNotAllowedError("It names no host.")
    return url


def _literal(host: str) -> Address | None:
    """The address that a host spells out; `127.1`, `0x7f000001` and `2130706433` are addresses to a resolver too."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only wraps."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _CLOSED)
    )
