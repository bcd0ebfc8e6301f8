"""Hudi's statistics of the files that it wrote, before its commit: `HoodieWriteStat` (1.2.0), one per file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.hudi.jvm import Jvm


@dataclass(frozen=True)
class WriteStat:
    """One written base file. `path` is relative to the base path; the others count rows.

    Of a compaction, `inserts` are the rows of the logs whose keys the old base file does not have, and `deletes` the
    keys that the logs delete. `corrupt_blocks` of the logs were left out: as a rule the remains of a failed append.
    """

    partition: str
    file_id: str
    path: str
    rows: int
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
            stat["numInserts"],
            stat["numDeletes"],
            stat.get("totalCorruptLogBlock", 0),
        )


def written_by(jvm: Jvm, client: Any, begun: Any) -> list[WriteStat]:
    """Returns the statistics of a begun compaction or clustering (`HoodieWriteMetadata`), and writes its files, unless
    that was done. Hudi keeps the statuses for its commit, which asks for them in the same way."""
    services = client.getTableServiceClient()
    found = jvm.call_hidden(services, "triggerWritesAndFetchWriteStats", begun).getDataTableWriteStats()
    return [WriteStat.parse(stat) for stat in jvm.read(found)]
