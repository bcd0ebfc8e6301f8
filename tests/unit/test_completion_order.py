"""The times of a version 6 timeline's files show the order of completion, unless a copy has changed them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from jobs.format.completion_order import CompletionOrder
from jobs.format.instants import instant_of

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
# Instant 2 began before 3, and completed after it.
TOOK = {0: 1.0, 1: 1.0, 2: 90.0, 3: 1.0, 4: 1.0}
NAMES = {number: instant_of(BEGUN + timedelta(minutes=number)) for number in TOOK}
BY_INSTANT, BY_COMPLETION = [0, 1, 2, 3, 4], [0, 1, 3, 2, 4]


def files(*, zone_hours: int = 0) -> dict[str, int]:
    found = {}
    for number, name in NAMES.items():
        begun = int((BEGUN + timedelta(minutes=number, hours=zone_hours)).timestamp() * 1000)
        found[f"{name}.deltacommit.requested"] = begun + 40
        found[f"{name}.deltacommit.inflight"] = begun + 400
        found[f"{name}.deltacommit"] = begun + int(TOOK[number] * 1000)
    return found


def numbers_sorted_by(order: CompletionOrder) -> list[int]:
    return sorted(NAMES, key=lambda number: order.key(NAMES[number]))


@pytest.mark.parametrize("zone_hours", [0, -5])
def test_original_times_of_files_show_the_order_of_completion_in_any_zone(zone_hours: int) -> None:
    order = CompletionOrder.of(files(zone_hours=zone_hours))
    assert numbers_sorted_by(order) == BY_COMPLETION
    assert all(order.is_known(name) for name in NAMES.values())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("milliseconds", [0, 3, 1000])
def test_a_copy_leaves_the_order_of_the_instants(seed: int, milliseconds: int) -> None:
    names = sorted(files())
    Random(seed).shuffle(names)
    order = CompletionOrder.of({name: 1_800_000_000_000 + n * milliseconds for n, name in enumerate(names)})
    assert numbers_sorted_by(order) == BY_INSTANT
    assert not any(order.is_known(name) for name in NAMES.values())


def test_some_commits_after_a_copy_the_order_is_known_again_and_later_than_what_was_copied() -> None:
    names = {number: instant_of(BEGUN + timedelta(minutes=number)) for number in range(30)}
    copied_at = int((BEGUN + timedelta(minutes=9, seconds=30)).timestamp() * 1000)
    mixed = {}
    for number, name in names.items():
        begun = int((BEGUN + timedelta(minutes=number)).timestamp() * 1000)
        # 27 began before 28, and completed after it.
        mixed[f"{name}.commit.requested"] = max(begun, copied_at)
        mixed[f"{name}.commit"] = max(begun + (90_000 if number == 27 else 1000), copied_at)
    order = CompletionOrder.of(mixed)
    known = [number for number, name in names.items() if order.is_known(name)]
    assert set(range(20, 30)) <= set(known) <= set(range(10, 30))
    by_completion = [*range(27), 28, 27, 29]
    assert sorted(names, key=lambda number: order.key(names[number])) == by_completion


def test_a_completion_whose_request_is_gone_or_that_stands_alone_is_not_known() -> None:
    alone = {name: time for name, time in files().items() if name.startswith(NAMES[0])}
    assert not CompletionOrder.of(alone).is_known(NAMES[0])
    completed = {name: time for name, time in files().items() if not name.endswith(("requested", "inflight"))}
    assert numbers_sorted_by(CompletionOrder.of(completed)) == BY_INSTANT
