"""Starts the Spark session for the jobs: Hudi on the class path, a suitable Java, the right Python."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from jobs.contract import Problem
from jobs.format.gzip_level import LEVEL_VARIABLE
from jobs.format.properties import parse_properties
from jobs.format.spark_options import OWNED, is_local, with_retries
from jobs.hudi import gateway, google_connector, idle_jvm, ivy, session_python, storage_login, task_numbers
from jobs.hudi.java import CACHE, NoJavaError, chosen_java
from jobs.hudi.java_view import names
from jobs.hudi.jvm import first_line
from jobs.hudi.jvm_log import JvmLog, java_option
from jobs.hudi.kerberos import log_in
from jobs.hudi.start_failure import explained, is_of_packages
from jobs.problems.worker_starts import JAVA_UNSUITED, SPARK_NOT_STARTED

logger = logging.getLogger(__name__)

DEFAULT_MASTER = "local[2,4]"
HUDI_BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
# The packages for `s3a`: the S3 file system of the Hadoop that PySpark brings (3.3.4), with only the modules of
# Amazon's SDK that it needs (7 MB; its default is a bundle of 280 MB). Spark provides the rest.
S3A = "s3a"
# Google's connector for `gs`, which Maven coordinates cannot name (`google_connector`).
GS = "gs"
# Hadoop's file system for Azure (6 MB), for `abfs` and `abfss`.
ABFS = "abfs"
_S3A_PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.3.4",
    *(f"com.amazonaws:aws-java-sdk-{module}:1.12.262" for module in ("core", "s3", "kms", "sts", "dynamodb")),
)
_SHORT = {S3A: _S3A_PACKAGES, ABFS: ("org.apache.hadoop:hadoop-azure:3.3.4",)}
_PROVIDED = (
    "com.amazonaws:aws-java-sdk-bundle",
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-databind",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "joda-time:joda-time",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
)
_PROVIDED_TO_ABFS = (*_PROVIDED, "com.google.guava:guava")
# pyarrow's default, mimalloc, retains up to 100 MiB more of the memory that a task has freed.
MEMORY_OF_TASKS = {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"} if "jemalloc" in pa.supported_memory_backends() else {}
# Hadoop's default is too low for the connections that Hudi leaks (`jobs.hudi.s3a_recycling`). Any other value was set
# by the user and stays.
S3_CONNECTIONS, HADOOPS_S3_CONNECTIONS = "fs.s3a.connection.maximum", "96"


# The second compiler compiles a method only after forty times the calls and ten times the loops of Java's defaults.
# Java's defaults cost a sixth of the CPU of jobs on small tables, for methods that few jobs call again. Methods that
# are called for each row are still compiled within a second or two.
_COMPILE_LATER = " ".join(
    f"-XX:Tier4{name}Threshold={count}"
    for name, count in {"Invocation": 200_000, "MinInvocation": 24_000, "Compile": 600_000, "BackEdge": 400_000}.items()
)
# The JVM's table of names has 32 768 places by default, and Spark and Hudi load many times as many. To search the lists
# behind the places took a fifth of the CPU time of loading classes.
_MANY_NAMES = "-XX:+UnlockExperimentalVMOptions -XX:SymbolTableSize=1048576"
# Hudi measures objects by JOL, which first starts two more JVMs that try to read the memory of this one, in vain.
_MEASURE_FROM_WITHIN = "-Djol.skipDynamicAttach=true -Djol.skipHotspotSAAttach=true"
_OWN_IVY_SETTINGS = CACHE / "ivy" / "settings.xml"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_PACKAGES, _IVY, _IVY_SETTINGS = "spark.jars.packages", "spark.jars.ivy", "spark.jars.ivySettings"
_LAST_LINES_SECONDS = 2.0


class NoSessionError(ConnectionError):
    """Spark did not start: its master does not answer or refuses, an option is wrong, or this machine lacks
    something."""

    def __init__(self, master: str, problem: Problem) -> None:
        reason = problem.detail if problem.type == SPARK_NOT_STARTED.type else f"{problem.title}: {problem.detail}"
        super().__init__(f"Spark did not start on {master}: {reason.rstrip('.')}. {problem.hint}")
        self.problem = problem


class BundleMissingError(FileNotFoundError):
    """The folder of jars lacks the Hudi bundle of this version."""


def start_session(
    *,
    master: str = DEFAULT_MASTER,
    app_name: str = "groundskeeper",
    driver_memory: str = "2g",
    packages: Sequence[str] = (),
    jars: Path | None = None,
    storage_options: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    local_maven: bool = False,
    log: JvmLog | None = None,
) -> SparkSession:
    """Returns the Spark session with Hudi 1.2. The first start on a machine downloads the Hudi bundle (80 MB) with Ivy.

    `packages` are further Maven coordinates, `s3a`, `gs` or `abfs`. `jars` is a folder with the bundle, and possibly
    the jars of the packages, which are then not downloaded. `storage_options` are Hadoop's, such as `fs.s3a.endpoint`.
    The user's Maven repository on this machine is searched only if `local_maven` is set. `log` gets the log of the JVM,
    if this call starts one. `conf` are options of Spark; `spark_options.OWNED` override them.

    Under `spark-submit` the JVM runs already: its master, memory and jars stay, and its options override the defaults
    here. The options of `spark-defaults.conf` override them, too. Raises `NoSessionError`, `NoTicketError`.
    """
    master = effective_master(master)
    try:
        home, java_options = chosen_java()
    except NoJavaError as error:
        raise NoSessionError(master, JAVA_UNSUITED.because(str(error))) from error
    given = _given()
    chosen = dict(conf or {})
    if not _is_submitted():
        chosen = {**_jars(packages, jars, _connectors(packages, jars, home, java_options)), **chosen}
        if chosen.get(_PACKAGES) and not local_maven and _IVY_SETTINGS not in {*chosen, *given}:
            chosen[_IVY_SETTINGS] = str(_OWN_IVY_SETTINGS)
        chosen["spark.driver.memory"] = chosen.get("spark.driver.memory", driver_memory)
        # After an OutOfMemoryError in one job the state of the whole JVM is unreliable, including the other slots'
        # jobs.
        of_log = java_option() if log else ""
        of_jvm = (
            of_log,
            "-XX:+ExitOnOutOfMemoryError",
            _COMPILE_LATER,
            _MEASURE_FROM_WITHIN,
            _MANY_NAMES,
            idle_jvm.JAVA_OPTIONS,
            java_options,
            chosen.get(_JVM_OPTIONS) or given.get(_JVM_OPTIONS, ""),
        )
        chosen[_JVM_OPTIONS] = " ".join(filter(None, of_jvm))
    # The variable is set before the JVM starts, because local mode ignores `spark.pyspark.python`.
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = session_python.python(master, chosen, given)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.update(MEMORY_OF_TASKS)
    unset = {key: value for key, value in {**_defaults(), **session_python.daemon(master)}.items() if key not in given}
    unset |= idle_jvm.spark_options(master, {**given, **chosen})
    options = {**unset, "spark.app.name": app_name, **chosen, **OWNED, "spark.master": master}
    session = _session(options, log)
    session.sparkContext.setLogLevel("ERROR")
    gateway.remove_together(session)
    idle_jvm.let_cleaner_wait(session)
    gateway.send_at_once(session)
    task_numbers.begin_at_random_numbers(session)
    _silence_lock_retries(session)
    hadoop: Any = session.sparkContext._jsc.hadoopConfiguration()
    if hadoop.get(S3_CONNECTIONS) == HADOOPS_S3_CONNECTIONS:
        hadoop.set(S3_CONNECTIONS, "1000")
    for key, value in (storage_options or {}).items():
        # The options are set after the start, because as Spark options the secrets would be on the JVM's command line.
        hadoop.set(key.removeprefix("spark.hadoop."), value)
    try:
        storage_login.set_up(session, storage_options or {})
    except storage_login.LoginClassError as error:
        raise NoSessionError(master, SPARK_NOT_STARTED.because(str(error))) from error
    log_in(session)
    session_python.drop_jars(session.sparkContext)
    _look_up_functions(session)
    if not is_local(master):
        session_python.ship_jobs(session.sparkContext)
    return session


def effective_master(master: str) -> str:
    """Returns the master that a session will have: under `spark-submit` its own, and a local one with retries."""
    return with_retries(_given().get("spark.master", master) if _is_submitted() else master)


def _session(options: Mapping[str, str], log: JvmLog | None = None) -> SparkSession:
    master = options["spark.master"]
    try:
        if SparkContext._gateway is None:
            # Only the start of the JVM downloads jars, so the lock is not held while Spark waits for its master.
            with _one_at_a_time():
                SparkContext._ensure_initialized(gateway=_gateway(options, log))
        return SparkSession.builder.config(map=dict(options)).getOrCreate()
    except (Py4JError, PySparkException) as error:
        logger.debug("Spark does not start", exc_info=error)
        reason = first_line(error)
        raise NoSessionError(master, explained(f"{_last_lines(log)}\n{error}", reason)) from error
    except OSError as error:
        # PySpark itself writes files during the start, too.
        raise NoSessionError(master, explained(f"{_last_lines(log)}\n{error}", str(error))) from error


def _gateway(options: Mapping[str, str], log: JvmLog | None) -> Any:
    """Starts the JVM. If packages are missing, this removes incomplete modules from Ivy's cache and tries once more."""
    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    # The JVM reports missing memory on its standard output.
    of_jvm = {"stderr": log.stderr, "stdout": log.stderr} if log else {}
    if options.get(_IVY_SETTINGS) == str(_OWN_IVY_SETTINGS):
        ivy.write_settings(_OWN_IVY_SETTINGS)
    try:
        return launch_gateway(conf, of_jvm)  # type: ignore[no-untyped-call]
    except PySparkException:
        if _PACKAGES not in options or (log and not is_of_packages(_last_lines(log))):
            raise
        forgotten = ivy.forget_incomplete(Path(options[_IVY]))
        if not forgotten:
            raise
        logger.warning("fetching packages again that are not whole: %s", ", ".join(forgotten))
    return launch_gateway(conf, of_jvm)  # type: ignore[no-untyped-call]


