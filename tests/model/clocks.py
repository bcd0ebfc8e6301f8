"""Steps of writers and of our job, each with a clock, and the conditions that must hold after our commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.model.clock_rules import ClockProtocol, ClockScenario, Service
from tests.model.clock_state import (
    NEVER,
    US,
    Clocks,
    Instant,
    Time,
    ascends,
    first_state,
    latest_text,
    measured,
    of_the_service,
    pending_of,
    visible,
)
from tests.model.search import Found, explore
from tests.model.writers import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.state import Label

# The difference between our worker's clock and the storage's.
OWN_OFFSET = 0


def search(protocol: ClockProtocol, scenario: ClockScenario) -> Found:
    """Explores every state of the scenario under this protocol, or stops at the first violation."""
    return explore(
        scenario.name,
        first_state(scenario),
        partial(steps, protocol, scenario),
        partial(violation, protocol, scenario),
    )


def violation(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> str | None:
    """Returns the violation after our commit, apart from rows that writers with wrong clocks lose in any case. Instants
    that do not ascend are reported as an incident, which is a violation only if all clocks are as the job has measured
    them."""
    ours = of_the_service(clocks)
    if ours is None or ours.completed is None:
        return None
    since = [item for item in clocks.instants if item.completed and item.completed.true > ours.completed.true]
    incidents = [item for item in since if not ascends(clocks, item)]
    if protocol.watches and incidents:
        if any(offset != clocks.frame for offset in clocks.offsets):
            return None
        return f"Instant {incidents[0].requested.text} does not ascend, although all clocks are as they were measured."
    if not ours.is_listed:
        return f"The metadata table was compacted at {clocks.listed_from}; what we completed before is in no listing."
    read = visible(scenario, clocks)
    if read != clocks.expected:
        return f"The row is read with the value {read}; acknowledged was {clocks.expected}."
    return None


def steps(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> Iterator[tuple[Label, Clocks]]:
    """Yields the possible next steps. Each instant is made under the lock; our verification and our commit happen under
    the same lock."""
    for index, offset in enumerate(clocks.offsets):
        pending = pending_of(clocks, index)
        if pending is not None:
            yield _commit(scenario, clocks, index, pending)
        elif clocks.batches[index] < scenario.batches:
            yield _start(scenario, clocks, index)
        if clocks.metadata_compactions:
            compacted = clocks._replace(
                listed_from=clocks.now + offset,
                now=clocks.now + 1,
                metadata_compactions=clocks.metadata_compactions - 1,
            )
            text = "Writer {} compacts the metadata table at {}."
            yield (text, index, compacted.listed_from), compacted
        for step in clocks.steps:
            stepped = (*clocks.offsets[:index], offset + step, *clocks.offsets[index + 1 :])
            text = "The clock of writer {} steps by {}."
            yield (text, index, step), clocks._replace(offsets=stepped, steps=())
    if clocks.job == "new":
        yield _plan(protocol, scenario, clocks)
    elif clocks.job == "planned":
        yield from _complete(protocol, scenario, clocks)


def _start(scenario: ClockScenario, clocks: Clocks, index: int) -> tuple[Label, Clocks]:
    """The instant begins, and the writer loads the timeline; a new base file is merged from the current one."""
    requested = Time(clocks.now + clocks.offsets[index], clocks.now)
    new = value(index, clocks.batches[index])
    is_clustered = clocks.job == "committed" and scenario.service is Service.CLUSTERING
    if scenario.service is Service.CLUSTERING:
        new = max(new, visible(scenario, clocks))
    window = max(item.requested.text for item in clocks.instants if item.completed)
    pending = tuple(item.requested for item in clocks.instants if not item.completed)
    started = Instant(index, requested, value=new, group=int(is_clustered), seen=(window, pending))
    text = "Writer {} starts instant {}."
    return (text, index, requested.text), clocks._replace(now=clocks.now + 1, instants=(*clocks.instants, started))


def _commit(scenario: ClockScenario, clocks: Clocks, index: int, mine: Instant) -> tuple[Label, Clocks]:
    window, pending = mine.seen
    for other in clocks.instants:
        is_compaction = other.is_a_service and scenario.service is Service.COMPACTION
        is_later = other.requested.text > window or other.requested in pending
        if other.completed and is_later and not is_compaction:
            left = tuple(item for item in clocks.instants if item is not mine)
            text = "Writer {} finds that instant {} conflicts with {}, and tries again."
            return (text, index, mine.requested.text, other.requested.text), clocks._replace(instants=left)
    completed = Time(clocks.now + clocks.offsets[index], clocks.now)
    done = mine._replace(completed=completed, is_listed=completed.text >= clocks.listed_from, seen=(NEVER, ()))
    batch = clocks.batches[index]
    after = clocks._replace(
        now=clocks.now + 1,
        instants=tuple(done if item is mine else item for item in clocks.instants),
        batches=(*clocks.batches[:index], batch + 1, *clocks.batches[index + 1 :]),
        expected=max(clocks.expected, value(index, batch)),
    )
    return ("Writer {} completes instant {} at {}.", index, mine.requested.text, completed.text), after


def _plan(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> tuple[Label, Clocks]:
    frames = measured(clocks)
    refused = clocks._replace(job="refused")
    if len(set(frames.values())) > 1 and protocol.refuses_disagreement:
        return ("The job is refused: the writers' clocks differ.",), refused
    frame = list(frames.values())[-1]
    given = of_the_service(clocks)
    if given is not None:
        if protocol.refuses_foreign_plans and given.requested.text - given.requested.true != frame:
            return ("The job is refused: the plan's time is not in the writers' frame.",), refused
        planned = given._replace(value=visible(scenario, clocks))
        text = "The job takes the plan of instant {}."
    else:
        offset = frame if protocol.requested_in_frame else OWN_OFFSET
        at = _time(protocol, clocks, offset)
        if at is None:
            return ("The job is refused: what has completed lies after now.",), refused
        planned = Instant(US, at, value=visible(scenario, clocks), group=int(scenario.service is Service.CLUSTERING))
        text = "The job plans instant {}."
    others = tuple(item for item in clocks.instants if item is not given)
    after = clocks._replace(now=clocks.now + 1, instants=(*others, planned), job="planned", frame=frame)
    return (text, planned.requested.text), after


def _time(protocol: ClockProtocol, clocks: Clocks, offset: int) -> Time | None:
    """Returns a time for our instant; None if no time is in the frame and later than everything on the timeline."""
    text, latest = clocks.now + offset, latest_text(clocks)
    if protocol.after_all and text <= latest:
        if protocol.stays_in_frame:
            return None
        text = latest + 1
    return Time(text, clocks.now)


def _complete(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> Iterator[tuple[Label, Clocks]]:
    """Completes our instant under the lock. A clustering waits until no write is in flight, and includes the writes
    that have committed."""
    mine = of_the_service(clocks)
    assert mine
    if scenario.service is Service.CLUSTERING:
        if any(pending_of(clocks, index) for index, _ in enumerate(clocks.offsets)):
            return
        mine = mine._replace(value=visible(scenario, clocks))
    offset = clocks.frame if protocol.completed_in_frame else OWN_OFFSET
    at = _time(protocol, clocks, offset)
    if protocol.verifies and (at is None or _is_left(protocol, clocks)):
        text = "The job does not commit: under the lock the writers' clocks are not as they were measured."
        left = tuple(item for item in clocks.instants if item.owner != US)
        yield (text,), clocks._replace(job="refused", instants=left)
        return
    at = at or Time(clocks.now + offset, clocks.now)
    done = mine._replace(completed=at, is_listed=at.text >= clocks.listed_from)
    instants = tuple(done if item.is_a_service else item for item in clocks.instants)
    committed = clocks._replace(now=clocks.now + 1, instants=instants, job="committed")
    yield ("The job commits instant {} at {}.", mine.requested.text, at.text), committed


def _is_left(protocol: ClockProtocol, clocks: Clocks) -> bool:
    """Returns whether a writer's clock has left the measured frame."""
    frames = list(measured(clocks).values())
    return any(frame != clocks.frame for frame in (frames if protocol.refuses_disagreement else frames[-1:]))
