"""Protection against server-side request forgery: a webhook may not reach the service's own network unless a setting
allows it.

The decisive check concerns the address to connect to. It comes after the name was resolved and just before the
connection is made (`service.delivery.network`). An earlier check of the URL does not know this address, and only
reports some errors sooner.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import httpx

from service.delivery.errors import UrlNotAllowedError
from service.model.errors import SettingsError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_MOST_CHARACTERS = 2048
_MAX_PORT = 65_535
# Gateways translate these addresses to the IPv4 address in their last 32 bits (RFC 6052).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_CLOSED: tuple[Network, ...] = (
    # Azure's platform address is formally public, but leads to an internal service on every machine of that cloud.
    ipaddress.IPv4Network("168.63.129.16/32"),
    # Some versions of Python do not consider these networks private: protocol assignments (including the metadata
    # service of a cloud), local-use NAT64 (RFC 8215), and the old site-local range.
    ipaddress.IPv4Network("192.0.0.0/24"),
    ipaddress.IPv6Network("64:ff9b:1::/48"),
    ipaddress.IPv6Network("fec0::/10"),
)


@dataclass(frozen=True)
class Guard:
    """The allowed destinations. `names` are hosts in lower case that are trusted, whatever their addresses are.
    `networks` are ranges of trusted addresses."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[str]) -> Guard:
        """Parses `allowed`: host names, addresses and networks (CIDR). Raises SettingsError for an invalid entry."""
        names, networks = set(), []
        for entry in allowed:
            try:
                networks.append(ipaddress.ip_network(entry.strip("[]"), strict=False))
            except ValueError as error:
                if "/" in entry or ":" in entry:
                    raise SettingsError(
                        f"'{entry}' is neither a host name nor an address nor a network.",
                        hint="GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS takes entries like hooks.corp, 10.1.2.3, 10.0.0.0/8.",
                    ) from error
                names.add(entry.lower().rstrip("."))
        return cls(frozenset(names), tuple(networks))

    def trusts(self, host: str) -> bool:
        """Returns whether the host is trusted by its name, whatever it resolves to."""
        return host.lower().rstrip(".") in self.names

    def refuses(self, address: Address) -> bool:
        """Returns whether connections to this address are forbidden."""
        inner = _unwrapped(address)
        if any(inner in network for network in self.networks):
            return False
        carried = inner.sixtofour if isinstance(inner, ipaddress.IPv6Address) else None
        return not _is_public(inner) or (carried is not None and not _is_public(carried))

    def checked(self, text: str) -> str:
        """Returns the URL unchanged. Raises UrlNotAllowedError."""
        url = parsed_url(text)
        if url.userinfo:
            raise UrlNotAllowedError("The URL contains a user or a password.", hint="Send credentials in `headers`.")
        if url.fragment:
            raise UrlNotAllowedError("The URL has a fragment, which is never sent.")
        if url.scheme not in ("http", "https"):
            raise UrlNotAllowedError("The URL is neither https nor http nor a Kafka topic.")
        self.check_host(url.host, is_encrypted=url.scheme == "https")
        return text

    def check_host(self, host: str, *, is_encrypted: bool) -> None:
        """Checks what can be checked without a DNS look-up. Raises UrlNotAllowedError."""
        literal = _literal(host)
        if literal is not None and self.refuses(literal):
            raise UrlNotAllowedError(f"{literal} is not a public address.")
        if not is_encrypted and not self.trusts(host) and not self._trusts_address(literal):
            raise UrlNotAllowedError(f"Without TLS only allowed hosts may be used, and {host} is not one of them.")

    def _trusts_address(self, address: Address | None) -> bool:
        return address is not None and any(_unwrapped(address) in network for network in self.networks)


def parsed_url(text: str) -> httpx.URL:
    """Returns a URL that a request can be sent to. Raises UrlNotAllowedError."""
    if len(text) > _MOST_CHARACTERS or any(character <= " " or character == "\x7f" for character in text):
        raise UrlNotAllowedError(f"The URL is longer than {_MOST_CHARACTERS} characters, or contains spaces.")
    try:
        url = httpx.URL(text)
        # The resolver encodes the host in the same way. A label that is empty or has more than 63 characters has no
        # encoding.
        url.host.encode("idna")
    except (httpx.InvalidURL, UnicodeError) as error:
        raise UrlNotAllowedError(f"The URL is not valid: {error}.") from error
    if url.port is not None and not 0 < url.port <= _MAX_PORT:
        raise UrlNotAllowedError(f"There is no port {url.port}.")
    if not url.host:
        raise UrlNotAllowedError("The URL names no host.")
    return url


def _literal(host: str) -> Address | None:
    """Returns the address if the host is a literal address, else None. Resolvers accept `127.1`, `0x7f000001` and
    `2130706433`, so this function does too."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _unwrapped(address: Address) -> Address:
    """Returns the IPv4 address that an IPv6 address wraps, else the address itself."""
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
