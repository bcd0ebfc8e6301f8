"""Updates the snapshot of a table's files: lists only the partitions that were touched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from sqlalchemy import Engine

from jobs.contract import BucketIndex
from jobs.format.consistent_hashing import HashingMetadata
from jobs.format.hashing_config import HashingConfig
from service.catalog import snapshot_store
from service.catalog.registration import Registration
from service.db.engine import reading
from service.lake.commit import BUCKET_RESCALE, WRITING_ACTIONS
from service.lake.consistent_hashing import read_metadata, with_ranges
from service.lake.file_slices import Visibility, files_by_partition, latest_slices
from service.lake.hashing_config import read_hashing_config, read_hashing_configs
from service.lake.instant_metadata import InstantMetadata
from service.lake.partition import describe
from service.lake.snapshot import PartitionDetail
from service.lake.storage import Entry, Storage
from service.lake.table import BucketIndexKind
from service.lake.table_config import TableConfig
from service.lake.timeline import Timeline
from service.observation.timeline_diff import KnownState, ObservedInstant, read_instant

# If more partitions were touched, one listing of everything is cheaper, and databases reject longer lists of names.
_MAX_LISTED = 1000


@dataclass(frozen=True)
class Layout:
    """Where each partition's number of buckets comes from: from a hashing config, else from the registered index. A
    layout without both is that of a table without buckets."""

    index: BucketIndex | None
    hashing_config: HashingConfig | None = None
    earlier: tuple[HashingConfig, ...] = ()  # The configs that were in force before, oldest first.

    @classmethod
    def read(cls, storage: Storage, config: TableConfig, timeline: Timeline, index: BucketIndex | None) -> Layout:
        if index is None:
            return cls(None)
        found = read_hashing_configs(storage, config, timeline)
        return cls(index, found.in_force, tuple(read_hashing_config(storage, instant) for instant in found.earlier))

    @classmethod
    def stored(cls, index: BucketIndex | None, hashing_config: Mapping[str, Any] | None) -> Layout:
        if index is None or not hashing_config:
            return cls(index)
        in_force = {name: value for name, value in hashing_config.items() if name != "earlier"}
        # Earlier versions of the service stored only the config in force.
        earlier = hashing_config.get("earlier", ())
        return cls(index, HashingConfig.of(**in_force), tuple(HashingConfig.of(**each) for each in earlier))

    def to_json(self) -> dict[str, Any] | None:
        """Returns JSON from which `stored` restores the layout."""
        if self.hashing_config is None:
            return None
        return {**_json(self.hashing_config), "earlier": [_json(each) for each in self.earlier]}

    @property
    def num_buckets(self) -> int:
        """The number of buckets of a partition that no rule matches."""
        if self.hashing_config is not None:
            return self.hashing_config.default_num_buckets
        return self.index.num_buckets if self.index else 0

    def num_buckets_for(self, path: str) -> int:
        return self.hashing_config.num_buckets_for(path) if self.hashing_config else self.num_buckets

    def rescales_of(self, path: str) -> list[Rescale]:
        """Returns the expansions and contractions of a partition, oldest first.

        If there is no baseline, which is so after a rescale by Hudi, the first number is that of the writers' options.
        """
        if self.index is None or self.hashing_config is None:
            return []
        numbers = [("", self.index.num_buckets)]
        numbers += [(each.instant, each.num_buckets_for(path)) for each in (*self.earlier, self.hashing_config)]
        if self.earlier:
            del numbers[0]
        return [
            Rescale(instant, before, after) for (_, before), (instant, after) in pairwise(numbers) if after != before
        ]


def _json(config: HashingConfig) -> dict[str, Any]:
    """Returns JSON from which `HashingConfig.of` restores the config."""
    return {
        "instant": config.instant,
        "expressions": config.expressions,
        "default_num_buckets": config.default_num_buckets,
    }


@dataclass(frozen=True)
class Rescale:
    """An expansion or contraction of one partition by the hashing config of `instant`, from `before` to `after`
    buckets."""

    instant: str
    before: int
    after: int


@dataclass(frozen=True)
class Files:
    listed: frozenset[str] | None  # None for all partitions.
    partitions: tuple[PartitionDetail, ...]  # The listed partitions that have or had files.
    layout: Layout
    # File groups of the listed partitions (partition and file id) that were replaced before this poll, each with the
    # instant that replaced it.
    replaced_before: Mapping[tuple[str, str], str] = field(default_factory=dict)
    undone: frozenset[str] = frozenset()  # Instants that were rolled back or restored away.


def refresh(
    engine: Engine,
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    before: KnownState,
    *,
    new_instants: Sequence[ObservedInstant],
    listed: Mapping[str, Entry],
    small_file_bytes: int,
    has_gap: bool,
) -> Files:
    """Lists the partitions that the new instants touched. Writes nothing.

    All partitions are listed if the touched ones are unknown or very many. This is also done at the first poll, when a
    rescale may have changed each partition's number of buckets, and when a completed instant was undone. `listed` are
    the files of the timeline, by name.
    """
    metadata = [seen.metadata for seen in new_instants]
    index, stored = before.table.index, before.stored
    paths = _touched(metadata)
    is_rescaled = any(each.operation == BUCKET_RESCALE for each in metadata)
    undone = _undone(timeline, new_instants)
    is_reverted = any((instant, action) in before.known for instant in undone for action in WRITING_ACTIONS)
    rest: list[ObservedInstant] = []
    if paths is None or stored is None or has_gap or is_rescaled or is_reverted or len(paths) > _MAX_LISTED:
        paths = None
        known = {(seen.instant.requested_time, seen.instant.action) for seen in new_instants}
        rest = [
            read_instant(storage, config, each, listed)
            for each in timeline.instants
            if each.is_completed and (each.requested_time, each.action) not in known
        ]
        layout = Layout.read(storage, config, timeline, index)
    else:
        layout = Layout.stored(index, stored.hashing_config)
    remembered: Mapping[str, PartitionDetail] = {}
    if before.watch.looked_at is not None:
        with reading(engine) as connection:
            remembered = snapshot_store.details(connection, before.table.id, paths)
    replaced = {
        (path, file_id): instant
        for path, known_of in remembered.items()
        for file_id, instant in known_of.replaced.items()
        # After an instant was undone, remembered replacements by an unknown instant are dropped. The timeline has those
        # that are still valid.
        if instant not in undone and (instant or not is_reverted)
    }
    replaced.update(_replaced(rest))
    files = _list(storage, paths)
    described = _describe(
        files,
        Visibility.of(timeline, config.timeline_layout),
        [seen.metadata for seen in rest] + metadata,
        remembered=remembered,
        every_replaced={**replaced, **_replaced(new_instants)},
        layout=layout,
        small_file_bytes=small_file_bytes,
        ranges_of=partial(read_metadata, storage, config, timeline)
        if index is None and _hashes_consistently(before.table)
        else None,
    )
    return Files(paths, described, layout, replaced, undone)


def _hashes_consistently(table: Registration) -> bool:
    kind = (table.profile.get("bucket_layout") or {}).get("kind")
    return bool(kind == BucketIndexKind.CONSISTENT_HASHING.value)


def _undone(timeline: Timeline, new_instants: Sequence[ObservedInstant]) -> frozenset[str]:
    """Returns the instants that were rolled back or restored away and have not completed since. A compaction or
    clustering that was rolled back keeps its instant, and may be executed again."""
    completed = {each.requested_time for each in timeline.instants if each.is_completed}
    completed.update(seen.instant.requested_time for seen in new_instants if seen.instant.action in WRITING_ACTIONS)
    return frozenset(instant for seen in new_instants for instant in seen.metadata.rolled_back) - completed


def _replaced(seen: Iterable[ObservedInstant]) -> dict[tuple[str, str], str]:
    return {
        (path, file_id): each.instant.requested_time
        for each in seen
        for path, file_ids in each.metadata.replaced.items()
        for file_id in file_ids
    }


def _touched(metadata: Iterable[InstantMetadata]) -> frozenset[str] | None:
    """Returns the partitions that these instants changed; None if an instant does not name its partitions."""
    paths: set[str] = set()
    for each in metadata:
        if each.partitions is None:
            return None
        paths.update(each.partitions)
    return frozenset(paths)


def _list(storage: Storage, paths: frozenset[str] | None) -> dict[str, list[Entry]]:
    """Returns the files of these partitions, or of all."""
    if paths is not None:
        return {path: storage.list(path) for path in sorted(paths)}
    return files_by_partition(storage)


def _describe(
    files: Mapping[str, list[Entry]],
    visibility: Visibility,
    metadata: Iterable[InstantMetadata],
    *,
    remembered: Mapping[str, PartitionDetail],
    every_replaced: Mapping[tuple[str, str], str],
    layout: Layout,
    small_file_bytes: int,
    ranges_of: Callable[[str], HashingMetadata | None] | None,
) -> tuple[PartitionDetail, ...]:
    """Returns the details of partitions, from the `metadata` of the new instants and the details `remembered` from
    earlier polls. `ranges_of` reads the hashing metadata of a partition; it is None without consistent hashing."""
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    replaced: dict[str, dict[str, str]] = defaultdict(dict)
    for path, known in remembered.items():
        rows[path].update(known.base_rows)
    for (path, file_id), instant in every_replaced.items():
        replaced[path][file_id] = instant
    for each in metadata:
        for path, of_files in each.base_rows.items():
            rows[path].update(of_files)
    found = []
    for path in sorted({*files, *replaced}):
        listed = latest_slices(path, files.get(path, ()), visibility, replaced[path])
        if listed.groups or replaced[path]:
            detail = describe(
                path,
                listed,
                base_rows=rows[path],
                replaced=replaced[path],
                num_buckets=layout.num_buckets_for(path),
                small_file_bytes=small_file_bytes,
            )
            if ranges_of and path in files:
                sizes = {each.file_id: each.base_bytes + each.log_bytes for each in listed.slices}
                detail = replace(detail, state=with_ranges(detail.state, ranges_of(path), sizes))
            found.append(detail)
    return tuple(found)
