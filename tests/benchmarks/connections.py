"""Measures messages per second over our reused connections, and over httpcore's own pool with the same check of
addresses.

python tests/benchmarks/connections.py --receivers 1
python tests/benchmarks/connections.py --receivers 200 --at-once 64
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpcore

from service.delivery.guard import Guard
from service.delivery.http import Sender, SendLimits, trusted
from service.delivery.network import GuardedNetwork

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

BODY = b"x" * 1000
LOCAL = Guard.of(["127.0.0.1"])
ROUNDS = 3


def receive(receivers: int, ports: Connection) -> None:
    """Starts this number of receivers, each on its own port, which answer until the process is ended."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        writer.close()

    async def serve() -> None:
        servers = [await asyncio.start_server(answer, "127.0.0.1", 0) for _ in range(receivers)]
        ports.send([server.sockets[0].getsockname()[1] for server in servers])
        await asyncio.Event().wait()

    asyncio.run(serve())


class Ours:
    def __init__(self) -> None:
        self._sender = Sender(LOCAL, SendLimits())

    async def post(self, url: str) -> None:
        answer = await self._sender.post(url, BODY, {"Content-Type": "application/json"}, {})
        assert answer.status == 200, answer

    async def close(self) -> None:
        await self._sender.close()


class Pool:
    def __init__(self) -> None:
        network = GuardedNetwork(LOCAL)
        self._pool = httpcore.AsyncConnectionPool(ssl_context=trusted(), max_connections=None, network_backend=network)

    async def post(self, url: str) -> None:
        headers = [("Host", "127.0.0.1"), ("Content-Type", "application/json")]
        async with self._pool.stream("POST", url, headers=headers, content=BODY) as answer:
            async for _ in answer.aiter_stream():
                pass
            assert answer.status == 200, answer

    async def close(self) -> None:
        await self._pool.aclose()


async def send(by: Ours | Pool, urls: list[str], at_once: int) -> tuple[float, float]:
    """Returns messages per second, and milliseconds of CPU time per message."""
    count, started, cpu = len(urls), time.perf_counter(), time.process_time()

    async def work() -> None:
        while urls:
            await by.post(urls.pop())

    await asyncio.gather(*(work() for _ in range(at_once)))
    result = count / (time.perf_counter() - started), (time.process_time() - cpu) / count * 1000
    await by.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--receivers", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--messages", type=int, default=2000)
    given = parser.parse_args()
    here, there = multiprocessing.Pipe()
    receiver = multiprocessing.Process(target=receive, args=(given.receivers, there), daemon=True)
    receiver.start()
    ports = here.recv()
    urls = [f"http://127.0.0.1:{ports[number % len(ports)]}/hook" for number in range(given.messages)]
    found: dict[str, list[tuple[float, float]]] = {"Ours": [], "Pool": []}
    for _ in range(ROUNDS):
        for kind in (Ours, Pool):
            found[kind.__name__].append(asyncio.run(send(kind(), list(urls), given.at_once)))
    for name, results in found.items():
        rate, cpu = (statistics.median(values) for values in zip(*results, strict=True))
        print(f"{name}: {rate:.0f} messages/s, {cpu:.2f} ms CPU each")
    receiver.terminate()


if __name__ == "__main__":
    main()
