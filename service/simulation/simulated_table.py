"""A table on the clock of a simulation. The same code as in the service decides about the jobs of the table."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from operator import attrgetter

from jobs.contract import JobKind
from service.lake.snapshot import TableSnapshot
from service.model.record import made
from service.outcome.objective import check
from service.outcome.read_share import CostlyTable, ReadShare
from service.outcome.table_objective import TableObjective
from service.policies.freeze import Freeze, next_start
from service.queue.job import Job
from service.scheduling.admission import Limits, Load, Situation, admit
from service.scheduling.decision import Proposal, Run, Skip, Wait
from service.scheduling.decision_inputs import POLICIES, frozen_by, paused
from service.scheduling.expected_costs import WEIGHED
from service.scheduling.job_history import JobHistory
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext
from service.scheduling.worth import LONGEST_WAIT
from service.scheduling.writer_hazard import NO_HAZARD
from service.simulation.answer import Answer
from service.simulation.calendar_times import OpenWindows, Schedule
from service.simulation.counted import COUNTED, SIMULATED, counts, stays_due, stays_proposed
from service.simulation.fleet import Expected
from service.simulation.simulated_files import SimulatedFiles, Taken, moment
from service.simulation.simulated_limits import SimulatedBudgets
from service.simulation.table_past import TablePast, Write

_NEVER = JobHistory()
_NOT_YET = Skip("not-yet", "")
_USUAL_INPUTS = {"hazard": NO_HAZARD, "has_flink": False, "must_stop_flink": False, "unproved": None, "incidents": ()}
_USUAL_INPUTS |= {"tried": (), "consumers": ()}
_at = attrgetter("at")
_DAY = timedelta(days=1)
_ON_TIMELINE = (JobKind.COMPACTION, JobKind.CLEANING, JobKind.CLUSTERING)


class SimulatedTable:
    def __init__(
        self,
        past: TablePast,
        begin: float,
        end: float,
        freezes: Sequence[Freeze],
        expected: Expected,
        *,
        budgets: SimulatedBudgets | None = None,
        share: ReadShare | None = None,
    ) -> None:
        self.past, self.policy, self._expected = past, past.policy, expected
        self.files, self.freezes = SimulatedFiles(past), freezes
        self.active: list[Job] = []
        self.taken: dict[str, Taken] = {}
        ended = {kind: moment(at) for kind, at in past.ended.items()}
        self.history = {kind: JobHistory(at, at, at) for kind, at in ended.items()}
        self._before: dict[str, JobHistory] = {}  # By id of each job that no worker has taken: the history before it.
        self._wanted_since: dict[JobKind, datetime] = {}
        settings = past.policy.objective
        self._usual_objective, self.share = replace(past.objective, settings=settings, share=share), share
        self._budgets = budgets if budgets and budgets.concern(past.id) else None
        self._has_objective = settings.is_any or self._budgets is not None
        self._weighed = () if settings.least_worth is None and share is None else WEIGHED
        # The ends of the jobs of the last day, and their GB-hours.
        self._spent: deque[tuple[datetime, float]] = deque(past.spent)
        self._next = 0
        # The number of commits at the last start of a job, and between the last two starts.
        self._run_at = self._stride = 0
        self._is_foreseen = True  # Whether the next job probably comes after `_stride` commits.
        self._is_exact = True  # Whether the last decision knew exactly how long no job will be due.
        # Due jobs wait for the limit of active jobs until this time, if nothing else changes. 0 means no wait.
        self._limited_until = 0.0
        first_at = past.first_commit_at or (past.writes[0].at if past.writes else None)
        self._first_at = moment(first_at) if first_at is not None else None
        self._last_at: float | None = None
        self._windows = OpenWindows.of(self.policy, begin, end)
        self._rest = {kind: getattr(self.policy, kind.value).min_interval_seconds for kind in SIMULATED}
        self._schedules = {}
        for kind in SIMULATED:
            if expression := getattr(getattr(self.policy, kind.value), "cron", None):
                self._schedules[kind] = Schedule.after(moment(begin), expression, self.policy.time_zone)
        self._counts = False
        usual = TableSnapshot(past.id, moment(begin), past.table_type, small_file_bytes=past.small_file_bytes)
        self._usual_snapshot = vars(usual)
        # Proposals that stay the same for some commits, each with the number of commits from which it may change.
        self._lasting: dict[JobKind, tuple[Skip, float]] = {}
        self._kinds: Sequence[JobKind] = SIMULATED
        self._kinds = tuple(kind for kind, found in self._proposals(moment(begin)).items() if not stays_proposed(found))
        self._counts = counts(self.policy)
        self._stays_due = not freezes and not self._budgets and stays_due(self.policy, self._kinds)
        # Other kinds get no schedule: nothing decides about them, so they would stay at the first time.
        self._schedules = {kind: each for kind, each in self._schedules.items() if kind in self._kinds}

    def write_after(self, now: float) -> Write | None:
        """Returns the first commit after `now` that may change a decision; None without such a commit."""
        writes, at = self.past.writes, bisect_right(self.past.writes, now, self._next, key=_at)
        if len(self._lasting) == len(self._kinds):
            to_go = min((lasts for _, lasts in self._lasting.values()), default=inf) - self.files.commits
            at = len(writes) if to_go == inf else max(at, self._next - 1 + int(to_go))
        return writes[at] if at < len(writes) else None

    def advance(self, now: float) -> None:
        """Adds the commits until now."""
        writes, first = self.past.writes, self._next
        if first < len(writes) and writes[first].at <= now:
            self._next = bisect_right(writes, now, first, key=_at)
            self.files.write(writes[first : self._next])
            self._last_at = writes[self._next - 1].at

    def decide(self, now: float, limits: Limits, load: Load) -> Answer:
        """Decides as the scheduler does (`scheduling.scheduler`). The table changes only when `begin` is called."""
        at = moment(now)
        self._limited_until = 0.0
        proposals = self._proposals(at)
        if not any(isinstance(each, Run) for each in proposals.values()):
            self._is_exact = len(self._lasting) == len(self._kinds)
            self._wanted_since.clear()
            return Answer(None, self._idle_until(proposals, at))
        admissions = admit(proposals, self._situation(now, at), limits, load)
        run: Run | None = None
        until: list[datetime] = []
        is_limited = False
        for kind, each in admissions.items():
            if isinstance(each, Wait):
                self._wanted_since.setdefault(kind, at)
                is_limited = is_limited or each.code.endswith("limit-reached")
            else:
                self._wanted_since.pop(kind, None)
            if isinstance(each, Run):
                run = each
            elif isinstance(each, Skip | Wait) and each.until is not None and each.until > at:
                until.append(each.until)
        until += [each.next_at for each in self._schedules.values() if each.next_at is not None]
        if run is None and self.freezes and (starts := next_start(self.freezes, self.past.subject, at)):
            until.append(starts)
        found = min(until).timestamp() if until else None
        if self._stays_due and self._last_at and is_limited and run is None:
            self._limited_until = found or inf
        return Answer(run, found, is_limited)

    def still_limited(self, now: float) -> Answer | None:
        """Returns the last answer if a new decision would have the same result. This is so while the limit of all
        active jobs is reached, due jobs stay due after any commit, and no job of the table has ended."""
        until = None if self._limited_until == inf else self._limited_until
        return Answer(None, until, is_limited=True) if now < self._limited_until else None

    def likely_idle(self) -> float | None:
        """Returns a time until which probably no job is due, estimated from the number of commits between the last two
        jobs; None if this time is not after the next commit."""
        at = self._run_at + self._stride - 2
        is_likely = self._is_foreseen and not (self._is_exact or self.share) and self._next < at < len(self.past.writes)
        return self.past.writes[at].at if is_likely else None

    def idle_at(self, now: float) -> Answer | None:
        """Returns the answer at a later time if no job will be due then. A threshold that is reached stays reached, so
        no job is due before that time either. The decisions in between, which cost much more than the commits, are left
        out.

        Returns None if a job may be due at the next commit but no longer at later ones. A cleaning may be such a job,
        because the share of old versions falls with each commit.
        """
        at = moment(now)
        if any(each.next_at is not None and each.next_at <= at for each in self._schedules.values()):
            return None
        before = self.files, self._next, self._last_at
        self.files = copy(self.files)
        self.advance(now)
        proposals = self._proposals(at)
        self.files, self._next, self._last_at = before
        if any(isinstance(each, Run) for each in proposals.values()):
            self._is_foreseen = False
            return None
        if any(each.code == "nothing-new" for each in proposals.values() if isinstance(each, Skip)):
            return None
        self._wanted_since.clear()
        return Answer(None, self._idle_until(proposals, at))

    def _idle_until(self, proposals: Mapping[JobKind, Proposal], now: datetime) -> float | None:
        """Returns the time at which a job may become due even without a commit, if no job is due now."""
        until = [each.until for each in proposals.values() if isinstance(each, Skip) and each.until is not None]
        until += [each.next_at for each in self._schedules.values() if each.next_at is not None]
        return min((each.timestamp() for each in until if each > now), default=None)

    def begin(self, run: Run, job_id: str, now: float) -> Job:
        """Queues the job, and returns it."""
        at = moment(now)
        self._is_foreseen = True
        # Without a commit since the last job, the old number stays, because 0 says nothing about the next job.
        self._stride, self._run_at = self._next - self._run_at or self._stride, self._next
        about = {"params": run.params, "priority": self.policy.priority, "reason": run.because}
        job = made(Job, id=job_id, table_id=self.past.id, kind=run.kind, created_at=at, not_before=at, **about)
        self.active.append(job)
        before = self._before[job_id] = self.history.get(run.kind, _NEVER)
        self.history[run.kind] = made(JobHistory, **{**vars(before), "asked_at": at})
        if schedule := self._schedules.get(run.kind):
            schedule.is_due = False
        return job

    def closes_at(self, now: float) -> float | None:
        """Returns when jobs that no worker has taken will be withdrawn; None if no such time is known."""
        starts = next_start(self.freezes, self.past.subject, moment(now)) if self.freezes else None
        return min((at for at in (self._windows.closes_at(now), starts and starts.timestamp()) if at), default=None)

    def withdraw(self, job: Job) -> None:
        """Takes back a job that no worker has taken, as if it had never been queued."""
        self.active = [each for each in self.active if each.id != job.id]
        self.history[job.kind] = self._before.pop(job.id)
        if schedule := self._schedules.get(job.kind):
            schedule.is_due = True

    def lease(self, job: Job, now: float) -> Taken:
        """Lets a worker take the job, and returns the job's input."""
        self._before.pop(job.id)
        taken = self.files.begin(job.kind, self.policy, now)
        taken.factor = job.params.get("factor", taken.factor)
        self.taken[job.id] = taken
        return taken

    def end(self, job: Job, leased_at: float, now: float, gb_hours: float = 0.0) -> None:
        self._limited_until = 0.0
        taken = self.taken.pop(job.id)
        self.files.end(taken, self.policy, now)
        if self._has_objective:
            self._spent.append((moment(now), gb_hours))
            while self._spent[0][0] <= moment(now) - _DAY:
                self._spent.popleft()
        self.active = [each for each in self.active if each.id != job.id]
        self._lasting.pop(job.kind, None)
        before = self.history[job.kind]
        is_fruitless = job.kind is JobKind.CLEANING and not taken.files
        self.history[job.kind] = made(
            JobHistory,
            asked_at=before.asked_at,
            began_at=moment(leased_at),
            ended_at=moment(now),
            is_unfinished=taken.share < 1,
            fruitless=before.fruitless + 1 if is_fruitless else 0,
        )

    def work_seconds(self, kind: JobKind, now: float) -> float:
        """Returns the expected time of a job that would begin now."""
        work = copy(self.files).begin(kind, self.policy, now).work
        return self._expected(self.past.id, kind.value, work, dry_run=False).seconds

    def starts_by(self, now: float) -> float:
        """Returns the time from which a job that is queued now goes before all others of its priority."""
        longest, most = now + LONGEST_WAIT.total_seconds(), self.policy.objective.log_age_seconds
        if most is None or self.files.oldest_at is None:
            return longest
        return min(longest, max(now, self.files.oldest_at + most))

    def keeps_objective(self, now: float) -> bool | None:
        """Returns whether the objective is kept at a time; None without one."""
        if not self.policy.objective.is_set:
            return None
        at, merges = moment(now), self.policy.clustering.enabled
        return not check(self._objective(at), self._snapshot(at), at, merges_files=merges).missed

    def waiting(self, now: float) -> CostlyTable | None:
        """Returns the table with its price if it waits although its reads cost more than allowed; else None."""
        return self._objective(moment(now)).waiting(self._snapshot(moment(now)), moment(now))

    def _proposals(self, now: datetime) -> dict[JobKind, Proposal]:
        snapshot: TableSnapshot | None = None
        found: dict[JobKind, Proposal] = {}
        commits = self.files.commits
        for kind in self._kinds:
            if lasting := self._lasting.get(kind):
                skip, lasts = lasting
                if commits < lasts and (skip.until is None or now < skip.until):
                    found[kind] = skip
                    continue
            if to_go := self._commits_to_go(kind):
                found[kind] = _NOT_YET
                self._lasting[kind] = _NOT_YET, commits + to_go
                continue
            snapshot = snapshot or self._snapshot(now)
            proposal = found[kind] = POLICIES[kind](self._inputs(kind, snapshot, now))
            if isinstance(proposal, Skip) and proposal.commits:
                self._lasting[kind] = proposal, commits + proposal.commits
            else:
                self._lasting.pop(kind, None)
        return found

    def _commits_to_go(self, kind: JobKind) -> int:
        """Returns how many more commits a job of this kind needs to be due; 0 if the policy has to decide."""
        if not self._counts or kind not in COUNTED or self.history.get(kind, _NEVER).is_unfinished:
            return 0
        threshold: int = getattr(self.policy, kind.value).commits
        return max(0, threshold - self.files.since(kind).commits)

    def _inputs(self, kind: JobKind, snapshot: TableSnapshot, now: datetime) -> PolicyInputs:
        history = self.history.get(kind, _NEVER)
        schedule, objective = self._schedules.get(kind), self._objective(now)
        calendar = schedule.calendar(now) if schedule else None
        context = made(
            TriggerContext,
            now=now,
            calendar=calendar,
            last_run_at=history.began_at,
            is_unfinished=history.is_unfinished,
            objective=objective,
        )
        given = {"policy": self.policy, "snapshot": snapshot, "first_freed": self.files.first_freed}
        return made(PolicyInputs, **_USUAL_INPUTS, **given, context=context)

    def _objective(self, now: datetime) -> TableObjective:
        if not self._has_objective:
            return self._usual_objective
        over = self._budgets.over(self.past.id, now) if self._budgets else None
        spent = [each for each in self._spent if each[0] > now - _DAY]
        return replace(
            self._usual_objective,
            oldest_log_at=None if self.files.oldest_at is None else moment(self.files.oldest_at),
            gb_hours=sum(each for _, each in spent),
            overspent=over[0] if over else None,
            spent_until=over[1] if over else spent[0][0] + _DAY if spent else None,
            work_seconds={kind: self.work_seconds(kind, now.timestamp()) for kind in self._weighed},
        )

    def _snapshot(self, now: datetime) -> TableSnapshot:
        first_at = self._first_at if self._last_at or self.past.first_commit_at else None
        return self.files.snapshot(self._usual_snapshot, now, self._last_at, first_at)

    def _situation(self, now: float, at: datetime) -> Situation:
        ran_at = {kind: self.files.last_runs[kind][0] for kind in _ON_TIMELINE}
        return made(
            Situation,
            now=at,
            polled_at=at,
            ran_at={kind: moment(each) for kind, each in ran_at.items() if each is not None},
            active=self.active,
            group=self.policy.worker_group,
            paused=paused(None, self.policy),
            frozen=frozen_by(self.freezes, self.past.subject, at) if self.freezes else None,
            closed_until=self._windows.closed_until(now),
            history=self.history,
            wanted_since=self._wanted_since,
            rest=self._rest,
        )
