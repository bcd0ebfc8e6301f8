"""The table as a reader or a writer sees it: visible rows, and the current number of buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.state import BASELINE, COMPLETED, EARLY, EXPANDER, NO_KEY, PENDING, ROLLED_BACK, Group, Row, State

if TYPE_CHECKING:
    from tests.model.rules import Setting

Visible = dict[Group, dict[Row, int]]


def replacements(state: State) -> list[int]:
    """Returns the replacecommits that have completed, archived or not."""
    return [number for number, item in enumerate(state.instants) if item.owner == EXPANDER and item.phase == COMPLETED]


def replaced_groups(state: State, *, with_archived: bool = True) -> set[Group]:
    """Returns the replaced file groups. Hudi's file system view knows only those of the active timeline; the service
    also reads the archive."""
    found: set[Group] = set()
    for number, item in enumerate(state.instants):
        is_known = with_archived or number >= state.horizon
        if is_known and item.replaced and item.owner == EXPANDER and item.phase == COMPLETED:
            found.update(item.replaced)
    return found


def is_committed(state: State, setting: Setting, number: int) -> bool:
    """Returns whether readers take files of this instant for committed. Without a metadata table they do so even for a
    rolled-back instant, once the active timeline starts after it (`HoodieTimeline.containsOrBeforeTimelineStarts`)."""
    phase = state.instants[number].phase
    if phase == COMPLETED:
        return True
    return phase == ROLLED_BACK and number < state.horizon and not setting.scenario.has_metadata_table


def visible(state: State, setting: Setting) -> Visible:
    """Returns the live file groups, and the latest value of each row in each of them."""
    gone = replaced_groups(state, with_archived=False)
    counts = {number for number in range(len(state.instants)) if is_committed(state, setting, number)}
    found: Visible = {}
    for group, instant, key, value in state.files:
        if instant in counts and group not in gone:
            rows = found.setdefault(group, {})
            if key != NO_KEY:
                row = (group.partition, key)
                rows[row] = max(value, rows.get(row, 0))
    return found


def group_of(live: Visible, partition: str, bucket: int) -> Group | None:
    """Returns the file group that a bucket index finds; the oldest one if there are several, which is a damage."""
    found = [group for group in live if group.partition == partition and group.bucket == bucket]
    return min(found, default=None)


def holder_of(live: Visible, row: Row) -> Group | None:
    """Returns the file group that an index by keys finds; the oldest one if there are several, which is a damage."""
    return min((group for group, rows in live.items() if row in rows), default=None)


def place_of(live: Visible, setting: Setting, row: Row, number: int) -> Group | None:
    """Returns the file group to which an upsert with this number of buckets writes the row; None if it makes a new one.
    Without buckets a new row goes to an existing file group, because Hudi fills small files."""
    found = None if setting.scenario.has_buckets else holder_of(live, row)
    return found or group_of(live, row[0], row[1] % number)


def pending_clusterings(state: State, setting: Setting) -> tuple[int, ...]:
    """Returns the pending clustering plans on the timeline. A replacecommit without a plan is not one of them
    (`ClusteringUtils.isClusteringInstant`)."""
    if not (setting.protocol.as_clustering or setting.scenario.is_given):
        return ()
    return tuple(n for n, item in enumerate(state.instants) if item.owner == EXPANDER and item.phase in PENDING)


def counted_configs(state: State) -> list[int]:
    """Returns the configs whose instant is not pending, including those of rolled-back instants, like
    `getCommittedHashingConfigInstants`."""
    return [
        number for number in state.configs if number in (BASELINE, EARLY) or state.instants[number].phase not in PENDING
    ]


def number_of_buckets(state: State, setting: Setting) -> int | None:
    """Returns the number of buckets that a process reads now; None if Hudi fails. If there is no folder of configs, the
    number is the writers' own option. If the folder exists but has no valid config, `getHashingConfigToLoad` raises
    `IndexOutOfBoundsException`."""
    if not state.configs:
        return setting.scenario.old_number
    counted = counted_configs(state)
    if not counted:
        return None
    return setting.scenario.old_number if max(counted) == BASELINE else setting.scenario.new_number


def right_number(state: State, setting: Setting) -> int:
    """Returns the number of buckets of the committed rows."""
    return setting.scenario.new_number if replacements(state) else setting.scenario.old_number
