"""An emulator of Google Cloud Storage (fake-gcs-server, written in Go)."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyarrow import fs

from jobs.hudi.java import CACHE
from jobs.storage.stores import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MODULE = "github.com/fsouza/fake-gcs-server@v1.56.1"
_BINARIES = CACHE / "servers" / "bin"
_START_SECONDS = 30.0


@dataclass(frozen=True)
class Server:
    """`options` are Hadoop's, by which all clients find the server; `files` is the file system of the service and the
    tasks."""

    options: dict[str, str]

    @property
    def files(self) -> fs.FileSystem:
        return store_of("gs://lake/", self.options).filesystem()


@contextmanager
def running() -> Iterator[Server]:
    """Starts the server on a free port, with an empty bucket `lake`, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [_binary(), "-scheme", "http", "-host", "127.0.0.1", "-port", address.rpartition(":")[2]]
    command += [
        "-backend",
        "memory",
        "-public-host",
        address,
        "-external-url",
        f"http://{address}",
        "-log-level",
        "error",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _accepts(address):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the emulator does not start"
            time.sleep(0.1)
        emulated = fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=address, project_id="tests")
        emulated.create_dir("lake")
        yield Server(
            {
                "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
                "fs.gs.project.id": "tests",
                "fs.gs.auth.service.account.enable": "false",
                "fs.gs.auth.null.enable": "true",
                "fs.gs.storage.root.url": f"http://{address}/",
            }
        )
    finally:
        process.kill()
        process.wait()


def _binary() -> Path:
    """Returns the program. The first call on a machine builds it, which takes a minute or two."""
    found = _BINARIES / "fake-gcs-server"
    go = shutil.which("go")
    _BINARIES.mkdir(parents=True, exist_ok=True)
    with (_BINARIES / "building.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not found.exists():
            if go is None:
                pytest.skip("Go is not installed, with which the emulator of Google Cloud Storage is built")
            subprocess.run([go, "install", _MODULE], env=os.environ | {"GOBIN": str(_BINARIES)}, check=True)
    return found


def _accepts(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True
