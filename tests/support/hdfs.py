"""A real HDFS cluster in its own process: Hadoop's `MiniDFSCluster`, with name nodes and data nodes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from pyarrow import fs

from jobs.storage import hdfs as access
from tests.support import kerberos, maven
from tests.support.wall_clock import shifted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.kerberos import Realm

VERSION = "3.3.4"  # The version of Hadoop in PySpark's own jars.
NAMESERVICE = "lake"
ENTRIES_OF_A_LISTING = 7
# HDFS brings versions of JAXB and Jersey that were made for Java 8.
_OPENED = ("--add-opens=java.base/java.lang=ALL-UNNAMED",)
_HA = "org.apache.hadoop.hdfs.server.namenode.ha"


@dataclass
class Cluster:
    """`options` are Hadoop's, by which all clients find the cluster; `uri` is the prefix of its paths."""

    uri: str
    options: dict[str, str] = field(repr=False)
    mini: Any = field(repr=False)
    jvm: Any = field(repr=False)
    realm: Realm | None = field(default=None, repr=False)

    def status(self, path: str) -> Any:
        """Returns Hadoop's `FileStatus` of a path."""
        return self._files.getFileStatus(self._path(path))

    def create(self, path: str) -> None:
        self._files.create(self._path(path)).close()

    def set_permission(self, path: str, mode: int) -> None:
        self._files.setPermission(self._path(path), self.jvm.org.apache.hadoop.fs.permission.FsPermission(f"{mode:o}"))

    def delegation_token(self) -> str:
        """Returns a token as Hadoop's own client gets one, in the form of URLs."""
        conf = self.jvm.org.apache.hadoop.conf.Configuration(self.mini.getConfiguration(0))
        for name, value in self.options.items():
            conf.set(name, value)
        return str(self._path(f"{self.uri}/").getFileSystem(conf).getDelegationToken(None).encodeToUrlString())

    def arrow(self) -> fs.FileSystem:
        """Returns Arrow's file system as in another process: it shares no token with other tests."""
        access._filesystem.cache_clear()
        return access.of_hadoop(self.options, self.uri.removeprefix("hdfs://")).with_short_timeouts().filesystem()

    def kill_data_node(self, number: int) -> None:
        self.mini.stopDataNode(number)

    def fail_over(self, to: int) -> None:
        self.mini.transitionToStandby(1 - to)
        self.mini.transitionToActive(to)

    @property
    def _files(self) -> Any:
        return self.mini.getFileSystem(0)

    def _path(self, path: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(path)


@contextmanager
def running(
    *,
    data_nodes: int = 1,
    is_highly_available: bool = False,
    with_kerberos: bool = False,
    ahead_seconds: float = 0,
    options: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """Starts a cluster on free ports and an empty folder, and ends it. `with_kerberos` also starts a KDC (Kerberos'
    login server) with a realm for the cluster. The cluster's clock is `ahead_seconds` ahead of this machine's.
    `options` are further options of its servers."""
    folder = Path(tempfile.mkdtemp(prefix="hdfs-"))
    # The output goes to a list and not to a file, because the JVM still writes after this function has ended.
    said: deque[str] = deque(maxlen=1000)
    with patch.dict(os.environ, shifted(ahead_seconds) if ahead_seconds else {}):
        port = launch_gateway(
            classpath=":".join([_class_path(), *([kerberos.class_path()] if with_kerberos else [])]),
            javaopts=["-Xmx512m", *_OPENED, "-Dorg.apache.commons.logging.Log=org.apache.commons.logging.impl.NoOpLog"],
            java_path=maven.java()[0],
            die_on_exit=True,
            redirect_stdout=said,
            redirect_stderr=said,
            cwd=str(folder),
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        realm = kerberos.start(gateway, folder) if with_kerberos else None
        yield _started(gateway.jvm, folder, data_nodes, is_highly_available, realm, options or {})
    finally:
        gateway.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def copy(source: Path, files: fs.FileSystem, folder: str, *, back: bool = False) -> None:
    """Copies the missing files of a table. The timeline comes last, as with a writer."""
    local = fs.SubTreeFileSystem(str(source), fs.LocalFileSystem())
    remote = fs.SubTreeFileSystem(folder, files)
    origin, target = (remote, local) if back else (local, remote)
    found = origin.get_file_info(fs.FileSelector("", recursive=True))
    # Hadoop's checksums of local files stay there.
    names = [info.path for info in found if info.is_file and not info.path.endswith(".crc")]

    def one(name: str) -> None:
        if target.get_file_info(name).type == fs.FileType.NotFound:
            with origin.open_input_stream(name) as input_:
                content = input_.read()
            if "/" in name:
                target.create_dir(name.rpartition("/")[0], recursive=True)
            with target.open_output_stream(name) as output:
                output.write(content)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, [name for name in names if not name.startswith(".hoodie")]))
    for name in sorted(name for name in names if name.startswith(".hoodie")):
        one(name)


def _class_path() -> str:
    """Returns the cluster's class path, with log4j and JAXB (a part of Java 8) from Spark's jars."""
    names = ("log4j-[1ac]*", "jakarta.xml.bind-api-*", "activation-*", "jaxb-runtime-*")
    more = [jar for name in names for jar in maven.JARS_OF_SPARK.glob(f"{name}.jar")]
    return ":".join([maven.class_path("org.apache.hadoop", "hadoop-client-minicluster", VERSION), *map(str, more)])


def _started(
    jvm: Any,
    folder: Path,
    data_nodes: int,
    is_highly_available: bool,
    realm: Realm | None,
    options_of_servers: Mapping[str, str],
) -> Cluster:
    hdfs = jvm.org.apache.hadoop.hdfs
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("dfs.ls.limit", str(ENTRIES_OF_A_LISTING))
    conf.set("dfs.replication", str(data_nodes))
    for name, value in options_of_servers.items():
        conf.set(name, value)
    builder = hdfs.MiniDFSCluster.Builder(conf, jvm.java.io.File(str(folder / "data"))).numDataNodes(data_nodes)
    if realm:
        builder = builder.checkDataNodeAddrConfig(False)
        for name, value in (realm.client_options() | realm.server_options()).items():
            conf.set(name, value)
        jvm.org.apache.hadoop.security.UserGroupInformation.setConfiguration(conf)
        jvm.org.apache.hadoop.security.UserGroupInformation.loginUserFromKeytab(realm.server, realm.keytab_of_servers)
    if is_highly_available:
        builder = builder.nnTopology(hdfs.MiniDFSNNTopology.simpleHATopology())
    mini = builder.build()
    if is_highly_available:
        mini.transitionToActive(0)
    mini.waitActive()
    web = [str(mini.getHttpUri(number)).removeprefix("http://") for number in range(mini.getNumNameNodes())]
    rpc = [f"{mini.getURI(number).getAuthority()}" for number in range(mini.getNumNameNodes())]
    login = realm.client_options() if realm else {}
    if not is_highly_available:
        return Cluster(f"hdfs://{rpc[0]}", {"dfs.namenode.http-address": web[0], **login}, mini, jvm, realm)
    options = login | {
        "dfs.nameservices": NAMESERVICE,
        f"dfs.ha.namenodes.{NAMESERVICE}": "nn0,nn1",
        f"dfs.client.failover.proxy.provider.{NAMESERVICE}": f"{_HA}.ConfiguredFailoverProxyProvider",
    }
    for number in range(2):
        options[f"dfs.namenode.rpc-address.{NAMESERVICE}.nn{number}"] = rpc[number]
        options[f"dfs.namenode.http-address.{NAMESERVICE}.nn{number}"] = web[number]
    return Cluster(f"hdfs://{NAMESERVICE}", options, mini, jvm, realm)
