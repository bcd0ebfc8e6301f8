"""Tests which due jobs may start: cases, and invariants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.contract import JobKind
from jobs.kinds.registry import READING
from service.queue.job import Job, JobState
from service.scheduling.admission import (
    GROUP_LIMITED,
    KIND_LIMITED,
    LIMITED,
    Limits,
    Load,
    Situation,
    admit,
    capacity_wanted,
)
from service.scheduling.decision import DECIDED, Admission, Proposal, Run, Skip, Suggest, Wait
from service.scheduling.job_history import JobHistory

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
REPAIR = JobKind.REPAIR
ROLLBACK = JobKind.ROLLBACK
COMPACTION = JobKind.COMPACTION
EXPANSION = JobKind.BUCKET_EXPANSION
RESIZE = JobKind.BUCKET_RESIZE
CONTRACTION = JobKind.BUCKET_CONTRACTION
CLUSTERING = JobKind.CLUSTERING
CLEANING = JobKind.CLEANING
SYNC = JobKind.SYNC
DIAGNOSIS = JobKind.DIAGNOSIS
LATER = NOW + timedelta(hours=1)
NOTHING = Skip("not-yet", "nothing is due")


def minutes_ago(number: float) -> datetime:
    return NOW - timedelta(minutes=number)


def proposals(*due: JobKind) -> dict[JobKind, Proposal]:
    return {kind: Run(kind, {}, f"{kind} is due") if kind in due else NOTHING for kind in DECIDED}


def situation(**changes: Any) -> Situation:
    return Situation(**{"now": NOW, "polled_at": NOW, **changes})


def job(kind: JobKind, state: JobState = JobState.RUNNING) -> Job:
    return Job("job_1", "tbl_1", kind, created_at=NOW, not_before=NOW, state=state)


def admitted(
    *due: JobKind, limits: Limits | None = None, load: Load | None = None, **changes: Any
) -> dict[JobKind, Admission]:
    return admit(proposals(*due), situation(**changes), limits or Limits(), load or Load())


def started_kinds(admissions: dict[JobKind, Admission]) -> list[JobKind]:
    return [kind for kind, admission in admissions.items() if isinstance(admission, Run)]


def codes_of_waiting(admissions: dict[JobKind, Admission]) -> dict[JobKind, str]:
    return {kind: admission.code for kind, admission in admissions.items() if isinstance(admission, Wait)}


@pytest.mark.parametrize(
    ("due", "first"),
    [
        ({CLEANING}, CLEANING),
        ({CLUSTERING, COMPACTION}, COMPACTION),
        ({CLUSTERING, EXPANSION}, EXPANSION),
        ({COMPACTION, EXPANSION}, COMPACTION),
        ({CLEANING, EXPANSION}, EXPANSION),
        ({CONTRACTION, EXPANSION}, EXPANSION),
        ({CONTRACTION, RESIZE}, RESIZE),
        ({CLUSTERING, CONTRACTION}, CONTRACTION),
        ({CLEANING, CLUSTERING}, CLUSTERING),
        (set(DECIDED) - {REPAIR}, ROLLBACK),
        (set(DECIDED) - {REPAIR, ROLLBACK}, COMPACTION),
        (set(DECIDED), REPAIR),
    ],
)
def test_only_one_of_all_due_jobs_starts_and_the_others_wait(due: set[JobKind], first: JobKind) -> None:
    admissions = admitted(*due)
    assert started_kinds(admissions) == [first]
    assert codes_of_waiting(admissions) == dict.fromkeys(due - {first}, "not-its-turn")


def test_a_waiting_decision_names_the_job_that_goes_first() -> None:
    assert admitted(COMPACTION, CLEANING)[CLEANING].because == "cleaning is due; but compaction goes first"


def test_kinds_that_waited_go_before_a_kind_that_has_just_run() -> None:
    history = {COMPACTION: JobHistory(asked_at=minutes_ago(5))}
    waiting = {CLEANING: minutes_ago(9)}
    assert started_kinds(admitted(COMPACTION, CLEANING, history=history, wanted_since=waiting)) == [CLEANING]
    # Jobs that began to wait later do not count.
    assert started_kinds(admitted(COMPACTION, CLEANING, history=history, wanted_since={CLEANING: minutes_ago(4)})) == [
        COMPACTION
    ]
    # Jobs that are no longer due do not count, either.
    assert started_kinds(admitted(COMPACTION, CLUSTERING, history=history, wanted_since=waiting)) == [COMPACTION]


@pytest.mark.parametrize("active", [kind for kind in JobKind if kind not in READING])
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.LEASED, JobState.RUNNING])
def test_nothing_starts_beside_a_job_that_writes(active: JobKind, state: JobState) -> None:
    admissions = admitted(*DECIDED, active=[job(active, state)])
    assert codes_of_waiting(admissions) == dict.fromkeys(DECIDED, "table-busy")
    assert admissions[CLEANING].because == f"cleaning is due; but {active.replace('_', ' ')} job_1 is {state.value}"


@pytest.mark.parametrize("kind", sorted(READING))
def test_a_job_that_only_reads_does_not_delay_others(kind: JobKind) -> None:
    assert started_kinds(admitted(COMPACTION, active=[job(kind)])) == [COMPACTION]


def test_a_sync_starts_beside_no_job_and_delays_no_other_kind() -> None:
    syncing = [job(SYNC)]
    assert codes_of_waiting(admitted(SYNC, active=syncing)) == {SYNC: "table-busy"}
    assert started_kinds(admitted(SYNC, COMPACTION, active=syncing)) == [COMPACTION]
    assert codes_of_waiting(admitted(SYNC, active=[job(COMPACTION)])) == {SYNC: "table-busy"}


def test_a_pause_keeps_all_jobs_from_starting() -> None:
    admissions = admitted(*DECIDED, paused="anna paused all upkeep")
    assert codes_of_waiting(admissions) == dict.fromkeys(DECIDED, "paused")
    assert admissions[COMPACTION].because == "compaction is due; but anna paused all upkeep"


def test_while_stale_writes_are_unrepaired_no_job_starts_that_could_remove_their_files() -> None:
    admissions = admitted(EXPANSION, CLUSTERING, CLEANING, COMPACTION, misplaced_rows="rows of 1 commit are misplaced")
    assert started_kinds(admissions) == [COMPACTION]
    assert codes_of_waiting(admissions) == dict.fromkeys((EXPANSION, CLUSTERING, CLEANING), "incident-open")
    because = "cleaning is due; but rows of 1 commit are misplaced; a repair goes first and needs the present files"
    assert admissions[CLEANING].because == because
    assert started_kinds(admitted(*DECIDED, misplaced_rows="rows of 1 commit are misplaced")) == [REPAIR]


def test_outside_a_window_everything_waits_until_the_next_opens() -> None:
    wait = admitted(COMPACTION, closed_until=LATER)[COMPACTION]
    because = "compaction is due; but the next maintenance window opens at 2026-01-01 13:00 UTC"
    assert wait == Wait("outside-window", because, LATER)


def test_after_a_failure_the_kind_waits_and_says_why_and_until_when() -> None:
    failed = JobHistory(asked_at=minutes_ago(9), failures=1, failed_at=minutes_ago(4), error="column-unknown")
    admissions = admitted(CLUSTERING, CLEANING, history={CLUSTERING: failed})
    assert started_kinds(admissions) == [CLEANING]
    assert admissions[CLUSTERING] == Wait(
        "failed-before",
        "clustering is due; but the last clustering failed 4 min ago: column-unknown; next try at 2026-01-01 12:06 UTC",
        NOW + timedelta(minutes=6),
    )
    assert started_kinds(
        admitted(CLUSTERING, history={CLUSTERING: JobHistory(failures=1, failed_at=minutes_ago(10))})
    ) == [CLUSTERING]


def test_a_job_waits_until_the_rest_after_the_last_job_of_its_kind_is_over() -> None:
    history = {COMPACTION: JobHistory(asked_at=minutes_ago(3), began_at=minutes_ago(3), ended_at=minutes_ago(2))}
    wait = admitted(COMPACTION, history=history, rest={COMPACTION: 180})[COMPACTION]
    assert isinstance(wait, Wait)
    assert (wait.code, wait.until) == ("too-soon", NOW + timedelta(minutes=1))
    assert started_kinds(admitted(COMPACTION, history=history, rest={COMPACTION: 120})) == [COMPACTION]


def test_polls_from_before_the_last_job_of_a_kind_do_not_start_another_one() -> None:
    history = {COMPACTION: JobHistory(asked_at=minutes_ago(4), began_at=minutes_ago(3), ended_at=minutes_ago(1))}
    before = {"history": history, "polled_at": minutes_ago(2), "ran_at": {COMPACTION: minutes_ago(9)}}
    wait = admitted(COMPACTION, **before)[COMPACTION]
    assert isinstance(wait, Wait)
    assert (wait.code, wait.until) == ("not-looked-at", NOW + timedelta(minutes=4))
    assert started_kinds(admitted(CLEANING, **before)) == [CLEANING]
    # The poll was after the job's end, or after the commit but before the end.
    assert started_kinds(admitted(COMPACTION, **{**before, "polled_at": NOW})) == [COMPACTION]
    assert started_kinds(admitted(COMPACTION, **{**before, "ran_at": {COMPACTION: minutes_ago(2)}})) == [COMPACTION]
    # A job without work has no visible effect.
    history = {COMPACTION: JobHistory(began_at=minutes_ago(6), ended_at=minutes_ago(5))}
    assert started_kinds(admitted(COMPACTION, history=history, polled_at=minutes_ago(9))) == [COMPACTION]


@pytest.mark.parametrize(
    ("limits", "load", "code", "because"),
    [
        (
            Limits(active=3),
            Load({(CLEANING, "default"): 2, (COMPACTION, "large"): 1}),
            LIMITED,
            "3 jobs active on all tables, 3 allowed",
        ),
        (
            Limits(per_group={"default": 3, "large": 1}),
            Load({(CLEANING, "default"): 2, (COMPACTION, "default"): 1}),
            GROUP_LIMITED,
            "3 jobs active in worker group 'default', 3 allowed",
        ),
        (
            Limits(per_kind={COMPACTION: 1}),
            Load({(COMPACTION, "default"): 1}),
            KIND_LIMITED,
            "1 compaction job active in worker group 'default', 1 allowed",
        ),
        (Limits(at_once=2), Load(started=2), LIMITED, "2 jobs started a moment ago, the limit of one round"),
    ],
)
def test_no_more_jobs_start_than_the_limits_allow(limits: Limits, load: Load, code: str, because: str) -> None:
    wait = admitted(COMPACTION, limits=limits, load=load)[COMPACTION]
    assert wait == Wait(code, f"compaction is due; but {because}")


def test_a_kind_over_its_limit_does_not_keep_the_others_of_its_table() -> None:
    admissions = admitted(
        EXPANSION, CLEANING, limits=Limits(per_kind={EXPANSION: 1}), load=Load({(EXPANSION, "default"): 1})
    )
    assert started_kinds(admissions) == [CLEANING]
    assert codes_of_waiting(admissions) == {EXPANSION: KIND_LIMITED}


@pytest.mark.parametrize(
    ("code", "kind", "group", "has_capacity"),
    [
        (LIMITED, EXPANSION, "default", True),
        (GROUP_LIMITED, COMPACTION, "large", False),
        (GROUP_LIMITED, COMPACTION, "small", True),
        (KIND_LIMITED, EXPANSION, "default", False),
        (KIND_LIMITED, EXPANSION, "small", True),
        (KIND_LIMITED, EXPANSION, "large", False),
        (KIND_LIMITED, CLUSTERING, "default", False),
    ],
)
def test_no_decision_is_made_about_a_waiting_table_until_the_limits_have_room(
    code: str, kind: JobKind, group: str, has_capacity: bool
) -> None:
    limits = Limits(active=5, per_group={"large": 2, "small": 2}, per_kind={EXPANSION: 1, CLUSTERING: 0})
    load = Load({(EXPANSION, "default"): 1, (COMPACTION, "large"): 2, (COMPACTION, "small"): 1})
    wanted = capacity_wanted(code, kind, group)
    assert wanted is not None
    assert limits.has_capacity(wanted, load) is has_capacity
    # The rules that make the job wait have the same result.
    assert code == LIMITED or (limits.over(kind, group, load) is None) is has_capacity
    assert not limits.has_capacity(wanted, Load({(CLEANING, "other"): 5}))


def test_a_diagnosis_waits_for_every_job_and_delays_only_another_diagnosis() -> None:
    assert started_kinds(admitted(COMPACTION, DIAGNOSIS)) == [COMPACTION]
    busy = admitted(DIAGNOSIS, active=[job(COMPACTION)])[DIAGNOSIS]
    assert isinstance(busy, Wait)
    assert busy.code == "table-busy"
    assert started_kinds(admitted(COMPACTION, DIAGNOSIS, active=[job(DIAGNOSIS)])) == [COMPACTION]
    assert started_kinds(admitted(DIAGNOSIS, active=[job(DIAGNOSIS)])) == []
    # The diagnosis starts as soon as the other jobs have started.
    since = {DIAGNOSIS: minutes_ago(5)}
    history = {COMPACTION: JobHistory(asked_at=minutes_ago(4))}
    assert started_kinds(admitted(COMPACTION, DIAGNOSIS, wanted_since=since, history=history)) == [DIAGNOSIS]


def test_a_job_that_waits_for_another_reason_needs_no_room_within_the_limits() -> None:
    assert capacity_wanted("paused", EXPANSION, "default") is None


def test_a_worker_group_at_its_limit_does_not_block_another_group() -> None:
    limits = Limits(per_group={"large": 1}, per_kind={COMPACTION: 1})
    load = Load({(COMPACTION, "large"): 1})
    assert started_kinds(admitted(COMPACTION, limits=limits, load=load, group="large")) == []
    assert started_kinds(admitted(COMPACTION, limits=limits, load=load, group="default")) == [COMPACTION]


def test_suggestions_and_skips_are_not_changed_by_the_admission() -> None:
    suggestion = Suggest(EXPANSION, {"factor": 2}, "a bucket is too large")
    given_answers = {**proposals(COMPACTION), EXPANSION: suggestion}
    admissions = admit(given_answers, situation(paused="no"), Limits(), Load())
    assert admissions[EXPANSION] is suggestion
    assert admissions[CLEANING] is NOTHING


@dataclass
class Table:
    """A table whose kinds in `wants` are always due, which is the highest possible load."""

    wants: frozenset[JobKind]
    group: str = "default"
    job: Job | None = None
    job_ends: int = 0
    asked_at: dict[JobKind, datetime] = field(default_factory=dict)
    wanted_since: dict[JobKind, datetime] = field(default_factory=dict)
    due_since: int = 0
    starts: list[tuple[int, JobKind]] = field(default_factory=list)


@dataclass
class Service:
    """Simulates rounds of the planner, with the tables that have waited longest first, and checks its rules."""

    tables: list[Table]
    limits: Limits
    seconds_of_job: int

    def run_rounds(self, rounds: int) -> None:
        for number in range(rounds):
            for table in self.tables:
                if table.job and table.job_ends <= number:
                    table.job, table.due_since = None, number
            begun = 0
            for table in sorted(self.tables, key=lambda each: each.due_since):
                begun += self._decide(table, number, begun)
            assert begun <= self.limits.at_once
            self._check()

    def _decide(self, table: Table, number: int, begun: int) -> bool:
        now = NOW + timedelta(seconds=number)
        view = situation(
            now=now,
            polled_at=now,
            active=[table.job] if table.job else [],
            group=table.group,
            history={kind: JobHistory(asked_at=at) for kind, at in table.asked_at.items()},
            wanted_since=table.wanted_since,
        )
        admissions = admit(proposals(*table.wants), view, self.limits, Load(self._active(), begun))
        for kind, admission in admissions.items():
            if isinstance(admission, Wait):
                table.wanted_since.setdefault(kind, now)
            else:
                table.wanted_since.pop(kind, None)
        chosen = started_kinds(admissions)
        assert len(chosen) <= 1
        for kind in chosen:
            assert table.job is None
            table.job = Job(f"job_{number}", "tbl", kind, created_at=now, not_before=now)
            table.job_ends = number + self.seconds_of_job
            table.asked_at[kind] = now
            table.starts.append((number, kind))
        return bool(chosen)

    def _active(self) -> Counter[tuple[JobKind, str]]:
        return Counter((table.job.kind, table.group) for table in self.tables if table.job)

    def _check(self) -> None:
        active = self._active()
        assert active.total() <= self.limits.active
        for group, most in self.limits.per_group.items():
            assert sum(number for (_, each), number in active.items() if each == group) <= most
        for (kind, _), number in active.items():
            assert number <= self.limits.per_kind.get(kind, number)


GROUPS = ("default", "large", "small")
WRITING = [kind for kind in DECIDED if kind not in READING]
WISHES = st.lists(
    st.tuples(st.frozensets(st.sampled_from(WRITING), min_size=1), st.sampled_from(GROUPS)), min_size=1, max_size=6
)
PER_GROUP = st.dictionaries(st.sampled_from(GROUPS), st.integers(1, 3))
PER_KIND = st.dictionaries(st.sampled_from(DECIDED), st.integers(1, 3))


def longest_wait(starts: list[int], rounds: int) -> int:
    marks = [0, *starts, rounds]
    return max(later - earlier for earlier, later in pairwise(marks))


@settings(max_examples=25)
@given(WISHES, st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), PER_GROUP, PER_KIND)
def test_limits_hold_and_every_due_table_is_served_in_bounded_rounds(
    wishes: list[tuple[frozenset[JobKind], str]],
    active: int,
    at_once: int,
    seconds: int,
    per_group: dict[str, int],
    per_kind: dict[JobKind, int],
) -> None:
    tables = [Table(*wish) for wish in wishes]
    # Each table before it in the queue may start one job for which it has to wait, once.
    bound = (len(tables) + 1) * (seconds + 1)
    Service(tables, Limits(active, per_group, per_kind, at_once), seconds).run_rounds(4 * bound)
    for table in tables:
        assert longest_wait([number for number, _ in table.starts], 4 * bound) <= bound


@pytest.mark.slow
@pytest.mark.parametrize("examples", [8, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_every_kind_of_a_table_gets_its_turn_however_often_the_others_are_due(examples: int) -> None:
    @settings(max_examples=examples)
    @given(WISHES, st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
    def each_gets_its_turn(
        wishes: list[tuple[frozenset[JobKind], str]], active: int, at_once: int, seconds: int
    ) -> None:
        tables = [Table(*wish) for wish in wishes]
        bound = (len(tables) + 1) * (seconds + 1) * (len(DECIDED) + 1)
        Service(tables, Limits(active, at_once=at_once), seconds).run_rounds(3 * bound)
        for table in tables:
            for kind in table.wants:
                assert longest_wait([number for number, each in table.starts if each is kind], 3 * bound) <= bound

    each_gets_its_turn()
