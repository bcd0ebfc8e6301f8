"""The outlook of each job in the queue, and of each worker group."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from service.model.formatting import count, duration
from service.queue.attempt_delays import is_window
from service.queue.cost import Cost
from service.queue.forecast import OccupiedSlot, course, wanted_slots
from service.queue.lease_order import Candidate
from service.queue.outlook_store import LeasedRow, QueuedRow
from service.queue.slot_use import since
from service.queue.worker import Worker

_YET = 0.1
"""The expected remaining time of a job that already takes longer than expected, as a share of its time so far."""
_FOREVER = float("inf")


class HeldBack(StrEnum):
    """Reasons why a queued job is not due. It is between two attempts, or it waits until the writers have stopped,
    until the table's lock is free, until a pause ends, or until a maintenance window opens."""

    NEXT_ATTEMPT = "next_attempt"
    WRITERS = "writers"
    LOCK = "lock"
    PAUSE = "pause"
    WINDOW = "window"


@dataclass(slots=True)
class JobOutlook:
    """The outlook of a job. Times are seconds after the time of the outlook."""

    # None if a worker has the job, if it waits for something whose end is unknown, or if its group has no ready worker.
    start: float | None
    end: float | None  # None if unknown.
    cost: Cost
    held_back: HeldBack | None = None
    has_worker: bool = False  # Whether a worker has the job.

    @property
    def text(self) -> str:
        """Returns words such as "starts in about 8 min"."""
        about = " (a guess: no such job of this table has ended yet)" if self.cost.is_guess else ""
        if self.start:
            return f"starts in about {duration(self.start)}{about}"
        if self.has_worker and self.end is not None:
            return f"ends in about {duration(self.end)}{about}"
        begin = "takes" if self.start is None else "starts now, and takes"
        return f"{begin} about {duration(self.cost.seconds)}{about}"


@dataclass(frozen=True)
class GroupOutlook:
    """The outlook of a worker group. Times are seconds from now."""

    queued: int = 0
    held_back: Mapping[HeldBack, int] = field(default_factory=dict)
    guesses: int = 0  # Due jobs whose expected duration was not learned from jobs of their own table.
    slots: int = 0
    work_seconds: float = 0.0  # Total duration of the due jobs.
    wait_seconds: float | None = 0.0  # Time until the last due job starts; None without a slot.
    done_seconds: float | None = 0.0  # Time until the last due job ends; None without a slot.
    wanted_slots: int = 0  # Slots with which no due job waits for a slot longer than the goal.
    goal_seconds: float = 0.0

    @property
    def summary(self) -> str:
        if not self.queued:
            return "nothing queued"
        held_back = sum(self.held_back.values())
        parts = [f"{self.queued} queued"]
        due = self.queued - held_back
        if due and self.done_seconds is not None:
            parts.append(f"about {duration(self.done_seconds)} with {count(self.slots, 'slot')}")
        elif due:
            parts.append(f"about {duration(self.work_seconds)} of work, no worker is ready")
        text = ", ".join(parts)
        if held_back:
            text += f"; {held_back} held back ({', '.join(f'{n} {_WORDS[why]}' for why, n in self.held_back.items())})"
        if self.guesses:
            text += "; a guess" if self.guesses == due else f"; {self.guesses} of the durations are guesses"
        return text


_WORDS = {
    HeldBack.NEXT_ATTEMPT: "until a next attempt",
    HeldBack.WRITERS: "until the writers stop",
    HeldBack.LOCK: "until a lock is free",
    HeldBack.PAUSE: "until a pause ends",
    HeldBack.WINDOW: "until a window opens",
}


@dataclass(frozen=True)
class Goals:
    seconds: float = 300.0  # Longest time that a job should wait for a slot.
    # The longest wait in single worker groups, if it differs.
    by_group: Mapping[str, float] = field(default_factory=dict)
    requested_first: bool = True  # Whether submitted jobs go before those of policies.

    def of(self, group: str) -> float:
        return self.by_group.get(group, self.seconds)


@dataclass(frozen=True)
class Outlook:
    as_of: datetime
    goals: Goals
    jobs: Mapping[str, JobOutlook] = field(default_factory=dict)
    groups: Mapping[str, GroupOutlook] = field(default_factory=dict)

    def only(self, job_ids: Iterable[str]) -> Outlook:
        """Returns the outlook of these jobs alone."""
        return Outlook(self.as_of, self.goals, {each: self.jobs[each] for each in job_ids if each in self.jobs})

    def group(self, name: str) -> GroupOutlook:
        """Returns the outlook of a group, even if it has neither jobs nor workers."""
        return self.groups.get(name) or GroupOutlook(goal_seconds=self.goals.of(name))


