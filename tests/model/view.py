"""What a reader or a writer of the table sees: visible rows, and the number of buckets that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.state import BASELINE, COMPLETED, EARLY, EXPANDER, NO_KEY, PENDING, ROLLED_BACK, Group, Row, State

if TYPE_CHECKING:
    from tests.model.rules import Setting

Visible = dict[Group, dict[Row, int]]


def replacements(state: State) -> list[int]:
    """The replacecommits that have completed, archived or not."""
    return [number for number, item in enumerate(state.instants) if item.owner == EXPANDER and item.phase == COMPLETED]


def replaced_groups(state: State, *, with_archived: bool = True) -> set[Group]:
    """Hudi's file system view knows only those of the active timeline; the service reads the archive as well."""
    found: set[Group] = set()
    for number in replacements(state):
        if with_archived or number >= state.horizon:
            found.update(state.instants[number].replaced)
    return found


def is_committed(state: State, setting: Setting, number: int) -> bool:
    """Whether files of this instant are taken for committed.

    Without a metadata table that is also so for a rolled-back instant once the active timeline starts after it
    (`HoodieTimeline.containsOrBeforeTimelineStarts`).
    """
    phase = state.instants[number].phase
    if phase == COMPLETED:
        return True
    return phase == ROLLED_BACK and number < state.horizon and not setting.scenario.has_metadata_table


def visible(state: State, setting: Setting) -> Visible:
    """The live file groups, and the latest value of each row in each of them."""
    gone = replaced_groups(state, with_archived=False)
    found: Visible = {}
    for block in state.files:
        if block.group not in gone and is_committed(state, setting, block.instant):
            rows = found.setdefault(block.group, {})
            if block.key != NO_KEY:
                rows[block.row] = max(block.value, rows.get(block.row, 0))
    return found


def group_of(live: Visible, partition: str, bucket: int) -> Group | None:
    """The file group that a bucket index finds; of several (which is a fault of its own) the oldest."""
    found = [group for group in live if group.partition == partition and group.bucket == bucket]
    return min(found, default=None)


def holder_of(live: Visible, row: Row) -> Group | None:
    """The file group that an index by keys finds; of several (which is a fault of its own) the oldest."""
    return min((group for group, rows in live.items() if row in rows), default=None)


def place_of(live: Visible, setting: Setting, row: Row, number: int) -> Group | None:
    """The file group to which an upsert by this number of buckets takes the row; None when it makes a new one.

    Without buckets a new row goes to a file group that is there: Hudi fills small files.
    """
    found = None if setting.scenario.has_buckets else holder_of(live, row)
    return found or group_of(live, row[0], row[1] % number)


def pending_clusterings(state: State, setting: Setting) -> tuple[int, ...]:
    """The plans of action `clustering` that a writer finds when it loads the timeline now.

    A replacecommit without a plan is not among them (`ClusteringUtils.isClusteringInstant`).
    """
    if not (setting.protocol.as_clustering or setting.scenario.is_given):
        return ()
    return tuple(n for n, item in enumerate(state.instants) if item.owner == EXPANDER and item.phase in PENDING)


def counted_configs(state: State) -> list[int]:
    """As `getCommittedHashingConfigInstants`: those whose instant is not pending; it may as well be rolled back."""
    return [
        number for number in state.configs if number in (BASELINE, EARLY) or state.instants[number].phase not in PENDING
    ]


def number_of_buckets(state: State, setting: Setting) -> int | None:
    """What a process that starts now takes for the number of buckets; None where Hudi fails.

    Without a folder of configs it is the writers' own option. With one there must be a config that counts
    (`getHashingConfigToLoad` raises `IndexOutOfBoundsException` else).
    """
    if not state.configs:
        return setting.scenario.old_number
    counted = counted_configs(state)
    if not counted:
        return None
    return setting.scenario.old_number if max(counted) == BASELINE else setting.scenario.new_number


def right_number(state: State, setting: Setting) -> int:
    """The number by which the committed rows are laid out."""
    return setting.scenario.new_number if replacements(state) else setting.scenario.old_number
