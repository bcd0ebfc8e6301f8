"""Examines a table before it is registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.contract import BucketIndex
from jobs.format.consistent_hashing import RANGES_STAY
from service.lake.engine_marks import marks_of_table
from service.lake.engine_sighting import Mark
from service.lake.file_slices import read_snapshot
from service.lake.hashing_config import HashingConfigs, read_hashing_configs
from service.lake.index_profile import of_indexes
from service.lake.location import canonical
from service.lake.storage import open_storage
from service.lake.table import BucketIndexKind, BucketLayout, TableProfile
from service.lake.table_config import TableConfig, read_table_config
from service.lake.timeline import Timeline, read_timeline
from service.registration.bucket_index import CONSISTENT_HASHING_FOLDER, Evidence, Finding, detect, verify
from service.registration.key_sample import Sample, read_sample


@dataclass(frozen=True)
class Examination:
    """The result of an examination. `base_path` is canonical: all spellings of one location have the same. `name` comes
    from Hudi's properties. `marks` are the marks of engines outside the timeline; the first poll reads the marks of
    commits."""

    base_path: str
    name: str
    profile: TableProfile
    index: BucketIndex | None
    marks: tuple[Mark, ...] = ()


def examine(
    location: str,
    *,
    allowed_roots: tuple[str, ...] | None,
    claimed: BucketIndex | None,
    storage_options: Mapping[str, str],
) -> Examination:
    """Examines a table: reads properties, listings and at most eight base files. Writes nothing.

    If `allowed_roots` is None, every location is allowed. `storage_options` are Hadoop's `fs.s3a.*`. If an index is
    claimed, the sampled record keys must not contradict it. Without a claim, the index is the one that these keys
    prove, or None. Raises StorageUnsupportedError, PathForbiddenError, PathNotFoundError, NotAHudiTableError,
    TableUnsupportedError, BucketIndexContradictedError, StorageError.
    """
    base_path = canonical(location)
    storage = open_storage(base_path, storage_options, allowed_roots)
    config = read_table_config(storage)
    timeline = read_timeline(storage, config)
    hashing = read_hashing_configs(storage, config, timeline)
    slices = read_snapshot(storage, config, timeline)
    sample = read_sample(storage, slices)
    evidence = Evidence(
        slices=slices,
        samples=sample.keys,
        record_key_fields=config.fields("hoodie.table.recordkey.fields"),
        hashing_config=hashing.in_force,
        has_consistent_hashing=storage.exists(CONSISTENT_HASHING_FOLDER),
    )
    finding = verify(claimed, evidence) if claimed else detect(evidence)
    profile = _profile(
        config,
        timeline,
        sample,
        finding,
        of_indexes=of_indexes(storage, config, {}),
        warnings=(*_warnings(hashing), *_of_parts(config), *_of_ranges(finding.layout)),
    )
    return Examination(
        base_path, config.name or base_path.rpartition("/")[2], profile, finding.index, tuple(marks_of_table(storage))
    )


def _profile(
    config: TableConfig,
    timeline: Timeline,
    sample: Sample,
    finding: Finding,
    *,
    of_indexes: Mapping[str, Any],
    warnings: tuple[str, ...],
) -> TableProfile:
    return TableProfile(
        bucket_layout=finding.layout,
        columns=sample.columns,
        warnings=finding.warnings + warnings,
        **of_indexes,
        **config.profile(len(timeline.pending())),
    )


def _of_parts(config: TableConfig) -> Iterator[str]:
    if not config.flag("hoodie.populate.meta.fields", default=True):
        yield (
            "The table has no meta fields (`hoodie.populate.meta.fields=false`). Compaction by Hudi, cleaning, "
            "archival, savepoints, the metadata table and a sync work. An audit counts rows, and computes keys "
            "from their columns. Clustering, changes of the number of buckets, partition TTL and repair are refused, "
            "because they need the stored key of each row. Clustering by Hudi makes such a table unreadable for "
            "Spark SQL."
        )
    if config.is_backup:
        yield (
            "Only the backup of hoodie.properties exists. Hudi reads the backup, but other readers find no table. Copy"
            " `.hoodie/hoodie.properties.backup` to `.hoodie/hoodie.properties`."
        )


def _of_ranges(layout: BucketLayout) -> Iterator[str]:
    if layout.kind is BucketIndexKind.CONSISTENT_HASHING:
        yield RANGES_STAY
        yield (
            "In sessions with the options of consistent hashing, UPDATE and DELETE of Spark SQL have no effect on rows"
            " that were compacted or resized, unless the session sets hoodie.spark.sql.optimized.writes.enable=false"
            " (`writer-options` prints this option). An audit finds such statements."
        )


def _warnings(hashing: HashingConfigs) -> tuple[str, ...]:
    warnings = []
    if hashing.dangling:
        instants = ", ".join(hashing.dangling)
        warnings.append(
            f"Hashing configs without a completed commit ({instants}): writers treat them as valid and would duplicate"
            " rows. Run a job on the table, which removes them, before the writers continue."
        )
    if hashing.unusable:
        warnings.append(
            "A folder of hashing configs exists, but no config is committed. Every Hudi reader and writer with a bucket"
            " index fails until the rescale that created the folder has completed or is rolled back."
        )
    return tuple(warnings)
