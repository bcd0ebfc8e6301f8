"""Finds rows of commits that were rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.hudi import rows
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator


def back(examined: Examined) -> Iterator[Finding]:
    """Finds rows with the commit time of an instant that was rolled back, if the rollback is on the active timeline.
    The history is left out because its length has no bound, and so are restores (`limits.md`). Hudi's
    `rollback_to_instant` (1.2) ignores pending plans: a compaction or clustering that read the rows before the rollback
    brings them back when it commits."""
    table = examined.table
    if not table.has_meta_fields:
        return
    # A plan that was rolled back may be executed again, by its own instant, and be archived before its rollback.
    completed = {commit.write.instant for commit in examined.commits}
    first = min(completed, default="")
    rollbacks = table.rollbacks().items()
    undone = {each: rollback for each, rollback in rollbacks if each > first and each not in completed}
    if found := rows.count_of_instants(table, undone):
        yield Finding(
            "rolled-back-rows",
            "Rows of commits that were rolled back are there again",
            {each: f"{number} rows of {each}, which {undone[each]} rolled back" for each, number in found.items()},
            "Readers see rows that somebody has taken back, and no longer what these rows had replaced.",
            "A compaction or a clustering was executed during the rollback. Find the rows by `_hoodie_commit_time`,"
            " and write the right ones again, or delete them; or restore a savepoint.",
        )
