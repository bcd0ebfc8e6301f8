"""A writer and reader with an older Hudi in its own process, which all tests of a module share.

Commands and answers are JSON objects, one on a line. An older version of Hudi needs its own JVM, which loads only
Spark, that bundle and this file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Self

    from pyspark.sql import DataFrame, SparkSession

BUNDLE = "hudi-spark3.5-bundle_2.12"
_ANSWER = "ANSWER "


class OldHudiError(Exception):
    """A command failed in the other process. The text is its exception."""


class OldWriter:
    """`version` is Hudi's version, `zone` the time zone of the JVM (None: the machine's), `environment` holds
    additional variables of the JVM. `close` ends the process."""

    def __init__(self, version: str, zone: str | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.version = version
        java = {"JAVA_TOOL_OPTIONS": f"-Duser.timezone={zone}"} if zone else {}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.integration.old_writer",
                bundle(version),
                json.dumps(dict(environment or {})),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **java, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def upsert(
        self, base: Path, options: Mapping[str, str], first: int, last: int, *, ts: int = 0, create: bool = False
    ) -> None:
        """Writes the rows first..last-1 of `tables.rows`."""
        self._ask(do="upsert", base=str(base), options=options, first=first, last=last, ts=ts, create=create)

    def write(
        self, base: Path, options: Mapping[str, str], rows: list[list[Any]], schema: str, *, create: bool = False
    ) -> None:
        """Writes rows with another schema, by the operation in `options`."""
        self._ask(do="write", base=str(base), options=options, rows=rows, schema=schema, create=create)

    def snapshot(self, base: Path) -> list[str]:
        """Returns all rows as `tables.snapshot` does."""
        found: list[str] = self._ask(do="snapshot", base=str(base))
        return found

    def read(self, base: Path, columns: list[str]) -> list[list[Any]]:
        found: list[list[Any]] = self._ask(do="read", base=str(base), columns=columns)
        return found

    def sql(self, statement: str) -> None:
        self._ask(do="sql", statement=statement)

    def misread_deletes(self) -> None:
        """Lets Avro look up the class of a delete in a log as a thread of a parallel stream does: without the class
        loader of the bundle. Hudi before 1.1 cannot read such deletes in this process any more."""
        self._ask(do="misread_deletes")

    def _ask(self, **command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                answer = json.loads(line.removeprefix(_ANSWER))
                if "error" in answer:
                    raise OldHudiError(answer["error"])
                return answer["found"]
        raise AssertionError(f"the process of Hudi {self.version} has ended")


def bundle(version: str) -> str:
    from tests.support import maven

    jars = maven.class_path("org.apache.hudi", BUNDLE, version).split(":")
    return next(jar for jar in jars if BUNDLE in jar)


def session(bundle: str, **more: str) -> SparkSession:
    """Starts a session with this bundle alone. `more` are options without `spark.`."""
    from pyspark.sql import SparkSession

    from jobs.hudi.java import chosen_java

    home, options = chosen_java()
    os.environ["JAVA_HOME"] = str(home)
    conf = {
        "driver.extraJavaOptions": options,
        "driver.memory": "1g",
        "jars": bundle,
        "kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "serializer": "org.apache.spark.serializer.KryoSerializer",
        "sql.filesourceTableRelationCacheSize": "0",
        "sql.session.timeZone": "UTC",
        "sql.shuffle.partitions": "2",
        "ui.enabled": "false",
        **more,
    }
    builder = SparkSession.builder.master("local[2,4]").appName("old Hudi")
    for name, value in conf.items():
        builder = builder.config(f"spark.{name}", value)
    return builder.getOrCreate()


def _done(spark: SparkSession, command: dict[str, Any]) -> Any:
    from tests.integration import tables

    base = command.get("base", "")
    match command["do"]:
        case "upsert":
            _save(tables.rows(spark, command["first"], command["last"], ts=command["ts"]), base, command)
        case "write":
            _save(spark.createDataFrame([tuple(row) for row in command["rows"]], command["schema"]), base, command)
        case "snapshot":
            return tables.snapshot(spark, base)
        case "read":
            found = spark.read.format("hudi").load(base).select(*command["columns"]).collect()
            return [list(row) for row in found]
        case "sql":
            spark.sql(command["statement"]).collect()
        case "misread_deletes":
            _misread_deletes(spark)
    return None


def _misread_deletes(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    thread = jvm.java.lang.Thread.currentThread()
    loader = thread.getContextClassLoader()
    models = "org.apache.hudi.avro.model.HoodieDeleteRecord"
    schema = loader.loadClass(models).getMethod("getClassSchema", None).invoke(None, None)
    avro = jvm.org.apache.avro.specific.SpecificData.getForClass(loader.loadClass(f"{models}List"))
    thread.setContextClassLoader(jvm.java.lang.ClassLoader.getSystemClassLoader())
    try:
        assert avro.getClass(schema) is None
    finally:
        thread.setContextClassLoader(loader)


def _save(frame: DataFrame, base: str, command: dict[str, Any]) -> None:
    mode = "overwrite" if command["create"] else "append"
    frame.write.format("hudi").options(**command["options"]).mode(mode).save(base)


def _commands() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


if __name__ == "__main__":
    os.environ.update(json.loads(sys.argv[2]))
    of_hudi = {
        "sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    }
    old = session(sys.argv[1], **of_hudi)
    for asked in _commands():
        try:
            answered = {"found": _done(old, asked)}
        except Exception as error:
            answered = {"error": f"{type(error).__name__}: {str(error)[:3000]}"}
        print("\n" + _ANSWER + json.dumps(answered), flush=True)
    old.stop()
