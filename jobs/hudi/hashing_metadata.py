"""Hashing metadata of consistent hashing (`jobs.format.consistent_hashing`) on a table: read, written by Hudi's own
code, and removed.

Metadata whose instant was rolled back must be removed. `ConsistentBucketIndexUtils.recommitMetadataFile` (1.2.0) takes
such metadata for committed if one of their file groups has a base file, and each bucket that a resize leaves alone has
one. While the instant is pending, Hudi ignores the metadata.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import uuid4

from jobs.errors import FileMissingError, HudiError
from jobs.format.consistent_hashing import (
    COMMITTED,
    FOLDER,
    MAX_BYTES,
    SUFFIX,
    DamagedMetadataError,
    HashingMetadata,
    Versions,
)
from jobs.format.hashing_config import BASELINE
from jobs.hudi import hashing_config
from jobs.hudi.file_listing import listed_below
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)

HASH_FIELDS = "hoodie.bucket.index.hash.field"

PARTITION, NODES, SEQUENCE = (
    "clustering.group.partition",
    "clustering.group.child.node",
    "clustering.group.sequence.no",
)
"""Members of the extra metadata of a clustering group (`BaseConsistentHashingBucketClusteringPlanStrategy`)."""


def hash_fields(table: HudiTable) -> list[str]:
    """Returns the fields that writers hash, by the declared options; by default all fields of the record key."""
    return _declared_fields(table) or list(table.record_key_fields)


def has_guessed_fields(table: HudiTable) -> bool:
    """Returns whether writers may hash other fields than `hash_fields`: the key has several, and none is declared."""
    return len(table.record_key_fields) > 1 and not _declared_fields(table)


def _declared_fields(table: HudiTable) -> list[str]:
    return [name for name in table.declared.hudi_options.get(HASH_FIELDS, "").split(",") if name]


def index_options(table: HudiTable, num_buckets: int) -> dict[str, str]:
    """Returns the options of a client with this index. `num_buckets` are those of a new partition."""
    return {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.datasource.write.recordkey.field": ",".join(table.record_key_fields),
        HASH_FIELDS: ",".join(hash_fields(table)),
        "hoodie.bucket.index.num.buckets": str(num_buckets),
    }


def versions(table: HudiTable, partition: str) -> Versions:
    completed = {item.requested for item in table.instants() if item.state == "COMPLETED"}
    return Versions.of(
        table.entries_in(f"{FOLDER}/{partition}".rstrip("/")),
        lambda instant: instant in completed or table.was_archived(instant),
    )


def read(table: HudiTable, partition: str, instant: str) -> HashingMetadata:
    """Raises `DamagedMetadataError`."""
    path = "/".join(filter(None, (table.base_path.rstrip("/"), FOLDER, partition, f"{instant}{SUFFIX}")))
    try:
        with translated(f"reading the hashing metadata of '{partition}'", expected=FileMissingError):
            return HashingMetadata.from_json(instant, table.jvm.reads.text(table.storage, path, MAX_BYTES) or "")
    except FileMissingError as error:
        raise DamagedMetadataError("it is gone") from error


def save(table: HudiTable, config: Any, instant: str, groups: Sequence[Mapping[str, str]]) -> None:
    """Writes the metadata of `instant` for clustering groups, by their extra metadata. The lock must be held, and the
    instant be pending. Does what `HoodieSparkConsistentBucketIndex.updateLocation` (1.2.0) does for a clustering whose
    plan is on the timeline. Raises HudiError if the metadata have changed since the plan."""
    with translated("writing the hashing metadata"):
        jvm, utils, hoodie_table = _opened(table, config)
        model = jvm.hudi.common.model
        for partition in sorted({each[PARTITION] for each in groups}):
            of_partition = [each for each in groups if each[PARTITION] == partition]
            present = utils.loadMetadata(hoodie_table, partition).get()
            number = int(present.getSeqNo())
            if {int(each[SEQUENCE]) for each in of_partition} != {number}:
                raise HudiError(f"The hashing metadata of '{partition}' have changed since the plan")
            children = [node for each in of_partition for node in json.loads(each[NODES])]
            present.setChildrenNodes(model.ConsistentHashingNode.fromJsonString(json.dumps(children)))
            _save(table, hoodie_table, instant, present)


def renew(table: HudiTable, config: Any, instant: str, gone: Mapping[str, Collection[str]]) -> None:
    """Writes metadata with the same ranges, and with new random file ids for the buckets with the file ids `gone` (by
    partition). The lock must be held. The timeline does not know `instant`, so Hudi ignores the metadata until there is
    a `COMMITTED` file, too (`loadMetadata`)."""
    with translated("renewing the hashing metadata"):
        _, utils, hoodie_table = _opened(table, config)
        for partition, ids in sorted(gone.items()):
            _save(table, hoodie_table, instant, utils.loadMetadata(hoodie_table, partition).get(), ids)
            path = "/".join(filter(None, (table.base_path.rstrip("/"), FOLDER, partition, f"{instant}{COMMITTED}")))
            table.storage.create(table.jvm.hudi.storage.StoragePath(path), False).close()


def _save(table: HudiTable, hoodie_table: Any, instant: str, present: Any, gone: Collection[str] = ()) -> None:
    """Writes metadata of `instant` with the ranges of `present`, and new file ids in place of those that are gone."""
    jvm = table.jvm
    nodes = jvm.items(jvm.hudi.index.bucket.ConsistentBucketIdentifier(present).getNodes().stream())
    prefixes = [(int(node.getValue()), str(node.getFileIdPrefix())) for node in nodes]
    content = {
        "version": int(present.getVersion()),
        "partitionPath": present.getPartitionPath(),
        "instant": instant,
        "numBuckets": int(present.getNumBuckets()),
        "seqNo": int(present.getSeqNo()) + 1,
        "nodes": [
            {"value": value, "fileIdPrefix": str(uuid4()) if f"{prefix}-0" in gone else prefix, "tag": "NORMAL"}
            for value, prefix in prefixes
        ],
    }
    made = jvm.hudi.common.model.HoodieConsistentHashingMetadata.fromBytes(bytearray(json.dumps(content).encode()))
    if not jvm.hudi.index.bucket.ConsistentBucketIndexUtils.saveMetadata(hoodie_table, made):
        raise HudiError(f"The hashing metadata of '{present.getPartitionPath()}' could not be written")


def confirm(table: HudiTable, config: Any, partitions: Sequence[str]) -> None:
    """Lets Hudi write the missing `COMMITTED` files of completed instants. Writers of any version find the
    metadata by these files after the instants were archived."""
    table.reload()
    with translated("confirming the hashing metadata"):
        _, utils, hoodie_table = _opened(table, config)
        for partition in partitions:
            utils.loadMetadata(hoodie_table, partition)


def _opened(table: HudiTable, config: Any) -> tuple[Any, Any, Any]:
    jvm = table.jvm
    hoodie_table = jvm.hudi.table.HoodieSparkTable.create(config, jvm.engine_context, table.meta)
    return jvm, jvm.hudi.index.bucket.ConsistentBucketIndexUtils, hoodie_table


def forget(table: HudiTable, instant: str) -> None:
    """Removes what an instant has said about buckets: its hashing metadata, and its hashing config
    (`jobs.hudi.hashing_config`). The lock must be held."""
    for path in _files(table) if table.has_consistent_hashing() else ():
        if path.rpartition("/")[2] in {f"{instant}{COMMITTED}", f"{instant}{SUFFIX}"}:
            with translated("removing hashing metadata"):
                # Hudi fails at a `COMMITTED` file without its metadata. The list has that file before the metadata.
                table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(f"{table.base_path}/{FOLDER}/{path}"))
    hashing_config.remove(table, instant)


def forget_unless_followed(table: HudiTable, instant: str) -> None:
    """Like `forget`, for an instant that is not on the timeline. Metadata that `is_followed` are kept."""
    if table.has_consistent_hashing() and is_followed(table, instant):
        logger.warning("the hashing metadata of %s are kept, because Hudi follows them", instant)
        hashing_config.remove(table, instant)
    else:
        forget(table, instant)


def is_followed(table: HudiTable, instant: str) -> bool:
    """Returns whether Hudi follows, or may follow, metadata whose instant is not on the timeline. Hudi follows them if
    it has confirmed them in a partition. It may follow them if a file group is visible that no earlier metadata name,
    as in a copy without history: the next write to the partition lets Hudi confirm them."""
    named = [path.rpartition("/") for path in _files(table)]
    if any(name == f"{instant}{COMMITTED}" for _, _, name in named):
        return True
    versions_in: dict[str, set[str]] = {}
    for partition, _, name in named:
        if name.endswith(SUFFIX):
            versions_in.setdefault(partition, set()).add(name.removesuffix(SUFFIX))
    concerned = {partition: known for partition, known in versions_in.items() if instant in known}
    visible = {item.key for item in table.file_slices()} if concerned else set()
    for partition, known in concerned.items():
        try:
            older = {each for number in known if number < instant for each in read(table, partition, number).file_ids}
            new = set(read(table, partition, instant).file_ids) - older
        except DamagedMetadataError:
            return True
        if any((partition, each) in visible for each in new):
            return True
    return False


def since(table: HudiTable, instant: str) -> list[str]:
    """Returns the instants of hashing metadata after this one."""
    names = {path.rpartition("/")[2] for path in _files(table) if path.endswith(SUFFIX)}
    return sorted(name.removesuffix(SUFFIX) for name in names if name.removesuffix(SUFFIX) > instant)


def dangling(table: HudiTable) -> list[str]:
    """Returns the instants of hashing metadata that never completed, are not pending, and are not followed."""
    files = _files(table) if table.has_consistent_hashing() else []
    committed = {path.removesuffix(COMMITTED) for path in files if path.endswith(COMMITTED)}
    suspects = {path.removesuffix(SUFFIX) for path in files if path.endswith(SUFFIX)} - committed
    known = {item.requested for item in table.instants()} | {BASELINE}
    instants = {path.rpartition("/")[2] for path in suspects} - known
    unknown = sorted(each for each in instants if each.isdigit() and not table.was_archived(each))
    return [each for each in unknown if not is_followed(table, each)]


def _files(table: OpenedTable) -> list[str]:
    with translated("listing the hashing metadata"):
        return sorted(listed_below(table.jvm, table.storage, f"{table.base_path}/{FOLDER}"))
