"""Adopts a bucket index on a table with a Bloom, simple or no index, and gives one up.

An adoption routes all rows to buckets once, by Spark, and one replacecommit replaces all file groups. The rows keep
their columns and meta columns. The module `giving_up_buckets` undoes an adoption.

Hudi (1.2) stores the index nowhere in the table and checks it nowhere, so the writers must be stopped, and get other
options. The commit names the adopted index for the next attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jobs.contract import BucketIndex, Outcome, Problem, Result, WorkOrder, WriterEngine
from jobs.dataplane.bucket_routing import route_rows
from jobs.dataplane.key_digest import KeyDigest
from jobs.dataplane.split_writer import Rewrite
from jobs.errors import JobError, RefusedError, RowsDifferError, refuse
from jobs.format.adopted_index import of_metadata, to_metadata
from jobs.format.bucket_rules import BucketRules
from jobs.format.written_file import WrittenFile
from jobs.hudi import hashing_config, rows
from jobs.hudi.hadoop import storage_of
from jobs.hudi.lock import TableLock
from jobs.hudi.options import bucket_index_options
from jobs.hudi.records import INGESTION, REPLACE, FileSlice
from jobs.hudi.savepoints import savepoints_of
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.bucket_index import BucketIndexParams, BucketIndexResult
from jobs.kinds.results import EstimatedCost, FileGroupNumbers, KindResult, WriterOption
from jobs.problems.bucket_indexes import (
    BUCKET_INDEX_IN_PLACE,
    HASH_FIELDS_NOT_IN_KEY,
    KEYS_TWICE_IN_PARTITION,
    ROWS_OF_NO_PARTITION,
)
from jobs.problems.rescales import WRITERS_NOT_STOPPED
from jobs.protocol import adoption, older_hudi, preflight, recovery, repeated_file_ids
from jobs.protocol.replacement import Replacement
from jobs.protocol.replacement_config import ReplacementConfig
from jobs.services import giving_up_buckets
from jobs.services.checks.row_counts import PartitionRows, count_rows
from jobs.table_errors import KeyWithoutBucketError

_BYTES_OF_BUCKET = 512 * 1024 * 1024
_MOST_BUCKETS = 1_000_000
_MOST_NAMED = 5


def run(table: HudiTable, order: WorkOrder[BucketIndexParams], context: JobContext) -> Result[KindResult]:
    """Adopts or drops a bucket index. Raises the `JobError`s of `Replacement.run`, and RowsDifferError."""
    context.step("planning")
    if order.params.action == "drop":
        return giving_up_buckets.run(table, order, context)
    if done := recovery.settle_replacement(table, order, context):
        (instant,) = done.instants
        extra = next((each.extra for each in table.commits() if each.write.instant == instant), {})
        return replace(done, details=_after(of_metadata(extra)).having(found_completed=instant))
    plan = _planned(table, order, context)
    if order.dry_run:
        return Result(Outcome.SUCCEEDED, details=_dry_run(table, plan))
    refuse(plan.problems)
    if plan.is_idle:
        return Result(Outcome.SUCCEEDED, details=_after(plan.index).having(nothing_to_do=True))
    return _adopt(table, order, context, plan)


@dataclass(frozen=True)
class _Plan:
    """The index to adopt, the instants before the job, the slices, the rows of each partition by Hudi's readers, and
    the refusals. `is_adopted`: an earlier job has committed the index, but the table is registered without it."""

    index: BucketIndex
    instants: frozenset[str]
    slices: tuple[FileSlice, ...]
    rows: tuple[PartitionRows, ...]
    problems: tuple[Problem, ...]
    is_adopted: bool = False

    @property
    def is_idle(self) -> bool:
        return not self.problems and (not self.slices or self.is_adopted)

    @property
    def bytes_of_partitions(self) -> Counter[str]:
        return _bytes_of_partitions(self.slices)


def _adopt(
    table: HudiTable, order: WorkOrder[BucketIndexParams], context: JobContext, plan: _Plan
) -> Result[KindResult]:
    index = plan.index

    def rewrite(instant: str, chosen: Sequence[FileSlice], everything: Sequence[FileSlice]) -> list[WrittenFile]:
        work = Rewrite(storage_of(table), instant, index.hash_fields, codec=order.params.codec)
        counted: Sequence[PartitionRows] = plan.rows
        if not set(chosen) <= set(plan.slices):
            refuse(_written_meanwhile(table, plan, instant))
            # A write that was in flight has ended since the rows were counted.
            counted = _counted(table, index)
            refuse(_of_rows(counted, everything))
        try:
            written = route_rows(table, work, chosen, index.num_buckets)
            _require_equal(counted, written)
        except JobError:
            # If a write came between the listing of the files and the reading of the rows, it is the cause of the
            # error.
            refuse(_written_meanwhile(table, plan, instant))
            raise
        return written

    replaced = Replacement(
        table,
        ReplacementConfig(wait_seconds=order.params.wait_seconds, starts_alone=True),
        context,
        TableLock(table, order.job_id),
        choose=list,
        rewrite=rewrite,
        extra=lambda _: to_metadata(index),
        # Rows of all file groups of a partition go to each of its buckets.
        unit=lambda partition, _: (partition, ""),
    ).run()
    found = replaced.measured(BucketIndexResult).having(
        **_members(_after(index)), partitions=len(plan.bytes_of_partitions)
    )
    return Result(Outcome.SUCCEEDED, instants=(replaced.instant,), details=found)


def _written_meanwhile(table: HudiTable, plan: _Plan, own: str) -> list[Problem]:
    """Returns a refusal if a write has begun since the plan, because its writer goes on without the bucket index."""
    known = {*plan.instants, own}
    found = [item for item in table.instants() if item.action in INGESTION | {REPLACE} and item.requested not in known]
    if not found:
        return []
    names = ", ".join(map(str, found[:_MOST_NAMED]))
    return [
        WRITERS_NOT_STOPPED.because(
            f"begun since the job counted the rows: {names}",
            title="A writer has written during the job",
            hint="Find the writer and stop it, or give it the options of the bucket index when it starts again. Nothing"
            " was changed; start the job again.",
        )
    ]


def _require_equal(counted: Iterable[PartitionRows], written: Sequence[WrittenFile]) -> None:
    """Raises RowsDifferError unless the files of each partition hold each key as often as it was read."""
    found: dict[str, KeyDigest] = {}
    for file in written:
        digest = found.get(file.partition, KeyDigest())
        found[file.partition] = digest + KeyDigest.parse(file.rows, file.key_digest)
    expected = {each.path: each.digest for each in counted}
    for partition, digest in found.items():
        read = expected.get(partition, KeyDigest())
        if read != digest:
            raise RowsDifferError(
                f"partition '{partition}': {read.rows} rows with key digest {read} were read, {digest.rows} with"
                f" {digest} were written"
            )


def _planned(table: HudiTable, order: WorkOrder[BucketIndexParams], context: JobContext) -> _Plan:
    instants = frozenset(item.requested for item in table.instants())
    slices = table.file_slices()
    index = _index(table, order.params, slices)
    problems = _of_index(table, index)
    problems += preflight.writers_not_stopped(table, order)
    problems += preflight.of_new_files(table, slices, own_instants=order.earlier_instants)
    problems += repeated_file_ids.refusals(table, slices)
    problems += [*rows.not_readable(table), *older_hudi.against_merging_by_hudi(table, slices)]
    problems += preflight.misplaced_rows(
        table.commits(), "Rows of the table are in files that no reader sees; repair them first"
    )
    if problems:
        return _Plan(index, instants, tuple(slices), (), tuple(problems))
    context.step("counting rows", bytes_total=sum(item.bytes for item in slices))
    try:
        counted = _counted(table, index)
    except KeyWithoutBucketError as error:
        return _Plan(index, instants, tuple(slices), (), (error.problem(),))
    except RefusedError as error:
        return _Plan(index, instants, tuple(slices), (), tuple(error.reasons))
    problems += _of_rows(counted, slices)
    is_in_place = bool(slices) and not any(each.misplaced for each in counted)
    if table.declared.index == index and is_in_place:
        problems.append(
            BUCKET_INDEX_IN_PLACE.because(
                f"registered with {index.num_buckets} buckets, and every row is in its bucket"
            )
        )
    is_adopted = is_in_place and table.declared.index is None and _adopted(table) == index
    return _Plan(index, instants, tuple(slices), tuple(counted), tuple(problems), is_adopted=is_adopted)


def _adopted(table: HudiTable) -> BucketIndex | None:
    """Returns the index of an earlier job whose worker died before the table was registered with it."""
    found = adoption.latest(table)
    return found[0] if found else None


def _of_rows(counted: Iterable[PartitionRows], slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the refusals that follow from rows. `slices` are all those of the table."""
    problems = []
    counted = list(counted)
    if twice := [f"{each.duplicates} rows in '{each.path}'" for each in counted if each.duplicates]:
        problems.append(KEYS_TWICE_IN_PARTITION.because(", ".join(twice[:_MOST_NAMED])))
    known = {item.partition for item in slices}
    if strange := [f"{each.rows} rows of '{each.path}'" for each in counted if each.path not in known]:
        problems.append(ROWS_OF_NO_PARTITION.because(", ".join(strange[:_MOST_NAMED])))
    elif away := [f"{each.elsewhere} rows of '{each.path}' in other folders" for each in counted if each.elsewhere]:
        problems.append(ROWS_OF_NO_PARTITION.because(", ".join(away[:_MOST_NAMED])))
    return problems


