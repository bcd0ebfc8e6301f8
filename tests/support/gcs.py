"""An emulator of Google Cloud Storage (fake-gcs-server, written in Go)."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyarrow import fs

from jobs.hudi.java import CACHE
from jobs.storage.stores import store_of
from tests.support.ports import free_port, listening

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MODULE = "github.com/fsouza/fake-gcs-server@v1.56.1"
_BINARIES = CACHE / "servers" / "bin"


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
    port = free_port()
    address = f"127.0.0.1:{port}"
    command = [_binary(), "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-backend", "memory"]
    command += ["-public-host", address, "-external-url", f"http://{address}", "-log-level", "error"]
    with listening(command, port):
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
