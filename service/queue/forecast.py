"""Looks ahead: when the queued jobs of a worker group start, and how many slots they need.

It plays the leases through in memory, in the order of `turn`, with the expected durations. Pure, and quick: a queue of
10 000 jobs takes tens of milliseconds.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil, floor, inf
from typing import TYPE_CHECKING

from service.queue.turn import NEVER, Candidate, ended, leased, turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_EXACT = 200


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """A job that a worker holds, for `passed` seconds, and until its end for so many that are `left`. `is_here`: it
    takes one of the slots in question; otherwise it only keeps other jobs from its table."""

    table_id: str
    mutating: bool
    passed: float
    left: float
    is_here: bool = True


@dataclass
class Course:
    """The expected starts by job id, in seconds from now; a job that is missing never starts. `wait` is the longest
    time for which a job waits only for a slot, not for its table; infinite if a job never starts."""

    starts: dict[str, float] = field(default_factory=dict)
    wait: float = 0.0


def course(
    jobs: Sequence[Candidate],
    held: Sequence[HeldSlot],
    tables: Mapping[str, float],
    slots: int,
    *,
    most_wait: float = inf,
) -> Course:
    """Returns the course of these jobs with so many slots, of which those that are `held` here are taken at first.
    `tables` are the states of the tables (`turn`), by id.

    It ends as soon as a job has waited longer than `most_wait`.
    """
    found = Course()
    states = dict(tables)
    busy = {each.table_id: each.left for each in held if each.mutating}
    # Each end frees the table, and a slot if it is one of these.
    ends = [(each.left, each.table_id, each.passed + each.left, each.is_here) for each in held]
    heapq.heapify(ends)
    free = slots - sum(each.is_here for each in held)
    later = [(job.due, number) for number, job in enumerate(jobs)]
    heapq.heapify(later)
    ready: list[tuple[tuple[float, ...], str, int, float]] = []
    blocked: defaultdict[str, list[int]] = defaultdict(list)
    now = 0.0

    def push(number: int, since: float) -> None:
        job = jobs[number]
        heapq.heappush(ready, (turn(job, states.get(job.table_id, NEVER)), job.id, number, since))

    while True:
        while ends and ends[0][0] <= now:
            at, table_id, seconds, is_here = heapq.heappop(ends)
            free += is_here
            states[table_id] = ended(states.get(table_id, NEVER), seconds, at)
            if table_id in blocked and busy.get(table_id, 0.0) <= now:
                for number in blocked.pop(table_id):
                    push(number, at)
        while later and later[0][0] <= now:
            due, number = heapq.heappop(later)
            push(number, max(due, 0.0))
        while free > 0 and ready:
            key, _, number, since = heapq.heappop(ready)
            job = jobs[number]
            if job.mutating and busy.get(job.table_id, 0.0) > now:
                blocked[job.table_id].append(number)
                continue
            state = states.get(job.table_id, NEVER)
            if turn(job, state) != key:
                # Its table had its turn in the meantime.
                push(number, since)
                continue
            found.starts[job.id] = now
            found.wait = max(found.wait, now - since)
            free -= 1
            states[job.table_id] = leased(state, now)
            if job.mutating:
                busy[job.table_id] = now + job.seconds
            heapq.heappush(ends, (now + job.seconds, job.table_id, job.seconds, True))
        if found.wait > most_wait:
            return found
        times = [ends[0][0]] if ends else []
        if free > 0 and later:
            times.append(later[0][0])
        if not times:
            break
        now = min(times)
    if len(found.starts) < len(jobs):
        found.wait = inf
    return found


def wanted_slots(
    jobs: Sequence[Candidate], held: Sequence[HeldSlot], tables: Mapping[str, float], *, goal: float
) -> int:
    """Returns the least number of slots with which no job that is due waits for a slot longer than `goal` seconds,
    never less than the jobs that are held here. For a long queue it is an upper bound: before a job starts all slots
    work, so with n slots it starts after the n-th part of the work at the latest."""
    due = [job for job in jobs if job.due <= 0.0]
    taken = sum(each.is_here for each in held)
    if not due:
        return taken
    work = sum(job.seconds for job in due) + sum(each.left for each in held if each.is_here)
    most = taken + len(due) if work >= goal * (taken + len(due)) else max(taken, 1, ceil(work / goal))
    if len(due) > _MOST_EXACT:
        return most
    longest = max(job.seconds for job in due)
    least = min(most, max(taken, 1, floor(work / (goal + longest)))) if goal + longest else most
    while least < most:
        middle = (least + most) // 2
        if course(due, held, tables, middle, most_wait=goal).wait <= goal:
            most = middle
        else:
            least = middle + 1
    return most
