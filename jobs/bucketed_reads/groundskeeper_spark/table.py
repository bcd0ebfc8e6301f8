"""A Hudi table with a simple bucket index, as its reader declares it, and what its storage says about the buckets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONFIGS = ".hoodie/.bucket_index/partition_bucket_index_meta/configs"
_CONSISTENT = ".hoodie/.bucket_index/consistent_hashing_metadata"
_SUFFIX = ".hashing_config"
_BASELINE = "00000000000000"


class NotColocatedError(Exception):
    """No proof exists that equal keys are in equal buckets; the text says why."""


@dataclass(frozen=True)
class Table:
    """Hudi stores neither the number of buckets nor the hash fields in a table, so the reader declares them.

    A hashing config of the table goes before `buckets`. Each row that is read is checked against the declaration.
    """

    path: str
    hash_fields: tuple[str, ...]
    buckets: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """The last completed instant, the number of completed ones, and a number of buckets that divides the number of each
    partition. A commit that completes after a later one changes only the second. `is_declared` says that the number is
    not one of the table's own."""

    instant: str
    commits: int
    modulus: int
    is_declared: bool


def snapshot(spark: SparkSession, table: Table) -> Snapshot:
    """Raises `NotColocatedError` if the table's storage has no provable simple buckets."""
    jvm: Any = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    of_text = jvm.org.apache.hadoop.fs.Path
    files = of_text(table.path).getFileSystem(conf)

    def path(name: str) -> Any:
        return of_text(f"{table.path}/{name}")

    if files.exists(path(_CONSISTENT)):
        raise NotColocatedError(f"{table.path} has a consistent hashing index, whose buckets are ranges")
    storage = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(conf)
    client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(storage)
    timeline = client.setBasePath(table.path).build().getActiveTimeline().getCommitsTimeline()
    done = timeline.filterCompletedInstants()
    if done.empty():
        raise NotColocatedError(f"{table.path} has no completed commit")
    numbers, is_declared = [table.buckets] if table.buckets else [], True
    if files.exists(path(_CONFIGS)):
        names = [found.getPath().getName() for found in files.listStatus(path(_CONFIGS))]
        instants = sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX))
        for instant in instants:
            committed = instant == _BASELINE or done.containsOrBeforeTimelineStarts(instant)
            if not committed:
                raise NotColocatedError(f"{table.path} has an uncommitted expansion, the instant {instant}")
        if instants:
            stream = files.open(path(f"{_CONFIGS}/{instants[-1]}{_SUFFIX}"))
            numbers = numbers_of_config(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            is_declared = False
            stream.close()
    if not numbers:
        raise NotColocatedError(f"the number of buckets of {table.path} is not known: declare it")
    if min(numbers) < 1:
        raise NotColocatedError(f"{table.path} has at least one bucket, not {min(numbers)}")
    last = str(done.lastInstant().get().requestedTime())
    return Snapshot(last, int(done.countInstants()), gcd(*numbers), is_declared)


def numbers_of_config(config: str) -> list[int]:
    """Returns all numbers of a `PartitionBucketIndexHashingConfig`, whose partitions have one of them each."""
    try:
        found = json.loads(config)
        rules = [rule for rule in str(found["expressions"]).split(";") if rule]
        return [int(found["defaultBucketNumber"]), *(int(rule.rsplit(",", 1)[1]) for rule in rules)]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise NotColocatedError(f"the hashing config is damaged: {error}") from error


def bucket_of_file(path: str) -> int:
    """Returns the bucket that the name of a base file or log file begins with."""
    name = path.rsplit("/", 1)[-1]
    found = re.match(r"\.?(\d{8})-", name)
    if not found:
        raise NotColocatedError(f"the file {name} does not belong to a simple bucket")
    return int(found[1])


def java_hash(values: tuple[object, ...]) -> int:
    """Returns `Arrays.asList(values as texts).hashCode()` of Java without its sign, as `BucketIdentifier` takes it."""
    of_list = 1
    for value in values:
        code = 0
        units = ("" if value is None else str(value)).encode("utf-16-le", "surrogatepass")
        for at in range(0, len(units), 2):
            code = (31 * code + units[at] + (units[at + 1] << 8)) & 0xFFFFFFFF
        of_list = (31 * of_list + code) & 0xFFFFFFFF
    return of_list & 0x7FFFFFFF
