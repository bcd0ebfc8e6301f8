"""Preflight checks: all reasons why file groups cannot be replaced safely, each a typed `Problem`. The checks write
nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from jobs.contract import Problem, WorkOrder
from jobs.dataplane import parquet_layout
from jobs.dataplane.split_writer import misplaced
from jobs.errors import RefusedError, StaleWriterError
from jobs.format import lock_providers
from jobs.format.bucket_rules import (
    BucketChange,
    BucketRules,
    Scale,
    Selection,
    not_a_divisor,
    not_a_multiple,
    too_unlike,
)
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.meta_columns import OPERATION
from jobs.format.stale_writes import stale_writes
from jobs.hudi import hash_ranges, merging, rows
from jobs.hudi.hadoop import storage_of
from jobs.hudi.records import Commit, FileSlice
from jobs.hudi.table import HudiTable
from jobs.problems.problem_type import ProblemType
from jobs.problems.rescales import NUM_BUCKETS_UNCHANGED, WRITERS_NOT_STOPPED, WRITERS_TOO_OLD
from jobs.problems.tables import (
    BASE_FILES_NOT_PARQUET,
    BOOTSTRAPPED_TABLE,
    CHANGE_DATA_CAPTURE,
    COLUMNS_CHANGED,
    CONSISTENT_HASHING,
    FILE_GROUPS_WITHOUT_BUCKET,
    INDEX_MAPS_KEYS_TO_FILES,
    LOCK_NOT_ATOMIC,
    LOCK_NOT_PROVABLE,
    MERGE_MODE_CUSTOM,
    NAME_NOT_CONFIRMED,
    NO_BUCKET_INDEX,
    NO_META_FIELDS,
    NON_BLOCKING_WRITERS,
    PARTITION_COLUMNS_DROPPED,
    PARTITION_UNKNOWN,
    SCHEMA_ON_READ_FORGOTTEN,
    SEVERAL_FILE_GROUPS_PER_BUCKET,
    SOFT_DELETES,
)
from jobs.protocol import abandoned, left_plans, older_hudi, repeated_file_ids, writer_engines
from jobs.storage.paths import Storage

# Spark's row-wise bulk_insert omits the `-0` at the end (`BucketBulkInsertDataInternalWriterHelper`).
_BUCKET_FILE_ID = re.compile(r"^\d{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-\d+)?$")
_WHOLE_ROWS = (
    "Write the rows of these keys again as they should be, with all columns and with ordering values that are not"
    " below the present ones: a column without a value keeps that of an older row, which may be older than the lost"
    " one. Then run a `repair` that names the instants in `accepted`."
)


def of_data_plane(
    table: HudiTable, slices: Sequence[FileSlice], *, own_instants: Collection[str] = ()
) -> list[Problem]:
    """Returns the reasons against any rewrite of these slices inside their buckets with the Arrow data plane."""
    if table.has_consistent_hashing():
        # Other reasons would suggest to register a simple index, or to write the rows again.
        return [consistent_hashing()]
    problems = [] if table.declared.index else [NO_BUCKET_INDEX.because()]
    problems += _of_slices(slices, table.bucket_rules())
    if any(item.log_files for item in slices):
        problems += rows.not_readable(table)
    return of_new_files(table, slices, own_instants=own_instants) + problems


def of_new_files(table: HudiTable, slices: Sequence[FileSlice], *, own_instants: Collection[str] = ()) -> list[Problem]:
    """Returns the reasons against any replacement of these slices by files that Arrow writes."""
    if table.has_consistent_hashing():
        return [consistent_hashing()]
    problems = [*_of_table(table, own_instants), *columns_changed(table, slices)]
    try:
        storage = storage_of(table)
    except RefusedError as error:
        return problems + list(error.reasons)
    return problems + list(_of_schemas(storage, slices))


def of_repair(table: HudiTable) -> list[Problem]:
    """Returns the reasons against recovering the rows of stale writes, except for the reasons of
    `of_recovered_rows`."""
    problems = [*merging.unclear(table), *columns_changed(table, table.file_slices())]
    if hash_ranges.out_of_use(table, table.commits()):
        problems += writer_engines.of_flink_with_ranges(table.may_have_flink)
    return problems + no_meta_fields(table) + lock_not_provable(table)


def of_recovered_rows(table: HudiTable) -> list[Problem]:
    """Returns the reasons why no job can know which rows stale writes would have left. These reasons do not concern a
    repair that only marks such writes as repaired, because the owner has written their rows again."""
    problems = list(_of_merging(table))
    if any(field["name"] == "_hoodie_is_deleted" for field in json.loads(table.schema())["fields"]):
        problems.append(SOFT_DELETES.because())
    if table.records_operations:
        # Hudi (1.2.0) would write none of the rows (`HoodieAppendHandle`), and readers ignore the operations of all
        # rows as soon as the newest file has none.
        title = f"Rows of this table may be deletes (`{OPERATION}`), which cannot be recovered from stale writes"
        problems.append(SOFT_DELETES.because(title=title))
    return problems


def _of_merging(table: HudiTable) -> Iterator[Problem]:
    """Yields the refusal if a row of the table may come from several writes, or from a class of the owner. A repair
    takes whole rows: where a later write has left a column out, the value of an earlier stale write would be lost."""
    try:
        found = merging.merging_of(table)
    except RefusedError:
        return  # `merging.unclear` says why if that matters.
    if found.mode == "CUSTOM":
        yield MERGE_MODE_CUSTOM.because()
    elif names := sorted({*(found.payloads - merging.TAKING_THE_NEWER), *merging.by_column(table)}):
        title = "Rows of this table are merged column by column or by a payload class, so no row as a whole wins"
        yield MERGE_MODE_CUSTOM.because(", ".join(names), title=title, hint=_WHOLE_ROWS)


def columns_changed(table: HudiTable, slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the refusal of new files with the rows of these slices, if some of their files are older than a change of
    the columns by schema on read."""
    return _of_older_files(COLUMNS_CHANGED, merging.history_of(table).changed(), slices)


