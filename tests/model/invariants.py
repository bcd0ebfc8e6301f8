"""Conditions that must hold in every state. A violation is a sentence. Rows are checked only when all commits were
checked and all incidents repaired, because a stale commit makes rows wrong until then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.recovery import ALIVE
from tests.model.state import BASELINE, COMPLETED, EARLY, NONE, ROLLED_BACK, Row, State
from tests.model.view import (
    counted_configs,
    number_of_buckets,
    replacements,
    right_number,
    visible,
)
from tests.model.watch import unjudged

if TYPE_CHECKING:
    from tests.model.rules import Setting


def violation(state: State, setting: Setting) -> str | None:
    """Returns the first violation, or None."""
    return of_configs(state, setting) or of_batches(state, setting) or of_rows(state, setting)


def of_configs(state: State, setting: Setting) -> str | None:
    """Returns a violation unless exactly the hashing configs of completed replacecommits are valid, and the number can
    be read."""
    if number_of_buckets(state, setting) is None:
        return "Every reader and writer fails: there are hashing configs, but none that counts."
    counted = counted_configs(state)
    for number in counted:
        if number == EARLY or (number != BASELINE and state.instants[number].phase != COMPLETED):
            return "A hashing config counts, although its instant has not committed."
    if not setting.scenario.is_clustering:
        for number in replacements(state):
            if number not in counted:
                return f"Instant {number} has committed, and its hashing config does not count."
    return None


def of_batches(state: State, setting: Setting) -> str | None:
    """Returns a violation if an acknowledged batch is lost, or a correct batch is fenced. In a scenario without faults
    any incident is a violation too, and so is the rollback of our commit."""
    if state.lost != NONE:
        return f"The batch of instant {state.lost} was acknowledged and is lost."
    if state.wrongly_fenced != NONE:
        return f"Instant {state.wrongly_fenced} was fenced, although it goes by the new number of buckets."
    if not setting.scenario.is_orderly:
        return None
    if state.incidents:
        return f"Instant {min(state.incidents)} is stale, although everybody did what the protocol asks for."
    mine = state.expander
    if mine.step in ALIVE and state.instants[mine.instant].phase == ROLLED_BACK:
        return f"A writer has taken back instant {mine.instant}, on which the service works."
    return None


def of_rows(state: State, setting: Setting) -> str | None:
    """Returns a violation unless every acknowledged row is visible once, with its latest value, where the next upsert
    looks for it."""
    if unjudged(state, setting):
        return None
    excused = {row for number in state.incidents for row in state.instants[number].rows}
    right = right_number(state, setting)
    expected = dict(state.expected)
    found: dict[Row, list[int]] = {}
    misplaced = None
    for group, rows in visible(state, setting).items():
        for row, value in rows.items():
            if row in excused:
                continue
            if row not in expected:
                return f"{_named(row)} can be read, although no batch with it was ever acknowledged."
            if row[1] % right != group.bucket:
                misplaced = f"{_named(row)} lies in {group}, where no upsert by {right} buckets finds it."
            found.setdefault(row, []).append(value)
    if misplaced:
        return misplaced
    for row, value in state.expected:
        values = found.get(row, [])
        if row in excused or values == [value]:
            continue
        if not values:
            return f"{_named(row)} was acknowledged with the value {value} and cannot be read."
        if len(values) > 1:
            return f"{_named(row)} is read {len(values)} times, with the values {sorted(values)}."
        return f"{_named(row)} is read with the old value {values[0]}; acknowledged was {value}."
    return None


def _named(row: Row) -> str:
    return f"Key {row[1]} of partition {row[0]}"
