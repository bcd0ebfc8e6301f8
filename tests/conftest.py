"""One Spark session serves all tests that need real Hudi tables, integration and acceptance alike."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests import class_archive
from tests import postgresql as postgresql_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.postgresql import Server

# For every JVM that a test starts, ours and those of services and writers: they live for minutes, and the optimizing
# compiler would take a third of their CPU time. Without it the code cache is small by default (48 MB), and once it is
# full, compiled code is thrown away and compiled again all the time.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
os.environ.setdefault("JDK_JAVA_OPTIONS", f"{_JVM} {class_archive.JVM_OPTIONS}")
# The JVM grows its heap so slowly that collections took a third of the CPU time.
_HEAP = {"spark.driver.defaultJavaOptions": "-Xms2g -Xmn700m"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="also the rest of the long matrices")


# Tests of these files share a service whose worker has a JVM: in one process, one is enough.
_OF_THE_SHARED_DAEMON = {
    f"tests/acceptance/test_{name}.py"
    for name in ("by_itself", "main_job", "cancel", "refusals", "start_time", "worker_killed")
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Gives a file to one process, and the long files at the front first. A single pure test needs no xdist."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if file.startswith("tests/dashboard/"):
                return "tests of the dashboard"
            return "tests of the shared daemon" if file in _OF_THE_SHARED_DAEMON else file

    config.option.loadscopereorder = False
    return Scheduling(config, log)


def pytest_sessionstart(session: pytest.Session) -> None:
    """In the one process that gives the tests to the others."""
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        class_archive.write_in_background(_JVM)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--exhaustive"):
        for item in items:
            is_of_another_database = item.get_closest_marker("mostly_sqlite") and "postgresql" in item.name
            if item.get_closest_marker("exhaustive") or is_of_another_database:
                item.add_marker(pytest.mark.skip(reason="of a long matrix: --exhaustive"))


# Hadoop's local file system without its native library starts a process for each file whose permissions it sets or
# reads, which takes a tenth of the CPU time. The bare one does it in the JVM.
_FILES = {"fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"}
_FILES_PACKAGE = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    # Tests without a session do not even import PySpark.
    from jobs.hudi.session import ABFS, GS, S3A, start_session

    conf = {"spark.sql.shuffle.partitions": "2", **_HEAP}
    packages = [S3A, ABFS, _FILES_PACKAGE, *([GS] if request.config.getoption("--exhaustive") else [])]
    session = start_session(driver_memory="3g", packages=packages, conf=conf, storage_options=_FILES)
    session._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A throw-away PostgreSQL server."""
    if not (postgresql_server.PROGRAMS / "initdb").exists():
        pytest.skip(f"PostgreSQL 15 is not installed: there is no {postgresql_server.PROGRAMS}/initdb")
    with postgresql_server.running() as server:
        yield server
