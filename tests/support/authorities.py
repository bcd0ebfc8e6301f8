"""Lets the HTTP clients of a process share one parsed list of certificate authorities."""

from __future__ import annotations

import os
from functools import cache
from typing import Any


def share() -> None:
    """Makes one TLS context for all clients with the default options. Otherwise each client, and each call without a
    client, would read the authorities anew, which takes 20 ms of CPU time."""
    from httpx._transports import default

    make = default.create_ssl_context

    @cache
    def shared_context(trust_env: bool, *_environment: str | None) -> Any:
        return make(trust_env=trust_env)

    def context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> Any:
        if verify is True and cert is None:
            return shared_context(trust_env, *(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")))
        return make(verify, cert, trust_env)

    default.create_ssl_context = context
