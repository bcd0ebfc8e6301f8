"""A real Kafka broker of one node, from Maven's jars, that a test may stop and start again."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.certificate import self_signed
from tests.support import maven
from tests.support.ports import accepts, await_start, free_ports

if TYPE_CHECKING:
    from types import TracebackType

VERSION = "3.9.1"
USER, PASSWORD = "keeper", "a password"
_HEAP = "-Xmx256m"


class Broker:
    """The second listener has TLS and requires USER and PASSWORD; `authority` is the file that its clients have to
    trust."""

    def __init__(self, folder: Path) -> None:
        self._properties = folder / "server.properties"
        self._data = folder / "data"
        self.log = folder / "broker.log"
        certificate = self_signed("localhost", folder)
        self.authority = certificate.public
        self._keys = folder / "keys.pem"
        self._keys.write_bytes(certificate.private.read_bytes() + certificate.public.read_bytes())
        self._port, self._port_with_login, self._controller = free_ports(3)
        self.advertise(self.address)
        shutil.copytree(_formatted(), self._data)
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def address_with_login(self) -> str:
        return f"localhost:{self._port_with_login}"

    def advertise(self, address: str) -> None:
        """Advertises the address from the broker's next start on."""
        self._properties.write_text(
            _PROPERTIES.format(
                port=self._port,
                port_with_login=self._port_with_login,
                controller=self._controller,
                advertised=address,
                data=self._data,
                keys=self._keys,
                user=USER,
                password=PASSWORD,
            )
        )

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*_java(), "kafka.Kafka", self._properties], cwd=self.log.parent, stdout=log, stderr=log
            )
        ports = (self._port, self._port_with_login)
        await_start(self.process, lambda: all(map(accepts, ports)), self.log)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def _java() -> list[str]:
    return [maven.java()[0], _HEAP, "-cp", maven.class_path("org.apache.kafka", "kafka_2.13", VERSION)]


@cache
def _formatted() -> Path:
    """Returns an empty data folder for copies: Kafka's own tool takes as long as the start of a broker."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    properties, data = folder / "format.properties", folder / "data"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:9093\nlisteners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"log.dirs={data}\n"
    )
    command = [*_java(), "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(properties)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return data


_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://localhost:{port_with_login},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{advertised},SASL_SSL://localhost:{port_with_login}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={keys}
log.dirs={data}
num.partitions=3
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
offsets.topic.replication.factor=1
"""
