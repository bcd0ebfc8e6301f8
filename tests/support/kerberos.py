"""A real KDC (Kerberos' login server): Hadoop's `MiniKdc` (Apache Kerby), in the JVM of the cluster that it serves.
Clients find it by `KRB5_CONFIG` and Java by `java.security.krb5.conf`, so the machine's own configuration is not
used."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import maven

if TYPE_CHECKING:
    import pytest

VERSION = "3.3.4"
HOST = "localhost"


@dataclass
class Realm:
    """`config` is the path of a `krb5.conf`; `server` is the principal of the cluster's servers."""

    config: str
    server: str
    web: str
    keytab_of_servers: str
    gateway: Any = field(repr=False)
    kdc: Any = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.kdc.getRealm())

    def keytab(self, path: Path, *principals: str) -> Path:
        """Creates the principals, and returns their keytab."""
        jvm = self.gateway.jvm
        names = self.gateway.new_array(jvm.java.lang.String, len(principals))
        for number, principal in enumerate(principals):
            names[number] = principal
        self.kdc.createPrincipal(jvm.java.io.File(str(path)), names)
        return path

    def log_in(self, keytab: Path, ticket: Path, patch: pytest.MonkeyPatch) -> None:
        """Gives this process, and those that it starts, a login by keytab with MIT's library, which writes `ticket`."""
        patch.setenv("KRB5_CONFIG", self.config)
        patch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
        patch.setenv("KRB5CCNAME", f"FILE:{ticket}")

    def without_login(self) -> dict[str, str]:
        """Returns the environment of a worker: its Java finds the realm, and it has no login."""
        java = f"{os.environ['JDK_JAVA_OPTIONS']} -Djava.security.krb5.conf={self.config}"
        return {"JDK_JAVA_OPTIONS": java, "KRB5_CLIENT_KTNAME": "none", "KRB5CCNAME": "FILE:none"}

    def client_options(self) -> dict[str, str]:
        """Returns the options of Hadoop in the `core-site.xml` and `hdfs-site.xml` of a client."""
        return {
            "hadoop.security.authentication": "kerberos",
            "dfs.namenode.kerberos.principal": self.server,
            "dfs.data.transfer.protection": "authentication",
        }

    def server_options(self) -> dict[str, str]:
        options = {
            "dfs.datanode.kerberos.principal": self.server,
            "dfs.block.access.token.enable": "true",
            "hadoop.http.authentication.type": "kerberos",
            # The data node is not started by root here, and has no certificates.
            "ignore.secure.ports.for.testing": "true",
        }
        for node in ("dfs.namenode", "dfs.datanode"):
            options[f"{node}.keytab.file"] = self.keytab_of_servers
        for web in ("dfs.web.authentication", "hadoop.http.authentication"):
            options[f"{web}.kerberos.principal"] = self.web
            options[f"{web}.kerberos.keytab"] = self.keytab_of_servers
        return options


def class_path() -> str:
    return maven.class_path("org.apache.hadoop", "hadoop-minikdc", VERSION)


def start(gateway: Any, folder: Path) -> Realm:
    """Starts a KDC on a free port, which ends with the JVM of the gateway. The JVM's class path needs `class_path`."""
    mini = gateway.jvm.org.apache.hadoop.minikdc.MiniKdc
    kdc = mini(mini.createConf(), gateway.jvm.java.io.File(str(folder)))
    kdc.start()
    names = [f"{service}/{HOST}@{kdc.getRealm()}" for service in ("hdfs", "HTTP")]
    realm = Realm(str(kdc.getKrb5conf()), names[0], names[1], str(folder / "servers.keytab"), gateway, kdc)
    realm.keytab(Path(realm.keytab_of_servers), *(name.partition("@")[0] for name in names))
    return realm
