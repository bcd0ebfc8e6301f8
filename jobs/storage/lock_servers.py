"""Finds out quickly whether one of a lock's servers accepts connections. The clients of lock providers are slow at
that: Curator waits for its connection timeout (15 s by default) at each retry. The errors of these clients also do not
tell a wrong address from a server that is down.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed


def unreachable(servers: Sequence[tuple[str, int]], seconds: float) -> str | None:
    """Connects to all hosts and ports, and returns the reason if all connections fail. Returns None as soon as one
    succeeds, or if there are no hosts."""
    if not servers:
        return None
    # Each host has a thread, which ends after this function, because a name look-up without an answer cannot be
    # cancelled.
    pool = ThreadPoolExecutor(len(servers), thread_name_prefix="lock-server")
    reasons = dict.fromkeys(servers, f"no answer within {seconds:g} s")
    try:
        attempts = {pool.submit(_connect, *server, seconds): server for server in servers}
        for attempt in as_completed(attempts, seconds):
            reason = attempt.result()
            if reason is None:
                return None
            reasons[attempts[attempt]] = reason
    except TimeoutError:
        pass
    finally:
        pool.shutdown(wait=False)
    return "; ".join(f"{host}:{port}: {reason}" for (host, port), reason in reasons.items())


def _connect(host: str, port: int, seconds: float) -> str | None:
    try:
        with socket.create_connection((host, port), seconds):
            return None
    except TimeoutError:
        return f"no answer within {seconds:g} s"
    except (OSError, UnicodeError) as error:  # UnicodeError: not a valid host name
        return str(getattr(error, "strerror", None) or error)
