"""The demo's two processes: the service with its worker, and the writer. The two processes end with the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from service.demo import ledger

START_SECONDS = 300.0


class DemoFailedError(Exception):
    """A step of the demo failed. The message names the step and the log."""


@contextmanager
def service(folder: Path, port: int) -> Iterator[httpx.Client]:
    """Runs `groundskeeper serve` on this port, with its database and log in `folder`."""
    command = [
        sys.executable,
        "-m",
        "service.cli",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    environment = {
        **os.environ,
        "GROUNDSKEEPER_DATABASE": f"sqlite:///{folder / 'groundskeeper.db'}",
        # The module `story` submits each job itself.
        "GROUNDSKEEPER_AUTOMATIC": "false",
        # The receiver of the webhooks is on this machine.
        "GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS": "127.0.0.1",
    }
    with (
        _running(command, folder / "service.log", environment) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client,
    ):
        _wait_for("the service", process, folder / "service.log", lambda: _is_ready(client))
        yield client


@contextmanager
def writer(folder: Path, base_path: Path, rows: int, callback: str) -> Iterator[Path]:
    """Runs the writer, waits for its first commit and yields its ledger. On exit the writer finishes its batch.

    Hudi posts each commit to the URL `callback`.
    """
    ledger_path, stop, log = folder / "ledger.jsonl", folder / "stop", folder / "writer.log"
    arguments = ["--base", base_path, "--ledger", ledger_path, "--stop", stop, "--rows", rows, "--callback", callback]
    command = [sys.executable, "-m", "service.demo.writer", *map(str, arguments)]
    with _running(command, log, dict(os.environ)) as process:
        _wait_for("the writer", process, log, lambda: bool(ledger.read(ledger_path)))
        try:
            yield ledger_path
        finally:
            stop.touch()
            process.wait(timeout=120)


@contextmanager
def _running(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_for(what: str, process: subprocess.Popen[bytes], log: Path, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_ready():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            how = f"was not ready after {START_SECONDS:.0f} s" if code is None else f"has ended with code {code}"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise DemoFailedError(f"{what} {how}; its log {log} ends with:\n{tail}")
        time.sleep(0.2)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False
