"""Brings the picture of a table's files up to date: only the partitions that were touched are listed again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.flows.news import read_instant
from service.lake.hashing_config import HashingConfig, read_hashing_configs
from service.lake.partition import Visibility, describe, latest_slices
from service.lake.snapshot import data_files
from service.model.commit import BUCKET_RESCALE
from service.store import snapshots
from service.store.engine import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Engine

    from jobs.contract import BucketIndex
    from service.flows.news import Before, Seen
    from service.lake.instant_metadata import InstantMetadata
    from service.lake.storage import Entry, Storage
    from service.lake.table_config import TableConfig
    from service.lake.timeline import Timeline
    from service.model.snapshot import PartitionDetail


# One listing of everything is cheaper than so many of single partitions, and no database takes a longer list of names.
_MOST_LISTED = 1000


@dataclass(frozen=True)
class Layout:
    """What gives a partition its number of buckets: a hashing config, or else the registered index, or nothing."""

    index: BucketIndex | None
    hashing_config: HashingConfig | None = None

    @classmethod
    def read(cls, storage: Storage, config: TableConfig, timeline: Timeline, index: BucketIndex | None) -> Layout:
        return cls(index, read_hashing_configs(storage, config, timeline).in_force if index else None)

    @classmethod
    def stored(cls, index: BucketIndex | None, hashing_config: Mapping[str, Any] | None) -> Layout:
        return cls(index, HashingConfig.of(**hashing_config) if index and hashing_config else None)

    def to_json(self) -> dict[str, Any] | None:
        """`HashingConfig.of` takes it back."""
        config = self.hashing_config
        if config is None:
            return None
        return {
            "instant": config.instant,
            "expressions": config.expressions,
            "default_num_buckets": config.default_num_buckets,
        }

    @property
    def num_buckets(self) -> int:
        """Of a partition that no rule names."""
        if self.hashing_config is not None:
            return self.hashing_config.default_num_buckets
        return self.index.num_buckets if self.index else 0

    def num_buckets_for(self, path: str) -> int:
        return self.hashing_config.num_buckets_for(path) if self.hashing_config else self.num_buckets


@dataclass(frozen=True)
class Files:
    """`listed` are the partitions that were looked at, None for all. `partitions` are those of them that have files."""

    listed: frozenset[str] | None
    partitions: tuple[PartitionDetail, ...]
    layout: Layout


def refresh(
    engine: Engine,
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    before: Before,
    news: Sequence[Seen],
    listed: Mapping[str, Entry],
    small_file_bytes: int,
    *,
    has_gap: bool,
) -> Files:
    """Lists the partitions that the new instants touched. Writes nothing.

    Lists all if it is not known which those are, if they are very many, at the first look, and when a rescale may have
    given each another number of buckets. `listed` are the files of the timeline, by name.
    """
    metadata = [seen.metadata for seen in news]
    index, stored = before.table.index, before.stored
    paths = _touched(metadata)
    is_rescaled = any(each.operation == BUCKET_RESCALE for each in metadata)
    if paths is None or stored is None or has_gap or is_rescaled or len(paths) > _MOST_LISTED:
        paths = None
        known = {(seen.instant.requested_time, seen.instant.action) for seen in news}
        rest = [i for i in timeline.instants if i.is_completed and (i.requested_time, i.action) not in known]
        metadata = [read_instant(storage, config, instant, listed).metadata for instant in rest] + metadata
        layout = Layout.read(storage, config, timeline, index)
    else:
        layout = Layout.stored(index, stored.hashing_config)
    with reading(engine) as connection:
        remembered = snapshots.details(connection, before.table.id, paths)
    described = _describe(
        _list(storage, paths),
        Visibility.of(timeline, config.timeline_layout),
        metadata,
        remembered,
        layout,
        small_file_bytes,
    )
    return Files(paths, described, layout)


def _touched(metadata: Iterable[InstantMetadata]) -> frozenset[str] | None:
    """The partitions that these instants changed; None if one of them does not tell."""
    paths: set[str] = set()
    for each in metadata:
        if each.partitions is None:
            return None
        paths.update(each.partitions)
    return frozenset(paths)


def _list(storage: Storage, paths: frozenset[str] | None) -> dict[str, list[Entry]]:
    """The files of these partitions, or of all."""
    if paths is not None:
        return {path: storage.list(path) for path in sorted(paths)}
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in data_files(storage):
        found[entry.path.rpartition("/")[0]].append(entry)
    return dict(sorted(found.items()))


def _describe(
    files: Mapping[str, list[Entry]],
    seen: Visibility,
    metadata: Iterable[InstantMetadata],
    remembered: Mapping[str, PartitionDetail],
    layout: Layout,
    small_file_bytes: int,
) -> tuple[PartitionDetail, ...]:
    """`metadata` is that of the new instants, `remembered` what was known before them."""
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    replaced: dict[str, set[str]] = defaultdict(set)
    for path, known in remembered.items():
        rows[path].update(known.base_rows)
        replaced[path].update(known.replaced)
    for each in metadata:
        for path, of_files in each.base_rows.items():
            rows[path].update(of_files)
        for path, file_ids in each.replaced.items():
            replaced[path].update(file_ids)
    found = []
    for path, entries in files.items():
        listed = latest_slices(path, entries, seen, replaced[path])
        if listed.groups:
            found.append(
                describe(
                    path,
                    listed,
                    base_rows=rows[path],
                    replaced=replaced[path],
                    num_buckets=layout.num_buckets_for(path),
                    small_file_bytes=small_file_bytes,
                )
            )
    return tuple(found)
