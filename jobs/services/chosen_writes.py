"""Chooses the stale writes that a repair repairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from jobs.format.stale_writes import Doubt, StaleWrite, stale_writes
from jobs.hudi.commit_order import misdated_instants
from jobs.hudi.records import Commit
from jobs.hudi.table import HudiTable
from jobs.services import groups_without_bucket


def chosen(
    table: HudiTable, commits: Sequence[Commit], named: Collection[str], waived: Collection[str]
) -> tuple[list[StaleWrite], list[StaleWrite]]:
    """Returns the stale writes to repair, and those to leave alone; archived ones only if they are named or waived. All
    writes to file groups without a bucket are repaired, if there is one where a repair writes or has taken it out of
    use."""
    archived = {commit.write.instant for commit in commits if commit.write.is_archived}
    stale = [
        write
        for write in stale_writes(
            (each.write for each in commits), misdated=misdated_instants(table, table.clock.frame)
        )
        if (write.instant not in archived or write.instant in {*named, *waived})
        # Readers see the file groups of an archived overwrite again, with rows of later writes alone.
        and not (write.doubt is Doubt.OVERWRITTEN and archived.issuperset(write.groups.values()))
    ]
    enough = {None} if named else {None, Doubt.ORDER, Doubt.CLOCKS}
    picked = [
        write
        for write in stale
        if write.instant in named
        or (
            (write.doubt in enough or groups_without_bucket.dropped([write], commits))
            and not (write.doubt is not None and write.instant in waived)
            and write.instant not in archived
        )
    ]
    left = [write for write in stale if write not in picked]
    due = {write.instant: write for write in picked}
    on_timeline = [commit for commit in commits if not commit.write.is_archived]
    for write in groups_without_bucket.writes_to_them(table, on_timeline, {*due, *named}):
        known = due.get(write.instant, write)
        due[write.instant] = replace(known, groups={**write.groups, **known.groups})
    return list(due.values()), left
