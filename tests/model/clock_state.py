"""Instants by the clocks of several processes, and the value that a reader finds. Every event has a true time, by the
storage's clock; the text of an instant is the time by a process's own clock. Instants are made one after the other
under the table's lock (`SkewAdjustingTimeGenerator`), so correct clocks give ascending texts. Hudi compares only texts:

- A log file belongs to the latest base file whose requested time is not after the log's completion
  (`HoodieFileGroup.getBaseInstantTime`); the base file with the greatest requested time is read.
- A commit conflicts with instants that were requested after the last commit that its writer had seen, or
  that were pending then.
- The metadata table is such a table too: a commit that completes before its last compaction is missing in listings.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.model.clock_rules import ClockScenario, Service

US, RUNNER = -1, -2  # The owners of instants other than writers are our job, and a runner of Hudi that has made a plan.
NEVER = -(10**6)
UNKNOWN = 10**6  # no frame was measured yet


class Time(NamedTuple):
    """A moment."""

    text: int  # The time of a process's clock.
    true: int  # The modification time of the file.


class Instant(NamedTuple):
    """An instant, which writes a file with one row."""

    owner: int
    requested: Time
    completed: Time | None = None
    value: int = 0  # The value of the row.
    group: int = 0
    is_listed: bool = True
    seen: tuple[int, tuple[Time, ...]] = (
        NEVER,
        (),
    )  # The start of its conflict window, and the instants that were pending then.

    @property
    def is_a_service(self) -> bool:
        return self.owner in (US, RUNNER)

    @property
    def place(self) -> int:
        """The text that decides the position of the file in its group: the requested time of a base file, the
        completion time of a log."""
        return self.requested.text if self.is_a_service or self.completed is None else self.completed.text


class Clocks(NamedTuple):
    """A state. `now` is the true time, `offsets` are those of the writers' clocks, `listed_from` is the last compaction
    of the metadata table, and `frame` is what the job has measured."""

    now: int
    offsets: tuple[int, ...]
    instants: tuple[Instant, ...]
    batches: tuple[int, ...]
    steps: tuple[int, ...]
    job: str = "new"
    frame: int = UNKNOWN
    listed_from: int = NEVER
    metadata_compactions: int = 0
    expected: int = 0


def first_state(scenario: ClockScenario) -> Clocks:
    """Returns the state after one commit of each writer and, if there is one, the plan of a runner of Hudi."""
    instants = []
    for index, offset in enumerate(scenario.writers):
        requested, completed = 2 * index, 2 * index + 1
        instants.append(Instant(index, Time(requested + offset, requested), Time(completed + offset, completed)))
    now = 2 * len(instants)
    if scenario.runner is not None:
        instants.append(Instant(RUNNER, Time(now + scenario.runner, now)))
        now += 1
    return Clocks(
        now,
        scenario.writers,
        tuple(instants),
        (0,) * len(scenario.writers),
        scenario.steps,
        metadata_compactions=scenario.metadata_compactions,
    )


def pending_of(clocks: Clocks, index: int) -> Instant | None:
    """Returns the instant that a writer has in flight."""
    return next((item for item in clocks.instants if item.owner == index and item.completed is None), None)


def of_the_service(clocks: Clocks) -> Instant | None:
    """Returns the instant of our job, or of the plan that it executes."""
    return next((item for item in clocks.instants if item.is_a_service), None)


def visible(scenario: ClockScenario, clocks: Clocks) -> int:
    """Returns the value that a reader finds in the latest base file of the live file group and its logs; -1 if there is
    none."""
    ours = of_the_service(clocks)
    is_replaced = scenario.service is Service.CLUSTERING and ours is not None and ours.completed is not None
    live = [item for item in clocks.instants if item.completed and item.is_listed and item.group == int(is_replaced)]
    if scenario.service is Service.CLUSTERING:
        return max(((item.requested.text, item.value) for item in live), default=(NEVER, -1))[1]
    latest = max((item.place for item in live if item.is_a_service), default=NEVER)
    return max((item.value for item in live if item.place >= latest), default=-1)


def measured(clocks: Clocks) -> dict[int, int]:
    """Returns the offset of each writer's last completion from the storage's clock, the latest one at the end."""
    done = [(item.completed.true, item.owner, item.completed.text) for item in clocks.instants if item.completed]
    found: dict[int, int] = {}
    for true, owner, text in sorted(done):
        found.pop(owner, None)
        found[owner] = text - true
    return found


def latest_text(clocks: Clocks) -> int:
    """Returns the greatest text on the timeline and in the metadata table."""
    done = [item.completed.text for item in clocks.instants if item.completed]
    return max([clocks.listed_from, *done])


def ascends(clocks: Clocks, item: Instant) -> bool:
    """Returns whether the instant's times are later than the times of all instants that had completed before."""
    assert item.completed
    for time in (item.requested, item.completed):
        before = [other.completed for other in clocks.instants if other.completed and other.completed.true < time.true]
        if any(other.text >= time.text for other in before):
            return False
    return item.is_listed
