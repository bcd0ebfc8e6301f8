"""Lets a JVM that waits for a job wake seldom. Otherwise the JVM's own threads and Spark's threads wake twenty times a
second, which is most of what an idle worker costs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from jobs.format.spark_options import is_local
from jobs.hudi.jvm import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# The JVM by default samples its counters each 50 ms, looks for unused monitors each 250 ms, at remembered sets each 300
# ms, and for a reason to stop all threads each second. Other versions of Java may lack some of these options.
JAVA_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:PerfDataSamplingInterval=1000"
    " -XX:AsyncDeflationInterval=5000 -XX:G1ConcRefinementServiceIntervalMillis=5000"
    " -XX:GuaranteedSafepointInterval=5000"
)
_CLEANER = "org.apache.spark.ContextCleaner"
_CLEANER_MILLISECONDS = 5000
_HEARTBEAT, _HEARTBEAT_SECONDS = "spark.executor.heartbeatInterval", "30s"
# Spark refuses a heartbeat interval that is not below these timeouts.
_ABOVE = ("spark.network.timeout", "spark.storage.blockManagerHeartbeatTimeoutMs")


def spark_options(master: str, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of Spark for an executor within the driver, from which nothing can separate it. `options` are
    the chosen ones."""
    is_free = is_local(master) and not any(each in options for each in (_HEARTBEAT, *_ABOVE))
    return {_HEARTBEAT: _HEARTBEAT_SECONDS} if is_free else {}


def let_cleaner_wait(session: SparkSession) -> None:
    """Lets Spark's cleaner wait longer for objects to clean. The wait ends with the first such object, however long it
    may be; Spark has no option for it."""
    jvm: Any = jvm_of(session)
    field = f"{_CLEANER}$".replace(".", "$") + "$REF_QUEUE_POLL_TIMEOUT"
    try:
        cleaner = jvm.java.java.lang.Class.forName(f"{_CLEANER}$")
        wait = cleaner.getDeclaredField(field)
        wait.setAccessible(True)
        wait.setInt(cleaner.getDeclaredField("MODULE$").get(None), _CLEANER_MILLISECONDS)
    except Py4JError:
        logger.debug("Spark's cleaner cannot be changed", exc_info=True)
