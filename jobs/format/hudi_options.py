"""The options of Hudi that a registration may give to the clients of jobs: an allow-list with the form of each value.

The list has the options of Hudi 1.2.0 for the size of files, memory, parallelism and the choice of what a table service
rewrites. Numbers and words cannot name a path or a class. All other options are refused, especially those that name
paths outside of the table, call other systems, or override the safe settings of `jobs.hudi.options`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from jobs.contract import Problem
from jobs.problems.permissions import OPTION_NOT_ALLOWED

MAX_TEXT = 4096
MAX_PARALLELISM = 100_000
_MAX_LONG = 2**63 - 1


class Form(Enum):
    """The form of a value: a regular expression, and its description for users."""

    NUMBER = r"-?\d{1,19}(\.\d{1,19})?", "a number"
    FLAG = r"(?i:true|false)", "true or false"
    WORD = r"[\w.-]{1,64}", "one word"
    TEXT = (
        rf"[^\x00-\x1f\x7f-\x9f]{{1,{MAX_TEXT}}}",
        f"text of at most {MAX_TEXT} characters, without control characters",
    )

    def accepts(self, value: str) -> bool:
        if not re.fullmatch(self.value[0], value, re.ASCII if self is not Form.TEXT else 0):
            return False
        return self is not Form.NUMBER or abs(float(value)) <= _MAX_LONG


_NUMBERS = """
bloom.index.filter.dynamic.max.entries bloom.index.keys.per.bucket bloom.index.parallelism
bulkinsert.shuffle.parallelism
clean.parallelism cleaner.parallelism clean.max.commits.to.clean
client.heartbeat.interval_in_ms client.heartbeat.tolerable.misses
clustering.group.read.parallelism clustering.max.parallelism
clustering.plan.strategy.daybased.lookback.partitions clustering.plan.strategy.daybased.skipfromlatest.partitions
clustering.plan.strategy.max.bytes.per.group clustering.plan.strategy.max.num.groups
clustering.plan.strategy.small.file.limit clustering.plan.strategy.target.file.max.bytes
compaction.daybased.target.partitions compaction.logfile.num.threshold compaction.logfile.size.threshold
compaction.target.io
consistency.check.initial_interval_ms consistency.check.max_checks consistency.check.max_interval_ms
copyonwrite.insert.split.size copyonwrite.record.size.estimate
delete.shuffle.parallelism file.listing.parallelism finalize.write.parallelism
filesystem.operation.retry.initial_interval_ms filesystem.operation.retry.max_interval_ms
filesystem.operation.retry.max_numbers
filesystem.view.spillable.bootstrap.base.file.mem.fraction filesystem.view.spillable.clustering.mem.fraction
filesystem.view.spillable.compaction.mem.fraction filesystem.view.spillable.log.compaction.mem.fraction
filesystem.view.spillable.mem filesystem.view.spillable.replaced.mem.fraction
global.simple.index.parallelism
hfile.block.cache.size hfile.block.cache.ttl.minutes hfile.block.size hfile.max.file.size
index.bloom.fpp index.bloom.num_entries insert.shuffle.parallelism
layout.optimize.build.curve.sample.size
logfile.data.block.max.size logfile.max.size logfile.to.parquet.compression.ratio
markers.delete.parallelism
memory.compaction.fraction memory.compaction.max.size memory.dfs.buffer.max.size memory.merge.fraction
memory.merge.max.size memory.writestatus.failure.fraction
metadata.compact.max.delta.commits metadata.compact.max.delta.seconds metadata.file.cache.max.size.mb
metadata.global.record.level.index.max.filegroup.count metadata.global.record.level.index.min.filegroup.count
metadata.index.bloom.filter.file.group.count metadata.index.bloom.filter.parallelism
metadata.index.column.stats.file.group.count metadata.index.column.stats.inMemory.projection.threshold
metadata.index.column.stats.max.columns.to.index metadata.index.column.stats.parallelism
metadata.index.expression.file.group.count metadata.index.expression.parallelism
metadata.index.partition.stats.file.group.count metadata.index.partition.stats.parallelism
metadata.index.secondary.parallelism metadata.log.compaction.blocks.threshold metadata.max.deltacommits.when_pending
metadata.max.init.parallelism metadata.max.logfile.size metadata.max.reader.buffer.size metadata.max.reader.memory
metadata.record.index.growth.factor metadata.record.index.max.filegroup.count
metadata.record.index.max.filegroup.size metadata.record.index.min.filegroup.count
metadata.record.preparation.parallelism
parquet.block.size parquet.compression.ratio parquet.max.file.size parquet.page.size parquet.small.file.limit
rollback.parallelism simple.index.parallelism upsert.shuffle.parallelism
write.buffer.limit.bytes write.buffer.record.cache.limit write.buffer.record.sampling.rate
write.executor.disruptor.buffer.limit.bytes write.num.retries.on.conflict.failures
"""

_FLAGS = """
avro.schema.validate
bloom.index.bucketized.checking bloom.index.prune.by.ranges bloom.index.use.caching bloom.index.use.metadata
bloom.index.use.treebased.filter
clean.incremental.enabled cleaner.incremental.mode clean.optimize.using.local.engine.context
clustering.plan.generation.use.local.engine.context clustering.plan.strategy.single.group.clustering.enabled
common.diskmap.compression.enabled compaction.lazy.block.read compaction.reverse.log.read consistency.check.enabled
copyonwrite.insert.auto.split datasource.write.reconcile.schema filesystem.operation.retry.enable
hfile.block.cache.enabled layout.optimize.data.skipping.enable merge.data.validation.enabled
metadata.log.compaction.enable metadata.optimized.log.blocks.scan.enable
parquet.bloom.filter.enabled parquet.dictionary.enabled parquet.field_id.write.enabled
parquet.write.utc-timezone.enabled parquet.writelegacyformat.enabled
schema.on.read.enable simple.index.use.caching write.record.positions write.set.null.for.missing.columns
"""

_WORDS = """
bloom.index.filter.type bloom.index.input.storage.level
clustering.plan.partition.filter.mode clustering.plan.strategy.file.slices.sort.by common.spillable.diskmap.type
hfile.compression.algorithm layout.optimize.curve.build.method layout.optimize.strategy logfile.data.block.format
metadata.compact.trigger.strategy parquet.compression.codec parquet.outputtimestamptype record.merge.mode
simple.index.input.storage.level write.executor.disruptor.wait.strategy write.executor.type write.record.merge.mode
write.record.merge.strategy.id write.status.storage.level write.tagged.record.storage.level
"""

_TEXTS = """
clustering.plan.strategy.cluster.begin.partition clustering.plan.strategy.cluster.end.partition
clustering.plan.strategy.partition.regex.pattern clustering.plan.strategy.partition.selected
clustering.plan.strategy.sort.columns compaction.partition.path.regex datasource.write.precombine.field
keygen.timebased.input.dateformat keygen.timebased.input.dateformat.list.delimiter.regex
keygen.timebased.input.timezone keygen.timebased.output.dateformat keygen.timebased.output.timezone
keygen.timebased.timestamp.scalar.time.unit keygen.timebased.timestamp.type keygen.timebased.timezone
metadata.index.bloom.filter.column.list metadata.index.column.stats.column.list
payload.event.time.field payload.ordering.field table.ordering.fields
"""

FORMS: dict[str, Form] = {
    f"hoodie.{name}": form
    for form, names in {Form.NUMBER: _NUMBERS, Form.FLAG: _FLAGS, Form.WORD: _WORDS, Form.TEXT: _TEXTS}.items()
    for name in names.split()
}

_PAYLOAD = r"org\.apache\.hudi\.common\.model\.(debezium\.)?\w+Payload"
_MERGER = r"org\.apache\.hudi\.(common\.model\.)?\w+Merger"

CLASSES = {
    "hoodie.compaction.payload.class": _PAYLOAD,
    "hoodie.datasource.write.keygenerator.class": r"org\.apache\.hudi\.keygen\.\w+KeyGenerator",
    "hoodie.datasource.write.payload.class": _PAYLOAD,
    "hoodie.datasource.write.record.merger.impls": _MERGER,
    "hoodie.write.record.merge.custom.implementation.classes": _MERGER,
}
"""Names of Hudi's own classes that each option may have as its value, separated by commas."""


