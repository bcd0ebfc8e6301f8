"""A Hive metastore (2.3.9, on Derby in its folder) from PySpark's jars, for locks and syncs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from jobs.contract import TableLock
from jobs.format.lock_providers import HIVE, PREFIX
from tests.support.java_server import JavaServer, java

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

# The server removes a lock after this time without heartbeats; the default is five minutes.
LOCK_SECONDS = 6
_OPTIONS = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.txn.timeout": f"{LOCK_SECONDS}s",
    # The next two options start `AcidHouseKeeperService`, which removes expired locks; without it they last for ever.
    "hive.compactor.initiator.on": "true",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.timedout.txn.reaper.start": "1s",
    "hive.timedout.txn.reaper.interval": "1s",
    "hive.async.log.enabled": "false",
}


@dataclass(frozen=True)
class Server:
    process: JavaServer

    @property
    def uris(self) -> str:
        return f"thrift://127.0.0.1:{self.process.port}"

    def lock(self, name: str) -> TableLock:
        """Returns a lock of this server in the form of a table's registration."""
        options = {
            f"{PREFIX}hivemetastore.database": "default",
            f"{PREFIX}hivemetastore.table": name,
            f"{PREFIX}hivemetastore.uris": self.uris,
            f"{PREFIX}heartbeat_interval_ms": "1000",
        }
        return TableLock(HIVE, options)

    def away(self) -> AbstractContextManager[None]:
        return self.process.away()

    def writer_options(self, name: str) -> dict[str, str]:
        """Returns the writer's options for that lock."""
        return {**self.lock(name).options, f"{PREFIX}provider": HIVE}


@contextmanager
def running(spark: SparkSession) -> Iterator[Server]:
    """Starts the server on a free port and an empty folder, and ends it. The session makes the tables for locks."""
    process = JavaServer("hive-metastore")
    database = f"jdbc:derby:;databaseName={process.folder}/derby"
    _make_tables(spark, database)
    options = {
        **_OPTIONS,
        "javax.jdo.option.ConnectionURL": f"{database};create=true",
        "hive.metastore.warehouse.dir": str(process.folder / "warehouse"),
    }
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in options.items()
    )
    (process.folder / "hive-site.xml").write_text(f"<configuration>{properties}</configuration>")
    main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    try:
        logs = f"-Dhive.log.dir={process.folder}"
        process.start([*java(process.folder), logs, main, "-p", str(process.port)])
        yield Server(process)
    finally:
        process.end()


def _make_tables(spark: SparkSession, database: str) -> None:
    """Makes the tables for locks; DataNucleus makes all other tables."""
    java: Any = spark._jvm
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    conf.set("javax.jdo.option.ConnectionURL", f"{database};create=true")
    java.org.apache.hadoop.hive.metastore.txn.TxnDbUtil.prepDb(conf)
    # Derby closes the database, so that another process can open it, and reports this by an exception.
    with pytest.raises(Py4JJavaError, match="shutdown"):
        java.java.sql.DriverManager.getConnection(f"{database};shutdown=true")
