"""The boundary to the JVM: converts Python collections to Java ones and Java exceptions to our errors."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from py4j.java_gateway import get_java_class
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from jobs.errors import CommitLostError, FileMissingError, JobError
from jobs.hudi.driver_engine import driver_engine
from jobs.hudi.folder_reads import folder_reads
from jobs.hudi.hashing_reads import hashing_reads
from jobs.hudi.held_locks import LOST, LOST_INSTANT
from jobs.hudi.java_view import JavaView
from jobs.hudi.local_files import use_local_files
from jobs.hudi.storage_reads import storage_reads
from jobs.lock_errors import LockLostError, TableLockedError
from jobs.storage.refusal import refusal_in
from jobs.storage_errors import StorageRefusedError, error_of, hudi_error
from jobs.table_errors import (
    KeyWithoutBucketError,
    LogFormatError,
    MetadataTableError,
    MetadataTableGoneError,
    OrderingValuesError,
    PartitionValuesError,
    TableEmptyError,
    TableGoneError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

Judge = Callable[[list[tuple[str, str]]], JobError]

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_MOST_READS = 10

# Errors by simple class name. The whole chain of causes is searched from the outside; the first listed name counts.
_TYPED: dict[str, type[JobError]] = {
    "HoodieLockException": TableLockedError,
    "TableNotFoundException": TableGoneError,
    "HoodieSchemaNotFoundException": TableEmptyError,
    "FileNotFoundException": FileMissingError,
    "SparkFileNotFoundException": FileMissingError,
    # Hudi raises this for any error of a look-up or a commit in the metadata table.
    "HoodieMetadataException": MetadataTableError,
}


# Hudi's metadata table is a table of its own, below the table's folder.
_OF_METADATA_TABLE = re.compile(r"/\.hoodie/metadata\b")

# `HoodieTableMetadataUtil`, `HoodieBackedTableMetadataWriter`: the properties name an index without files, such as one
# that Hudi's own `rollback_to_savepoint` has built and taken back.
_OF_INDEX_WITHOUT_FILES = re.compile(
    r"Partition \S+ should be part of inflight metadata partitions|No file slices found for partition: "
)

# Spark's text about the last failed task (`DAGScheduler.abortStage`), which precedes the exception of the task.
_OF_TASK = re.compile(r"Job aborted due to stage failure: .*? executor \w+\): (?=[\w.$]+)")

# `HoodieSparkUtils.parsePartitionColumnValues`, `SparkHoodieTableFileIndex`. An empty value is written to the path as
# Hive's default partition, and read as null, also where the column may not be null; then a read that merges logs fails
# (`HoodieFileGroupReaderBasedFileFormat.appendPartitionAndProject`). `YWI=` is read as an empty value, too. A day of
# slash-separated dates is read as a text, also for a column of dates.
_OF_PARTITION_VALUES = re.compile(
    r"Failed to cast value .* for partition column|Failed to parse partition column val"
    r"|.*Empty partition column value in "
    r"|java\.lang\.ClassCastException: class org\.apache\.spark\.unsafe\.types\.UTF8String cannot be cast to class"
    r" java\.lang\.Integer"
    r"|java\.lang\.NullPointerException: Cannot invoke "
    r'"org\.apache\.spark\.unsafe\.types\.UTF8String\.getBaseObject\(\)" because "input" is null'
)

_OF_LOST_LOCK, _OF_LOST_INSTANT = (re.compile(rf"{each}(.*)") for each in (LOST, LOST_INSTANT))

# A line of a traceback of Python, and the place in its line of code.
_FRAME = re.compile(r"^ +.*\n", re.MULTILINE)
# `jobs.format.bucket_hash.RecordKeyError`, in the traceback of a Python worker.
_OF_RECORD_KEY = re.compile(r"RecordKeyError: (.*)")
# Ordering values of two classes, and Avro records of HFile blocks in place of Spark's rows, in Java's stack trace.
_OF_ORDERING = re.compile(
    r"ClassCastException: (class \S+ cannot be cast to class \S+)[^\n]*\n(?:\s+at [^\n]*compare[^\n]*\n)*"
    r"\s+at [^\n]*BufferedRecordMergerFactory\.shouldKeepNewerRecord"
)
_OF_LOG_FORMAT = re.compile(
    r"ClassCastException: (class org\.apache\.avro\.generic\.GenericData\$Record cannot be cast to class"
    r" org\.apache\.spark\.sql\.catalyst\.InternalRow)"
)


class Jvm(JavaView):
    """Shorthands over one Spark session's gateway."""

    @cached_property
    def engine_context(self) -> Any:
        """Hudi's engine of this session (`jobs.hudi.driver_engine`)."""
        # The engine keeps its own copy of Hadoop's options, so they are reduced before.
        self._slim_options()
        return driver_engine(self, self._session._jsc)

    @cached_property
    def reads(self) -> Any:
        """The calls of `jobs.hudi.storage_reads`."""
        return storage_reads(self)

    @cached_property
    def folders(self) -> Any:
        """The calls of `jobs.hudi.folder_reads`."""
        return folder_reads(self)

    @cached_property
    def hashing(self) -> Any:
        """The calls of `jobs.hudi.hashing_reads`."""
        return hashing_reads(self)

    def parallelize(self, values: Any) -> Any:
        """Returns a `JavaRDD` of one partition with the elements of a Java list."""
        return self._session._jsc.parallelize(values, 1)

    def storage_conf(self) -> Any:
        return self._storage_conf

    @cached_property
    def _storage_conf(self) -> Any:
        use_local_files(self)
        self._slim_options()
        return self.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.hadoop_conf)

    def _slim_options(self) -> None:
        """Removes Hadoop's options that no file system reads, unless YARN runs the executors."""
        if not self._session.sparkContext.master.startswith("yarn"):
            self.reads.slim(self.hadoop_conf)

    def nothing(self) -> Any:
        return self._nothing

    @cached_property
    def _nothing(self) -> Any:
        return self.hudi.common.util.Option.empty()

    def some(self, value: Any) -> Any:
        return self.hudi.common.util.Option.of(value)

    def map(self, entries: Mapping[str, str]) -> Any:
        return self._made(entries, self._map)

    def list(self, values: Sequence[str]) -> Any:
        return self._made(values, self._list)

    def _made(self, content: Any, kind: Any) -> Any:
        """Returns a Java collection in one call; filling it from Python would take a call for each member."""
        return self._mapper.readValue(json.dumps(content), kind)

    @cached_property
    def _mapper(self) -> Any:
        return self.hudi.common.util.JsonUtils.getObjectMapper()

    @cached_property
    def _map(self) -> Any:
        return get_java_class(self.java.java.util.HashMap)

    @cached_property
    def _list(self) -> Any:
        return get_java_class(self.java.java.util.ArrayList)

    def objects(self, items: Iterable[Any]) -> Any:
        """Returns a Java list of objects of the JVM."""
        result = self.java.java.util.ArrayList()
        for item in items:
            result.add(item)
        return result

    def read(self, value: Any) -> Any:
        """Returns a Java collection of plain values, or an object with a JSON form in Hudi, in one call. Traversing it
        from Python would take a call for each member, and the exception that ends a Java iterator takes ten more calls
        to decode."""
        return json.loads(self.hudi.common.util.JsonUtils.toString(value))

    def call_hidden(self, target: Any, name: str, *arguments: Any) -> Any:
        """Calls a method that is not public, by its unique name; a superclass of the object may declare it."""
        declaring = target.getClass()
        while declaring is not None:
            for method in declaring.getDeclaredMethods():
                if method.getName() == name and not method.isBridge():
                    method.setAccessible(True)
                    return method.invoke(target, self.array(arguments))
            declaring = declaring.getSuperclass()
        raise AttributeError(f"{target.getClass().getName()} has no method {name}")

    def items(self, stream: Any) -> Iterator[Any]:
        """Yields the elements of a Java stream that have no JSON form."""
        collected = stream.collect(self.java.java.util.stream.Collectors.toList())
        for number in range(collected.size()):
            yield collected.get(number)