@dataclass(frozen=True)
class Refusal:
    """A value of a registration that is not allowed. `field` is its path, such as `hudi_options.hoodie.base.path`."""

    field: str
    why: str
    hint: str

    def problem(self) -> Problem:
        return OPTION_NOT_ALLOWED.because(
            f"{self.field}: {self.why}", hint=f"{self.hint} PATCH the table to change its options."
        )


REMOVE = "Remove it."
OF_THE_WORKER = "Remove it, or set GROUNDSKEEPER_STORAGE_OPTIONS for the service and its workers."
EXTEND_CLASSES = "An administrator can add the class to GROUNDSKEEPER_ALLOWED_CLASSES."

# Patterns of options with the reason for the message. Options that match no pattern are refused as well.
_REASONS = (
    (r"(spark\.hadoop\.)?fs\..*", "file systems are configured for a worker, not for a table", OF_THE_WORKER),
    (r"hoodie\.write\.lock\..*", "this option belongs to the lock", "Give it in `lock.options`."),
    (
        r"hoodie\.(.*metrics|.*callback|.*hive_sync|.*meta[._]?sync|metaserver|errortable|table\.service\.manager"
        r"|embed\.timeline|filesystem\.view\.remote)\b.*",
        "it makes a job connect to another system",
        REMOVE,
    ),
    (r".*\b(path|dir|folder|uris?|url|host|port)", "it leads out of the table", REMOVE),
    (r".*\b(class|classes|impls|validators|injector|strategy|generator)", "it names a class", REMOVE),
    (
        r".*",
        "a table may give jobs only the options of a list; Groundskeeper sets the others itself",
        "Remove it. The guide `.docs/options.md` lists the known ones.",
    ),
)


