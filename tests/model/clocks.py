"""Writers and our worker, each with a clock: how Hudi orders what they commit by the texts of their instants.

All that happens has a place in true time, which is the storage's clock; the text of an instant is that of a process's
own clock. Instants are made under the table's lock, one after the other (`HoodieTimeline.generateInstantTime`), so
clocks that are right give ascending texts. Hudi compares texts only:

- A log file belongs to the latest base file whose requested time is not after the log's completion
  (`HoodieFileGroup.getBaseInstantTime`); of base files the one with the greatest requested time counts.
- A commit conflicts with what was requested after the last commit that its writer had seen, or was pending then.
- The metadata table is such a table as well: a commit that completes before its last compaction is in no listing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tests.model.clock_rules import ClockProtocol, ClockScenario, Service
from tests.model.search import Found, explore
from tests.model.writers import value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.state import Label

US, RUNNER = -1, -2  # owners of instants besides the writers
OWN_OFFSET = 0  # of our worker's clock
NEVER = -(10**6)
UNKNOWN = 10**6  # no frame was measured yet


class Time(NamedTuple):
    """What a process's clock says, and the true time: the modification time of the file."""

    text: int
    true: int


class Instant(NamedTuple):
    """`value` of the one row in the file that it writes to `group`; `seen`: the window of its conflict check, and what
    was pending then."""

    owner: int
    requested: Time
    completed: Time | None = None
    value: int = 0
    group: int = 0
    is_listed: bool = True
    seen: tuple[int, tuple[Time, ...]] = (NEVER, ())


class Clocks(NamedTuple):
    """`now` is the true time, `offsets` are those of the writers' clocks; `listed_from`: the metadata table's last
    compaction; `frame`: what the job has measured."""

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


def search(
    protocol: ClockProtocol, scenario: ClockScenario, invariant: Callable[..., str | None] | None = None
) -> Found:
    """Explores every state of the scenario under this protocol, or stops at the first violation."""
    return explore(
        scenario.name,
        first_state(scenario),
        partial(steps, protocol, scenario),
        partial(invariant or violation, protocol, scenario),
    )


def first_state(scenario: ClockScenario) -> Clocks:
    """Each writer has committed once, just now; a plan of a runner of Hudi came after that."""
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


