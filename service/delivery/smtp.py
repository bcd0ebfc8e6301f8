"""Sends mail by SMTP, with STARTTLS."""

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes
from urllib.parse import urlsplit

import httpcore

from service.delivery.guard import Guard
from service.delivery.http import EXCERPT_CHARACTERS, SendLimits, trusted
from service.delivery.network import GuardedNetwork, Resolve
from service.delivery.webhook import SendResult

_AT_ONCE = 4


class _Connection(smtplib.SMTP):
    """Connects to the addresses that were checked; TLS still verifies the name."""

    def __init__(self, addresses: Sequence[str], limits: SendLimits) -> None:
        super().__init__(timeout=limits.read)
        self._addresses = addresses

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002
        for address in self._addresses[:-1]:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError:
                continue
        return socket.create_connection((self._addresses[-1], port), timeout)


class SmtpSender:
    """Sends each mail over a new connection, in a thread of the sender's pool."""

    def __init__(
        self,
        guard: Guard,
        limits: SendLimits | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._limits = limits or SendLimits()
        self._tls = tls or trusted()
        self._network = GuardedNetwork(guard, resolve)
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="smtp")

    async def send(self, url: str, body: bytes, login: Mapping[str, str]) -> SendResult:
        """Raises nothing but cancellation: errors are results too."""
        started, split = time.monotonic(), urlsplit(url)
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self._limits.total):
                host, port = split.hostname or "", split.port or 587
                connection = _Connection(await self._network.checked(host, port), self._limits)
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._threads, self._exchange, connection, (host, port), body, login)
            return SendResult(time.monotonic() - started, is_acknowledged=True)
        except TimeoutError:
            why = f"no answer within {self._limits.total:g} s"
        except smtplib.SMTPRecipientsRefused as error:
            why = f"the server refuses {', '.join(sorted(error.recipients))}"
        except smtplib.SMTPResponseException as error:
            answer = error.smtp_error
            text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
            why = f"the server answered {error.smtp_code} {text}"
        except (smtplib.SMTPException, httpcore.NetworkError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
        finally:
            if connection is not None:
                # If the thread still waits for the server, its call ends with an error.
                connection.close()
        why = why.replace("\0", "").encode(errors="replace").decode()
        return SendResult(time.monotonic() - started, error=why[:EXCERPT_CHARACTERS])

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _exchange(
        self, connection: _Connection, server: tuple[str, int], body: bytes, login: Mapping[str, str]
    ) -> None:
        # `starttls` verifies this name.
        connection._host = server[0]  # type: ignore[attr-defined]
        connection.connect(*server)
        connection.ehlo()
        if login["starttls"] == "yes":
            connection.starttls(context=self._tls)
            connection.ehlo()
        if login["user"]:
            connection.login(login["user"], login["password"])
        mail = message_from_bytes(body)
        connection.sendmail(str(mail["From"]), [each.strip() for each in str(mail["To"]).split(",")], body)
        connection.quit()
