"""Addresses of servers in options and parameters, and the lists of hosts that an administrator allows."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urlsplit

METASTORE_PORT = 9083
GLUE = "AWS Glue"
_GLUE_REGION = re.compile(r"(?:^|\.)glue(?:-fips)?\.([a-z0-9-]+)\.(?:api\.aws|amazonaws\.com(?:\.cn)?)$")
_GLUE_SCHEMES = {"glue": ("https", 443), "glue+http": ("http", 80)}


def address(text: str, port: int) -> tuple[str, int]:
    """Returns host and port of `//host:port` or of a URI; `port` is the default port. Raises ValueError."""
    parts = urlsplit(text)
    if not parts.hostname:
        raise ValueError(f"'{text}' names no host")
    return parts.hostname, parts.port or port


def metastores(uris: str) -> list[tuple[str, int]]:
    """Returns host and port of each of the URIs of a metastore, separated by commas. Raises ValueError."""
    _, port = _GLUE_SCHEMES.get(urlsplit(uris).scheme, ("", METASTORE_PORT))
    return [address(each.strip(), port) for each in uris.split(",") if each.strip()]


def is_glue(uris: str) -> bool:
    """Returns whether the metastore is AWS Glue: `glue://glue.eu-central-1.amazonaws.com`, with the id of another
    account as its path."""
    return urlsplit(uris).scheme in _GLUE_SCHEMES


def glue_endpoint(uri: str) -> tuple[str, str | None]:
    """Returns the endpoint of AWS Glue as URL, and the id of the account if the URI names one."""
    parts = urlsplit(uri)
    return f"{_GLUE_SCHEMES[parts.scheme][0]}://{parts.netloc}", parts.path.strip("/") or None


def glue_region(endpoint: str) -> str | None:
    """Returns the region that the host of an endpoint of AWS Glue names; None for other hosts."""
    match = _GLUE_REGION.search(urlsplit(endpoint).hostname or "")
    return match[1] if match else None


def is_among(hosts: Collection[str], host: str, port: int) -> bool:
    """Returns whether the list has this host, with this port or for any port."""
    named = f"[{host}]" if ":" in host else host
    return bool({host, named, f"{named}:{port}"} & {each.lower() for each in hosts})
