"""Hudi's statistics of written files before their commit: `HoodieWriteStat` (1.2.0), one per file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import get_java_class

from jobs.contract import Json
from jobs.format.written_file import WrittenFile
from jobs.hudi.jvm import Jvm


@dataclass(frozen=True)
class WriteStat:
    """One written base file. `path` is relative to the base path, `bytes` is its size; the other members count rows. In
    a compaction, `inserts` are the rows of the logs whose keys the old base file does not have, and `deletes` the keys
    that the logs delete. `corrupt_blocks` counts skipped log blocks, which are usually the remains of a failed append.
    """

    partition: str
    file_id: str
    path: str
    rows: int
    bytes: int
    inserts: int
    deletes: int
    corrupt_blocks: int

    @classmethod
    def parse(cls, stat: dict[str, Any]) -> WriteStat:
        return cls(
            stat.get("partitionPath") or "",
            stat["fileId"],
            stat["path"],
            stat["numWrites"],
            stat.get("fileSizeInBytes", 0),
            stat["numInserts"],
            stat["numDeletes"],
            stat.get("totalCorruptLogBlock", 0),
        )


def put(jvm: Jvm, begun: Any, stats: Sequence[Json]) -> list[WriteStat]:
    """Replaces Hudi's own task of a begun compaction (`HoodieWriteMetadata`), which has not run yet, by the statistics
    of files that are already written."""
    by_partition: dict[str, list[Json]] = {}
    for stat in stats:
        by_partition.setdefault(stat["partitionPath"], []).append(stat)
    kind = jvm.hudi.common.model.HoodieCommitMetadata
    described = kind.fromJsonString(json.dumps({"partitionToWriteStats": by_partition}), get_java_class(kind))
    begun.setWriteStatuses(jvm.engine_context.written(described.getWriteStats()))
    return [WriteStat.parse(stat) for stat in stats]


def written_by(jvm: Jvm, client: Any, begun: Any) -> list[WriteStat]:
    """Makes Hudi write the files of a begun compaction or clustering (`HoodieWriteMetadata`), unless it has done so
    before, and returns their statistics. Hudi keeps the statuses for its commit."""
    services = client.getTableServiceClient()
    found = jvm.call_hidden(services, "triggerWritesAndFetchWriteStats", begun).getDataTableWriteStats()
    return [WriteStat.parse(stat) for stat in jvm.read(found)]


def of_new_file(file: WrittenFile) -> dict[str, Any]:
    """Returns Hudi's `HoodieWriteStat` of a new file group's first base file, as JSON."""
    return {
        "partitionPath": file.partition,
        "fileId": file.file_id,
        "path": f"{file.partition}/{file.file_name}" if file.partition else file.file_name,
        "prevCommit": "null",
        "numWrites": file.rows,
        "numInserts": file.rows,
        "numUpdateWrites": 0,
        "numDeletes": 0,
        "totalWriteBytes": file.bytes,
        "fileSizeInBytes": file.bytes,
        "totalWriteErrors": 0,
    }
