"""One Spark session serves all tests that need real Hudi tables, integration and acceptance alike."""

from __future__ import annotations

import gc
import math
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import authorities, class_archive, rewriting, shared_tables
from tests.support import postgresql as postgresql_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares
    from tests.support.postgresql import Server

# A run starts a hundred Python processes. Each would compile the service again, and pytest would rewrite the assertions
# of all tests in each of its own, if the user's environment forbids to write compiled files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# All JVMs of tests, services and writers have these options, because they live for minutes, and the optimizing compiler
# would take a third of their CPU time. Without the compiler the code cache is small by default (48 MB), and when it is
# full, compiled code is discarded and compiled again all the time.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
os.environ.setdefault("JDK_JAVA_OPTIONS", f"{_JVM} {class_archive.JVM_OPTIONS}")
# The JVM grows its heap so slowly that collections took a third of the CPU time.
_HEAP = {"spark.driver.defaultJavaOptions": "-Xms2g -Xmn700m -XX:MetaspaceSize=400m"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="also the rest of the long matrices")
    parser.addoption("--rest", action="store_true", help="only the rest of the long matrices (see .ci/exhaustive)")


# The time of an example depends on what else the machine does.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


# The collector took a quarter of the time in which each process collects the tests: all that is made then stays.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    if "httpx" in sys.modules:
        authorities.share()


def pytest_configure(config: pytest.Config) -> None:
    if config.option.rest:
        config.option.exhaustive = True


# Tests of these files share a service whose worker has a JVM. Run in one process, they need only one.
_OF_THE_SHARED_DAEMON = {
    f"tests/acceptance/test_{name}.py"
    for name in ("by_itself", "main_job", "cancel", "refusals", "start_time", "worker_killed")
}

_SHARED_DAEMON = "tests of the shared daemon"
_FLINK = "tests of Flink"
# The longest files come first, so that no process runs one of them alone in the end.
_LONGEST = (
    _SHARED_DAEMON,
    _FLINK,
    *(
        f"tests/integration/test_{name}.py"
        for name in (
            "index_builds",
            "partial_statistics",
            "upgrade",
            "bucket_index",
            "clean_parts",
            "partitions_read",
            "bucketed_reads",
            "observed_tables",
            "rows_out_of_use",
            "kills",
            "indexes",
            "repair_beside_writers",
            "stale_writes",
            "plan_owner",
            "metadata_table",
            "beside_writers",
            "repair_order",
            "joined_files",
            "s3",
            "aws_accounts",
            "catalog_entries",
            "services",
            "arrow_compaction",
            "bucket_count",
            "resize_kills",
            "session_starts",
            "repair_of_evolved_tables",
            "bucket_resize",
            "clustering_beside_writers",
            "audit_sees",
            "keys_in_other_partitions",
            "missing_parts",
            "expression_indexes",
            "lock_unavailable",
            "statements",
            "evolved_schemas",
            "savepoints",
            "examine",
            "small_tables",
            "given_rollback",
            "lock_servers",
            "webhdfs",
            "consistent_hashing",
            "storage_refuses",
            "late_files",
            "prepared_expansion",
        )
    ),
    "tests of the dashboard",
    "tests/unit/test_code_checks.py",
    "tests/hostile/test_every_call.py",
    "tests/model/test_protocol.py",
    *(
        f"tests/hostile/test_{name}.py"
        for name in ("broken_database", "secrets", "tables", "connections", "interrupted_database")
    ),
    *(
        f"tests/integration/control_plane/test_{name}.py"
        for name in (
            "serve",
            "storage_accounts",
            "kafka",
            "long_poll",
            "glue_catalog",
            "delivering",
            "outbox",
            "dashboard",
            "upgrades",
            "observe_rounds",
            "command_line",
            "lock_watch",
        )
    ),
)
# Indexes, changed columns and stores of objects need much of Hudi that the other tests do not. To load and compile it
# takes a JVM some CPU seconds for each, so one process runs these files.
_OF_ONE_JVM = {
    f"tests/integration/test_{name}.py"
    for name in (
        *("index_builds", "partial_statistics", "upgrade", "indexes", "metadata_table", "expression_indexes"),
        *("index_kills", "arrow_compaction", "audit_sees", "missing_parts"),
        *("statements", "evolved_schemas", "repair_of_evolved_tables", "misread_columns", "changed_types"),
        *("s3", "s3_requests", "aws_accounts", "glue_sync", "catalog_entries"),
    )
}
_WITH_SPARK = ("tests/acceptance/", "tests/integration/test_", "tests/hostile/test_paths.py")