def _last_lines(log: JvmLog | None) -> str:
    return log.last_lines(_LAST_LINES_SECONDS) if log else ""


def _is_submitted() -> bool:
    """Returns whether `spark-submit` runs this program: its JVM is then the parent of this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _given() -> dict[str, str]:
    """Returns the options that `spark-submit` was given, or those of `spark-defaults.conf`, which the JVM will read."""
    if _is_submitted():
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    home: str = os.environ.get("SPARK_HOME") or _find_spark_home()  # type: ignore[no-untyped-call]
    folder = os.environ.get("SPARK_CONF_DIR") or f"{home}/conf"
    try:
        return parse_properties(Path(folder, "spark-defaults.conf").read_bytes())
    except FileNotFoundError:
        return {}


def _connectors(packages: Sequence[str], folder: Path | None, home: Path, java_options: str) -> list[Path]:
    """Returns the jars of packages that Maven coordinates cannot name. Raises ConnectorMissingError."""
    if GS not in packages or (folder and list(folder.glob(f"*{google_connector.JAR}"))):
        return []
    with _one_at_a_time():
        return [google_connector.fetched(CACHE / "ivy" / "connectors", home, java_options)]


def _jars(packages: Sequence[str], folder: Path | None = None, more: Sequence[Path] = ()) -> dict[str, str]:
    """Returns the options for the packages: each is a Maven coordinate; `s3a` stands for several.

    Packages whose jars are in the folder are not downloaded. `more` are further jars. Raises BundleMissingError.
    """
    jars = jars_of(folder) if folder else []
    chosen = [] if folder else [HUDI_BUNDLE]
    # The coordinates for a short name, unless the folder has these jars.
    wanted = {name: found for name, found in _SHORT.items() if not any(_is_jar_of(found[0], jar) for jar in jars)}
    for package in packages:
        if package != GS:
            chosen += wanted.get(package, ()) if package in _SHORT else [package]
    chosen_short = wanted.keys() & set(packages)
    without = ",".join(_PROVIDED_TO_ABFS if ABFS in chosen_short else _PROVIDED) if chosen_short else ""
    options = {
        "spark.jars": ",".join(map(str, [*jars, *more])),
        "spark.jars.packages": ",".join(chosen),
        "spark.jars.excludes": without,
    }
    return {key: value for key, value in options.items() if value}


def jars_of(folder: Path) -> list[Path]:
    """Returns the jars of the folder. Raises BundleMissingError."""
    jars = sorted(folder.resolve().glob("*.jar"))
    if not any(_is_jar_of(HUDI_BUNDLE, jar) for jar in jars):
        raise BundleMissingError(f"There is no {_jar_name(HUDI_BUNDLE)} in {folder}.")
    return jars


def bundle(folder: Path | None) -> Path | None:
    """Returns Hudi's bundle in the folder; without a folder the one in the cache, or None if the next session has to
    fetch it.

    Raises BundleMissingError.
    """
    found = jars_of(folder) if folder else sorted((CACHE / "ivy" / "jars").glob("*.jar"))
    return next((jar for jar in found if _is_jar_of(HUDI_BUNDLE, jar)), None)


def _is_jar_of(package: str, jar: Path) -> bool:
    """Returns whether this is the package's jar. Ivy puts the name of its group in front: `<group>_<name>`."""
    name = _jar_name(package)
    return jar.name in (name, f"{package.split(':')[0]}_{name}")


