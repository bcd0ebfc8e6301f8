"""Replays the commits of many tables on a virtual clock, under the slots of the fleet."""

from __future__ import annotations

import gc
import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from zlib import crc32

from jobs.contract import JobKind
from service.outcome.gain import gain_of
from service.queue.job import Job, mutates
from service.queue.lease_order import NEVER, Candidate
from service.queue.slot_use import AT_LEAST, used_after
from service.scheduling.admission import Load
from service.scheduling.expected_costs import WEIGHED
from service.simulation.counted import SIMULATED
from service.simulation.fleet import Expected, Fleet
from service.simulation.outcome import KindOutcome, Outcome, Point, Sums, TableOutcome, percentile
from service.simulation.simulated_files import Taken, moment
from service.simulation.simulated_limits import SimulatedBudgets, SimulatedShares
from service.simulation.simulated_table import SimulatedTable
from service.simulation.table_past import TablePast

_POINTS = 168
_MOST_JOBS = 2**60
# A table is polled again this long after one of its jobs has ended.
_SEEN_AFTER = 1.0
# The worth of a waiting job is computed again after this share of the time for which the job has waited.
_SELDOM = 0.1
_MUTATES = {kind: mutates(kind, dry_run=False) for kind in SIMULATED}


@dataclass(slots=True, eq=False)
class _Queued:
    table: SimulatedTable
    job: Job
    candidate: Candidate
    group: str
    taken: Taken | None = None
    leased_at: float = 0.0
    gib: float = 0.0
    ticket: int = 0  # The number of its last entry among the ready jobs; earlier entries do not count.
    is_withdrawn: bool = False


class _Closing(NamedTuple):
    queued: _Queued  # A job that is withdrawn at the end of a window, if no worker has taken it.


def simulated(pasts: Sequence[TablePast], fleet: Fleet, expected: Expected, begin: float, end: float) -> Outcome:
    """Returns the outcome from `begin` to `end`, in seconds since the epoch."""
    # Python's search for reference cycles would look at all commits again and again, and there are no cycles.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _Simulation(pasts, fleet, expected, begin, end).run()
    finally:
        if was_enabled:
            gc.enable()


