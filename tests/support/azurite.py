"""An emulator of Azure's blob storage (Azurite, on Node.js), for an account without a hierarchical namespace.

Azurite does not have the interface that Hadoop's `abfs` uses; `azure_dfs` has it.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.hudi.java import CACHE
from jobs.storage.stores import store_of
from tests.support.ports import free_port, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import fs

_VERSION = "3.37.0"
_FOLDER = CACHE / "servers" / f"azurite-{_VERSION}"
ROOT = "abfss://lake@devstoreaccount1.dfs.core.windows.net"
# The public key of the only account of each Azurite.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Server:
    """`options` are Hadoop's, by which all clients find the server; `files` is the service's file system."""

    options: dict[str, str]
    log: Path

    def requests(self) -> list[str]:
        """Returns method and address of all answered requests."""
        return re.findall(r'"([A-Z]+ \S+) HTTP/1\.1"', self.log.read_text())

    @property
    def files(self) -> fs.FileSystem:
        return store_of(f"{ROOT}/", self.options).filesystem()


@contextmanager
def running() -> Iterator[Server]:
    """Starts the server on a free port, with an empty container `lake`, and ends it."""
    port = free_port()
    command = [_program(), "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    log = Path(tempfile.mkstemp(prefix="azurite-")[1])
    options = {
        "fs.azure.account.key": KEY,
        "fs.azure.abfs.endpoint": f"127.0.0.1:{port}",
        "fs.azure.always.use.https": "false",
    }
    with listening(command, port, log=log):
        server = Server(options, log)
        server.files.create_dir("lake")
        yield server
    log.unlink()


def _program() -> Path:
    """Returns the program. The first call on a machine fetches it, which takes half a minute."""
    found = _FOLDER / "node_modules" / ".bin" / "azurite-blob"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "fetching.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not found.exists():
            npm = shutil.which("npm")
            if npm is None:
                pytest.skip("Node.js, which runs the emulator of Azure's storage, is not installed")
            command = [npm, "install", "--prefix", _FOLDER, "--no-fund", "--no-audit", f"azurite@{_VERSION}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return found