def _needs_spark(scope: str) -> bool:
    return scope in (_SHARED_DAEMON, _FLINK) or scope.startswith(_WITH_SPARK)


def _rank(scope: str) -> int:
    return _LONGEST.index(scope) if scope in _LONGEST else len(_LONGEST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Gives a file to one process, and the long files first. A single pure test needs no xdist.

    Two of three processes begin with the files that need Spark, and the others with the rest: a JVM takes a minute of
    CPU time to start and to get warm.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _assign_work_unit(self, node: Any) -> None:
            place = self.nodes.index(node)
            has_spark = place < math.ceil(self.numnodes * 2 / 3)
            wanted = [file for file in self.workqueue if _needs_spark(file) == has_spark]
            own = [file for file in wanted if (file in _OF_ONE_JVM) == (has_spark and place == 0)]
            self.workqueue.move_to_end(min(own or wanted or self.workqueue, key=_rank), last=False)
            super()._assign_work_unit(node)

        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if file.startswith("tests/dashboard/"):
                return "tests of the dashboard"
            if file.startswith("tests/flink/"):
                return _FLINK
            return _SHARED_DAEMON if file in _OF_THE_SHARED_DAEMON else file

    config.option.loadscopereorder = False
    return Scheduling(config, log)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Runs in the process that distributes the tests to the others, and in each of these."""
    worker = getattr(session.config, "workerinput", None)
    if worker:
        rewriting.rewrite_share(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
    elif session.config.getoption("numprocesses", None):
        shared_tables.share()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--rest"):
        _keep(config, items, _is_of_the_rest)
    elif config.getoption("--exhaustive"):
        return
    elif hasattr(config, "workerinput"):
        # To skip three thousand tests, and to report that of each, would take ten seconds.
        _keep(config, items, lambda item: not _is_of_the_rest(item))
    else:
        for item in filter(_is_of_the_rest, items):
            item.add_marker(pytest.mark.skip(reason=_LEFT_OUT))


def _keep(config: pytest.Config, items: list[pytest.Item], is_kept: Callable[[pytest.Item], bool]) -> None:
    kept = [item for item in items if is_kept(item)]
    config.hook.pytest_deselected(items=[item for item in items if not is_kept(item)])
    items[:] = kept


_LEFT_OUT = "of a long matrix: --exhaustive"


def pytest_report_header(config: pytest.Config) -> str:
    options = (("--rest", "the rest of the long matrices alone"), ("--exhaustive", "with the long matrices"))
    return next((said for option, said in options if config.getoption(option)), f"without what is {_LEFT_OUT}")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Ends the browser unless the next test uses it, too. Most processes have not even imported it."""
    chromium = sys.modules.get("tests.support.browser")
    if chromium and "faults_of" not in getattr(nextitem, "fixturenames", ()):
        chromium.end_shared()


def _is_of_the_rest(item: pytest.Item) -> bool:
    of_another_database = item.get_closest_marker("mostly_sqlite") is not None and "postgresql" in item.name
    return item.get_closest_marker("exhaustive") is not None or of_another_database


# Two thirds of the memory that the JVM allocated were buffers of 16 and 32 MB for files of some KB.
_BUFFER = 64 << 10

# Hadoop's local file system without its native library starts a process for each file whose permissions it sets or
# reads, which takes a tenth of the CPU time. The bare one does it in the JVM.
_FILES = {
    "fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    # Hudi reads an HFile through a buffer as large as a block.
    "fs.local.block.size": str(_BUFFER),
}
_FILES_PACKAGE = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"


@pytest.fixture(scope="session", autouse=True)
def _no_contexts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides the services that the user of this machine has named for the command line."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    # Tests without a session do not even import PySpark.
    from jobs.hudi.jvm import jvm_of
    from jobs.hudi.session import ABFS, GS, S3A, start_session

    # A process runs more different queries than the default cache holds, and would compile most of them again.
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.cache.maxEntries": "2000",
        # Spark writes a description of each query's plan for its pages, which nobody opens.
        "spark.sql.ui.explainMode": "simple",
        # Each broadcast allocates a block.
        "spark.broadcast.blockSize": "256k",
        **_HEAP,
    }
    packages = [S3A, ABFS, _FILES_PACKAGE, *([GS] if request.config.getoption("--exhaustive") else [])]
    session = start_session(driver_memory="3g", packages=packages, conf=conf, storage_options=_FILES)
    session._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]
    _forget_unread_options(session)
    # Making this object gives logs small buffers.
    _ = jvm_of(session).reads
    yield session
    session.stop()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The place of a test's table."""
    return tmp_path / "trips"