def outlook(
    queued: Sequence[QueuedRow],
    leased: Sequence[LeasedRow],
    used: Mapping[str, float],
    workers: Iterable[Worker],
    costs: Mapping[str, Cost],
    *,
    numbers: Mapping[str, int],
    goals: Goals,
    now: datetime,
) -> Outlook:
    """Returns the outlook. `queued` may have only the first of the queued jobs; `numbers` has the number of all queued
    jobs by group. `costs` are the expected costs of the jobs by id."""
    jobs: dict[str, JobOutlook] = {}
    lefts = {}
    for each in leased:
        passed = (now - each.leased_at).total_seconds()
        lefts[each.id] = max(costs[each.id].seconds - passed, _YET * max(passed, 1.0))
        jobs[each.id] = JobOutlook(None, lefts[each.id], costs[each.id], has_worker=True)
    slots: Counter[str] = Counter()
    spare: Counter[str] = Counter()
    for worker in workers:
        if worker.is_alive(now) and worker.is_ready:
            slots[worker.info.group] += worker.info.slots or 1
            spare[worker.info.group] += worker.info.spare_slots if goals.requested_first else 0
    used = {table_id: since(value, now) for table_id, value in used.items()}
    by_group: defaultdict[str, list[QueuedRow]] = defaultdict(list)
    for row in queued:
        by_group[row.worker_group].append(row)
    groups = {}
    for group in {*numbers, *slots, *(each.worker_group for each in leased)}:
        taken = [
            OccupiedSlot(each.table_id, each.mutating, lefts[each.id], each.worker_group == group, each.is_of_policy)
            for each in leased
        ]
        ours = by_group[group]
        candidates = [_candidate(each, costs[each.id].seconds, goals, now) for each in ours]
        able = [each for each in candidates if each.due < _FOREVER]
        starts = course(able, taken, used, slots[group], spare=spare[group]).starts
        reasons: Counter[HeldBack] = Counter()
        for row, candidate in zip(ours, candidates, strict=True):
            start, reason = starts.get(row.id), _held_back(row, now)
            end = None if start is None else start + candidate.seconds
            jobs[row.id] = JobOutlook(start, end, costs[row.id], reason)
            if reason is not None:
                reasons[reason] += 1
        due = [each for each in candidates if each.due <= 0.0]
        # Jobs that were not read are assumed to take as long as the others.
        more = numbers.get(group, 0) / len(ours) if ours else 1.0
        known = [(starts[each.id], each.seconds) for each in due if each.id in starts]
        goal = goals.of(group)
        groups[group] = GroupOutlook(
            queued=numbers.get(group, 0),
            held_back=dict(reasons),
            guesses=sum(costs[each.id].is_guess for each in due),
            slots=slots[group],
            work_seconds=more * sum(each.seconds for each in due),
            wait_seconds=more * max((start for start, _ in known), default=0.0) if len(known) == len(due) else None,
            done_seconds=more * max((sum(each) for each in known), default=0.0) if len(known) == len(due) else None,
            wanted_slots=wanted_slots(able, taken, used, goal=goal),
            goal_seconds=goal,
        )
    return Outlook(now, goals, jobs, groups)


def _candidate(row: QueuedRow, seconds: float, goals: Goals, now: datetime) -> Candidate:
    has_end = _held_back(row, now) in (None, HeldBack.NEXT_ATTEMPT)
    due = (row.not_before - now).total_seconds() if has_end else _FOREVER
    created = (row.created_at - now).total_seconds()
    is_last = row.is_of_policy and goals.requested_first
    candidate = Candidate(row.id, row.table_id, row.priority, created, due, row.mutating, seconds, is_last=is_last)
    candidate.worth = row.worth
    if row.starts_by is not None:
        candidate.starts_by = (row.starts_by - now).total_seconds()
    return candidate


def _held_back(row: QueuedRow, now: datetime) -> HeldBack | None:
    if row.waits_for_writers:
        return HeldBack.WRITERS
    if row.is_locked:
        return HeldBack.LOCK
    if row.not_before <= now:
        return None
    # The job's `not_before` is only the time of the next check, not of its start.
    if row.held_back is not None:
        return HeldBack.WINDOW if is_window(row.held_back) else HeldBack.PAUSE
    return HeldBack.NEXT_ATTEMPT
