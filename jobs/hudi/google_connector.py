"""Fetches Google's connector for Hadoop, as the jar that includes its libraries. `spark.jars.packages` cannot name that
jar, because it has a classifier; and the libraries of the plain jar conflict with Spark's."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

_GROUP, _NAME, _VERSION, _CLASSIFIER = "com.google.cloud.bigdataoss", "gcs-connector", "hadoop3-2.2.26", "shaded"
JAR = f"{_NAME}-{_VERSION}-{_CLASSIFIER}.jar"
_WANTED = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="groundskeeper" module="connector"/>
  <dependencies>
    <dependency org="{_GROUP}" name="{_NAME}" rev="{_VERSION}" transitive="false">
      <artifact name="{_NAME}" type="jar" m:classifier="{_CLASSIFIER}"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
_SECONDS = 600


class ConnectorMissingError(RuntimeError):
    """The connector could not be fetched."""


def fetched(folder: Path, java_home: Path, java_options: str) -> Path:
    """Returns the jar in `folder`; the first call on a machine fetches it (38 MB) with the Ivy that Spark brings.

    Concurrent calls must not use the same folder. Raises ConnectorMissingError.
    """
    jar = folder / JAR
    if jar.is_file():
        return jar
    folder.mkdir(parents=True, exist_ok=True)
    spark_home: str = _find_spark_home()  # type: ignore[no-untyped-call]
    [ivy] = Path(spark_home, "jars").glob("ivy-*.jar")
    # The jar is fetched to a temporary folder, so that a jar at the final path is always complete.
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        wanted = Path(unfinished, "ivy.xml")
        wanted.write_text(_WANTED)
        command = [f"{java_home}/bin/java", *java_options.split(), "-jar", str(ivy), "-ivy", str(wanted)]
        command += [
            "-cache",
            f"{unfinished}/cache",
            "-retrieve",
            f"{unfinished}/[artifact]-[revision]-{_CLASSIFIER}.[ext]",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        found = Path(unfinished, JAR)
        if done.returncode or not found.is_file():
            raise ConnectorMissingError(f"{JAR} could not be fetched: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        found.replace(jar)
    return jar
