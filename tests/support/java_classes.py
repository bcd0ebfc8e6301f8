"""Compiles the classes in `tests/support/java`, which replace classes that no repository has."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.maven import JARS_OF_SPARK
from tests.support.session_jars import jars_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_SOURCES = Path(__file__).parent / "java"


def compiled(spark: SparkSession, source: str, libraries: Sequence[Path] = ()) -> Path:
    """Returns a jar of the class. Spark's compiler makes it, because a machine may have no JDK."""
    java: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    folder = Path(tempfile.mkdtemp(prefix="java-classes-"))

    def files(paths: Sequence[Path]) -> Any:
        array = gateway.new_array(java.java.io.File, len(paths))
        for number, path in enumerate(paths):
            array[number] = java.java.io.File(str(path))
        return array

    compiler = java.org.codehaus.janino.Compiler()
    compiler.setDestinationDirectory(java.java.io.File(f"{folder}/classes"), False)
    compiler.setTargetVersion(8)
    compiler.setClassPath(files([*libraries, *jars_of(spark), *JARS_OF_SPARK.glob("*.jar")]))
    compiler.compile(files([_SOURCES / source]))
    jar = folder / f"{Path(source).stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted((folder / "classes").rglob("*.class")):
            archive.write(path, path.relative_to(folder / "classes"))
    return jar
