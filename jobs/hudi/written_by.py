"""Finds out which version of Hudi wrote to a table, as far as the timeline shows it. Only table version 6 has writers
older than 1.0. The commits of that version are JSON of the writer's classes, and since 1.0 each `HoodieWriteStat` has
`numUpdates` (observed with 0.15.0, 1.0.2, 1.1.1 and 1.2.0). Since version 8 all releases write the same fields."""

from __future__ import annotations

import json
from typing import Any

from jobs.errors import FileMissingError
from jobs.hudi.jvm import reread, translated
from jobs.hudi.records import INGESTION
from jobs.hudi.table import HudiTable

_SINCE_1_0 = "numUpdates"
_LAST_WITH_OLDER_WRITERS = 6


@reread
def older_than_1_0(table: HudiTable) -> dict[str, bool]:
    """Returns for each completed write of the active timeline, the newest last, whether a Hudi before 1.0 made it.

    Writes without files are left out, because they do not show the version.
    """
    if table.version > _LAST_WITH_OLDER_WRITERS:
        return {}
    found: dict[str, bool] = {}
    with translated("reading who wrote the commits", expected=FileMissingError):
        timeline = table.meta.reloadActiveTimeline().getWriteTimeline().filterCompletedInstants()
        for item in table.jvm.items(timeline.getInstantsAsStream()):
            if item.getAction() in INGESTION:
                content = bytes(timeline.getInstantDetails(item).get())
                if stats := _stats(json.loads(content or b"{}")):
                    found[str(item.requestedTime())] = any(_SINCE_1_0 not in each for each in stats)
    return found


def _stats(commit: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for stats in (commit.get("partitionToWriteStats") or {}).values() for each in stats]
