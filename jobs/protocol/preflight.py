"""Preflight checks: all reasons why file groups cannot be replaced safely, each a typed `Problem`. Writes nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from jobs.contract import Problem
from jobs.dataplane import parquet_layout
from jobs.dataplane.split_writer import misplaced
from jobs.errors import RefusedError
from jobs.format import lock_providers
from jobs.format.bucket_rules import not_a_divisor, not_a_multiple
from jobs.hudi import rows
from jobs.hudi.hadoop import storage_of
from jobs.protocol import older_hudi

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from jobs.contract import WorkOrder
    from jobs.format.bucket_rules import BucketChange, BucketRules, Scale, Selection
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.storage.paths import Storage

LOCK_NOT_ATOMIC = "lock-not-atomic"
# Spark's row-wise bulk_insert omits the number at the end (`BucketBulkInsertDataInternalWriterHelper`).
_BUCKET_FILE_ID = re.compile(r"^\d{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-\d+)?$")
_NBCC_FILE_ID = re.compile(r"^\d{8}-0000-0000-0000-000000000000(-\d+)?$")


def of_data_plane(
    table: HudiTable, slices: Sequence[FileSlice], *, own_instants: Collection[str] = ()
) -> list[Problem]:
    """Returns the reasons against rewriting these slices with the Arrow data plane, for whatever purpose."""
    problems = [*_of_table(table, own_instants), *_of_slices(slices, table.bucket_rules())]
    try:
        storage = storage_of(table)
    except RefusedError as error:
        return problems + list(error.reasons)
    if any(item.log_files for item in slices):
        problems += rows.not_readable(table)
    return problems + list(_of_schemas(storage, slices))


def of_repair(table: HudiTable) -> list[Problem]:
    """Returns the reasons against recovering the rows of stale writes."""
    problems: list[Problem] = []
    mode = table.properties.get("hoodie.record.merge.mode", "").upper()
    if mode == "CUSTOM":
        problems.append(
            Problem(
                "merge-mode-custom",
                "Rows of this table are merged by a class of its owner, so the winning row cannot be determined",
                hint="Write the rows of the stale instants again.",
            )
        )
    if any(field["name"] == "_hoodie_is_deleted" for field in json.loads(table.schema())["fields"]):
        problems.append(
            Problem(
                "soft-deletes",
                "Rows of this table may be deletes (`_hoodie_is_deleted`), which cannot be recovered from stale writes",
                hint="Write the rows of the stale instants again.",
            )
        )
    return problems + no_meta_fields(table) + lock_not_provable(table)


def no_meta_fields(table: HudiTable) -> list[Problem]:
    """Returns the refusal of what has to know a row by its stored key.

    Hudi's own clustering (1.2.0) of such a table fails, or makes it unreadable for Spark SQL.
    """
    if table.has_meta_fields:
        return []
    return [
        Problem(
            "no-meta-fields",
            "The table has no meta fields, so rows cannot be identified by their keys",
            "hoodie.populate.meta.fields=false",
            "Write its rows to a table with meta fields. Compaction by Hudi, cleaning and archival need none.",
        )
    ]


def of_lock(table: HudiTable) -> list[Problem]:
    """Returns the reasons why this lock cannot protect a replacement of file groups."""
    lock = table.declared.lock
    folder = lock_providers.folder_of(lock, table.base_path)
    problems = lock_not_provable(table)
    if lock_providers.is_in_a_file(lock.provider) and folder.startswith(("s3", "gs:", "abfs")):
        problems.append(
            Problem(
                LOCK_NOT_ATOMIC,
                "Hudi's filesystem lock is not safe on an object storage, where two writers could both acquire it",
                folder,
                "PATCH the table with the `lock` that its writers use, such as ZooKeeper.",
            )
        )
    return problems


def lock_not_provable(table: HudiTable) -> list[Problem]:
    """Returns the refusal of what would damage the table if the lock were lost meanwhile without our notice.

    Compaction and cleaning need no more than its writers do: they commit by Hudi's own transaction, under the same
    lock.
    """
    provider = table.declared.lock.provider
    if lock_providers.is_provable(provider):
        return []
    return [
        Problem(
            "lock-not-provable",
            "It cannot be proved before a commit that the table's lock is still held",
            provider,
            "Use a lock provider of Hudi for the table and its writers, and PATCH its `lock`.",
        )
    ]


def name_not_typed(table: HudiTable, typed: str | None) -> list[Problem]:
    """Returns the refusal of what removes rows for good, unless the caller has typed the table's name."""
    if typed == table.declared.name:
        return []
    return [
        Problem(
            "name-not-confirmed",
            "The table's name was not typed in",
            typed or "",
            f"This removes rows for good. Send `table_name`: {table.declared.name}.",
        )
    ]


def consistent_hashing() -> Problem:
    """Returns the refusal of consistent hashing.

    Also applies to a table registered without an index: sorting it would break its buckets.
    """
    return Problem(
        "consistent-hashing",
        "The table uses the consistent-hashing bucket index, which resizes itself",
        hint="Let Hudi's own clustering split and merge its buckets.",
    )


