"""An emulator of Azure's blob storage (Azurite, of Node.js). It has not the interface that Hadoop's `abfs` uses."""

from __future__ import annotations

import fcntl
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from jobs.hudi.session import CACHE
from jobs.storage.stores import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyarrow import fs

_VERSION = "3.35.0"
_FOLDER = CACHE / "servers" / f"azurite-{_VERSION}"
_START_SECONDS = 60.0
ROOT = "abfss://lake@devstoreaccount1.dfs.core.windows.net"
# Of the one account that each Azurite has, and no secret.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Server:
    """`options` are Hadoop's, by which all clients find it; `files` is what the service gets by them."""

    options: dict[str, str]

    @property
    def files(self) -> fs.FileSystem:
        return store_of(f"{ROOT}/", self.options).filesystem()


@contextmanager
def running() -> Iterator[Server]:
    """Starts it on a free port, with an empty container `lake`, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [_program(), "--silent", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _accepts(port):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the emulator does not start"
            time.sleep(0.1)
        server = Server(
            {
                "fs.azure.account.key": _KEY,
                "fs.azure.abfs.endpoint": f"127.0.0.1:{port}",
                "fs.azure.always.use.https": "false",
            }
        )
        server.files.create_dir("lake")
        yield server
    finally:
        process.kill()
        process.wait()


def _program() -> Path:
    """The first call on a machine fetches it, which takes half a minute."""
    found = _FOLDER / "node_modules" / ".bin" / "azurite-blob"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "fetching.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not found.exists():
            npm = shutil.which("npm")
            if npm is None:
                pytest.skip("Node.js is not installed, which runs the emulator of Azure's storage")
            command = [npm, "install", "--prefix", _FOLDER, "--no-fund", "--no-audit", f"azurite@{_VERSION}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return found


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