@pytest.fixture
def spares(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spares]:
    """Returns worker processes that a test kills. Each starts before it is needed: the first while the test writes its
    table."""
    from tests.integration.doomed import Spares
    from tests.support.session_jars import jars_of

    found = Spares(jars_of(spark), tmp_path_factory.mktemp("victims"))
    yield found
    found.end()


@pytest.fixture
def spares_if_killed(request: pytest.FixtureRequest, *, is_killed: bool) -> Spares | None:
    """The workers of one of the `dying_job.cases`."""
    return request.getfixturevalue("spares") if is_killed else None


_UNREAD = (
    *("yarn.", "mapreduce.", "ipc.", "ha.", "rpc.", "hadoop.http.", "hadoop.registry.", "hadoop.zk.", "hadoop.caller."),
    *("hadoop.ssl.", "hadoop.shell.", "hadoop.prometheus.", "net.topology.", "nfs.", "ftp.", "fs.viewfs.", "fs.ftp."),
    *("fs.adl.", "adl.", "io.erasurecode.", "io.map.", "io.mapfile.", "tfile."),
    *(f"hadoop.security.{name}." for name in ("group.mapping.ldap", "groups", "kms", "key", "crypto", "dns")),
)


def _forget_unread_options(session: Any) -> None:
    """Removes Hadoop's options that only YARN, MapReduce, its own servers, LDAP and unused stores read: 780 of 1 000.
    Hudi sends all options with each of its tasks, and to write and read them took a sixth of the CPU time. Readers of
    Parquet make options of their own from the files of defaults, of which those of YARN and MapReduce are two thirds.
    """
    java = session._jvm.java.lang.Class
    # JobConf adds them when it is loaded, so it is loaded first; later it would add them again.
    java.forName("org.apache.hadoop.mapred.JobConf")
    defaults = java.forName("org.apache.hadoop.conf.Configuration").getDeclaredField("defaultResources")
    defaults.setAccessible(True)
    files = defaults.get(None)
    for file in [file for file in files if file.startswith(("yarn-", "mapred-"))]:
        files.remove(file)
    hadoop = session.sparkContext._jsc.hadoopConfiguration()
    for prefix in _UNREAD:
        for name in list(hadoop.getPropsWithPrefix(prefix)):
            hadoop.unset(prefix + name)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A throw-away PostgreSQL server."""
    if not (postgresql_server.PROGRAMS / "initdb").exists():
        pytest.skip(f"PostgreSQL 15 is not installed: there is no {postgresql_server.PROGRAMS}/initdb")
    with postgresql_server.running() as server:
        yield server