def of_forgotten_columns(table: HudiTable, slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the refusal to merge these slices, if some of their files are older than a change of columns by schema on
    read that the latest commit does not know (`merging.forgotten_changes`)."""
    changed = merging.forgotten_changes(table, merging.history_of(table))
    return _of_older_files(SCHEMA_ON_READ_FORGOTTEN, changed, slices)


def _of_older_files(problem: ProblemType, changed: Mapping[str, int], slices: Iterable[FileSlice]) -> list[Problem]:
    """Returns the problem with the changed columns, if a file of a slice is older than the latest change."""
    if not changed or not any(_is_older(item, max(changed.values())) for item in slices):
        return []
    return [problem.because(", ".join(sorted(changed)[:5]))]


def _is_older(item: FileSlice, version: int) -> bool:
    """Returns whether a file of the slice is of an instant before this one. The logs of table version 6 have the
    instant of the base file."""
    names = [parse_base_file_name(item.base_name)] if item.base_file else []
    files = [*names, *map(parse_log_file_name, item.log_files)]
    return any(each is None or not each.instant.isdigit() or int(each.instant) < version for each in files)


def misplaced_rows(commits: Iterable[Commit], title: str) -> list[Problem]:
    """Returns a refusal with this title if the table has stale writes, because no reader sees their rows."""
    stale = stale_writes(commit.write for commit in commits)
    if not stale:
        return []
    instants = ", ".join(f"{write.instant} ({write.operation})" for write in stale[:5])
    return [StaleWriterError.because(instants, title=title)]


def no_meta_fields(table: HudiTable) -> list[Problem]:
    """Returns the refusal of jobs that need the stored key of each row, if the table has no meta fields. Hudi's own
    clustering (1.2.0) of such a table fails, or makes it unreadable for Spark SQL."""
    if table.has_meta_fields:
        return []
    return [NO_META_FIELDS.because("hoodie.populate.meta.fields=false")]


def columns_left_out(table: HudiTable) -> list[Problem]:
    """Returns the refusals of jobs that write rows to new files, if the table's own files lack some columns. Hudi's
    clustering (1.2.0) writes partition columns that the table leaves out, and the next write leaves them out again."""
    dropped = [PARTITION_COLUMNS_DROPPED.because()] if table.drops_partition_columns else []
    return no_meta_fields(table) + dropped


def of_lock(table: HudiTable) -> list[Problem]:
    """Returns the reasons why this lock cannot protect a replacement of file groups."""
    lock = table.declared.lock
    folder = lock_providers.folder_of(lock, table.base_path)
    problems = lock_not_provable(table)
    if lock_providers.is_in_a_file(lock.provider) and folder.startswith(("s3", "gs:", "abfs")):
        problems.append(LOCK_NOT_ATOMIC.because(folder))
    return problems


def lock_not_provable(table: HudiTable) -> list[Problem]:
    """Returns the refusal of jobs that would damage the table if the lock were lost unnoticed. Compaction and cleaning
    are not refused: like the writers, they commit by Hudi's own transaction under the same lock."""
    provider = table.declared.lock.provider
    if lock_providers.is_provable(provider):
        return []
    return [LOCK_NOT_PROVABLE.because(provider)]


def name_not_typed(table: HudiTable, typed: str | None) -> list[Problem]:
    """Returns the refusal of a job that permanently removes rows, unless the caller has given the table's name."""
    if typed == table.declared.name:
        return []
    return [
        NAME_NOT_CONFIRMED.because(
            typed or "",
            hint=f"This removes rows for good. Send `table_name`: {table.declared.name}.",
        )
    ]


def consistent_hashing() -> Problem:
    """Returns the refusal of consistent hashing. It also holds for a table that is registered without an index, because
    sorting would break the buckets."""
    return CONSISTENT_HASHING.because()


def of_bucket_number(table: HudiTable, buckets: BucketChange, partitions: Sequence[str], scale: Scale) -> list[Problem]:
    """Returns the reasons against a rescale.

    An expansion needs a larger multiple of each old number, and a contraction a smaller divisor. A contraction to one
    number skips partitions that have this number already. A bucket count, which takes any number, only needs one
    partition with another number.
    """
    numbers = {item: (buckets.old.buckets_of(item), buckets.new.buckets_of(item)) for item in partitions}
    problems: list[Problem] = []
    odd: list[str] = []
    if scale.to_any:
        unlike = [item for item in partitions if buckets.is_too_unlike(item)]
        problems += [too_unlike(unlike[0], *numbers[unlike[0]])] if unlike else []
        if not any(buckets.is_for(item) for item in partitions):
            problems.append(NUM_BUCKETS_UNCHANGED.because(f"{scale.num_buckets} buckets"))
    elif not scale.contracts:
        odd = [item for item, (before, after) in numbers.items() if after % before or after <= before]
    elif scale.factor is None and any(buckets.is_for(item) for item in partitions):
        odd = [item for item, (before, after) in numbers.items() if before % after]
    else:
        odd = [item for item, (before, after) in numbers.items() if before % after or after >= before]
    refusal = not_a_divisor if scale.contracts else not_a_multiple
    problems += [refusal(odd[0], *numbers[odd[0]], others=len(odd) - 1)] if odd else []
    return problems + list(_of_writers(table, buckets)) + older_hudi.of_readers(table)


def _of_table(table: HudiTable, own_instants: Collection[str]) -> Iterator[Problem]:
    properties = table.properties
    yield from of_lock(table)
    if properties.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET":
        yield BASE_FILES_NOT_PARQUET.because()
    yield from columns_left_out(table)
    if table.records_changes:
        yield CHANGE_DATA_CAPTURE.because()
    if "hoodie.bootstrap.base.path" in properties:
        yield BOOTSTRAPPED_TABLE.because()
    if mapping := table.indexes_of_keys:
        yield INDEX_MAPS_KEYS_TO_FILES.because(", ".join(mapping))
    # The job waits for writes, and rolls dead ones back.
    others = {item.requested for item in table.pending_writes()} | {*abandoned.requests(table), *own_instants}
    plans = [item for item in table.pending() if item.action != "rollback" and item.requested not in others]
    if plans:
        found = left_plans.described(table, plans)
        yield left_plans.refusal(table, found, title="A table service on these file groups is pending")


def _of_slices(slices: Sequence[FileSlice], rules: BucketRules | None) -> Iterator[Problem]:
    if repeated_file_ids.non_blocking(slices):
        yield NON_BLOCKING_WRITERS.because()
    odd = [item for item in slices if not _BUCKET_FILE_ID.match(item.file_id)]
    if odd:
        yield FILE_GROUPS_WITHOUT_BUCKET.because(
            f"{len(odd)} of {len(slices)}, such as {odd[0].file_id} in partition '{odd[0].partition}'"
        )
        return
    if rules:
        beyond = [item for item in slices if item.bucket >= rules.buckets_of(item.partition)]
        if beyond:
            yield misplaced(beyond[0].partition, beyond[0].bucket)
    counts = Counter((item.partition, item.file_id[:8]) for item in slices)
    twice = [key for key, count in counts.items() if count > 1]
    if twice:
        partition, bucket = twice[0]
        yield SEVERAL_FILE_GROUPS_PER_BUCKET.because(
            f"{len(twice)} buckets, such as {int(bucket)} in partition '{partition}'"
        )


def _of_schemas(storage: Storage, slices: Sequence[FileSlice]) -> Iterator[Problem]:
    """Checks the oldest and the newest base file. Each task checks the schemas of its own files again."""
    files = sorted({item.base_file for item in slices if item.base_file}, key=lambda name: name.rsplit("_", 1)[-1])
    for name in dict.fromkeys(files[:1] + files[-1:]):
        with storage.read_parquet(name) as reader:
            try:
                file_name = name.rpartition("/")[2]
                parquet_layout.require_reproducible(parquet_layout.of_file(reader), reader.schema, file_name)
            except RefusedError as error:
                yield error.problem()
                return


def _of_writers(table: HudiTable, buckets: BucketChange) -> Iterator[Problem]:
    """Checks the writers' version: only Hudi 1.1 and later follows a hashing config.

    Older writers may be stopped and started again with the new number, if all partitions get the same number.
    """
    is_one_number = len({number for _, number in buckets.new.rules}) == 1
    if not table.declared.writers_stopped:
        evidence = older_hudi.without_hashing_config(table)
    else:
        evidence = None if is_one_number else older_hudi.seen_before_1_0(table)
    if evidence:
        yield WRITERS_TOO_OLD.because(evidence)


def writers_not_stopped(table: HudiTable, order: WorkOrder) -> list[Problem]:
    """Returns a refusal unless the owner declares that all writers are stopped, or the service has stopped them."""
    if table.declared.writers_stopped or order.writers_stopped:
        return []
    return [
        WRITERS_NOT_STOPPED.because(
            title="All writers of the table must be stopped for this",
            hint='Stop them, and PATCH the table with `{"writers": {"stopped": true}}`.',
        )
    ]


def unknown_partitions(selection: Selection | None, existing: Collection[str]) -> list[Problem]:
    """Returns the refusal of a selection with partitions that do not exist."""
    missing = selection.missing(existing) if selection else []
    if not missing:
        return []
    return [PARTITION_UNKNOWN.because(", ".join(f"'{partition}'" for partition in missing[:10]))]
