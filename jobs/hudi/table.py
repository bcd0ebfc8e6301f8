"""A Hudi table as the JVM sees it: properties, timeline, partitions, file slices."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobs.contract import WriterEngine
from jobs.format.stale_writes import CompletedWrite, known_of, repaired_of
from jobs.hudi import hashing_config
from jobs.hudi.jvm import Jvm, translated

if TYPE_CHECKING:
    from jobs import contract
    from jobs.format.bucket_rules import BucketRules
    from jobs.format.stale_writes import Group

# Instants of these actions do not change which rows and files are the latest.
HOUSEKEEPING = frozenset({"clean", "savepoint", "indexing"})
COMPACTION, CLUSTERING, REPLACE = "compaction", "clustering", "replacecommit"
# Of completed instants: a compaction completes as a commit, a clustering as a replacecommit.
_WRITES = frozenset({"commit", "deltacommit", REPLACE})

_FLINK_CHECKPOINT, _FLINK_STARTED = "flink_checkpoint_id", "view_storage_conf"

Buckets = dict[str, set[int]]
"""Partition path -> ids of buckets."""


@dataclass(frozen=True)
class Touched:
    """Where a write goes, as its instant tells.

    `groups`: partition path -> file id -> rows written to that file group. `inserts`: partition path -> rows of which
    an inflight instant does not tell the file groups, since they may have to be made. Both are empty for a writer that
    tells nothing (Flink's inflight instants are empty files).
    """

    groups: dict[str, dict[str, int]]
    inserts: dict[str, int]

    @property
    def tells_nothing(self) -> bool:
        return not any(self.groups.values()) and not any(self.inserts.values())

    @property
    def keys(self) -> set[Group]:
        return {(partition, file_id) for partition, groups in self.groups.items() for file_id in groups}

    def buckets(self) -> Buckets:
        return {
            partition: {int(file_id[:8]) for file_id in groups if file_id[:8].isdigit()}
            for partition, groups in self.groups.items()
        }


@dataclass(frozen=True)
class Instant:
    """One entry of the active timeline. `state` is REQUESTED, INFLIGHT or COMPLETED."""

    requested: str
    action: str
    state: str


@dataclass(frozen=True)
class FileSlice:
    """The latest slice of a file group: a base file (absent in a slice of logs only) and its log files. Sizes in bytes.

    Two equal slices hold the same rows: files of a Hudi table are never changed in place.
    """

    partition: str
    file_id: str
    base_file: str | None
    base_bytes: int = field(compare=False)
    log_files: tuple[str, ...]
    log_bytes: int = field(compare=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.partition, self.file_id

    @property
    def bucket(self) -> int:
        """The first eight digits of a file id, in tables with a bucket index (`BucketIdentifier`)."""
        return int(self.file_id[:8])

    @property
    def bytes(self) -> int:
        return self.base_bytes + self.log_bytes


@dataclass(frozen=True)
class Commit:
    """A completed instant that wrote or replaced files. `completed` is its completion time.

    `files`: partition path -> the paths of the files that it wrote, relative to the base path, by file id.
    `previous`: file group -> the instant of the base file that it took the place of, as far as it tells. `deleted`:
    file group -> rows that it deleted there. `extra` is the extra metadata that its writer left.
    """

    write: CompletedWrite
    completed: str
    files: dict[str, dict[str, list[str]]]
    previous: dict[Group, str]
    deleted: dict[Group, int]
    extra: dict[str, str]


class HudiTable:
    """One table, opened afresh by `reload()`. The timeline and the file slices are as of now, the rest of then."""

    def __init__(self, jvm: Jvm, table: contract.Table) -> None:
        self.jvm = jvm
        self.declared = table
        self.base_path = table.base_path
        self._slices: list[FileSlice] = []
        self._listed_at: frozenset[str] | None = None
        self.reload()

    def reload(self) -> None:
        with translated("opening the table"):
            builder = self.jvm.hudi.common.table.HoodieTableMetaClient.builder()
            self.meta = builder.setBasePath(self.base_path).setConf(self.jvm.storage_conf()).build()

    @cached_property
    def properties(self) -> dict[str, str]:
        found = self.jvm.read(self.meta.getTableConfig().getProps())
        return {key: str(value) for key, value in found.items()}

    @property
    def name(self) -> str:
        return self.properties["hoodie.table.name"]

    @property
    def version(self) -> int:
        return int(self.properties.get("hoodie.table.version", "0"))

    @property
    def is_merge_on_read(self) -> bool:
        return self.properties.get("hoodie.table.type") == "MERGE_ON_READ"

    @property
    def record_key_fields(self) -> tuple[str, ...]:
        return tuple(self.properties.get("hoodie.table.recordkey.fields", "").split(","))

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """Called precombine field up to table version 6."""
        found = self.properties.get("hoodie.table.ordering.fields") or self.properties.get(
            "hoodie.table.precombine.field"
        )
        return tuple(filter(None, (found or "").split(",")))

    @property
    def metadata_partitions(self) -> frozenset[str]:
        """Of the last reload: writers may add some at any time."""
        return frozenset(self.jvm.read(self.meta.getTableConfig().getMetadataPartitions()))

    def schema(self, *, with_meta_fields: bool = False) -> str:
        """The table's latest schema as Avro JSON, with or without Hudi's meta fields."""
        with translated("reading the table's schema"):
            resolver = self.jvm.hudi.common.table.TableSchemaResolver(self.meta)
            return str(resolver.getTableSchema(with_meta_fields).toString())

    # -- timeline

    def instants(self) -> list[Instant]:
        return [Instant(item["requestedTime"], item["action"], item["state"]) for item in self._timeline()]

    def pending(self, *, without: str | None = None) -> list[Instant]:
        """Requested and inflight instants that may change rows or files, but for our own."""
        return [
            instant
            for instant in self.instants()
            if instant.state != "COMPLETED" and instant.action not in HOUSEKEEPING and instant.requested != without
        ]

    def touched(self, requested: str) -> Touched | None:
        """Where a write goes, as its inflight or completed instant says; None when the instant is gone."""
        with translated(f"reading {requested}"):
            timeline = self.meta.reloadActiveTimeline()
            found = [
                item for item in self.jvm.items(timeline.getInstantsAsStream()) if item.requestedTime() == requested
            ]
            if not found:
                return None
            return _touched(self.jvm.read(timeline.readCommitMetadata(found[0])))

    def commits(self) -> list[Commit]:
        """The completed instants of the active timeline that wrote or replaced files, in the order of completion."""
        with translated("reading the timeline's commits"):
            timeline = self.meta.reloadActiveTimeline().getWriteTimeline().filterCompletedInstants()
            found = []
            for item in self.jvm.items(timeline.getInstantsAsStream()):
                if item.getAction() in _WRITES:
                    is_replace = item.getAction() == REPLACE
                    read = timeline.readReplaceCommitMetadata if is_replace else timeline.readCommitMetadata
                    record = self.jvm.read(read(item))
                    found.append(_commit(str(item.requestedTime()), str(item.getCompletionTime() or ""), record))
        return sorted(found, key=lambda each: (each.completed, each.write.instant))

    def replaced_by(self, instant: str) -> frozenset[Group]:
        """The file groups that this completed instant took out of use; empty when it is not in the active timeline."""
        return next((each.write.replaced for each in self.commits() if each.write.instant == instant), frozenset())

    def completed_writes(self) -> list[tuple[str, str]]:
        """Requested and completion time of the writers' completed commits in the active timeline."""
        action = "deltacommit" if self.is_merge_on_read else "commit"
        return [
            (item["requestedTime"], item["completionTime"])
            for item in self._timeline()
            if item["state"] == "COMPLETED" and item["action"] == action
        ]

    def _timeline(self) -> list[dict[str, str]]:
        """The active timeline as of now, each instant as an `InstantDTO`."""
        with translated("reading the timeline"):
            timelines = self.jvm.hudi.common.table.timeline.dto.TimelineDTO
            instants: list[dict[str, str]] = self.jvm.read(timelines.fromTimeline(self.meta.reloadActiveTimeline()))[
                "instants"
            ]
            return instants

    def now(self) -> datetime:
        """The present moment in the time zone that the table's instants are in."""
        is_utc = self.properties.get("hoodie.table.timeline.timezone", "LOCAL").upper() == "UTC"
        return datetime.now(UTC if is_utc else None).replace(tzinfo=None)

    def moment(self, milliseconds: int) -> datetime:
        """A file's time in the time zone that the table's instants are in."""
        shift = self.now() - datetime.now(UTC).replace(tzinfo=None)
        return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(tzinfo=None) + shift

    def state_of(self, requested: str) -> str | None:
        """REQUESTED, INFLIGHT, COMPLETED, or None when the active timeline does not have it (any more)."""
        return next((instant.state for instant in self.instants() if instant.requested == requested), None)

    def was_archived(self, requested: str) -> bool:
        """Whether the instant completed so long ago that it has left the active timeline."""
        with translated("reading the archived timeline"):
            return bool(self.meta.getArchivedTimeline(requested).containsInstant(requested))

    @cached_property
    def may_have_flink(self) -> str | None:
        """Why a Flink job may be at work on the table, as words for people; None if none is known of.

        What is declared, or was found by the service, counts; without either, the marks on the table.
        """
        engines = self.declared.writers_engines
        if WriterEngine.FLINK in engines:
            return "Flink is among its writers"
        return None if engines else self.flink_mark

    @cached_property
    def flink_mark(self) -> str | None:
        """What tells that Flink has written this table, as words for people; None if nothing does.

        `flink_checkpoint_id` is in its commits if it was told to say more (`write.extra.metadata.enabled`); a job that
        starts writes where its timeline server is (`ViewStorageProperties`), and that stays when it has ended.
        """
        named = [commit.write.instant for commit in self.commits() if _FLINK_CHECKPOINT in commit.extra]
        if named:
            return f"{named[-1]} was committed by Flink (it names its checkpoint)"
        with translated("looking for marks of Flink"):
            folder = self.jvm.hudi.storage.StoragePath(f"{self.base_path}/.hoodie/.aux")
            if not self.meta.getStorage().exists(folder):
                return None
            entries = self.jvm.items(self.meta.getStorage().listDirectEntries(folder).stream())
            marks = sorted(str(entry.getPath().getName()) for entry in entries)
        found = next((name for name in marks if name.startswith(_FLINK_STARTED)), None)
        return f"a Flink job has been started on it (.hoodie/.aux/{found})" if found else None

    # -- files

    def partitions(self) -> list[str]:
        with translated("listing the partitions"):
            listed = self.jvm.hudi.common.fs.FSUtils.getAllPartitionPaths(
                self.jvm.engine_context(), self.meta, "files" in self.metadata_partitions
            )
            return sorted(self.jvm.read(listed))

    def file_slices(self) -> list[FileSlice]:
        """The latest file slices as of now; listed anew, after a reload, only if an instant has completed since."""
        # What is visible changes with the completed instants only, and reading the timeline is cheaper than listing.
        # Taken before the listing: what completes during it may be seen in part, and has it done again.
        completed = frozenset(item.requested for item in self.instants() if item.state == "COMPLETED")
        if completed != self._listed_at:
            self.reload()
            self._slices = self._listed_slices()
            self._listed_at = completed
        return self._slices

    def _listed_slices(self) -> list[FileSlice]:
        with translated("listing the file slices"):
            config = self.jvm.hudi.common.config.HoodieMetadataConfig.newBuilder()
            view = self.jvm.hudi.common.table.view.FileSystemViewManager.createInMemoryFileSystemView(
                self.jvm.engine_context(), self.meta, config.enable("files" in self.metadata_partitions).build()
            )
            slices = self.jvm.java.java.util.ArrayList()
            try:
                for partition in self.partitions():
                    for item in self.jvm.items(view.getLatestFileSlices(partition)):
                        slices.add(self.jvm.hudi.common.table.timeline.dto.FileSliceDTO.fromFileSlice(item))
                return [_file_slice(item) for item in self.jvm.read(slices)]
            finally:
                view.close()

    def has_consistent_hashing(self) -> bool:
        """Whether the table has metadata of Hudi's consistent-hashing bucket index."""
        path = self.jvm.hudi.storage.StoragePath(f"{self.base_path}/.hoodie/.bucket_index/consistent_hashing_metadata")
        with translated("looking for consistent hashing"):
            return bool(self.meta.getStorage().exists(path))

    # -- bucket index

    def bucket_rules(self) -> BucketRules | None:
        """How many buckets each partition has: the hashing config's rules, else the number that the writers declare."""
        return hashing_config.rules_of(self)


def _file_slice(item: dict[str, Any]) -> FileSlice:
    """From Hudi's `FileSliceDTO`."""
    base = item["baseFile"] or {"fullPath": None, "fileLen": 0}
    logs = sorted((log["path"].rpartition("/")[2], log["len"]) for log in item["logFiles"])
    return FileSlice(
        partition=item["partition"],
        file_id=item["fileId"],
        base_file=base["fullPath"],
        base_bytes=base["fileLen"],
        log_files=tuple(name for name, _ in logs),
        log_bytes=sum(max(size, 0) for _, size in logs),
    )


def _touched(record: dict[str, Any]) -> Touched:
    """From Hudi's `HoodieCommitMetadata` as JSON."""
    groups: dict[str, dict[str, int]] = {}
    inserts: dict[str, int] = {}
    for partition, stats in (record.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            rows = sum(max(stat.get(name) or 0, 0) for name in ("numInserts", "numUpdateWrites", "numDeletes"))
            if stat.get("fileId"):
                of_partition = groups.setdefault(partition, {})
                of_partition[stat["fileId"]] = of_partition.get(stat["fileId"], 0) + rows
            else:
                inserts[partition] = inserts.get(partition, 0) + rows
    return Touched(groups, inserts)


def _commit(requested: str, completed: str, record: dict[str, Any]) -> Commit:
    files: dict[str, dict[str, list[str]]] = {}
    previous: dict[Group, str] = {}
    deleted: dict[Group, int] = {}
    for partition, stats in (record.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            if stat.get("fileId") and stat.get("path"):
                files.setdefault(partition, {}).setdefault(stat["fileId"], []).append(stat["path"])
                previous[(partition, stat["fileId"])] = str(stat.get("prevCommit"))
                deleted[(partition, stat["fileId"])] = int(stat.get("numDeletes") or 0)
    replaced = (record.get("partitionToReplaceFileIds") or {}).items()
    extra = {str(key): str(value) for key, value in (record.get("extraMetadata") or {}).items()}
    write = CompletedWrite(
        requested,
        record.get("operationType"),
        written=frozenset(_touched(record).keys),
        replaced=frozenset((partition, file_id) for partition, ids in replaced for file_id in ids),
        repaired=repaired_of(extra),
        known=known_of(extra),
    )
    return Commit(write, completed, files, previous, deleted, extra)
