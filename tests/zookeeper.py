"""A ZooKeeper server from the jars that PySpark brings, for locks of tables."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from jobs.contract import TableLock

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60.0
# So that a session that is not heard of ends soon: ZooKeeper looks at sessions once a tick.
TICK_MILLISECONDS = 500
SESSION_MILLISECONDS = 2000


@dataclass(frozen=True)
class Server:
    address: str

    def lock(self, name: str) -> TableLock:
        """A lock of this server as a table is registered with it."""
        options = {
            "hoodie.write.lock.zookeeper.url": self.address,
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": name,
            "hoodie.write.lock.zookeeper.session_timeout_ms": str(SESSION_MILLISECONDS),
            "hoodie.write.lock.zookeeper.connection_timeout_ms": str(SESSION_MILLISECONDS),
        }
        return TableLock("zookeeper", options)

    def delete(self, path: str) -> None:
        """Deletes a node by ZooKeeper's own command line."""
        subprocess.run(
            [*_java(), "org.apache.zookeeper.ZooKeeperMain", "-server", self.address, "delete", path], check=True
        )

    def writer_options(self, name: str) -> dict[str, str]:
        """What a writer of a table with that lock sets."""
        return {
            **self.lock(name).options,
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        }


def _java() -> list[str]:
    """The Java that Spark runs on: `jobs.hudi.session` has said where it is."""
    home = os.environ.get("JAVA_HOME")
    return [f"{home}/bin/java" if home else "java", "-cp", f"{Path(pyspark.__file__).parent / 'jars'}/*"]


@contextmanager
def running() -> Iterator[Server]:
    """Starts the server on a free port and an empty folder, and ends it."""
    folder = Path(tempfile.mkdtemp(prefix="zookeeper-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "zoo.cfg"
    config.write_text(
        f"tickTime={TICK_MILLISECONDS}\ndataDir={folder}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        f"minSessionTimeout={SESSION_MILLISECONDS}\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n"
    )
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    log = (folder / "log").open("wb")
    process = subprocess.Popen([*_java(), main, str(config)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _is_serving(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield Server(f"127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _is_serving(port: int) -> bool:
    """Whether the server says in which mode it is; a port that is open says less."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(4096)
    except OSError:
        return False
