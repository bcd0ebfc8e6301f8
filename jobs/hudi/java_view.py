"""The classes and objects of one Spark session's JVM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaPackage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JavaView:
    """The plain view of a session's JVM, for modules that `Jvm` imports."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._session: Any = spark  # typed as Any, because pyspark does not declare all members
        java = names(self._session._jvm)
        self.java = java
        self.hudi = java.org.apache.hudi

    @cached_property
    def hadoop_conf(self) -> Any:
        return self._session._jsc.hadoopConfiguration()

    def array(self, values: Sequence[Any]) -> Any:
        result = self._session._sc._gateway.new_array(self.java.java.lang.Object, len(values))
        for number, value in enumerate(values):
            result[number] = value
        return result


class _Names:
    """Java packages, classes and their static members, each looked up once.

    py4j asks the JVM about every part of a name at every use, and the JVM searches all jars for a class of that name.
    """

    def __init__(self, package: Any) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._package, name)
        if isinstance(found, JavaPackage):
            found = _Names(found)
        elif isinstance(found, JavaClass):
            found = _Class(found._fqn, found._gateway_client)
        setattr(self, name, found)
        return found


class _Class(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found = _Class(found._fqn, found._gateway_client)
        setattr(self, name, found)
        return found


@lru_cache(maxsize=1)
def names(view: Any) -> Any:
    """Returns the packages and classes of a JVM like `py4j`'s own view, but cached."""
    return _Names(view)
