"""The Kerberos login of the worker's JVM, for storages that need one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from jobs.hudi.jvm import first_line
from jobs.storage.hdfs import AUTHENTICATION, KERBEROS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    if str(conf.get(AUTHENTICATION)).strip().lower() != KERBEROS:
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
