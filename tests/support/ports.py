"""Free ports of 127.0.0.1, and servers that begin to listen there."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_START_SECONDS = 180.0


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def free_port() -> int:
    return free_ports(1)[0]


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def await_start(process: subprocess.Popen[bytes], is_serving: Callable[[], bool], log: Path | None = None) -> None:
    """Waits until the server serves; fails with the end of its log."""
    deadline = time.monotonic() + _START_SECONDS
    while not is_serving():
        said = log.read_text()[-4000:] if log else process.args
        assert process.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.05)


@contextmanager
def listening(command: Sequence[object], port: int, *, log: Path | None = None) -> Iterator[None]:
    """Runs a program for the block, which begins when something listens at the port."""
    with log.open("wb") if log else nullcontext(subprocess.DEVNULL) as output:
        process = subprocess.Popen([*map(str, command)], stdout=output, stderr=output)
    try:
        await_start(process, lambda: accepts(port), log)
        yield
    finally:
        process.kill()
        process.wait()