def refusals(options: Mapping[str, str], allowed_classes: Collection[str] = ()) -> Iterator[Refusal]:
    """Yields the refusals of `hudi_options` of a table. `allowed_classes` are allowed in addition to Hudi's own."""
    for key, value in options.items():
        field = f"hudi_options.{key}"
        if key in CLASSES:
            names = [name.strip() for name in value.split(",")]
            yield from _foreign(field, names, CLASSES[key], allowed_classes)
        elif key in FORMS:
            yield from malformed(field, value, FORMS[key])
        else:
            why, hint = next((why, hint) for pattern, why, hint in _REASONS if re.fullmatch(pattern, key, re.DOTALL))
            yield Refusal(field, why, hint)


def malformed(field: str, value: str, form: Form) -> Iterator[Refusal]:
    """Yields a refusal unless the value has the form. The value is not repeated, since it may be a secret."""
    if not form.accepts(value):
        yield Refusal(field, f"its value must be {form.value[1]}", "Correct the value.")
    elif field.endswith("parallelism") and not 0 <= float(value) <= MAX_PARALLELISM:
        yield Refusal(field, f"its value must be from 0 to {MAX_PARALLELISM}", "Correct the value.")


def _foreign(field: str, names: Iterable[str], hudis: str, allowed: Collection[str]) -> Iterator[Refusal]:
    for name in names:
        if not re.fullmatch(hudis, name, re.ASCII) and name not in allowed:
            yield Refusal(field, "it names a class that is not allowed on this service", EXTEND_CLASSES)
