"""A ZooKeeper server from PySpark's jars, for locks of tables."""

from __future__ import annotations

import socket
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.contract import TableLock
from tests.support.java_server import JavaServer, java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

# A short tick ends silent sessions soon, because ZooKeeper checks sessions once a tick.
TICK_MILLISECONDS = 500
SESSION_MILLISECONDS = 2000


@dataclass(frozen=True)
class Server:
    process: JavaServer

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.process.port}"

    def lock(self, name: str) -> TableLock:
        """Returns a lock of this server in the form of a table's registration."""
        return lock_at(self.process.port, name)

    def delete(self, path: str) -> None:
        """Deletes a node by ZooKeeper's own command line."""
        subprocess.run(
            [*java(), "org.apache.zookeeper.ZooKeeperMain", "-server", self.address, "delete", path], check=True
        )

    def away(self) -> AbstractContextManager[None]:
        return self.process.away()

    def writer_options(self, name: str) -> dict[str, str]:
        """Returns the writer's options for that lock."""
        return {
            **self.lock(name).options,
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        }


def lock_at(port: int, name: str) -> TableLock:
    """Returns a lock of the server at this port."""
    options = {
        "hoodie.write.lock.zookeeper.url": f"127.0.0.1:{port}",
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": name,
        "hoodie.write.lock.zookeeper.session_timeout_ms": str(SESSION_MILLISECONDS),
        "hoodie.write.lock.zookeeper.connection_timeout_ms": str(SESSION_MILLISECONDS),
    }
    return TableLock("zookeeper", options)


@contextmanager
def running() -> Iterator[Server]:
    """Starts the server on a free port and an empty folder, and ends it."""
    process = JavaServer("zookeeper")
    config = process.folder / "zoo.cfg"
    config.write_text(
        f"tickTime={TICK_MILLISECONDS}\ndataDir={process.folder}\nclientPort={process.port}\n"
        f"clientPortAddress=127.0.0.1\nminSessionTimeout={SESSION_MILLISECONDS}\n"
        f"admin.enableServer=false\n4lw.commands.whitelist=srvr\n"
    )
    try:
        process.start([*java(), "org.apache.zookeeper.server.ZooKeeperServerMain", str(config)], _is_serving)
        yield Server(process)
    finally:
        process.end()


def _is_serving(port: int) -> bool:
    """Returns whether the server reports its mode, because an open port does not show that it serves."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(4096)
    except OSError:
        return False
