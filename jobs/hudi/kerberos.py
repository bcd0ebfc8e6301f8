"""The Kerberos login of the worker's JVM and of its executors, for storages that need one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from jobs.hudi.jvm import Jvm, first_line, translated
from jobs.storage.hdfs import AUTHENTICATION, KERBEROS
from jobs.storage_errors import StorageLoginError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark sends delegation tokens to executors of these masters only.
_SEND_TOKENS = ("yarn", "k8s:")
_CLUSTERS = "spark.kerberos.access.hadoopFileSystems"
_KEYTAB, _PRINCIPAL = "spark.kerberos.keytab", "spark.kerberos.principal"


class NoTicketError(ConnectionError):
    """Hadoop's options need Kerberos, but there is neither a valid keytab nor a ticket."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"Kerberos: {detail}. Set {_KEYTAB} and {_PRINCIPAL}, or KRB5CCNAME to a file with a ticket")


def log_in(session: SparkSession) -> None:
    """Logs in if Hadoop's options need Kerberos and Spark has not done so. Spark logs in before the options of the
    session apply: Hadoop uses the options of `core-site.xml`, and then keeps that login (`UserGroupInformation`).
    Hadoop renews the login by itself. Raises NoTicketError."""
    spark: Any = session
    conf, given = spark._jsc.hadoopConfiguration(), spark.sparkContext.getConf()
    if not _is_needed(conf):
        return
    users = spark._jvm.org.apache.hadoop.security.UserGroupInformation
    try:
        if users.isSecurityEnabled() and users.getLoginUser().hasKerberosCredentials():
            return
        users.setConfiguration(conf)
        if keytab := given.get(_KEYTAB):
            users.loginUserFromKeytab(given.get(_PRINCIPAL), keytab)
        else:
            # Hadoop takes a ticket, or else the user of the operating system.
            users.loginUserFromSubject(None)
        has_ticket = users.getLoginUser().hasKerberosCredentials()
    except Py4JError as error:
        raise NoTicketError(first_line(error)) from error
    if not has_ticket:
        raise NoTicketError("there is no ticket")


def require_tokens_of_executors(jvm: Jvm, base_path: str) -> None:
    """Raises StorageLoginError if the executors could not reach this table: they have no ticket, and Spark has sent
    them no delegation token for the cluster of its HDFS (`HadoopFSDelegationTokenProvider` of Spark 3.5)."""
    context: Any = jvm.spark.sparkContext
    if (
        not base_path.startswith("hdfs:")
        or not context.master.startswith(_SEND_TOKENS)
        or not _is_needed(jvm.hadoop_conf)
    ):
        return
    java: Any = jvm.java
    with translated("reading the delegation tokens of the executors"):
        service = java.org.apache.hadoop.fs.Path(base_path).getFileSystem(jvm.hadoop_conf).getCanonicalServiceName()
        sent = context._jsc.sc().schedulerBackend().currentDelegationTokens()
        tokens = java.org.apache.spark.deploy.SparkHadoopUtil.get().deserialize(sent) if sent else None
        has_token = tokens is not None and tokens.getToken(java.org.apache.hadoop.io.Text(service)) is not None
    if not has_token:
        cluster = "/".join(base_path.split("/")[:3])
        raise StorageLoginError(
            f"executors have no delegation token for {base_path}: add {cluster} to the worker's option {_CLUSTERS},"
            " which names all clusters but the default one of HADOOP_CONF_DIR"
        )


def _is_needed(conf: Any) -> bool:
    return str(conf.get(AUTHENTICATION)).strip().lower() == KERBEROS