def violation(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> str | None:
    """What is wrong once our instant has committed: what writers with wrong clocks lose alone, they would lose anyway.

    Instants that do not ascend are an incident, which names the rows that are wrong. There is none while all clocks are
    as the job has measured them.
    """
    ours = _ours(clocks)
    if ours is None or ours.completed is None:
        return None
    if protocol.watches and (incidents := [i for i in _since(clocks, ours.completed.true) if not _ascends(clocks, i)]):
        if any(offset != clocks.frame for offset in clocks.offsets):
            return None
        return f"Instant {incidents[0].requested.text} does not ascend, although all clocks are as they were measured."
    if not ours.is_listed:
        return f"The metadata table was compacted at {clocks.listed_from}; what we completed before is in no listing."
    read = visible(scenario, clocks)
    if read != clocks.expected:
        return f"The row is read with the value {read}; acknowledged was {clocks.expected}."
    return None


def visible(scenario: ClockScenario, clocks: Clocks) -> int | None:
    """The value that a reader finds in the live file group: in its latest base file, and in the logs of that one."""
    ours = _ours(clocks)
    is_replaced = scenario.service is Service.CLUSTERING and ours is not None and ours.completed is not None
    live = [item for item in clocks.instants if item.completed and item.is_listed and item.group == int(is_replaced)]
    if scenario.service is Service.CLUSTERING:
        return max(live, key=lambda item: item.requested.text).value if live else None
    bases = [item.requested.text for item in live if item.owner in (US, RUNNER)]
    latest = max(bases, default=NEVER)
    return max(
        (
            item.value
            for item in live
            if (item.requested.text if item.owner in (US, RUNNER) else item.completed.text) >= latest  # type: ignore[union-attr]
        ),
        default=None,
    )


def steps(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> Iterator[tuple[Label, Clocks]]:
    """What may happen next. Who makes an instant holds the lock; our verification and our commit are under one lock."""
    for index, offset in enumerate(clocks.offsets):
        pending = _pending_of(clocks, index)
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


def _pending_of(clocks: Clocks, index: int) -> Instant | None:
    return next((item for item in clocks.instants if item.owner == index and item.completed is None), None)


def _ours(clocks: Clocks) -> Instant | None:
    """Our instant, or the one of the plan that we execute."""
    return next((item for item in clocks.instants if item.owner in (US, RUNNER)), None)


def _start(scenario: ClockScenario, clocks: Clocks, index: int) -> tuple[Label, Clocks]:
    """The instant begins, and the writer loads the timeline: a base file is merged from the one that counts now."""
    requested = Time(clocks.now + clocks.offsets[index], clocks.now)
    new = value(index, clocks.batches[index])
    is_clustered = clocks.job == "committed" and scenario.service is Service.CLUSTERING
    if scenario.service is Service.CLUSTERING:
        new = max(new, visible(scenario, clocks) or 0)
    window = max(item.requested.text for item in clocks.instants if item.completed)
    pending = tuple(item.requested for item in clocks.instants if not item.completed)
    started = Instant(index, requested, value=new, group=int(is_clustered), seen=(window, pending))
    text = "Writer {} starts instant {}."
    return (text, index, requested.text), clocks._replace(now=clocks.now + 1, instants=(*clocks.instants, started))


def _commit(scenario: ClockScenario, clocks: Clocks, index: int, mine: Instant) -> tuple[Label, Clocks]:
    window, pending = mine.seen
    for other in clocks.instants:
        is_compaction = other.owner in (US, RUNNER) and scenario.service is Service.COMPACTION
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
    frames = _frames(clocks)
    refused = clocks._replace(job="refused")
    if len(set(frames.values())) > 1 and protocol.refuses_disagreement:
        return ("The job is refused: the writers' clocks differ.",), refused
    frame = list(frames.values())[-1]
    given = _ours(clocks)
    if given is not None:
        if protocol.refuses_foreign_plans and given.requested.text - given.requested.true != frame:
            return ("The job is refused: the plan's time is not in the writers' frame.",), refused
        planned = given._replace(value=_merged(scenario, clocks))
        text = "The job takes the plan of instant {}."
    else:
        offset = frame if protocol.requested_in_frame else OWN_OFFSET
        at = _time(protocol, clocks, offset)
        if at is None:
            return ("The job is refused: what has completed lies after now.",), refused
        planned = Instant(US, at, value=_merged(scenario, clocks), group=int(scenario.service is Service.CLUSTERING))
        text = "The job plans instant {}."
    others = tuple(item for item in clocks.instants if item is not given)
    after = clocks._replace(now=clocks.now + 1, instants=(*others, planned), job="planned", frame=frame)
    return (text, planned.requested.text), after


def _frames(clocks: Clocks) -> dict[int, int]:
    """How far each writer's last completion is from the storage's clock; the latest comes last."""
    done = [(item.completed.true, item.owner, item.completed.text) for item in clocks.instants if item.completed]
    found: dict[int, int] = {}
    for true, owner, text in sorted(done):
        found.pop(owner, None)
        found[owner] = text - true
    return found


def _time(protocol: ClockProtocol, clocks: Clocks, offset: int) -> Time | None:
    """A time for an instant of ours, None where there is none that lies in the frame and after everything."""
    text, latest = clocks.now + offset, _latest(clocks)
    if protocol.after_all and text <= latest:
        if protocol.stays_in_frame:
            return None
        text = latest + 1
    return Time(text, clocks.now)


def _latest(clocks: Clocks) -> int:
    """The greatest text on the timeline, the metadata table's included."""
    done = [item.completed.text for item in clocks.instants if item.completed]
    return max([clocks.listed_from, *done])


def _merged(scenario: ClockScenario, clocks: Clocks) -> int:
    return visible(scenario, clocks) or 0


def _complete(protocol: ClockProtocol, scenario: ClockScenario, clocks: Clocks) -> Iterator[tuple[Label, Clocks]]:
    """Under the lock: a clustering waits for a moment without a write in flight, and takes in what has landed."""
    mine = _ours(clocks)
    assert mine
    if scenario.service is Service.CLUSTERING:
        if any(_pending_of(clocks, index) for index, _ in enumerate(clocks.offsets)):
            return
        mine = mine._replace(value=_merged(scenario, clocks))
    offset = clocks.frame if protocol.completed_in_frame else OWN_OFFSET
    at = _time(protocol, clocks, offset)
    if protocol.verifies and (at is None or _is_left(protocol, clocks)):
        text = "The job does not commit: under the lock the writers' clocks are not as they were measured."
        yield (text,), clocks._replace(job="refused", instants=tuple(i for i in clocks.instants if i.owner >= 0))
        return
    at = at or Time(clocks.now + offset, clocks.now)
    done = mine._replace(completed=at, is_listed=at.text >= clocks.listed_from)
    instants = tuple(done if item.owner in (US, RUNNER) else item for item in clocks.instants)
    committed = clocks._replace(now=clocks.now + 1, instants=instants, job="committed")
    yield ("The job commits instant {} at {}.", mine.requested.text, at.text), committed


def _is_left(protocol: ClockProtocol, clocks: Clocks) -> bool:
    """Whether a writer has left the frame that was measured before."""
    frames = list(_frames(clocks).values())
    return any(frame != clocks.frame for frame in (frames if protocol.refuses_disagreement else frames[-1:]))


def _since(clocks: Clocks, true: int) -> list[Instant]:
    return [item for item in clocks.instants if item.completed and item.completed.true > true]


def _ascends(clocks: Clocks, item: Instant) -> bool:
    """Whether its times are after those of all that had completed before."""
    assert item.completed
    for time in (item.requested, item.completed):
        before = [other.completed for other in clocks.instants if other.completed and other.completed.true < time.true]
        if any(other.text >= time.text for other in before):
            return False
    return item.is_listed
