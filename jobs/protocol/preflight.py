"""Why file groups cannot be replaced safely: all reasons at once, each a typed `Problem`. Nothing is written here."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

from jobs.contract import Problem
from jobs.dataplane import parquet_layout
from jobs.dataplane.split_writer import misplaced
from jobs.errors import RefusedError
from jobs.format.bucket_rules import not_a_multiple
from jobs.hudi.hadoop import storage_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from jobs.format.bucket_rules import BucketChange, BucketRules
    from jobs.hudi.table import FileSlice, HudiTable
    from jobs.storage.paths import Storage

# Spark's bulk_insert by rows leaves out the number at the end (`BucketBulkInsertDataInternalWriterHelper`).
_BUCKET_FILE_ID = re.compile(r"^\d{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-\d+)?$")
_NBCC_FILE_ID = re.compile(r"^\d{8}-0000-0000-0000-000000000000(-\d+)?$")
# Partitions of the metadata table that say in which file a key is; replacing files by our own hand would belie them.
_KEY_TO_FILE = ("record_index", "secondary_index", "expr_index", "bloom_filters")


def of_data_plane(
    table: HudiTable, slices: Sequence[FileSlice], *, own_instants: Collection[str] = ()
) -> list[Problem]:
    """What stands in the way of rewriting these slices with the Arrow data plane, whatever for."""
    problems = [*_of_table(table, own_instants), *_of_slices(slices, table.bucket_rules())]
    try:
        storage = storage_of(table)
    except RefusedError as error:
        return problems + list(error.reasons)
    return problems + list(_of_schemas(storage, slices))


def of_repair(table: HudiTable) -> list[Problem]:
    """What stands in the way of bringing the rows of stale writes over."""
    problems = []
    mode = table.properties.get("hoodie.record.merge.mode", "").upper()
    if mode == "CUSTOM":
        problems.append(
            Problem(
                "merge-mode-custom",
                "Rows of this table are merged by a class of its owner, so it cannot be told which one would have won",
                hint="Write the rows of the stale instants again.",
            )
        )
    if any(field["name"] == "_hoodie_is_deleted" for field in json.loads(table.schema())["fields"]):
        problems.append(
            Problem(
                "soft-deletes",
                "Rows of this table may be deletes (`_hoodie_is_deleted`), which cannot be read back from stale writes",
                hint="Write the rows of the stale instants again.",
            )
        )
    generator = table.properties.get("hoodie.table.keygenerator.class", "")
    if generator and not generator.startswith("org.apache.hudi.keygen."):
        problems.append(
            Problem(
                "key-generator-unknown",
                "The table's keys are made by a class of its owner",
                generator,
                "Write the rows of the stale instants again.",
            )
        )
    return problems


def consistent_hashing() -> Problem:
    """Also of a table that was registered without an index: sorting it would break its buckets."""
    return Problem(
        "consistent-hashing",
        "The table uses the consistent-hashing bucket index, which resizes itself",
        hint="Let Hudi's own clustering split and merge its buckets.",
    )


def of_bucket_number(table: HudiTable, buckets: BucketChange, partitions: Sequence[str]) -> list[Problem]:
    """An expansion must multiply: each partition's new number must be a multiple of its old one, and larger."""
    numbers = {item: (buckets.old.buckets_of(item), buckets.new.buckets_of(item)) for item in partitions}
    odd = [item for item, (before, after) in numbers.items() if after % before or after <= before]
    problems = [not_a_multiple(odd[0], *numbers[odd[0]], others=len(odd) - 1)] if odd else []
    return problems + list(_of_writers(table))


