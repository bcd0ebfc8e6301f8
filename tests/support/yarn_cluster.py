"""A YARN cluster from the jars of Hadoop 3.3.4: a resource manager, and node managers that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from xml.sax.saxutils import escape

import httpx

from tests.support import maven
from tests.support.java_classes import compiled
from tests.support.ports import free_port
from tests.support.spark_cluster import HOST, children, command_line, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from tests.support import hdfs
    from tests.support.kerberos import Realm

VERSION = "3.3.4"
START_SECONDS = 120.0
_GROUP = "org.apache.hadoop"
_SERVER = "org.apache.hadoop.yarn.server"
# Hadoop 3.3.4 is made for Java 11. Newer versions of Java must open these modules to its injection of dependencies.
_OPENED = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.util", "java.io", "java.nio")]
_LOGGING = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
"""
NODE_MEGABYTES = 2048
CAPACITY = "capacity.CapacityScheduler"
FIFO = "fifo.FifoScheduler"


class Cluster:
    """The resource manager and its node managers. `conf_folder` is the value of HADOOP_CONF_DIR for drivers. `options`
    are further options of YARN, and `capacity` are options of its capacity scheduler. The default file system is the
    HDFS `on`, if there is one; YARN wants Kerberos if that HDFS does."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 2,
        *,
        scheduler: str = FIFO,
        options: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] | None = None,
        on: hdfs.Cluster | None = None,
    ) -> None:
        self._folder = folder
        self._on = on
        self.conf_folder = folder / "conf"
        self.conf_folder.mkdir(parents=True)
        self._web = free_port()
        self._options = {
            "yarn.resourcemanager.hostname": HOST,
            **{
                f"yarn.resourcemanager.{name}address": f"{HOST}:{free_port()}"
                for name in ("", "scheduler.", "resource-tracker.", "admin.")
            },
            "yarn.resourcemanager.webapp.address": f"{HOST}:{self._web}",
            "yarn.resourcemanager.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.{scheduler}",
            "yarn.resourcemanager.nm.liveness-monitor.interval-ms": "500",
            # YARN notices a lost node after this time instead of ten minutes. The start of a new application master
            # takes longer.
            "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
            "yarn.am.liveness-monitor.expiry-interval-ms": "60000",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.resource.memory-mb": str(NODE_MEGABYTES),
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            **{f"yarn.nodemanager.{name}address": f"{HOST}:0" for name in ("", "localizer.", "webapp.")},
            **(_login(on.realm, folder) if on and on.realm else {}),
            **(options or {}),
        }
        _write(self.conf_folder / "yarn-site.xml", self._options)
        # Without HDFS, staged files go to a folder that all processes see.
        core = {"fs.defaultFS": on.uri if on else "file:///", "hadoop.tmp.dir": f"{folder}/tmp"}
        of_hdfs = dict(on.options) if on else {}
        core |= {name: of_hdfs.pop(name) for name in list(of_hdfs) if name.startswith("hadoop.")}
        _write(self.conf_folder / "core-site.xml", core)
        _write(self.conf_folder / "hdfs-site.xml", of_hdfs)
        _write(self.conf_folder / "capacity-scheduler.xml", capacity or {})
        self.manager = self._start("resourcemanager", "resourcemanager.ResourceManager", self.conf_folder)
        self.nodes: list[subprocess.Popen[bytes]] = []
        self._wait_for(lambda: self.call("/cluster/info") is not None)
        for _ in range(nodes):
            self.add_node(wait=False)
        self._wait_for(lambda: self.alive() == nodes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in range(len(self.nodes)):
            self.kill_node(number)
        self.manager.kill()
        self.manager.wait()

    def add_node(self, *, wait: bool = True) -> None:
        number = len(self.nodes)
        before = self.alive() if wait else 0
        conf = self._folder / f"conf-{number}"
        conf.mkdir()
        own = {f"yarn.nodemanager.{name}-dirs": f"{self._folder}/node-{number}/{name}" for name in ("local", "log")}
        # Both nodes have one address. Executors find the port of their node in its own folder of options.
        own["spark.shuffle.service.port"] = str(free_port())
        _write(conf / "yarn-site.xml", {**self._options, **own})
        for site in ("core-site.xml", "hdfs-site.xml"):
            (conf / site).write_bytes((self.conf_folder / site).read_bytes())
        self.nodes.append(self._start("nodemanager", "nodemanager.NodeManager", conf, name=f"node-{number}"))
        if wait:
            self._wait_for(lambda: self.alive() > before)

    def kill_node(self, number: int) -> None:
        """Sends SIGKILL to a node manager and its containers, as after a loss of its machine."""
        for pid in (self.nodes[number].pid, *self._descendants(number)):
            _kill(pid)
        self.nodes[number].wait()

    def executors(self) -> list[int]:
        """Returns the process ids of all executors."""
        return self._containers(b"CoarseGrainedExecutorBackend")

    def application_masters(self) -> list[int]:
        """Returns the process ids of the application masters; in client mode they only ask for executors."""
        return self._containers(b"ExecutorLauncher")

    def applications(self, *states: str) -> list[dict[str, Any]]:
        """Returns the applications in these states, as the resource manager shows them."""
        found = self.call(f"/cluster/apps?states={','.join(states)}") or {}
        return list((found.get("apps") or {}).get("app", []))

    def kill_application(self, application: str) -> None:
        """Kills an application as its operator does: by the resource manager."""
        httpx.put(
            f"http://{HOST}:{self._web}/ws/v1/cluster/apps/{application}/state?user.name={_user_name()}",
            json={"state": "KILLED"},
            timeout=10,
        ).raise_for_status()

    def shuffle_files(self) -> list[str]:
        """Returns the files that finished tasks have left for tasks of later stages."""
        # `Path.glob` fails if a folder disappears meanwhile.
        return glob(f"{self._folder}/node-*/local/usercache/*/appcache/*/blockmgr-*/*/shuffle_*.index")  # noqa: PTH207

    def alive(self) -> int:
        return int(((self.call("/cluster/metrics") or {}).get("clusterMetrics") or {}).get("activeNodes", 0))

    def call(self, path: str) -> dict[str, Any] | None:
        """Returns an answer of the resource manager; None if it does not answer."""
        try:
            found: dict[str, Any] = httpx.get(f"http://{HOST}:{self._web}/ws/v1{path}", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return None
        return found

    def _containers(self, part: bytes) -> list[int]:
        below = {pid for number in range(len(self.nodes)) for pid in self._descendants(number)}
        # A container's shell has the same words on its command line.
        return sorted(pid for pid in below if part in (line := command_line(pid)) and b"/bash" not in line[:20])

    def _descendants(self, number: int) -> list[int]:
        found: list[int] = []
        parents = {self.nodes[number].pid}
        while parents := set(children(parents)):
            found += parents
        return found

    def _start(
        self, artifact: str, name_of_class: str, conf: Path, *, name: str = "manager"
    ) -> subprocess.Popen[bytes]:
        # The resource manager also loads classes of the timeline service, without naming it as a dependency.
        artifacts = [f"hadoop-yarn-server-{each}" for each in (artifact, "timelineservice")]
        artifacts += ["hadoop-hdfs-client"] if self._on else []
        jars = ":".join(maven.class_path(_GROUP, each, VERSION) for each in artifacts)
        realm = self._on.realm if self._on else None
        login = [f"-Djava.security.krb5.conf={realm.config}"] if realm else []
        (conf / "log4j.properties").write_text(_LOGGING)
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*maven.java(), "-Xmx256m", *_OPENED, *login, "-cp", f"{conf}:{jars}", f"{_SERVER}.{name_of_class}"],
                env={**os.environ, "HADOOP_CONF_DIR": str(conf), "JAVA_HOME": str(Path(maven.java()[0]).parents[1])},
                stdout=log,
                stderr=log,
            )

    def _wait_for(self, is_so: Callable[[], bool]) -> None:
        wait_for(is_so, START_SECONDS, self._folder)


@contextmanager
def running(folder: Path, nodes: int = 2, **more: Any) -> Iterator[Cluster]:
    with Cluster(folder, nodes, **more) as cluster:
        yield cluster


def shuffle_service(spark: SparkSession) -> dict[str, str]:
    """Returns the options with which node managers run Spark's shuffle service. `SPARK_YARN_SHUFFLE_JAR` names the jar
    of Spark's distribution; without it, a class of the tests puts the service together from PySpark's jars."""
    own = os.environ.get("SPARK_YARN_SHUFFLE_JAR")
    name = "yarn.nodemanager.aux-services"
    return {
        name: "spark_shuffle",
        f"{name}.spark_shuffle.class": "org.apache.spark.network.yarn.YarnShuffleService",
        f"{name}.spark_shuffle.classpath": own
        or f"{compiled(spark, 'YarnShuffleService.java')}:{maven.JARS_OF_SPARK}/*",
    }


def _login(realm: Realm, folder: Path) -> dict[str, str]:
    """Returns the options of both managers, which have one principal."""
    principal = "yarn/localhost"
    keytab = realm.keytab(folder / "yarn.keytab", principal)
    return {
        f"yarn.{manager}.{name}": value
        for manager in ("resourcemanager", "nodemanager")
        for name, value in (("principal", f"{principal}@{realm.name}"), ("keytab", str(keytab)))
    }


def _write(path: Path, options: Mapping[str, str]) -> None:
    parts = (
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in options.items()
    )
    path.write_text(f"<configuration>{''.join(parts)}</configuration>")


def _user_name() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "root"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
