"""Forecasts when the queued jobs of a worker group start, and how many slots they need. The forecast simulates the
leases in memory, in the order of `turn`, with the expected durations. A queue of 10 000 jobs takes tens of
milliseconds."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf

from service.queue.lease_order import NEVER, Candidate, turn
from service.queue.slot_use import AT_LEAST, used_after

_MOST_EXACT = 200

_Ready = tuple[tuple[float, ...], str, int, float]
"""The sort key of a due job, its id, its index among all jobs, and the time at which it became due."""


@dataclass(frozen=True, slots=True)
class OccupiedSlot:
    """A job that a worker holds."""

    table_id: str
    mutating: bool
    left: float  # Seconds until its end.
    is_here: bool = True  # Whether it takes one of the forecast's slots, or only blocks its table for other jobs.
    is_last: bool = False  # Whether a policy has started it.


@dataclass
class Course:
    """The result of a simulation."""

    starts: dict[str, float] = field(default_factory=dict)  # When each job starts, in seconds from now, by job id.
    wait: float = 0.0  # Longest wait for a slot while the table is free; infinite if a job never starts.


def course(
    jobs: Sequence[Candidate],
    occupied: Sequence[OccupiedSlot],
    used: Mapping[str, float],
    slots: int,
    *,
    spare: int = 0,
    most_wait: float = inf,
) -> Course:
    """Simulates when these jobs start with this number of slots. The jobs in `occupied` take slots at first.

    Jobs of policies (`is_last`) get no more than `slots`; submitted jobs also get the `spare` slots.

    The simulation ends as soon as a job has waited longer than `most_wait`.
    """
    found = Course()
    slots_used = dict(used)
    busy = {each.table_id: each.left for each in occupied if each.mutating}
    here = [each for each in occupied if each.is_here]
    ends = [(each.left, each.table_id, each.mutating, each.left, each.is_last) for each in here]
    heapq.heapify(ends)
    free, own = slots + spare - len(here), sum(each.is_last for each in here)
    later = [(job.due, number) for number, job in enumerate(jobs)]
    # The turn of a job changes when the job becomes overdue.
    later += [(job.starts_by, number) for number, job in enumerate(jobs) if job.due < job.starts_by < inf]
    heapq.heapify(later)
    ready: list[_Ready] = []
    ready_last: list[_Ready] = []
    blocked: defaultdict[str, list[int]] = defaultdict(list)
    # Jobs of other groups free their tables, but no slot.
    elsewhere = [(each.left, each.table_id) for each in occupied if each.mutating and not each.is_here]
    heapq.heapify(elsewhere)
    now = 0.0

    def charge(table_id: str, seconds: float, at: float) -> None:
        if (more := used_after(slots_used.get(table_id), seconds, at)) is not None:
            slots_used[table_id] = more

    def release(table_id: str, at: float) -> None:
        for number in blocked.pop(table_id, ()):
            push(number, at)

    def push(number: int, at: float) -> None:
        job = jobs[number]
        heap = ready_last if job.is_last else ready
        heapq.heappush(heap, (turn(job, slots_used.get(job.table_id, NEVER), now), job.id, number, at))

    def next_ready() -> list[_Ready]:
        if free <= 0:
            return []
        if own >= slots:
            return ready
        return min(filter(None, (ready, ready_last)), key=lambda heap: heap[0], default=ready)

    while True:
        while ends and ends[0][0] <= now:
            at, table_id, is_freed, rest, is_last = heapq.heappop(ends)
            free, own = free + 1, own - is_last
            charge(table_id, rest, at)
            if is_freed:
                release(table_id, at)
        while elsewhere and elsewhere[0][0] <= now:
            at, table_id = heapq.heappop(elsewhere)
            release(table_id, at)
        while later and later[0][0] <= now:
            _, number = heapq.heappop(later)
            push(number, max(jobs[number].due, 0.0))
        while heap := next_ready():
            key, _, number, since = heapq.heappop(heap)
            job = jobs[number]
            if job.id in found.starts:
                continue
            if job.mutating and busy.get(job.table_id, 0.0) > now:
                blocked[job.table_id].append(number)
                continue
            if turn(job, slots_used.get(job.table_id, NEVER), now) != key:
                # The job's table has run another job meanwhile, so its turn has changed.
                push(number, since)
                continue
            found.starts[job.id] = now
            found.wait = max(found.wait, now - since)
            free, own = free - 1, own + job.is_last
            charge(job.table_id, AT_LEAST, now)
            if job.mutating:
                busy[job.table_id] = now + job.seconds
            heapq.heappush(ends, (now + job.seconds, job.table_id, job.mutating, job.seconds - AT_LEAST, job.is_last))
        if found.wait > most_wait:
            return found
        times = [queue[0][0] for queue in (ends, elsewhere) if queue]
        if later and free > 0:
            times.append(later[0][0])
        if not times:
            break
        now = min(times)
    if len(found.starts) < len(jobs):
        found.wait = inf
    return found


def wanted_slots(
    jobs: Sequence[Candidate], occupied: Sequence[OccupiedSlot], used: Mapping[str, float], *, goal: float
) -> int:
    """Returns the smallest number of slots with which no due job waits for a slot longer than `goal` seconds, but at
    least the number of jobs that occupy slots here. For a long queue the result is an upper bound: it assumes that with
    n slots each job starts after the n-th part of all work."""
    due = [job for job in jobs if job.due <= 0.0]
    taken = sum(each.is_here for each in occupied)
    if not due:
        return taken
    work = sum(job.seconds for job in due) + sum(each.left for each in occupied if each.is_here)
    most = taken + len(due) if work >= goal * (taken + len(due)) else max(taken, 1, ceil(work / goal))
    if len(due) > _MOST_EXACT:
        return most
    longest = max(job.seconds for job in due)
    least = min(most, max(taken, 1, floor(work / (goal + longest)))) if goal + longest else most
    while least < most:
        middle = (least + most) // 2
        if course(due, occupied, used, middle, most_wait=goal).wait <= goal:
            most = middle
        else:
            least = middle + 1
    return most