def _of_table(table: HudiTable, own_instants: Collection[str]) -> Iterator[Problem]:
    properties = table.properties
    if table.declared.index is None:
        yield Problem(
            "no-bucket-index",
            "No bucket index is known of this table",
            hint='Register it with `"index": {"type": "bucket", "num_buckets": ..., "hash_fields": [...]}`.',
        )
    lock = table.declared.lock
    folder = lock.options.get("hoodie.write.lock.filesystem.path") or table.base_path
    if lock.provider == "filesystem" and folder.startswith("s3"):
        yield Problem(
            "lock-not-atomic",
            "Hudi's filesystem lock cannot lie on S3, where two writers could both have it",
            folder,
            "Give the table the lock that its writers use, such as ZooKeeper: PATCH it with `lock`.",
        )
    if properties.get("hoodie.table.base.file.format", "PARQUET").upper() != "PARQUET":
        yield Problem("base-files-not-parquet", "Only Parquet base files can be rewritten")
    if properties.get("hoodie.populate.meta.fields", "true") != "true":
        yield Problem("no-meta-fields", "The table has no meta fields, so rows cannot be told apart by their keys")
    if properties.get("hoodie.datasource.write.drop.partition.columns") == "true":
        yield Problem("partition-columns-dropped", "The table's files lack the partition columns")
    if properties.get("hoodie.table.cdc.enabled") == "true":
        yield Problem(
            "change-data-capture",
            "The table records changes (CDC), and a replacement would have to appear in them",
            hint="Switch hoodie.table.cdc.enabled off for the time of the job, if nobody reads the changes.",
        )
    if "hoodie.bootstrap.base.path" in properties:
        yield Problem("bootstrapped-table", "Some of the table's rows lie in the files it was bootstrapped from")
    mapping = sorted(name for name in table.metadata_partitions if name.startswith(_KEY_TO_FILE))
    if mapping:
        yield Problem(
            "index-maps-keys-to-files",
            "The metadata table has indexes that map keys to files",
            ", ".join(mapping),
            "Drop these indexes first (`DROP INDEX`), and create them again afterwards.",
        )
    if table.has_consistent_hashing():
        yield consistent_hashing()
    plans = [
        item
        for item in table.pending()
        if item.action not in {"commit", "deltacommit", "rollback"} and item.requested not in own_instants
    ]
    if plans:
        yield Problem(
            "pending-plan",
            "A pending table service is planned on these file groups",
            ", ".join(f"{item.requested} ({item.action}, {item.state.lower()})" for item in plans),
            "Run that service first (a `compaction` job executes pending compactions), or roll it back.",
            retriable=True,
        )


def _of_slices(slices: Sequence[FileSlice], rules: BucketRules | None) -> Iterator[Problem]:
    if any(_NBCC_FILE_ID.match(item.file_id) for item in slices):
        yield Problem(
            "non-blocking-writers",
            "The table is written with non-blocking concurrency control (fixed file ids)",
            hint="Such writers never conflict, so nothing can be replaced under them. Rewrite the table with OCC.",
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
    """Looks at the oldest and the newest base file; each task looks at its own again."""
    files = sorted({item.base_file for item in slices if item.base_file}, key=lambda name: name.rsplit("_", 1)[-1])
    for name in dict.fromkeys(files[:1] + files[-1:]):
        with storage.read_parquet(name) as reader:
            try:
                what = name.rpartition("/")[2]
                parquet_layout.require_reproducible(parquet_layout.of_file(reader), reader.schema, what)
            except RefusedError as error:
                yield error.problem()
                return


def _of_writers(table: HudiTable) -> Iterator[Problem]:
    """Only writers of Hudi 1.1 and later follow a hashing config; tables of version 9 can have no older ones."""
    declared = table.declared
    if declared.writers_stopped or table.version >= 9:
        return
    version = declared.writers_hudi_version
    if version is None or _numbers(version) < (1, 1):
        yield Problem(
            "writers-too-old",
            "Writers older than Hudi 1.1 would go on with the old number of buckets, and duplicate rows",
            f"table version {table.version}, writers declared: {version or 'none'}",
            'PATCH the table with `{"writers": {"hudi_version": "1.2.0"}}` or `{"writers": {"stopped": true}}`.',
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
