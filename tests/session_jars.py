"""The jars of a session: `spark.jars` has only those that it was given by their files, if any, and no package then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def loader_of(spark: SparkSession) -> Any:
    """Spark's own loader of classes in the driver (`MutableURLClassLoader`)."""
    java: Any = spark._jvm
    return java.java.lang.Thread.currentThread().getContextClassLoader()


def jars_of(spark: SparkSession) -> list[Path]:
    return [Path(url.getPath()) for url in loader_of(spark).getURLs()]


def add_jar(spark: SparkSession, jar: Path) -> None:
    """Adds a jar, whose classes stay for as long as the JVM lives."""
    java: Any = spark._jvm
    loader_of(spark).addURL(java.java.io.File(str(jar)).toURI().toURL())