def of_bucket_number(table: HudiTable, buckets: BucketChange, partitions: Sequence[str], scale: Scale) -> list[Problem]:
    """Returns the reasons against a rescale.

    An expansion needs a larger multiple of each old number, a contraction a smaller divisor; but a contraction to one
    number may leave out partitions that have it.
    """
    numbers = {item: (buckets.old.buckets_of(item), buckets.new.buckets_of(item)) for item in partitions}
    if not scale.contracts:
        odd = [item for item, (before, after) in numbers.items() if after % before or after <= before]
    elif scale.factor is None and any(buckets.is_for(item) for item in partitions):
        odd = [item for item, (before, after) in numbers.items() if before % after]
    else:
        odd = [item for item, (before, after) in numbers.items() if before % after or after >= before]
    refusal = not_a_divisor if scale.contracts else not_a_multiple
    problems = [refusal(odd[0], *numbers[odd[0]], others=len(odd) - 1)] if odd else []
    return problems + list(_of_writers(table, buckets)) + older_hudi.of_readers(table)


def _of_table(table: HudiTable, own_instants: Collection[str]) -> Iterator[Problem]:
    properties = table.properties
    if table.declared.index is None:
        yield Problem(
            "no-bucket-index",
            "The table is registered without a bucket index",
            hint='Register it with `"index": {"type": "bucket", "num_buckets": ..., "hash_fields": [...]}`.',
        )
    yield from of_lock(table)
    if properties.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET":
        yield Problem("base-files-not-parquet", "Only Parquet base files can be rewritten")
    yield from no_meta_fields(table)
    if properties.get("hoodie.datasource.write.drop.partition.columns") == "true":
        yield Problem("partition-columns-dropped", "The table's files lack the partition columns")
    if properties.get("hoodie.table.cdc.enabled") == "true":
        yield Problem(
            "change-data-capture",
            "The table records changes (CDC), and a replacement would have to appear in them",
            hint="If no reader uses the changes, set hoodie.table.cdc.enabled to false while the job runs.",
        )
    if "hoodie.bootstrap.base.path" in properties:
        yield Problem("bootstrapped-table", "Some of the table's rows are in the files it was bootstrapped from")
    if mapping := table.indexes_of_keys:
        yield Problem(
            "index-maps-keys-to-files",
            "The metadata table has indexes that map keys to files",
            ", ".join(mapping),
            "Drop these indexes first (`DROP INDEX`), and create them again afterwards.",
        )
    if table.has_consistent_hashing():
        yield consistent_hashing()
    others = {item.requested for item in table.pending_writes()} | {*own_instants}
    plans = [item for item in table.pending() if item.action != "rollback" and item.requested not in others]
    if plans:
        yield Problem(
            "pending-plan",
            "A table service on these file groups is pending",
            ", ".join(f"{item.requested} ({item.action}, {item.state.lower()})" for item in plans),
            "Run that service first (a `compaction` job executes pending compactions), or roll it back.",
            retriable=True,
        )


def _of_slices(slices: Sequence[FileSlice], rules: BucketRules | None) -> Iterator[Problem]:
    if any(_NBCC_FILE_ID.match(item.file_id) for item in slices):
        yield Problem(
            "non-blocking-writers",
            "The table is written with non-blocking concurrency control (fixed file ids)",
            hint="Such writers never conflict, so their file groups cannot be replaced. Rewrite the table with OCC.",
        )
    odd = [item for item in slices if not _BUCKET_FILE_ID.match(item.file_id)]
    if odd:
        yield Problem(
            "file-groups-without-bucket",
            "Some file groups do not belong to a bucket",
            f"{len(odd)} of {len(slices)}, such as {odd[0].file_id} in partition '{odd[0].partition}'",
            "They were written without the bucket index (Hudi #5116, #11875); an audit lists them.",
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
        yield Problem(
            "several-file-groups-per-bucket",
            "Some buckets have several file groups",
            f"{len(twice)} buckets, such as {int(bucket)} in partition '{partition}'",
            "Hudi's writers fail on these as well (#7216, #9303); an audit lists them.",
        )


def _of_schemas(storage: Storage, slices: Sequence[FileSlice]) -> Iterator[Problem]:
    """Checks the oldest and the newest base file; each task checks its own again."""
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

    Older ones may be stopped, and start again with the new number, if it is one number.
    """
    is_one_number = len({number for _, number in buckets.new.rules}) == 1
    if not table.declared.writers_stopped:
        evidence = older_hudi.without_hashing_config(table)
    else:
        evidence = None if is_one_number else older_hudi.seen_before_1_0(table)
    if evidence:
        yield Problem(
            "writers-too-old",
            "Writers older than Hudi 1.1 would keep the old number of buckets and duplicate rows",
            evidence,
            "Declare the version that the writers have. If it is older than 1.1: stop them, PATCH the table with"
            ' `{"writers": {"stopped": true}}`, change the number for all partitions, and start them again with the new'
            " number in their options.",
        )


def writers_not_stopped(table: HudiTable, order: WorkOrder) -> list[Problem]:
    """Returns a refusal unless the owner declares that all writers are stopped, or the service has stopped them."""
    if table.declared.writers_stopped or order.writers_stopped:
        return []
    return [
        Problem(
            "writers-not-stopped",
            "All writers of the table must be stopped for this",
            hint='Stop them, and PATCH the table with `{"writers": {"stopped": true}}`.',
        )
    ]


def unknown_partitions(selection: Selection | None, existing: Collection[str]) -> list[Problem]:
    """Returns the refusal of a selection with partitions that do not exist."""
    missing = selection.missing(existing) if selection else []
    if not missing:
        return []
    return [
        Problem(
            "partition-unknown",
            "Some of the partitions do not exist",
            ", ".join(f"'{partition}'" for partition in missing[:10]),
            "Give partition paths as in storage, such as `dt=2026-01-01` or `2026-01-01`.",
        )
    ]
