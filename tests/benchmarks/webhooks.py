"""Measures how many webhooks a second one service sends, how long after the commit they arrive, and the resources that
this takes.

    python tests/benchmarks/webhooks.py [--per-second 500] [--seconds 60] [--receivers 10] [--hanging 1] [--tables 50]

The run has three processes: a real `groundskeeper serve` on SQLite, local receivers, and a process that writes events
at an even pace, as the observation of tables does. `--per-second` counts deliveries. The hanging receivers take every
message and never answer. The delay runs from the moment before the event's row is written until its receipt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from service.model.clock import utc_now
from tests.integration.control_plane.posting import publish
from tests.integration.serving import Serving

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def receive(ports: Connection, count: int, hanging: int, stop: Event, results: Connection) -> None:
    """Sends back the ports at once. When `stop` is set, sends the delays in seconds by event id for each receiver."""

    async def serve() -> None:
        delays: list[dict[str, float]] = [{} for _ in range(count)]
        servers = []
        for number in range(count):

            async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int = number) -> None:
                while head := await reader.readuntil(b"\r\n\r\n"):
                    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                    event = json.loads(await reader.readexactly(length))
                    now = utc_now()
                    if number < hanging:
                        await asyncio.sleep(3600)
                    delay = (now - datetime.fromisoformat(event["time"])).total_seconds()
                    delays[number].setdefault(event["id"], delay)
                    writer.write(_OK)

            async def handle_until_closed(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Any = handle
            ) -> None:
                try:
                    await handle(reader, writer)
                except (asyncio.IncompleteReadError, ConnectionError):
                    writer.close()

            servers.append(await asyncio.start_server(handle_until_closed, "127.0.0.1", 0))
        ports.send([server.sockets[0].getsockname()[1] for server in servers])
        while not stop.is_set():
            await asyncio.sleep(0.1)
        results.send(delays[hanging:])
        os._exit(0)  # Also closes the connections that never got an answer.

    asyncio.run(serve())


def cpu_and_memory(pid: int) -> tuple[float, float]:
    """Returns the seconds of CPU so far, and the peak of resident memory in MiB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


def produce(service: Serving, events_per_second: float, seconds: float, tables: int) -> int:
    """Writes events at an even pace, ten times a second; returns their number."""
    started = time.monotonic()
    written = 0
    while (elapsed := time.monotonic() - started) < seconds:
        due = int(elapsed * events_per_second) - written
        if due:
            publish(service.engine, written, due, tables)
            written += due
        time.sleep(0.1)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-second", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--receivers", type=int, default=10)
    parser.add_argument("--hanging", type=int, default=1)
    parser.add_argument("--tables", type=int, default=50)
    options = parser.parse_args()

    context = multiprocessing.get_context("spawn")
    ports, theirs = context.Pipe()
    results, for_results = context.Pipe()
    stop = context.Event()
    receivers = context.Process(target=receive, args=(theirs, options.receivers, options.hanging, stop, for_results))
    receivers.start()
    with (
        tempfile.TemporaryDirectory() as folder,
        # Only a poll of the database shows what another process writes.
        Serving(Path(folder), WEBHOOK_POLL_SECONDS="0.1") as service,
    ):
        for port in ports.recv():
            url = f"http://127.0.0.1:{port}/"
            httpx.post(f"{service.url}/v1/webhooks", json={"url": url}).raise_for_status()
        answering = options.receivers - options.hanging
        cpu, _ = cpu_and_memory(service.process.pid)
        started = time.monotonic()
        written = produce(service, options.per_second / answering, options.seconds, options.tables)
        produced = time.monotonic() - started
        time.sleep(3)
        cpu_after, memory = cpu_and_memory(service.process.pid)
        stop.set()
        delays = results.recv()
    receivers.join()
    arrived = sorted(delay for receiver in delays for delay in receiver.values())
    print(
        json.dumps(
            {
                "deliveries_per_second": round(len(arrived) / produced, 1),
                "delivered": len(arrived),
                "of": written * answering,
                "p50_ms": round(statistics.median(arrived) * 1000),
                "p99_ms": round(arrived[int(len(arrived) * 0.99)] * 1000),
                "most_ms": round(arrived[-1] * 1000),
                "service_cpu_seconds_per_second": round((cpu_after - cpu) / produced, 2),
                "service_peak_mib": round(memory),
            }
        )
    )


if __name__ == "__main__":
    main()