def _counted(table: HudiTable, index: BucketIndex) -> list[PartitionRows]:
    """Counts the table's rows. Raises KeyWithoutBucketError before Hudi's own `BucketIdentifier` would loop on such a
    key."""
    rules = BucketRules.uniform(index.num_buckets)
    return count_rows(table, rules, hash_fields=index.hash_fields)


def _index(table: HudiTable, params: BucketIndexParams, slices: Sequence[FileSlice]) -> BucketIndex:
    """Returns the index that the parameters give. What they leave out follows from the registered or adopted index, or
    else from the size of the partitions."""
    declared = table.declared.index or _adopted(table)
    largest = max(_bytes_of_partitions(slices).values(), default=0)
    by_size = 1 << max(-(-largest // _BYTES_OF_BUCKET) - 1, 0).bit_length()
    number = params.num_buckets or (declared.num_buckets if declared else min(by_size, _MOST_BUCKETS))
    fields = params.hash_fields or (declared.hash_fields if declared else table.record_key_fields)
    return BucketIndex(number, tuple(fields))


def _bytes_of_partitions(slices: Iterable[FileSlice]) -> Counter[str]:
    found: Counter[str] = Counter()
    for item in slices:
        found[item.partition] += item.bytes
    return found


def _of_index(table: HudiTable, index: BucketIndex) -> list[Problem]:
    problems = []
    keys = [name for name in table.record_key_fields if name]
    if not keys or set(index.hash_fields) - set(keys):
        hashed = ", ".join(index.hash_fields) or "none"
        problems.append(
            HASH_FIELDS_NOT_IN_KEY.because(f"hash field {hashed}; the record key is {', '.join(keys) or 'generated'}")
        )
    if hashing_config.is_in_force(table):
        problems.append(BUCKET_INDEX_IN_PLACE.because(f"its hashing config has the rules {table.bucket_rules()}"))
    return problems


def _dry_run(table: HudiTable, plan: _Plan) -> BucketIndexResult:
    total = sum(item.bytes for item in plan.slices)
    partitions = plan.bytes_of_partitions
    number = plan.index.num_buckets
    by_rows = [each.rows for each in plan.rows]
    return _after(plan.index).having(
        refusals=plan.problems,
        warnings=_warnings(table),
        notes=_notes(table, plan.index),
        nothing_to_do=plan.is_idle,
        rows=sum(by_rows),
        misplaced=sum(each.misplaced for each in plan.rows),
        partitions=len(partitions),
        files=sum(item.number_of_files for item in plan.slices),
        bytes=total,
        bytes_of_largest_bucket=-(-max(partitions.values(), default=0) // number),
        file_groups=FileGroupNumbers(
            before=len(plan.slices), after=sum(min(number, max(count, 1)) for count in by_rows) if by_rows else None
        ),
        # Each row is read by the count and by the routing; the count reads only keys.
        estimated_cost=EstimatedCost(bytes_read=total, bytes_written=total, tasks=len(plan.slices)),
    )


def _after(index: BucketIndex | None) -> BucketIndexResult:
    """Returns the result with the index that the table has afterwards, and the options of a Spark writer."""
    if index is None:
        return BucketIndexResult()
    options = bucket_index_options(index, (), None)
    options.pop("hoodie.datasource.write.recordkey.field")
    return BucketIndexResult(
        action="adopt",
        num_buckets=index.num_buckets,
        hash_fields=index.hash_fields,
        writer_options=tuple(WriterOption(name=name, value=value) for name, value in options.items()),
    )


def _members(found: BucketIndexResult) -> dict[str, object]:
    return {name: getattr(found, name) for name in ("action", "num_buckets", "hash_fields", "writer_options")}


def _warnings(table: HudiTable) -> tuple[str, ...]:
    found = [
        "If a writer has a global index (GLOBAL_BLOOM, GLOBAL_SIMPLE), a key whose partition changes gets a second row"
        " afterwards: a bucket index looks for a key in its own partition only.",
        "Hudi does not refuse a writer that keeps its earlier options. The new rows of such a writer go to files of"
        " other buckets or of none: an audit finds them, and another `adopt` brings them to their buckets.",
    ]
    if savepoints := savepoints_of(table):
        found.append(f"After a restore to the savepoint {savepoints[0].instant} the table has its earlier files again.")
    return tuple(found)


def _notes(table: HudiTable, index: BucketIndex) -> tuple[str, ...]:
    """Returns a sentence for each declared engine that has to change its options."""
    flink = f"index.type=BUCKET, hoodie.bucket.index.num.buckets={index.num_buckets} and hoodie.bucket.index.hash.field"
    of_engine = {
        WriterEngine.SPARK: "Spark writers need the `writer_options` in place of their index.",
        WriterEngine.SPARK_SQL: "Spark SQL sessions need the `writer_options`, by SET or in their conf.",
        WriterEngine.FLINK: f"Flink needs {flink}={','.join(index.hash_fields)}, and a start without its state.",
    }
    return tuple(text for engine, text in of_engine.items() if engine in table.declared.writers_engines)
