"""Submits SQL to a cluster from one JVM for all tests, because the first statements of a JVM take seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from tests.flink.distribution import MODULES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.flink.distribution import Distribution


class SqlError(Exception):
    """Flink's exception, with its causes."""


class SqlClient:
    """Flink's `TableEnvironment`, by py4j. `port` is the port of the cluster's REST service."""

    def __init__(self, software: Distribution, port: int) -> None:
        self._software = software
        self._port = port
        self._started: JavaGateway | None = None

    def submit(self, statements: Sequence[str], settings: Mapping[str, str]) -> str:
        """Executes the statements, and returns the id of the last statement's job. Raises `SqlError`."""
        flink: Any = self._gateway().jvm.org.apache.flink
        conf = flink.configuration.Configuration()
        target = {"execution.target": "remote", "rest.address": "127.0.0.1", "rest.port": str(self._port)}
        for key, value in {**target, "execution.attached": "false", **settings}.items():
            conf.setString(key, value)
        self._forget_earlier_jobs()
        try:
            chosen = flink.table.api.EnvironmentSettings.newInstance().withConfiguration(conf).build()
            environment = flink.table.api.TableEnvironment.create(chosen)
            *before, last = statements
            for statement in before:
                environment.executeSql(statement)
            return str(environment.executeSql(last).getJobClient().get().getJobID())
        except Py4JJavaError as error:
            # py4j would ask Spark's JVM, if there is one, for the exception's text, but that JVM does not know this
            # exception.
            raise SqlError(flink.util.ExceptionUtils.stringifyException(error.java_exception)) from None

    def _forget_earlier_jobs(self) -> None:
        """Makes the client like one that has just started: Hudi numbers its operators through the life of a JVM
        (`Pipelines.opUID`), and a savepoint knows them by these numbers."""
        pipelines = self._gateway().jvm.java.lang.Class.forName("org.apache.hudi.sink.utils.Pipelines")
        counters: Any = pipelines.getDeclaredField("OPERATOR_COUNTERS")
        counters.setAccessible(True)
        counters.get(None).clear()

    def close(self) -> None:
        if self._started:
            self._started.shutdown()
            self._started = None

    def _gateway(self) -> JavaGateway:
        if not self._started:
            jar = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
            port = launch_gateway(
                jarpath=str(jar),
                classpath=self._software.class_path,
                javaopts=["-Xmx400m", *MODULES],
                java_path=str(self._software.java),
                die_on_exit=True,
            )
            self._started = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        return self._started