def _jar_name(package: str) -> str:
    _, artifact, version = package.split(":")
    return f"{artifact}-{version}.jar"


def _silence_lock_retries(session: SparkSession) -> None:
    """Prevents Hudi from logging a stack trace for each attempt at a lock that others hold: 36 lines a second."""
    jvm: Any = session._jvm
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.hudi.common.util.RetryHelper", log4j.Level.OFF)


def _look_up_functions(session: SparkSession) -> None:
    """Caches the Java classes that every function of a query and every selection of columns looks up. For each look-up
    the JVM searches all jars for the name in each imported package, which takes a millisecond or two."""
    jvm: Any = session._jvm
    for name in ("functions", "PythonUtils", "PythonSQLUtils"):
        setattr(jvm, name, getattr(names(jvm), name))


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Serializes starts, because two processes cannot download the bundle into Ivy's cache at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "starting.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _defaults() -> dict[str, str]:
    level = {LEVEL_VARIABLE: os.environ[LEVEL_VARIABLE]} if LEVEL_VARIABLE in os.environ else {}
    return {
        "spark.jars.ivy": str(CACHE / "ivy"),
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(CACHE / "warehouse"),
        **{f"spark.executorEnv.{name}": value for name, value in {**MEMORY_OF_TASKS, **level}.items()},
        # Python workers keep their modules; without reuse each of them would import pyarrow again.
        "spark.python.worker.reuse": "true",
    }
