"""Writes a class-data archive of Spark and Hudi, with which each JVM that tests start takes a third less CPU time for
its start and its first jobs.

The JVM loads parsed classes from it (`-XX:SharedArchiveFile`) instead of reading thousands of them from jars; JVMs with
other jars do not use it. One archive serves one installation of PySpark. Writing the archive takes 50 CPU seconds, more
than a single run of the suite saves, so only `python -m tests.support.class_archive` writes it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

# PySpark is not imported here: most of the tests in `tests/unit` need none.
_SPARK = importlib.util.find_spec("pyspark")
_INSTALLATION = hashlib.sha256(f"{_SPARK.origin} {version('pyspark')}".encode() if _SPARK else b"").hexdigest()[:16]
ARCHIVE = Path(tempfile.gettempdir()) / f"groundskeeper-classes-{_INSTALLATION}.jsa"
# A JVM with other jars would print at each start that it cannot use the archive. If the option named a
# missing archive, a JVM would not use the archive of Java's own classes either.
JVM_OPTIONS = f"-XX:SharedArchiveFile={ARCHIVE} -Xlog:cds*=off" if ARCHIVE.exists() else ""


def write() -> None:
    """Writes the archive, in place of an earlier one."""
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    # The JVM reads the variable at its start.
    os.environ["JDK_JAVA_OPTIONS"] = f"-XX:+UseSerialGC -XX:ArchiveClassesAtExit={unfinished} -Xlog:cds*=off"
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
    write()
