"""Reads a table's files without Hudi, and finds those that must not exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BASELINE = "00000000000000"
# In table version 6 a commit's inflight is `<instant>.inflight`, and nothing carries a completion time.
_ENTRY = re.compile(
    r"^(?P<requested>\d{17})(_\d{17})?(\.(?P<action>(?!inflight$)\w+))?(\.(?P<state>requested|inflight))?$"
)


def listing(base: Path) -> dict[str, tuple[int, int]]:
    """Returns size and modification time of every file below the base path."""
    return {str(p.relative_to(base)): (p.stat().st_size, p.stat().st_mtime_ns) for p in base.rglob("*") if p.is_file()}


def pending(base: Path) -> set[str]:
    """Returns the pending instants of the timeline."""
    return {instant for instant in _instants(base) if instant not in completed_instants(base)}


def completed_instants(base: Path) -> set[str]:
    return {match["requested"] for match in _timeline(base) if match["state"] is None}


def left_behind(spark: SparkSession, base: Path) -> list[str]:
    """Returns all remains of dead or cancelled attempts; none may exist after the next attempt."""
    done = completed_instants(base)
    committed = _committed_files(spark, base)
    found = [f"pending instant {instant}" for instant in pending(base)]
    found += [f"marker folder {path.name}" for path in (base / ".hoodie" / ".temp").glob("*")]
    found += [f"heartbeat of {path.name}" for path in (base / ".hoodie" / ".heartbeat").glob("[0-9]*")]
    found += [
        f"hashing config {path.name}"
        for path in base.glob(".hoodie/.bucket_index/partition_bucket_index_meta/configs/[0-9]*")
        if path.name not in {f"{instant}.hashing_config" for instant in done | {BASELINE}}
    ]
    found += [f"unfinished config {path.name}" for path in base.glob(".hoodie/.bucket_index/*/.unfinished*")]
    found += [
        f"uncommitted file {path.relative_to(base)}"
        for path in base.rglob("*.parquet")
        if ".hoodie" not in path.parts and str(path.relative_to(base)) not in committed
    ]
    if (base / ".hoodie" / "lock").exists():
        found.append("the lock")
    return found


def _committed_files(spark: SparkSession, base: Path) -> set[str]:
    """Returns the files that completed commits name as written."""
    hudi = spark._jvm.org.apache.hudi  # type: ignore[union-attr]
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())
    meta = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(str(base)).setConf(conf).build()
    timeline = meta.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    files: set[str] = set()
    for instant in timeline.getInstants():
        is_replace = instant.getAction() == "replacecommit"
        metadata = timeline.readReplaceCommitMetadata(instant) if is_replace else timeline.readCommitMetadata(instant)
        files.update(metadata.getFileIdAndRelativePaths().values())
    return files


def _instants(base: Path) -> set[str]:
    return {match["requested"] for match in _timeline(base)}


def _timeline(base: Path) -> list[re.Match[str]]:
    # Table version 8 and later have this folder.
    folder = base / ".hoodie" / "timeline"
    names = [path.name for path in (folder if folder.exists() else base / ".hoodie").iterdir() if path.is_file()]
    return [match for name in names if (match := _ENTRY.match(name))]
