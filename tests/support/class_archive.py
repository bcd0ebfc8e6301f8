"""A class-data archive of Spark and Hudi, with which the JVMs that tests start begin their work a quarter sooner.

The JVM loads parsed classes from it (`-XX:SharedArchiveFile`) instead of reading thousands of them from jars.
The test process writes the archive in the background at its start; earlier JVMs and those with other jars do not use
it. One archive serves one installation of PySpark.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

# PySpark is not imported here: most of the tests in `tests/unit` need none.
_SPARK = importlib.util.find_spec("pyspark")
_INSTALLATION = hashlib.sha256(f"{_SPARK.origin} {version('pyspark')}".encode() if _SPARK else b"").hexdigest()[:16]
ARCHIVE = Path(tempfile.gettempdir()) / f"groundskeeper-classes-{_INSTALLATION}.jsa"
# A JVM with other jars would print at each start that it cannot use the archive.
JVM_OPTIONS = f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off"


def write_in_background(jvm_options: str) -> subprocess.Popen[bytes] | None:
    """Starts a process that writes the archive, unless there is one."""
    if ARCHIVE.exists():
        return None
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    options = f"{jvm_options} -XX:ArchiveClassesAtExit={unfinished}"
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.class_archive", str(unfinished)],
        env={**os.environ, "JDK_JAVA_OPTIONS": options},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main(unfinished: Path) -> None:
    from jobs.hudi.session import start_session

    with tempfile.TemporaryDirectory() as folder:
        spark = start_session()
        rows = spark.range(100).selectExpr("id", "id AS ts")
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "1",
        }
        for _ in range(2):
            rows.write.format("hudi").options(**options).mode("append").save(folder)
        assert spark.read.format("hudi").load(folder).count() == 100
        gateway = spark.sparkContext._gateway
        spark.stop()
        # The JVM writes the archive when it ends, and it ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait()
    unfinished.replace(ARCHIVE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