class _Simulation:
    def __init__(self, pasts: Sequence[TablePast], fleet: Fleet, expected: Expected, begin: float, end: float) -> None:
        self.fleet, self.expected, self.begin, self.end = fleet, expected, begin, end
        self.budgets = SimulatedBudgets(fleet.budgets)
        self.shares = SimulatedShares(pasts, fleet.levels)
        given, shares = (begin, end, fleet.freezes, expected), self.shares.by_id
        self.tables = [SimulatedTable(p, *given, budgets=self.budgets, share=shares.get(p.id)) for p in pasts]
        self.wakes: list[float] = [0.0] * len(pasts)
        self.numbers = {each.id: number for number, each in enumerate(pasts)}
        self.phases = [crc32(each.id.encode()) % 1000 / 1000 * fleet.poll_seconds for each in pasts]
        # Events: the time, the rank among events of the same time, and the number of the table to decide about, or the
        # job that ends or is withdrawn. The rank depends on the past alone, so that moments at which nothing changes
        # may be left out.
        self.events: list[tuple[float, int, int | _Queued | _Closing]] = []
        self.counter = 0
        self.used: dict[str, float] = {}
        self.free: defaultdict[str, int] = defaultdict(
            lambda: 1, {group: max(1, each) for group, each in fleet.slots.items()}
        )
        # Jobs by the time from which they go before others.
        self.urgent: defaultdict[str, list[tuple[float, int, _Queued]]] = defaultdict(list)
        self.ready: defaultdict[str, list[tuple[tuple[float, ...], int, _Queued]]] = defaultdict(list)
        # Jobs that wait for a slot and whose worth changes with their table, by the number of the table.
        self.weighed: dict[int, _Queued] = {}
        self.busy: set[str] = set()
        self.blocked: defaultdict[str, list[_Queued]] = defaultdict(list)
        self.active: Counter[tuple[JobKind, str]] = Counter()
        self.limited: deque[int] = deque()
        self.is_limited: set[int] = set()
        self.sums: defaultdict[JobKind, Sums] = defaultdict(Sums)
        self.of_tables = [Sums() for _ in pasts]
        self.overheads: list[list[float]] = [[] for _ in pasts]
        self.logs_seconds = [0.0] * len(pasts)
        # For each table, at how many of the points its objective is missed.
        self.missed = [0] * len(pasts)
        self.rewritten = self.longest_wait = 0.0
        self.points: list[Point] = []

    def run(self) -> Outcome:
        for number in range(len(self.tables)):
            self._wake_at(number, self.begin + self.phases[number])
        # The number of moments is fixed, because a period may have no length, such as that of a shadow that starts now.
        step = (self.end - self.begin) / _POINTS
        moments = deque([*(self.begin + step * number for number in range(1, _POINTS)), self.end])
        while self.events and self.events[0][0] <= self.end:
            at, _, event = heapq.heappop(self.events)
            while moments and at > moments[0]:
                self._observe(moments.popleft())
            if isinstance(event, int):
                if self.wakes[event] == at:
                    self._decide(event, at)
            elif isinstance(event, _Closing):
                self._withdraw(event.queued, at)
            else:
                self._ended(event, at)
        for left in moments:
            self._observe(left)
        return self._outcome()

    def _wake_at(self, number: int, at: float) -> None:
        self.wakes[number] = at
        heapq.heappush(self.events, (at, number, number))

    def _decide(self, number: int, now: float) -> None:
        table = self.tables[number]
        table.advance(now)
        if (queued := self.weighed.get(number)) is not None:
            self._renew(number, queued, now)
            return
        if (likely := table.likely_idle()) is not None:
            later = self._polled_after(number, likely)
            # A job of a table whose logs grow may be due now but not later, because the share of old versions falls.
            if later < self.end and table.idle_at(now) and (idle := table.idle_at(later)):
                self._sleep(number, now, idle.until, later)
                return
        load = Load(self.active)
        is_full = load.total >= self.fleet.limits.active
        answer = (table.still_limited(now) if is_full else None) or table.decide(now, self.fleet.limits, load)
        for other in self.shares.note(table.past.id, table.waiting(now)) if table.share else ():
            self._wake_at(self.numbers[other], now)
        if answer.run:
            self.counter += 1
            job = table.begin(answer.run, str(self.counter), now)
            self._queue(number, job, answer.run.worker_group or table.policy.worker_group, now)
        if any(_MUTATES[each.kind] for each in table.active):
            # The end of that job wakes the table. Until then no other job of the table can start.
            self.wakes[number] = 0.0
            if number in self.weighed:
                self._sleep(number, now, None, now)
            return
        if answer.is_limited and number not in self.is_limited:
            self.is_limited.add(number)
            self.limited.append(number)
        self._sleep(number, now, answer.until, now)

    def _sleep(self, number: int, now: float, until: float | None, idle_until: float) -> None:
        """Wakes the table at the first poll with a commit after `idle_until`, or when time alone may change
        something."""
        moments = [until] if until else []
        if write := self.tables[number].write_after(idle_until):
            moments.append(self._polled_after(number, write.at))
        if moments:
            self._wake_at(number, max(min(moments), now + 0.001))
        else:
            self.wakes[number] = 0.0

    def _polled_after(self, number: int, at: float) -> float:
        every, phase = self.fleet.poll_seconds, self.phases[number]
        return phase + every * ((at - phase) // every + 1) if every > 0 else at

    def _queue(self, number: int, job: Job, group: str, now: float) -> None:
        self.active[job.kind, group] += 1
        since = now - self.begin
        queued = _Queued(
            self.tables[number],
            job,
            Candidate(job.id, job.table_id, job.priority, since, since, _MUTATES[job.kind], 0.0, is_last=True),
            group,
        )
        if job.kind in WEIGHED and (worth := self._worth(queued, now)) is not None:
            queued.candidate.worth = worth
            queued.candidate.starts_by = queued.table.starts_by(now) - self.begin
            self.counter += 1
            heapq.heappush(self.urgent[group], (queued.candidate.starts_by, self.counter, queued))
            self.weighed[number] = queued
        if (closes_at := queued.table.closes_at(now)) is not None:
            heapq.heappush(self.events, (closes_at, int(job.id) - 2 * _MOST_JOBS, _Closing(queued)))
        self._offer(queued, now)
        self._lease(group, now)

    def _withdraw(self, queued: _Queued, now: float) -> None:
        """Takes back a job that no worker has taken when the window closes or a freeze begins."""
        if queued.taken is not None:
            return
        queued.is_withdrawn, number = True, self.numbers[queued.job.table_id]
        queued.table.withdraw(queued.job)
        self.weighed.pop(number, None)
        self.active[queued.job.kind, queued.group] -= 1
        self._wake_at(number, now)
        self._wake_limited(number, now)

    def _wake_limited(self, number: int, now: float) -> None:
        """Wakes the first table that waits for the limit of active jobs, after a job of the table `number` has ended or
        was withdrawn."""
        if self.limited:
            first = self.limited.popleft()
            self.is_limited.discard(first)
            if first != number:
                self._wake_at(first, now)

    def _worth(self, queued: _Queued, now: float) -> float | None:
        """Returns the worth of the job (`scheduling.worth`); None if it has none."""
        table, job = queued.table, queued.job
        gain = gain_of(job.kind, table.files.cost_of_reads(), table.past.objective.reads)
        if gain is None or gain.seconds_per_read <= 0 or job.params.get("sort_by"):
            return None
        seconds = table.work_seconds(job.kind, now)
        return gain.paid_per_second(table.files.age(job.kind, now), seconds)

    def _renew(self, number: int, queued: _Queued, now: float) -> None:
        """Computes the worth of a waiting job again, as the service does at each poll, because logs grow. For jobs that
        have waited for long this is done less often, because the logs of a few polls change their worth little."""
        queued.candidate.worth = self._worth(queued, now) or 0.0
        self._offer(queued, now)
        self._sleep(number, now, None, now + _SELDOM * (now - self.begin - queued.candidate.created))

    def _offer(self, queued: _Queued, now: float) -> None:
        self.counter += 1
        queued.ticket = self.counter
        heapq.heappush(self.ready[queued.group], (self._key(queued, now), self.counter, queued))

    def _key(self, queued: _Queued, now: float) -> tuple[float, ...]:
        return self.fleet.order(queued.candidate, self.used.get(queued.job.table_id, NEVER), now - self.begin)

    def _lease(self, group: str, now: float) -> None:
        """Hands out jobs while there are slots, in the order of `lease_store`."""
        ready, urgent = self.ready[group], self.urgent[group]
        while urgent and urgent[0][0] <= now - self.begin:
            self._offer(heapq.heappop(urgent)[2], now)
        while ready and self.free[group] > 0:
            key, ticket, queued = heapq.heappop(ready)
            table_id = queued.job.table_id
            if queued.taken is not None or queued.is_withdrawn or ticket != queued.ticket:
                continue
            if queued.candidate.mutating and table_id in self.busy:
                self.blocked[table_id].append(queued)
            elif self._key(queued, now) != key:
                self._offer(queued, now)
            else:
                self._start(queued, now)

    def _start(self, queued: _Queued, now: float) -> None:
        table_id = queued.job.table_id
        if self.weighed.pop(number := self.numbers[table_id], None):
            # The end of the job wakes the table.
            self.wakes[number] = 0.0
        self.free[queued.group] -= 1
        if queued.candidate.mutating:
            self.busy.add(table_id)
        self._charge(table_id, AT_LEAST, now)
        queued.table.advance(now)
        queued.taken, queued.leased_at = queued.table.lease(queued.job, now), now
        cost = self.expected(table_id, queued.job.kind.value, queued.taken.work, dry_run=False)
        queued.candidate.seconds, queued.gib = cost.seconds, cost.gib
        self.longest_wait = max(self.longest_wait, now - self.begin - queued.candidate.created)
        # Among events of the same time, first jobs are withdrawn, then jobs end, and then tables are decided about.
        heapq.heappush(self.events, (now + cost.seconds, int(queued.job.id) - _MOST_JOBS, queued))

    def _ended(self, queued: _Queued, now: float) -> None:
        table_id, number = queued.job.table_id, self.numbers[queued.job.table_id]
        queued.table.advance(now)
        assert queued.taken is not None
        self.rewritten += queued.taken.rewritten
        queued.table.end(queued.job, queued.leased_at, now, queued.candidate.seconds * queued.gib / 3600)
        self.budgets.add(table_id, moment(now), queued.candidate.seconds, queued.gib)
        for sums in (self.sums[queued.job.kind], self.of_tables[number]):
            sums.jobs += 1
            sums.seconds += queued.candidate.seconds
            sums.gib_seconds += queued.candidate.seconds * queued.gib
        self._charge(table_id, queued.candidate.seconds - AT_LEAST, now)
        self.free[queued.group] += 1
        self.active[queued.job.kind, queued.group] -= 1
        if queued.candidate.mutating:
            self.busy.discard(table_id)
            for each in self.blocked.pop(table_id, ()):
                self._offer(each, now)
        self._wake_at(number, now + _SEEN_AFTER)
        self._wake_limited(number, now)
        for group in [each for each, ready in self.ready.items() if ready]:
            self._lease(group, now)

    def _charge(self, table_id: str, seconds: float, now: float) -> None:
        used = used_after(self.used.get(table_id), seconds, now - self.begin)
        if used is not None:
            self.used[table_id] = used

    def _observe(self, at: float) -> None:
        """Records the state of all tables."""
        logs = base = freed = reads = compacted = merged = 0.0
        for number, table in enumerate(self.tables):
            table.advance(at)
            files = table.files
            logs, base, freed = logs + files.log_bytes, base + files.base_bytes, freed + files.freed_bytes
            cost = files.cost_of_reads()
            reads, compacted, merged = reads + cost.now, compacted + cost.compacted, merged + cost.merged
            self.overheads[number].append(cost.of_logs)
            if table.keeps_objective(at) is False:
                self.missed[number] += 1
            self.logs_seconds[number] += (cost.now - cost.compacted) / _POINTS
        overheads = (reads / compacted if compacted else 1.0, compacted / merged if merged else 1.0)
        self.points.append(Point(datetime.fromtimestamp(at, UTC), int(logs), int(base), int(freed), *overheads))

    def _outcome(self) -> Outcome:
        kinds = [
            KindOutcome(kind, sums.jobs, sums.seconds, sums.gib_seconds / 3600)
            for kind, sums in sorted(self.sums.items(), key=lambda each: -each[1].seconds)
        ]
        tables = {
            table.past.id: TableOutcome(
                *(table.past.id, sums.jobs, sums.seconds, sums.gib_seconds / 3600),
                *(percentile(overheads) or 1.0, logs_seconds),
                1 - missed / max(1, len(self.points)) if table.policy.objective.is_set else None,
            )
            for table, sums, overheads, logs_seconds, missed in zip(
                self.tables, self.of_tables, self.overheads, self.logs_seconds, self.missed, strict=True
            )
        }
        shares = [each.kept for each in tables.values() if each.kept is not None]
        kept = sum(shares) / len(shares) if shares else None
        return Outcome(kinds, self.points, int(self.rewritten), self.longest_wait, tables, kept)
