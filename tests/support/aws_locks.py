"""Hudi's locks on AWS, on moto's server: the item of a DynamoDB table, and a file that S3 writes on a condition.

The classes in `tests/support/java` replace what hudi-aws 1.2.0 adds to Hudi's bundle for Spark: the tests' source of
jars has only hudi-aws 0.15.0, which does not load beside Hudi 1.2.0 (`NoSuchMethodError: Boolean
HoodieConfig.contains(String)`). Hudi's `StorageBasedLockProvider` and Amazon's client of locks in DynamoDB, which do
the work, are the real ones. Set `HUDI_AWS_JARS` to a class path of Hudi's own jars to use those instead.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.contract import TableLock
from jobs.format.lock_providers import DYNAMODB, IN_STORAGE, PREFIX
from tests.support import s3
from tests.support.java_classes import compiled
from tests.support.maven import class_path
from tests.support.session_jars import add_jar
from tests.support.session_storage import reached_by
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

LEASE_SECONDS = 6
VALIDITY_SECONDS = 10
REGION = "us-east-1"
LOCK_FILE = ".hoodie/.locks/table_lock.json"
_ENDPOINT = "aws.endpointUrlS3"
IN_BUCKET, IN_DYNAMODB = "S3StorageLockClient.java", "DynamoDBBasedLockProvider.java"
# Spark has newer versions of these jars.
_PROVIDED = ("commons-logging-", "httpclient-", "httpcore-", "netty-buffer-", "netty-c", "netty-t", "netty-r", "slf4j-")


@dataclass(frozen=True)
class Server:
    """The server. Only the locks' clients reach it through the `gate`."""

    s3: s3.Server
    gate: TcpGate

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.gate.port}"

    def in_dynamodb(self, name: str) -> TableLock:
        options = {
            "hoodie.aws.access.key": "someone",
            "hoodie.aws.secret.key": "anything",
            f"{PREFIX}dynamodb.table": "locks",
            f"{PREFIX}dynamodb.partition_key": name,
            f"{PREFIX}dynamodb.region": REGION,
            f"{PREFIX}dynamodb.endpoint_url": self.endpoint,
            f"{PREFIX}wait_time_ms": str(LEASE_SECONDS * 1000),
        }
        return TableLock(DYNAMODB[0], options)

    def in_storage(self) -> TableLock:
        options = {
            "hoodie.aws.access.key": "someone",
            "hoodie.aws.secret.key": "anything",
            f"{PREFIX}storage.validity.timeout.secs": str(VALIDITY_SECONDS),
            f"{PREFIX}storage.renew.interval.secs": "1",
        }
        return TableLock(IN_STORAGE, options)

    @property
    def java_options(self) -> str:
        """Returns the options that a JVM needs besides the jars and the options of storage and lock."""
        return f"-D{_ENDPOINT}={self.endpoint} -Daws.region={REGION}"

    @cached_property
    def dynamodb(self) -> Any:
        import boto3

        return boto3.client(
            "dynamodb",
            endpoint_url=self.s3.endpoint,
            aws_access_key_id="someone",
            aws_secret_access_key="anything",
            region_name=REGION,
        )


@contextmanager
def running(spark: SparkSession, lock: str) -> Iterator[Server]:
    """Starts the server for `IN_BUCKET` or `IN_DYNAMODB`, and gives the session jars, which it keeps, and options."""
    java: Any = spark._jvm
    system = java.java.lang.System
    _load(spark, lock)
    with s3.running() as storage, reached_by(spark, storage.options, "s3a://lake"):
        server = Server(storage, TcpGate(int(storage.endpoint.rpartition(":")[2])))
        properties = {_ENDPOINT: server.endpoint, "aws.region": REGION}
        for name, value in properties.items():
            system.setProperty(name, value)
        try:
            yield server
        finally:
            for name in properties:
                system.clearProperty(name)
            server.gate.end()


_loaded: set[str] = set()


def _load(spark: SparkSession, source: str) -> None:
    """Gives the session's JVM the jars for one of the classes in `tests/support/java`, or all of Hudi's own."""
    own = os.environ.get("HUDI_AWS_JARS")
    if (own or source) in _loaded:
        return
    libraries = _amazons() if source == IN_DYNAMODB else []
    for jar in map(Path, own.split(":")) if own else [*libraries, compiled(spark, source, libraries)]:
        add_jar(spark, jar)
    _loaded.add(own or source)


def _amazons() -> list[Path]:
    found = map(Path, class_path("com.amazonaws", "dynamodb-lock-client", "1.2.0").split(":"))
    return [jar for jar in found if not jar.name.startswith(_PROVIDED)]
