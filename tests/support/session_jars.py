"""Handles the jars of a session. `spark.jars` has only jars that were given as files, and no packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def loader_of(spark: SparkSession) -> Any:
    """Returns Spark's class loader in the driver (`MutableURLClassLoader`)."""
    java: Any = spark._jvm
    return java.java.lang.Thread.currentThread().getContextClassLoader()


def jars_of(spark: SparkSession) -> list[Path]:
    return [Path(url.getPath()) for url in loader_of(spark).getURLs()]


def add_jar(spark: SparkSession, jar: Path) -> None:
    """Adds a jar, whose classes remain loaded until the JVM ends."""
    java: Any = spark._jvm
    loader_of(spark).addURL(java.java.io.File(str(jar)).toURI().toURL())