@lru_cache(maxsize=1)
def jvm_of(spark: SparkSession) -> Jvm:
    """Returns the `Jvm` of a session, which caches looked-up names."""
    return Jvm(spark)


def reread(read: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """Repeats a function that lists a timeline and then reads its files, if a listed file is gone. Writers archive and
    roll back meanwhile, so the next listing does not have the file. Raises FileMissingError if the next listing still
    has it."""

    @wraps(read)
    def repeated(*args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        for _ in range(_MOST_READS - 1):
            try:
                return read(*args, **kwargs)
            except FileMissingError:
                logger.debug("a file of the timeline is gone, so it is read again")
        return read(*args, **kwargs)

    return repeated


@contextmanager
def translated(what: str, *, expected: type[JobError] | None = None, by: Judge | None = None) -> Iterator[None]:
    """Turns errors of the JVM into `JobError`s. `what` names the step. The Java stack trace is logged as a warning, but
    at DEBUG level if the error is `expected` or a refusal of the storage. `by` chooses the error from class name and
    message of the Java exception and of its causes, outermost first."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        typed = by(list(_causes(error))) if by else _translate(what, error)
        is_expected = isinstance(typed, (StorageRefusedError, *([expected] if expected else [])))
        logger.log(logging.DEBUG if is_expected else logging.WARNING, "%s failed in the JVM:\n%s", what, error)
        raise typed from error


def _translate(what: str, error: Py4JError | PySparkException) -> JobError:
    causes = list(_causes(error))
    messages = [_OF_TASK.sub("", message) for _, message in causes]
    if wrong := [each for each in messages if _OF_PARTITION_VALUES.match(each)]:
        return PartitionValuesError(f"{what}: {wrong[-1].splitlines()[0][:300]}")
    # The message may have several lines.
    if keys := _OF_RECORD_KEY.search(str(error)):
        return KeyWithoutBucketError(f"{what}: {keys[1]}")
    if classes := _OF_ORDERING.search(str(error)):
        return OrderingValuesError(f"{what}: {classes[1]}")
    if classes := _OF_LOG_FORMAT.search(str(error)):
        return LogFormatError(f"{what}: {classes[1]}")
    if refused := refused_by_storage(what, causes):
        return refused
    # Hudi wraps the error of a lost lock in errors of the metadata table, and Spark quotes the error of a task in its
    # own.
    if lost := _OF_LOST_LOCK.search(_text(causes)):
        return LockLostError(f"{what}: {lost[1]}")
    if lost := _OF_LOST_INSTANT.search(_text(causes)):
        return CommitLostError(f"{what}: {lost[1]}")
    for name, message in causes:
        typed = _TYPED.get(_simple(name))
        if typed is None and _OF_INDEX_WITHOUT_FILES.match(message):
            typed = MetadataTableError
        if typed is TableGoneError and _OF_METADATA_TABLE.search(message):
            typed = MetadataTableGoneError
        if typed is not None:
            detail = thrown(causes) if issubclass(typed, MetadataTableError) else innermost(causes)
            return typed(f"{what}: {detail}")
    return hudi_error(f"{what}: {thrown(causes) or error.__class__.__name__}", _text(causes))


def refused_by_storage(what: str, causes: Sequence[tuple[str, str]]) -> StorageRefusedError | None:
    """Returns the error if the storage refused an access, by class name and message of an exception and of its causes;
    else None."""
    refusal = refusal_in(_text(causes))
    return None if refusal is None else error_of(refusal, f"{what}: {thrown(list(causes))}")


def first_line(error: Py4JError | PySparkException) -> str:
    """Returns the most informative line of a JVM error."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return innermost(list(_causes(error))) or (lines[0][:300] if lines else error.__class__.__name__)


def _causes(error: Py4JError | PySparkException) -> Iterator[tuple[str, str]]:
    """Yields class name and message of the Java exception and of its causes, outermost first."""
    if isinstance(error, CapturedException) and error._origin is None:
        # PySpark gives some exceptions, such as that of a Python worker, only as a text.
        yield class_and_message(error.desc or "")
        return
    thrown: Any = None
    if isinstance(error, Py4JJavaError):
        thrown = error.java_exception
    elif isinstance(error, CapturedException):
        thrown = error._origin
    seen = 0
    while thrown is not None and seen < 20:
        yield thrown.getClass().getName(), str(thrown.getMessage() or "")
        thrown = thrown.getCause()
        seen += 1


def class_and_message(text: str) -> tuple[str, str]:
    """Returns class name and message of an exception, by its text or by the traceback of Python."""
    stripped = text.strip()
    frames = list(_FRAME.finditer(stripped))
    name, _, message = stripped[frames[-1].end() if frames else 0 :].strip().partition(": ")
    return name, message


def thrown(causes: list[tuple[str, str]]) -> str:
    """Returns the class and message of the innermost exception, or of the exception of a task that it quotes; at most
    300 characters."""
    if not causes:
        return ""
    name, message = next((each for each in reversed(causes) if each[1].strip()), causes[-1])
    lines = message.strip().splitlines()
    beneath = [line.strip().removeprefix("Caused by: ") for line in lines if line.strip().startswith("Caused by: ")]
    said = beneath[-1] if beneath else _OF_TASK.sub("", lines[0] if lines else "")
    if not lines or said == lines[0]:
        return f"{_simple(name)}: {said}"[:300].removesuffix(": ")
    thrown, colon, sentence = said.partition(": ")
    return f"{_simple(thrown)}{colon}{sentence}"[:300]


def _text(causes: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{name}: {message}" for name, message in causes)


def _simple(name: str) -> str:
    return re.split(r"[.$]", name)[-1]


def innermost(causes: Sequence[tuple[str, str]]) -> str:
    """Returns the first line of the innermost message, which is the most informative one; at most 300 characters."""
    messages = [message.strip().splitlines()[0] for _, message in causes if message.strip()]
    return messages[-1][:300] if messages else ""
