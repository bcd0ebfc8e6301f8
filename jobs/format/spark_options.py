"""Options of Spark that users give to a worker: executors, memory, dynamic allocation and so on.

The worker refuses options that jobs depend on, options that have a setting of their own, and secrets, because options
are on the JVM's command line, which every user of the machine can read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from jobs.format.hudi_options import Form
from jobs.redaction import MASK, is_secret

# Values that jobs depend on. Hudi's tables cannot be read without its extension, catalog and registrator. Partition
# values and rewritten rows use UTC. FAIR lets the slots share the cores. Speculation stays off, because two copies of a
# task that writes files would leave the files of both.
OWNED = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.speculation": "false",
}
MAX_FAILURES = "spark.task.maxFailures"
# On a table with a hashing config, tasks of Hudi 1.2 sometimes fail, because `PartitionBucketIndexCalculator` keeps its
# instances in a plain HashMap. Four is Spark's default on clusters.
LEAST_FAILURES = 4

_ELSEWHERE = (
    (r"spark\.master", "Set GROUNDSKEEPER_MASTER or --master."),
    (r"spark\.driver\.memory", "Set GROUNDSKEEPER_DRIVER_MEMORY or --driver-memory."),
    (r"spark\.jars(\..*)?", "Set GROUNDSKEEPER_PACKAGES or GROUNDSKEEPER_JARS."),
    (r"spark\.submit\..*", "Run the worker by spark-submit to give it options of spark-submit."),
    (r"spark\.hadoop\.(dfs|fs|google\.cloud|hadoop|io|ipc)\..*", "Set GROUNDSKEEPER_STORAGE_OPTIONS."),
)
_NAME = re.compile(r"spark\.[\w.-]{1,250}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}")
# The options with a worker's resources, which `shown` lists in addition to the given ones.
_RESOURCES = re.compile(r"spark\.(executor\.(?!extra)|dynamicAllocation\.|cores\.max|task\.).*")
# local, local[N], local[N,F]. All other masters are clusters, including local-cluster[...].
_LOCAL = re.compile(r"local(\[\s*(?P<threads>\d+|\*)\s*(?P<retries>,[^\]]*)?\])?")


def problems(options: Mapping[str, str]) -> Iterator[str]:
    """Yields a sentence with a remedy for each refused option."""
    for name, value in options.items():
        if not _NAME.fullmatch(name):
            yield f"{name[:80]!r} is no option of Spark: its name must begin with `spark.`"
        elif name in OWNED:
            yield f"{name} belongs to Groundskeeper, whose jobs need {OWNED[name]}. Remove it"
        elif hint := next((hint for pattern, hint in _ELSEWHERE if re.fullmatch(pattern, name)), None):
            yield f"{name} is set in another way. {hint.rstrip('.')}"
        elif is_secret(name, value):
            yield f"{name} is a secret, which others could read on a command line. Put it into spark-defaults.conf"
        elif not Form.TEXT.accepts(value):
            yield f"the value of {name} must be {Form.TEXT.value[1]}"
        elif name == MAX_FAILURES and not (_NUMBER.fullmatch(value) and int(value) >= LEAST_FAILURES):
            yield f"{name} must be {LEAST_FAILURES} at least, because Hudi 1.2 now and then fails a task"


def parsed(pairs: Iterable[str]) -> dict[str, str]:
    """Returns the options of `name=value` pairs. Raises ValueError for one without an equals sign."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair[:80]!r} is not of the form name=value")
        options[name.strip()] = value.strip()
    return options


def is_local(master: str) -> bool:
    return _LOCAL.fullmatch(master) is not None


def with_retries(master: str) -> str:
    """Returns the master. A local one gets the form `local[N,F]`, because Spark retries failed tasks only with that
    form."""
    local = _LOCAL.fullmatch(master)
    if local is None or local["retries"]:
        return master
    return f"local[{local['threads'] or 1},{LEAST_FAILURES}]"


def shown(effective: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of a session that users may see: the `given` ones, and those of its resources."""
    return {
        name: MASK if is_secret(name, value) else value
        for name, value in sorted(effective.items())
        if name in given or _RESOURCES.fullmatch(name)
    }
