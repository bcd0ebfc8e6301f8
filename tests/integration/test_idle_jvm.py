"""The JVM of an idle worker wakes seldom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.hudi.jvm import jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_jvm_and_sparks_cleaner_have_long_pauses(spark: SparkSession) -> None:
    java: Any = jvm_of(spark).java
    cleaner = java.java.lang.Class.forName("org.apache.spark.ContextCleaner$")
    pause = cleaner.getDeclaredField("org$apache$spark$ContextCleaner$$REF_QUEUE_POLL_TIMEOUT")
    pause.setAccessible(True)
    assert pause.getInt(cleaner.getDeclaredField("MODULE$").get(None)) == 5000
    arguments = list(java.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert "-XX:AsyncDeflationInterval=5000" in arguments
    assert spark.conf.get("spark.executor.heartbeatInterval") == "30s"
